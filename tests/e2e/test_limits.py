"""Each limit on a working cluster: which pods it delays, that others leave, and what the status reports.

Pods that left are replaced by the real controllers, and an observer counts who is missing at every moment. All stories
are played side by side. `view` is in tests/controller/test_whole.py; rates of policies, `calls`, `budget`, `guard`,
`failing`, releases, repairs and nodes that will be gone are in tests/blackbox.
"""

import datetime
import time
from collections import Counter
from collections.abc import Sequence

import pytest

from controlplane import STOP_SECONDS_ANNOTATION, ControlPlane, Json
from controlplane.comparisons import known_gates
from docs.pages import objects
from e2e.limit_scenes import ALL_SECONDS, GOOD, LEAVE_SECONDS, LimitScene
from e2e.stories import NO_LIMITS, PodRef, RunningStories, Stories, Story, annotation, calls, toleration

SECONDS_EACH = 3
SLOWLY, HARDLY = {"evictionsPerSecond": 1 / SECONDS_EACH}, {"evictionsPerSecond": 0.001}
"""HARDLY: until the status has been seen, which is written when the API server has time."""
NEVER_SECONDS = 3600
UNHEALTHY = [{"key": "sla", "operator": "Lt", "value": "950"}]
UNREAD = {"tolerations": [toleration("Exists")], "annotations": annotation(toleration("Gt", "950"))}
"""The scheduler reads the toleration and binds pods to any node; the operator reads the annotation and evicts them."""


def window(hours_from_now: int) -> list[Json]:
    """One that is open from at least an hour before that time to at least an hour after it."""
    begins = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=hours_from_now - 1)
    return [{"schedule": f"0 {begins.hour} * * *", "duration": "3h", "timeZone": "UTC"}]


def only(**limits: object) -> Json:
    """No limit but these."""
    return {"limits": {**NO_LIMITS, **limits}}


def paused(**limits: object) -> Json:
    """Nodes fall one after the other. To be judged together they fall while the policy is paused."""
    return {"paused": True, **only(**limits)}


[RECIPE] = [one["spec"] for _, one in objects() if one["metadata"]["name"] == "databases"]
"""The documented recipe for one database of three StatefulSets."""
POLICIES = {
    "limit-window": {"windows": window(12), **only()},
    "limit-zone-rate": only(perZone=HARDLY),
    "limit-zone": paused(zoneHealth={"unhealthy": UNHEALTHY, **HARDLY}),
    "limit-zones": paused(zoneHealth={"unhealthy": UNHEALTHY}),
    "limit-node": only(perNode={"maxConcurrent": 2}),
    "limit-workload": paused(perWorkload={"maxUnavailable": "25%"}),
    "limit-label": {"paused": True, **RECIPE},
    "limit-bounce": only(bounce={}),
}
STORIES = Stories()

pytestmark = pytest.mark.timeout(480)  # the first test waits for the cluster, and each for its story


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(running_limits: RunningStories, story: Story) -> None:
    running_limits.judge(story)


def test_no_pod_was_evicted_twice(working_cluster: ControlPlane, running_limits: RunningStories) -> None:
    running_limits.wait()
    for story, scene in running_limits.scenes.items():
        accepted = [entry for entry in calls(working_cluster, scene.namespace) if entry["responseStatus"]["code"] < 300]
        twice = {name: times for name, times in Counter(map(pod_of, accepted)).items() if times > 1}
        assert twice == {}, story


def pod_of(entry: Json) -> str:
    name: str = entry["objectRef"]["name"]
    return name


def test_the_shipped_rights_suffice(running_limits: RunningStories) -> None:
    running_limits.judge_rights()


def wait_gone(scene: LimitScene, pods: Sequence[PodRef]) -> list[float]:
    """Wait until all of them are evicted; returns the moments in order."""

    def moments() -> list[float]:
        found = (scene.watch.evicted_at(pod.uid) for pod in pods)
        return sorted(moment for moment in found if moment is not None)

    scene.wait(lambda: len(moments()) == len(pods), ALL_SECONDS, f"{len(pods)} pods to leave")
    return moments()


