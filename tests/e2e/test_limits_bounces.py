"""limits.bounce with the real scheduler: it reads native tolerations, puts pods back where they may not stay, and each
is evicted again, until that is noticed.
"""

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from e2e.limit_scenes import ALL_SECONDS, GOOD, STATUS_SECONDS, LimitScene
from e2e.stories import NO_LIMITS, SLACK_SECONDS, PodRef, Stories, Story, Told, annotation, toleration

NOTICED, RECOVERED, SLOWER, TURNS, UNLIMITED = (
    f"bounces-{name}" for name in ("noticed", "recovered", "slower", "turns", "unlimited")
)
LIMIT = "bounce"
PAUSE_SECONDS = 10
SHORT = {"base": "None", LIMIT: {"afterEvictions": 2, "maxBackoffSeconds": PAUSE_SECONDS}}
POLICIES = {
    NOTICED: {"limits": {"guard": {"minPods": 50}}},
    RECOVERED: {"limits": {"base": "None", LIMIT: {}}},
    SLOWER: {"limits": SHORT},
    TURNS: {"limits": SHORT},
    UNLIMITED: {"limits": NO_LIMITS},
}
STORIES = Stories()
FIRST_SECONDS = 60
ACTING_SECONDS = 20
"""Longer than a value or a node takes to change, and to be seen."""
HELD_SECONDS = 180
ROUNDS = 4
UNREAD = {"tolerations": [toleration("Exists")], "annotations": annotation(toleration("Gt", "950"))}
"""The scheduler reads the one and puts pods anywhere, the operator the other and takes them away again."""

pytestmark = pytest.mark.timeout(600)  # the first test waits for the cluster, and each for its story


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(limits_told: Told, story: Story) -> None:
    limits_told.judge(story)


def test_what_bounces_is_counted(limits_told: Told) -> None:
    limits_told.wait()
    for name in (NOTICED, RECOVERED):
        assert limits_told.operator.metric("taintwarden_bouncing_workloads", policy=name) == 1
        assert limits_told.operator.metric("taintwarden_bounces_total", policy=name) >= 2
    assert limits_told.operator.metric("taintwarden_bouncing_workloads", policy=UNLIMITED) == 0


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


@STORIES.under(RECOVERED)
def a_workload_that_is_held_stays_when_the_value_recovers(scene: LimitScene) -> None:
    nodes = scene.zones(GOOD, a=1)["a"]
    workload = scene.deploy("web", 1, **UNREAD)
    fell = scene.degrade(*nodes)
    scene.wait_departures(3, fell)
    pod = wait_held(scene, nodes)
    assert scene.status()["limitedBy"] == LIMIT
    recovered = scene.recover(*nodes)
    scene.event(pod, "EvictionCancelled")
    scene.nobody_leaves(recovered, FIRST_SECONDS)
    assert scene.pods_on(nodes) == [pod]
    scene.ground.wait_complete(workload)
    scene.wait(lambda: not scene.status().get("limits"), STATUS_SECONDS, "nobody to be held")


@STORIES.under(SLOWER)
def a_workload_goes_on_bouncing_no_faster_than_it_may(scene: LimitScene) -> None:
    nodes = scene.zones(GOOD, a=1)["a"]
    scene.deploy("web", 1, **UNREAD)
    fell = scene.degrade(*nodes)
    left = scene.wait_departures(2 + ROUNDS, fell, ROUNDS * PAUSE_SECONDS + ALL_SECONDS)
    began, *moments = [one.at for one in left]
    assert moments[-1] - moments[0] > ROUNDS * PAUSE_SECONDS - scene.slack(began, moments[0])
    for before, early, late in zip([began, *moments], moments, moments[1:], strict=False):
        assert late - early > PAUSE_SECONDS - scene.slack(before, early), "but for a call that was slow"


@STORIES.under(TURNS)
def replicas_that_bounce_leave_together(scene: LimitScene) -> None:
    nodes = scene.zones(GOOD, a=1)["a"]
    scene.deploy("web", 4, **UNREAD)
    fell = scene.degrade(*nodes)
    left = scene.wait_departures(16, fell, PAUSE_SECONDS + ALL_SECONDS)
    pauses = [late.at - early.at for early, late in pairwise(left)]
    noticed = next(number for number, pause in enumerate(pauses, 1) if pause > PAUSE_SECONDS - SLACK_SECONDS)
    first, *_, last = (one.at for one in left[noticed : noticed + 4])
    assert last - first < PAUSE_SECONDS - SLACK_SECONDS + scene.lost(first, last)


@STORIES.under(UNLIMITED)
def without_the_limit_it_never_ends(scene: LimitScene) -> None:
    nodes = scene.zones(GOOD, a=1)["a"]
    scene.deploy("web", 1, **UNREAD)
    fell = scene.degrade(*nodes)
    left = scene.wait_departures(8, fell, PAUSE_SECONDS + ALL_SECONDS)
    first, last = left[0].at, left[7].at
    assert last - first < ALL_SECONDS + scene.lost(first, last)
