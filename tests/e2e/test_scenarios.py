"""The scenarios of tests/vectors on a real API server: each pod goes, or stays, when it should.

They are played side by side, once, by the first test that asks (e2e.replay); each test then judges one scenario.
A scenario's windows are hard. `-k U11` plays only that one.
"""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from controlplane import (
    OPERATOR_USER,
    ApiError,
    Cluster,
    ControlPlane,
    Json,
    Operator,
    Target,
    sleep_until,
    wait_until,
)
from e2e.replay.catalogue import Scenario, load, read_document, replayed
from e2e.replay.pod_watch import PodWatch
from e2e.replay.stage import Props, Stage
from e2e.replay.timeline import Outcome, Timeline, outcomes

SCENARIOS = replayed()
SHARED = [name for name, scenario in SCENARIOS.items() if not scenario.is_disturbing]
ALONE = [name for name, scenario in SCENARIOS.items() if scenario.is_disturbing]
NO_CAP = "--max-evictions-per-second=0"

ATTEMPTS = 5  # a busy machine does steps late: that is played again, and told when it stays so

pytestmark = pytest.mark.timeout(600)  # the first test waits for all


@dataclass(frozen=True)
class Replayed:
    """One scenario, played."""

    stage: Stage
    pods: dict[str, Outcome]

    def problems(self) -> list[str]:
        """What differs from the expectations, in words."""
        expectations = self.stage.scenario.expectations
        problems = ((each["pod"], self.pods[self.stage.pod_name(each["pod"])].problem(each)) for each in expectations)
        return [f"{pod}: {problem}" for pod, problem in problems if problem]


@pytest.fixture(scope="module")
def replay_policy(control_plane: Target) -> Iterator[Json]:
    """The policy that the file says to replay under, and none beside it."""
    others = [policy["metadata"]["name"] for policy in control_plane.client.items("taintevictionpolicies")]
    assert others == [], "left by another test, or in use on this cluster"
    spec = read_document()["policy_for_replay"]
    body = {"apiVersion": "taintwarden.io/v1alpha1", "kind": "TaintEvictionPolicy", "spec": spec}
    yield control_plane.client.create("taintevictionpolicies", {**body, "metadata": {"name": "replay"}})
    control_plane.client.delete("taintevictionpolicies", "replay")


@pytest.fixture(scope="module")
def played(
    request: pytest.FixtureRequest,
    control_plane: Target,
    replay_policy: Json,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Replayed]]:
    """All selected scenarios that can share an operator, played side by side."""
    folder = tmp_path_factory.mktemp("replay")
    with Operator(control_plane.operator_kubeconfig(), folder, args=[NO_CAP]) as operator:
        props = Props(control_plane.client, operator)
        found: dict[str, Replayed] = {}
        for _ in range(ATTEMPTS):
            wanted = selected(request, "shared")
            left = [SCENARIOS[name] for name in wanted if name not in found or found[name].stage.is_late]
            for scenario in left:
                if scenario.id in found:
                    found[scenario.id].stage.tear_down()
            if left:
                found |= play(control_plane.client, left, props)
    yield found
    for each in found.values():
        each.stage.tear_down()


@pytest.fixture(scope="module")
def play_alone(
    own_control_plane: ControlPlane, replay_policy: Json, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Replayed]:
    """Play one scenario with an operator for itself, behind a proxy that can delay its node watches."""
    link = own_control_plane.link()

    def play_one(name: str) -> Replayed:
        folder = tmp_path_factory.mktemp(name)
        with Operator(own_control_plane.operator_kubeconfig(link.url), folder, args=[NO_CAP]) as operator:
            props = Props(own_control_plane.client, operator, link=link)
            played = play(own_control_plane.client, [SCENARIOS[name]], props)[name]
        played.stage.tear_down()
        return played

    def play_in_time(name: str) -> Replayed:
        for _ in range(ATTEMPTS):
            if not (played := play_one(name)).stage.is_late:
                break
        return played

    return play_in_time


def selected(request: pytest.FixtureRequest, parameter: str) -> list[str]:
    """The ids that this session's selection of tests asks for."""
    calls = [item.callspec for item in request.session.items if hasattr(item, "callspec")]
    return list(dict.fromkeys(call.params[parameter] for call in calls if parameter in call.params))


def play(cluster: Cluster, scenarios: list[Scenario], props: Props) -> dict[str, Replayed]:
    """Play scenarios side by side under names of their own. What could not be played is cleared away."""
    run = uuid.uuid4().hex[:6]
    stages = [Stage(scenario, props, run) for scenario in scenarios]
    try:
        for stage in stages:
            stage.set_up()
        with PodWatch(cluster, run) as watch:
            Timeline().play(stages)
            sleep_until(max(stage.over_at + watch.lost(stage.started_at) for stage in stages))
            watch.check()
            return {stage.scenario.id: Replayed(stage, outcomes(stage, watch)) for stage in stages}
    except BaseException:
        for stage in stages:
            stage.tear_down()
        raise


def judge(replayed: Replayed) -> None:
    late = f"steps were up to {replayed.stage.late_seconds:.1f} s late: this machine is too busy to judge by"
    assert not replayed.stage.is_late, late
    assert replayed.problems() == []


@pytest.mark.parametrize("shared", SHARED)
def test_pods_go_and_stay_as_the_scenario_says(played: dict[str, Replayed], shared: str) -> None:
    judge(played[shared])


@pytest.mark.parametrize("alone", ALONE)
def test_so_they_do_when_the_operator_stops_or_lags(play_alone: Callable[[str], Replayed], alone: str) -> None:
    judge(play_alone(alone))


@pytest.mark.parametrize("shared", [name for name in SHARED if SCENARIOS[name].raw.get("expect_condition")])
def test_the_evicted_pod_says_why(played: dict[str, Replayed], shared: str) -> None:
    for pod in played[shared].pods.values():
        conditions = {condition["type"]: condition["status"] for condition in pod.last["status"]["conditions"]}
        assert conditions.get("DisruptionTarget") == "True"


@pytest.mark.parametrize("shared", [name for name in SHARED if "expect_event" in SCENARIOS[name].raw])
def test_a_cancelled_eviction_is_an_event(cluster: Cluster, played: dict[str, Replayed], shared: str) -> None:
    stage = played[shared].stage
    events = wait_until(lambda: cluster.items("events", stage.prefix), 30, "an Event on the pod")
    assert "EvictionCancelled" in {event["reason"] for event in events}


@pytest.mark.parametrize("shared", [name for name in SHARED if "expect_delete_calls" in SCENARIOS[name].raw])
def test_a_pod_is_evicted_once(own_control_plane: ControlPlane, played: dict[str, Replayed], shared: str) -> None:
    prefix = played[shared].stage.prefix
    calls = [entry for entry in own_control_plane.audit() if entry["objectRef"].get("namespace") == prefix]
    by_operator = [entry for entry in calls if entry["user"]["username"] == OPERATOR_USER]
    assert len(by_operator) == SCENARIOS[shared].raw["expect_delete_calls"]


def test_the_server_refuses_the_removal_of_a_toleration(cluster: Cluster, namespace: str) -> None:
    scenario = load()["U10"]
    cluster.create_pod("p1", namespace, tolerations=scenario.pods[0]["tolerations"])
    with pytest.raises(ApiError, match="existing toleration can not be modified") as refused:
        cluster.set_tolerations("p1", namespace, scenario.steps[0]["tolerations"])
    assert refused.value.status == 422