def assert_slow(moments: Sequence[float]) -> None:
    """Assert that the pods left one by one at the rate of SLOWLY."""
    took, least = moments[-1] - moments[0], (len(moments) - 1) * SECONDS_EACH
    assert took >= 0.8 * least, f"{took:.1f} s for {len(moments)} pods; the watch is not as even as the calls"


def fall(scene: LimitScene, *nodes: str) -> float:
    """Let these nodes fall at the same moment, and return it.

    Watches are not ordered among each other: the operator says that it saw all nodes with pods before it sees the
    policy, and the scheduler knows them before it places what replaces their pods.
    """
    scene.degrade(*nodes)
    scene.wait_evicting(sum(bool(scene.pods_on([node])) for node in nodes))
    scene.ground.wait_scheduler(nodes[-1])
    began = time.monotonic()
    scene.change_policy(paused=None)
    return began


# -- the policy -------------------------------------------------------------------------------------------------------


@STORIES.under("limit-window")
def outside_every_window_no_pod_leaves_and_another_window_holds_at_once(scene: LimitScene) -> None:
    nodes = scene.nodes(GOOD, a=2)
    pods = scene.fill(nodes, 2)
    fell = scene.degrade(*nodes)
    entry = scene.wait_limit("window", len(pods))
    until = datetime.datetime.fromisoformat(entry["until"])
    hours = (until - datetime.datetime.now(datetime.UTC)).total_seconds() / 3600
    assert 9 < hours < 12, "when the window opens"
    assert scene.departures(fell) == []
    changed = time.monotonic()
    scene.change_policy(windows=window(0))
    for pod in pods:
        scene.leaves(pod, changed, slack=LEAVE_SECONDS)


# -- a zone -----------------------------------------------------------------------------------------------------------


@STORIES.under("limit-zone-rate")
def a_zone_does_not_wait_for_the_rate_of_another(scene: LimitScene) -> None:
    zones = scene.zones(GOOD, a=2, b=1)
    crowded, alone = scene.fill(zones["a"], 3), scene.fill(zones["b"], 1)
    scene.degrade(*zones["a"], *zones["b"])
    scene.wait_limit("zone-rate", len(crowded) + len(alone))
    scene.change_policy(limits={"perZone": SLOWLY})
    [left] = wait_gone(scene, alone)
    moments = wait_gone(scene, crowded)
    assert_slow(moments)
    assert left < moments[-1]


@STORIES.under("limit-zone")
def a_zone_with_many_unhealthy_nodes_slows_down_and_no_other(scene: LimitScene) -> None:
    zones = scene.zones(GOOD, a=5, b=5)
    bad = [*zones["a"][:3], zones["b"][0]]  # 60% and 20%
    scene.fill(bad, 1)
    fell = fall(scene, *bad)
    entry = scene.wait_limit("zone", 3)  # too slow for any of them
    assert entry["until"] > entry["since"]
    scene.wait_zones({"test/a": ("Degraded", 5, 3), "test/b": ("Normal", 5, 1)})
    assert [one.node for one in scene.wait_departures(1, fell)] == [zones["b"][0]]


@STORIES.under("limit-zones")
def no_pod_leaves_while_all_are_unhealthy(scene: LimitScene) -> None:
    nodes = scene.nodes(GOOD, a=3, b=3, c=3)
    pods = scene.fill(nodes, 1)
    fell = fall(scene, *nodes)
    scene.wait_limit("zone", len(pods))
    scene.wait_zones({f"test/{zone}": ("Full", 3, 3) for zone in "abc"})
    scene.assert_none_leaves(fell)
    recovered = scene.recover(nodes[0])
    left = scene.wait_departures(len(pods) - 1, recovered)
    assert nodes[0] not in {one.node for one in left}


