"""limits.bounce with the real scheduler: it reads native tolerations, puts pods back where they may not stay, and each
is evicted again, until that is noticed.
"""

from datetime import UTC, datetime

import pytest

from e2e.limit_scenes import GOOD, LimitScene
from e2e.stories import PodRef, Stories, Story, Told, annotation, toleration

NOTICED = "bounces-noticed"
LIMIT = "bounce"
POLICIES = {NOTICED: {"limits": {"guard": {"minPods": 50}}}}
STORIES = Stories()
FIRST_SECONDS = 60
ACTING_SECONDS = 20
"""Longer than a value or a node takes to change, and to be seen."""
HELD_SECONDS = 180
UNREAD = {"tolerations": [toleration("Exists")], "annotations": annotation(toleration("Gt", "950"))}
"""The scheduler reads the one and puts pods anywhere, the operator the other and takes them away again."""

pytestmark = pytest.mark.timeout(600)  # the first test waits for the cluster, and each for its story


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(limits_told: Told, story: Story) -> None:
    limits_told.judge(story)


def test_what_bounces_is_counted(limits_told: Told) -> None:
    limits_told.wait()
    assert limits_told.operator.metric("taintwarden_bouncing_workloads", policy=NOTICED) == 1
    assert limits_told.operator.metric("taintwarden_bounces_total", policy=NOTICED) >= 2


def wait_held(scene: LimitScene, nodes: list[str]) -> PodRef:
    """Wait until one pod of the story is held for bouncing, for so long that something can be done, and return it.

    On a busy machine the status may be too late for the first pause; each is longer than the one before.
    """

    def held() -> bool:
        entry = scene.wait_limit(LIMIT, 1)
        left = datetime.fromisoformat(entry["until"]) - datetime.now(UTC)
        return left.total_seconds() > ACTING_SECONDS and len(scene.pods_on(nodes)) == 1

    scene.wait(held, HELD_SECONDS, "a pod to be held")
    [pod] = scene.pods_on(nodes)
    return pod


def bouncing(scene: LimitScene) -> list[str]:
    """What Events say about pods that bounce."""
    found = scene.cluster.items("events", scene.namespace)
    return [event["note"] for event in found if event["reason"] == "EvictionBouncing"]


@STORIES.under(NOTICED)
def a_workload_that_comes_back_is_told_of_and_held_and_goes_when_there_is_another_node(scene: LimitScene) -> None:
    old = scene.zones(GOOD, old=1)["old"]
    workload = scene.deploy("web", 1, **UNREAD)
    fell = scene.degrade(*old)
    scene.wait_departures(3, fell)
    pod = wait_held(scene, old)
    before = scene.departures(fell)
    scene.cordon(old)
    scene.zones(GOOD, new=1)
    left = scene.wait_departures(len(before) + 1, fell)
    assert left[-1].uid == pod.uid
    assert {one.node for one in left} == set(old)
    assert left[3].at - left[2].at > FIRST_SECONDS - scene.slack(fell, left[2].at), "but for a call that was slow"
    scene.ground.wait_complete(workload)
    assert scene.pods_on(old) == []
    scene.nobody_leaves(left[-1].at + 0.001)
    note = scene.wait(lambda: bouncing(scene), scene.event_seconds, "an Event")[0]
    for part in (
        "ReplicaSet web-",
        f"was evicted from node {old[0]} by taint sla=940:NoExecute 3 times in a row",
        "Waits until 20",
        "namespace taintwarden.io/inject=true",
    ):
        assert part in note
