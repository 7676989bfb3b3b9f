"""When limits step aside, and when everybody waits: nodes that will be gone, and windows of time."""

import datetime
import time

import pytest

from controlplane import STOP_SECONDS_ANNOTATION
from e2e.limit_scenes import DEMANDING, GOOD, LEAVE_SECONDS, OBSERVED_SECONDS, LimitScene
from e2e.stories import SLACK_SECONDS, Stories, Story, Told

RECLAIMED, UNHURRIED = "reclaimed", "reclaimed-unhurried"
SHUT, OPENED, OPEN = "window-shut", "window-opened", "window-open"
DEADLINE_SECONDS = 60
GRACE_SECONDS = 120
LIMITED = {"perWorkload": {"maxUnavailable": 1}, "evictionsPerSecond": 0.01, "burst": 1}


def window(hours_from_now: int) -> dict[str, str]:
    """One that is open from at least an hour before that time to at least an hour after it."""
    begins = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=hours_from_now - 1)
    return {"schedule": f"0 {begins.hour} * * *", "duration": "3h", "timeZone": "UTC"}


SHUT_NOW, OPEN_NOW = [window(12)], [window(0)]
POLICIES = {
    RECLAIMED: {"reclaim": {"deadlineSeconds": DEADLINE_SECONDS}, "limits": LIMITED},
    UNHURRIED: {"reclaim": {"deadlineSeconds": DEADLINE_SECONDS}},
    SHUT: {"windows": SHUT_NOW},
    OPENED: {"windows": SHUT_NOW},
    OPEN: {"windows": OPEN_NOW},
}
STORIES = Stories()

pytestmark = pytest.mark.timeout(480)  # the first test waits for the cluster, and each for its story


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(limits_told: Told, story: Story) -> None:
    limits_told.judge(story)


# -- reclaim


@STORIES.under(RECLAIMED)
def a_node_that_will_be_gone_is_left_whatever_the_limits_say(scene: LimitScene) -> None:
    nodes = scene.zones(GOOD, a=3)["a"]
    slow = {"grace_seconds": GRACE_SECONDS, "annotations": {STOP_SECONDS_ANNOTATION: "5"}}
    workload = scene.deploy("web", 6, **slow)
    scene.cordon(nodes)
    fell, gone_at = scene.degrade(*nodes), time.time() + DEADLINE_SECONDS
    left = scene.wait_departures(6, fell)
    assert left[-1].at - fell < DEADLINE_SECONDS
    assert scene.worst(workload, fell) == 6
    assert all(0 < one.grace_seconds <= DEADLINE_SECONDS for one in left), "clamped to what is left"
    assert all(one.ends_at < gone_at + SLACK_SECONDS for one in left)


@STORIES.under(UNHURRIED)
def a_pod_that_stops_in_time_keeps_its_grace(scene: LimitScene) -> None:
    node = scene.node(GOOD, name="spot")
    scene.pod("quick", node, DEMANDING, grace_seconds=7, annotations={STOP_SECONDS_ANNOTATION: "3"})
    fell = scene.degrade(node)
    [left] = scene.wait_departures(1, fell)
    assert left.grace_seconds == 7


# -- windows


@STORIES.under(SHUT)
def outside_every_window_nobody_leaves(scene: LimitScene) -> None:
    nodes = scene.zones(GOOD, a=2)["a"]
    pods = scene.fill(nodes, 2)
    fell = scene.degrade(*nodes)
    entry = scene.wait_limit("window", len(pods))
    assert scene.status()["limitedBy"] == "window"
    until = datetime.datetime.fromisoformat(entry["until"])
    hours = (until - datetime.datetime.now(datetime.UTC)).total_seconds() / 3600
    assert 9 < hours < 12, "when the window opens"
    scene.nobody_leaves(fell, OBSERVED_SECONDS)


@STORIES.under(OPENED)
def another_window_holds_at_once(scene: LimitScene) -> None:
    nodes = scene.zones(GOOD, a=2)["a"]
    pods = scene.fill(nodes, 2)
    fell = scene.degrade(*nodes)
    scene.wait_limit("window", len(pods))
    assert scene.departures(fell) == []
    changed = time.monotonic()
    scene.change_policy(windows=OPEN_NOW)
    for pod in pods:
        scene.leaves(pod, changed, slack=LEAVE_SECONDS)


@STORIES.under(OPEN)
def inside_a_window_pods_leave(scene: LimitScene) -> None:
    node = scene.node(GOOD)
    pod = scene.pod("web", node, DEMANDING)
    fell = scene.degrade(node)
    scene.leaves(pod, fell, slack=LEAVE_SECONDS)
