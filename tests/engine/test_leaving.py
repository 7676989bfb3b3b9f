"""Pods that terminate leave by the policies that give them a deadline, until they are gone."""

import pytest

from engine.rig import START, Rig, gt, limited
from taintwarden.engine import events
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import Mode
from taintwarden.engine.reported_status import StuckPod
from taintwarden.engine.rfc3339 import at


def leaving(rig: Rig, policy: str = "p") -> tuple[int, list[str]]:
    """Number of pods that terminate, and the names of those that should have ended."""
    [status] = [one.status for one in rig.report() if one.policy.name == policy]
    return status.leaving, [pod.name for pod in status.stuck]


def evicted(*names: str) -> Rig:
    """Pods that were evicted and have 30 s to stop."""
    rig = Rig(limited())
    for name in names:
        rig.pod(name, gt())
    rig.node("n1", "sla=940")
    for name in names:
        rig.settle(name, Outcome.ACCEPTED)
        rig.gone(name, until=START + 30)
    return rig


def test_a_pod_is_leaving_until_it_is_gone():
    rig = evicted("a", "b")
    assert leaving(rig) == (2, [])
    rig.gone("a")
    assert leaving(rig) == (1, [])
    rig.gone("b")
    assert leaving(rig) == (0, [])


@pytest.mark.parametrize(("seconds", "stuck"), [(44, []), (46, ["a"])])
def test_a_pod_that_should_have_ended_is_stuck(seconds: int, stuck: list[str]) -> None:
    rig = evicted("a")
    rig.advance(seconds)
    assert leaving(rig) == (1, stuck)


def test_a_pod_of_a_node_that_was_not_seen_leaves_by_no_policy():
    rig = Rig(limited())
    rig.process(events.PodGone("uid-a", "n9", START + 30, rig.make_pod("a", node="n9")))
    assert leaving(rig) == (0, [])


def test_the_longest_is_named_first():
    rig = evicted("a")
    rig.pod("b", gt())
    rig.settle("b", Outcome.ACCEPTED)
    rig.gone("b", until=START + 5)
    rig.advance(60)
    [report] = rig.report()
    assert report.status.stuck[0] == StuckPod("shop", "b", "n1", at(START + 5))
    assert report.stuck_pods == 2


def test_pods_that_others_delete_from_the_node_count_if_they_had_to_leave():
    rig = Rig(limited()).with_pod("sla=940", gt())
    rig.pod("b", gt("900"))
    rig.gone("a", until=START + 30)
    rig.gone("b", until=START + 30)  # it may stay
    assert leaving(rig) == (1, [])


@pytest.mark.parametrize(
    ("spec", "found"), [({"mode": "DryRun"}, 0), ({"paused": True}, 0), ({"timing": {"violationGraceSeconds": 60}}, 1)]
)
def test_pods_leave_by_policies_that_enforce_also_before_their_deadline(spec, found):
    rig = Rig(limited(spec=spec)).with_pod("sla=940", gt())
    rig.gone("a", until=START + 30)
    assert leaving(rig) == (found, [])


def test_a_pod_that_terminates_when_its_node_becomes_bad_leaves():
    rig = Rig(limited()).with_pod("sla=980", gt())
    rig.gone("a", until=START + 30)
    assert leaving(rig) == (0, [])
    rig.node("n1", "sla=940")
    assert leaving(rig) == (1, [])


def test_a_pod_that_the_stream_first_shows_terminating_leaves():
    rig = Rig(limited())
    rig.node("n1", "sla=940")
    rig.process(events.PodGone("uid-a", "n1", START + 30, rig.make_pod("a", gt())))
    assert leaving(rig) == (1, [])


def test_a_pod_leaves_by_each_policy_that_gives_it_a_deadline():
    rig = Rig(limited("p"), limited("q", spec={"taints": [{"key": "x"}]})).with_pod("sla=980", gt())
    rig.node("n1", "sla=940")
    rig.gone("a", until=START + 30)
    assert (leaving(rig, "p"), leaving(rig, "q")) == ((1, []), (0, []))
    rig.node("n1", "sla=940", "x=1")
    assert (leaving(rig, "p"), leaving(rig, "q")) == ((1, []), (1, []))


def test_a_pod_that_runs_again_after_a_restore_of_etcd_is_not_leaving():
    rig = evicted("a")
    rig.pod("a", gt("900"))
    assert leaving(rig) == (0, [])
    assert rig.world.limiter.departures.uids() == []


@pytest.mark.parametrize(
    ("value", "mode", "found"),
    [("sla=940", Mode.ENFORCE, 1), ("sla=980", Mode.ENFORCE, 0), ("sla=940", Mode.DRY_RUN, 0)],
)
def test_pods_that_terminated_before_this_process_began_count_if_they_have_to_leave(
    value: str, mode: Mode, found: int
) -> None:
    rig = Rig(limited(spec={"mode": mode.value}), synced=False, leading=False)
    rig.feed(events.PodGone("uid-a", "n1", START + 30, rig.make_pod("a", gt())))
    rig.feed(events.PodGone("uid-b", "n1", START + 30, rig.make_pod("b", gt())))
    rig.node("n1", value)
    rig.gone("b")
    rig.process(events.Synced())
    assert leaving(rig)[0] == found
    rig.gone("a")
    assert leaving(rig) == (0, [])
