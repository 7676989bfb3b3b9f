"""Limits that hold the pods of one node, namespace, zone or workload and let everybody else go."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from controlplane import STOP_SECONDS_ANNOTATION
from e2e.limit_scenes import ALL_SECONDS, DEMANDING, GOOD, LimitScene
from e2e.replay.pod_watch import RUN_LABEL
from e2e.stories import PodRef, Stories, Story, Told

NODE, NAMESPACE, ZONE, UNSERVED = "part-node", "part-namespace", "part-zone", "part-unserved"
SECONDS_EACH = 3
SLOWLY = {"evictionsPerSecond": 1 / SECONDS_EACH}
HARDLY = {"evictionsPerSecond": 0.001}
"""Until the status has been seen, which is written when the API server has time."""
POLICIES = {
    NODE: {"limits": {"base": "None", "perNode": {"maxConcurrent": 2}}},
    NAMESPACE: {"limits": {"base": "None", "perNamespace": HARDLY}},
    ZONE: {"limits": {"base": "None", "perZone": HARDLY}},
    UNSERVED: {"limits": {"base": "None", "perWorkload": {"maxUnavailable": "50%"}}},
}
STORIES = Stories()
NEVER_SECONDS = 3600

pytestmark = pytest.mark.timeout(480)  # the first test waits for the cluster, and each for its story


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(limits_told: Told, story: Story) -> None:
    limits_told.judge(story)


def wait_gone(scene: LimitScene, pods: Sequence[PodRef]) -> list[float]:
    """Wait until all of them are evicted; returns the moments in order."""

    def moments() -> list[float]:
        found = (scene.watch.evicted_at(pod.uid) for pod in pods)
        return sorted(moment for moment in found if moment is not None)

    scene.wait(lambda: len(moments()) == len(pods), ALL_SECONDS, f"{len(pods)} pods to leave")
    return moments()


def assert_slow(moments: Sequence[float]) -> None:
    """They went one by one at the rate of SLOWLY."""
    took, least = moments[-1] - moments[0], (len(moments) - 1) * SECONDS_EACH
    assert took >= 0.8 * least, f"{took:.1f} s for {len(moments)} pods; the watch is not as even as the calls"


@contextmanager
def elsewhere(scene: LimitScene) -> Iterator[str]:
    """A second namespace."""
    name = f"{scene.namespace}-other"
    scene.cluster.create_namespace(name)
    try:
        yield name
    finally:
        scene.cluster.remove_namespace(name)


@STORIES.under(NODE)
def a_node_is_left_by_two_pods_at_a_time(scene: LimitScene) -> None:
    """A place is free when a pod has stopped, not when it has been asked to."""
    slow, quick = scene.nodes(GOOD, a=2)
    stopping = {"grace_seconds": NEVER_SECONDS, "annotations": {STOP_SECONDS_ANNOTATION: str(NEVER_SECONDS)}}
    pods, others = scene.fill([slow], 6, **stopping), scene.fill([quick], 1)

    def asked() -> list[PodRef]:
        return [pod for pod in pods if scene.watch.evicted_at(pod.uid) is not None]

    scene.degrade(slow, quick)
    wait_gone(scene, others)
    stopped: list[PodRef] = []
    for waiting in (4, 3, 2, 1):
        scene.wait_limit("per-node", waiting)
        scene.wait(lambda waiting=waiting: len(asked()) >= len(pods) - waiting, ALL_SECONDS, "the watch to show it")
        assert len(asked()) == len(pods) - waiting
        stops = next(pod for pod in asked() if pod not in stopped)
        scene.cluster.delete("pods", stops.name, scene.namespace, grace_seconds=0)
        stopped.append(stops)
    wait_gone(scene, pods)


@STORIES.under(NAMESPACE)
def a_namespace_does_not_wait_for_another(scene: LimitScene) -> None:
    [node] = scene.nodes(GOOD, a=1)
    crowded = scene.fill([node], 6)
    with elsewhere(scene) as other:
        labels = {RUN_LABEL: scene.run}
        created = scene.cluster.create_pod("alone", other, node, tolerations=[DEMANDING], labels=labels)
        alone = PodRef("alone", created["metadata"]["uid"])
        scene.degrade(node)
        scene.wait_limit("per-namespace", len(crowded) + 1)
        scene.change_policy(limits={"perNamespace": SLOWLY})
        [left] = wait_gone(scene, [alone])
        moments = wait_gone(scene, crowded)
    assert_slow(moments)
    assert left < moments[-1]


@STORIES.under(ZONE)
def a_zone_does_not_wait_for_another(scene: LimitScene) -> None:
    zones = scene.zones(GOOD, a=2, b=1)
    crowded, alone = scene.fill(zones["a"], 3), scene.fill(zones["b"], 1)
    scene.degrade(*zones["a"], *zones["b"])
    scene.wait_limit("per-zone", len(crowded) + len(alone))
    scene.change_policy(limits={"perZone": SLOWLY})
    [left] = wait_gone(scene, alone)
    moments = wait_gone(scene, crowded)
    assert_slow(moments)
    assert left < moments[-1]


@STORIES.under(UNSERVED)
def an_owner_of_a_version_that_is_not_served_holds_nobody(scene: LimitScene) -> None:
    """The garbage collector cannot look it up and leaves its pod, and no controller of it will ever be seen."""
    [node] = scene.nodes(GOOD, a=1)
    owner = {"apiVersion": "apps/v1beta1", "kind": "ReplicaSet", "name": "gone", "uid": scene.namespace}
    owned = scene.pod("owned", node, DEMANDING, owner=owner)
    free = scene.fill([node], 1)
    scene.degrade(node)
    wait_gone(scene, [owned, *free])
