"""limits.perWorkload on a cluster that lives: a budget for every workload that has no PodDisruptionBudget.

Pods that left are replaced by the real controllers, and an observer counts who is missing at every moment.
"""

import pytest

from controlplane import STOP_SECONDS_ANNOTATION
from controlplane.comparisons import NOT_KNOWN, known_gates
from e2e.limit_scenes import GOOD, LimitScene
from e2e.stories import Stories, Story, Told

QUARTER, STUCK, TAKEN, SLOW = (f"workloads-{name}" for name in ("quarter", "stuck", "taken", "slow"))
# Nothing but this limit is to slow the stories down.
FAST_ZONES = {"fullEvictionsPerSecond": 50, "degradedEvictionsPerSecond": 50}
POLICIES = {
    QUARTER: {"limits": {"perWorkload": {"maxUnavailable": "25%"}, "zoneHealth": FAST_ZONES, "guard": {"minPods": 50}}},
    **{name: {"limits": {"base": "None", "perWorkload": {"maxUnavailable": "25%"}}} for name in (STUCK, TAKEN, SLOW)},
}
STORIES = Stories()

pytestmark = [
    pytest.mark.timeout(480),  # the first test waits for the cluster, and each for its story
    pytest.mark.skipif(not known_gates(), reason=f"{NOT_KNOWN}: its scheduler puts replacements on any node"),
]
LIMIT = "max-unavailable"
NEVER_SECONDS = 3600


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(limits_told: Told, story: Story) -> None:
    limits_told.judge(story)


@STORIES.under(QUARTER)
def a_zone_that_falls_takes_no_more_than_a_quarter_of_any_workload(scene: LimitScene) -> None:
    zones = scene.zones(GOOD, a=4, b=4, c=4)
    workloads = [scene.deploy(name, 8) for name in ("api", "shop", "web")]
    bad = [*zones["a"], zones["b"][0], zones["c"][0]]
    doomed = {pod.uid for pod in scene.pods_on(bad)}
    fell = scene.degrade(*bad)
    left = scene.wait_departures(len(doomed), fell)
    scene.ground.wait_complete(*workloads)
    assert [scene.worst(workload, fell) for workload in workloads] == [2, 2, 2]
    assert {one.uid for one in scene.departures(fell)} == doomed
    assert all(one.evicted for one in left)
    assert scene.pods_on(bad) == []


@STORIES.under(STUCK)
def replacements_that_do_not_get_ready_hold_the_rest(scene: LimitScene) -> None:
    zones = scene.zones(GOOD, a=2, b=2)
    workload = scene.deploy("web", 8)
    doomed = scene.pods_on(zones["a"])
    scene.cordon(zones["b"])
    fell = scene.degrade(*zones["a"])
    scene.wait_departures(2, fell)
    entry = scene.wait_limit(LIMIT, len(doomed) - 2)
    assert entry["since"]
    assert scene.status()["limitedBy"] == LIMIT
    assert len(scene.departures(fell)) == 2
    scene.cordon(zones["b"], off=True)
    scene.wait_departures(len(doomed), fell)
    scene.ground.wait_complete(workload)
    assert scene.worst(workload, fell) == 2


@STORIES.under(TAKEN)
def pods_that_others_took_count_as_missing(scene: LimitScene) -> None:
    zones = scene.zones(GOOD, a=2, b=2)
    workload = scene.deploy("web", 8)
    scene.cordon(zones["b"])
    scene.cordon(zones["a"])
    for pod in scene.pods_on(zones["b"])[:2]:
        scene.cluster.delete("pods", pod.name, scene.namespace)
    scene.wait_pods_seen(zones["b"][0])
    doomed = scene.pods_on(zones["a"])
    fell = scene.degrade(*zones["a"])
    scene.nobody_leaves(fell + 1)
    scene.cordon(zones["b"], off=True)
    scene.wait_departures(len(doomed), fell)
    scene.ground.wait_complete(workload)
    assert scene.worst(workload, fell) == 2


@STORIES.under(SLOW)
def a_replacement_counts_although_the_old_pod_still_stops(scene: LimitScene) -> None:
    """Missing are pods that are not replaced, not pods that are still stopping."""
    zones = scene.zones(GOOD, a=1)
    never = {"grace_seconds": NEVER_SECONDS, "annotations": {STOP_SECONDS_ANNOTATION: str(NEVER_SECONDS)}}
    workload = scene.deploy("slow", 4, **never)
    scene.zones(GOOD, b=1)
    fell = scene.degrade(*zones["a"])
    left = scene.wait_departures(4, fell)
    stopping = {pod["metadata"]["uid"] for pod in scene.cluster.items("pods", scene.namespace)}
    assert {one.uid for one in left} < stopping
    scene.ground.wait_complete(workload)
    assert scene.worst(workload, fell) == 1