# -- a node, a workload, a pod ----------------------------------------------------------------------------------------


@STORIES.under("limit-node")
def a_node_is_left_by_two_pods_at_a_time(scene: LimitScene) -> None:
    """A place is free when a pod has stopped, not when it has been asked to."""
    slow, quick = scene.nodes(GOOD, a=2)
    stopping = {"grace_seconds": NEVER_SECONDS, "annotations": {STOP_SECONDS_ANNOTATION: str(NEVER_SECONDS)}}
    pods, others = scene.fill([slow], 4, **stopping), scene.fill([quick], 1)

    def asked() -> list[PodRef]:
        return [pod for pod in pods if scene.watch.evicted_at(pod.uid) is not None]

    scene.degrade(slow, quick)
    wait_gone(scene, others)
    scene.wait_limit("node", 2)
    assert len(asked()) == 2
    for pod in asked():
        scene.cluster.delete("pods", pod.name, scene.namespace, grace_seconds=0)
    wait_gone(scene, pods)


@STORIES.under(*(["limit-workload"] if known_gates() else []))  # an older scheduler puts replacements on any node
def no_workload_is_short_of_more_than_its_share(scene: LimitScene) -> None:
    zones = scene.zones(GOOD, a=2, b=2)
    workload = scene.deploy("web", 8)
    leaving = scene.pods_on(zones["a"])
    scene.cordon(zones["b"])
    fell = fall(scene, *zones["a"])
    scene.wait_departures(2, fell)
    scene.wait_limit("workload", len(leaving) - 2)
    assert len(scene.departures(fell)) == 2
    scene.cordon(zones["b"], off=True)
    left = scene.wait_departures(len(leaving), fell)
    scene.ground.wait_complete(workload)
    assert {one.uid for one in left} == {pod.uid for pod in leaving}
    assert scene.worst(workload, fell) == 2


@STORIES.under(*(["limit-label"] if known_gates() else []))
def of_one_database_with_a_stateful_set_for_each_replica_one_pod_is_missing_at_a_time(scene: LimitScene) -> None:
    nodes, [spare] = scene.nodes(GOOD, a=3), scene.nodes(GOOD, b=1)
    scene.cordon([*nodes, spare])
    for name, node in zip("xyz", nodes, strict=True):
        scene.cordon([node], off=True)
        workload = scene.replica(name, "db", **{"app.kubernetes.io/instance": "orders"})
        scene.cordon([node])
    leaving = scene.pods_on(nodes)
    fell = fall(scene, *nodes)
    scene.wait_departures(1, fell)
    entry = scene.wait_limit("workload", 2)
    assert "with label app.kubernetes.io/instance=orders" in entry["message"]
    assert len(scene.departures(fell)) == 1
    scene.cordon([spare], off=True)
    left = scene.wait_departures(len(leaving), fell)
    scene.ground.wait_complete(workload)
    assert {one.uid for one in left} == {pod.uid for pod in leaving}
    assert scene.worst(workload, fell) == 1


@STORIES.under("limit-bounce")
def a_workload_that_comes_back_is_held_after_three_evictions(scene: LimitScene) -> None:
    [node] = scene.nodes(GOOD, a=1)
    workload = scene.deploy("web", 1, **UNREAD)
    fell = scene.degrade(node)
    scene.wait_departures(3, fell)
    entry = scene.wait_limit("bounce", 1)
    assert entry["until"] > entry["since"]

    def notes() -> list[str]:
        found = scene.cluster.items("events", scene.namespace)
        return [event["note"] for event in found if event["reason"] == "EvictionBouncing"]

    note = scene.wait(notes, scene.event_seconds, "an Event")[0]
    assert f"was evicted from node {node} 3 times in a row" in note
    scene.recover(node)
    scene.ground.wait_complete(workload)
