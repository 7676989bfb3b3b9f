"""From an SLO to a drain, and back: Prometheus, publisher, operator, webhook, scheduler, by the commands of a tutorial.

Each part is a process with the rights that are shipped for it. All of it is played once; each test looks at one aspect.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from controlplane.to_try import NAMESPACE, ToTry, opened
from e2e.runbook import Desk
from e2e.slo_scene import FELL, PUBLISHED, RECOVERED, STEPS, WRONG, Played, Step, play, unseen
from e2e.stories import complaints

FALLEN = ("node-zone-a-0", "node-zone-b-0")
WEB, BATCH, REPLICAS = f"{NAMESPACE}/web", f"{NAMESPACE}/batch", 12

pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class Tutorial:
    """The cluster after the tutorial, and what was done and seen."""

    found: ToTry
    played: Played

    @property
    def good(self) -> set[str]:
        return set(self.found.nodes) - set(FALLEN)


@pytest.fixture(scope="module")
def tutorial(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tutorial]:
    if request.config.getoption("--kubeconfig"):
        pytest.skip("needs a control plane of its own, not --kubeconfig")
    with opened(tmp_path_factory.mktemp("slo"), slo=True) as found:
        desk = Desk(tmp_path_factory.mktemp("desk") / "clone", found.cluster.admin_kubeconfig, found.variables)
        yield Tutorial(found, play(found, desk))


@pytest.mark.parametrize("step", [one for one in STEPS if one.shown], ids=str)
def test_a_command_shows_what_the_page_shows(tutorial: Tutorial, step: Step) -> None:
    done = tutorial.played.done[step]
    assert unseen(step, done) == [], done.output


def test_good_values_become_taints_that_evict_no_pod(tutorial: Tutorial) -> None:
    assert tutorial.played.after[PUBLISHED].taints == dict.fromkeys(tutorial.found.nodes, "980")
    assert [one for one in tutorial.found.cluster.availability.departures() if one.at < _fall(tutorial)] == []


def test_the_taints_of_the_nodes_that_fall_follow_and_no_others(tutorial: Tutorial) -> None:
    assert tutorial.played.after[FELL].taints == dict.fromkeys(tutorial.good, "980") | dict.fromkeys(FALLEN, "940")


def test_the_pods_that_compare_are_evicted_from_these_nodes_and_no_others(tutorial: Tutorial) -> None:
    before = tutorial.played.after[PUBLISHED].pods
    leaving = {uid for uid, (app, node) in before.items() if app == "web" and node in FALLEN}
    left = tutorial.found.cluster.availability.departures(since=_fall(tutorial))
    assert leaving
    assert {one.uid for one in left} == leaving
    assert all(one.evicted for one in left)


def test_the_pods_that_accept_less_stay(tutorial: Tutorial) -> None:
    assert tutorial.found.cluster.availability.departures(BATCH, _fall(tutorial)) == []
    assert set(tutorial.played.after[FELL].nodes("batch")) == set(tutorial.found.nodes)


def test_at_no_moment_is_more_missing_than_the_budget_allows(tutorial: Tutorial) -> None:
    assert tutorial.found.cluster.availability.worst(WEB, _fall(tutorial)).missing == 1


def test_the_replacements_are_on_other_nodes(tutorial: Tutorial) -> None:
    nodes = tutorial.played.after[FELL].nodes("web")
    assert set(nodes) == tutorial.good
    assert nodes.total() == REPLICAS


def test_the_taints_of_the_nodes_that_recover_follow(tutorial: Tutorial) -> None:
    assert tutorial.played.after[RECOVERED].taints == dict.fromkeys(tutorial.found.nodes, "980")


def test_nothing_moves_when_the_nodes_have_recovered(tutorial: Tutorial) -> None:
    assert tutorial.found.cluster.availability.departures(since=tutorial.played.began[RECOVERED]) == []
    assert tutorial.played.after[WRONG].pods == tutorial.played.after[FELL].pods


def test_the_taints_are_removed_with_their_object(tutorial: Tutorial) -> None:
    assert tutorial.played.after[WRONG].taints == {}


def test_no_part_lacks_a_right_or_complains(tutorial: Tutorial) -> None:
    assert tutorial.found.loop
    assert complaints(tutorial.found.operator) == []
    assert [line for line in tutorial.found.loop.publisher.logs() if line.get("level") in ("error", "critical")] == []


def _fall(tutorial: Tutorial) -> float:
    return tutorial.played.began[FELL]
