"""PodDisruptionBudgets with their real controller: pods go as the budgets allow, and nobody asks in vain.

What happens when budgets are set by hand is in test_budgets.py.
"""

import time
from collections import Counter

import pytest

from controlplane import ControlPlane, Json
from e2e.limit_scenes import GOOD, LEAVE_SECONDS, OBSERVED_SECONDS, STATUS_SECONDS, LimitScene
from e2e.stories import Stories, Story, Told, calls

ONE_BY_ONE, NEVER, SEVERAL, SHARED = "budget-one", "budget-never", "budget-several", "budget-shared"
POLICIES = {
    name: {"limits": {"perWorkload": {"maxUnavailable": "100%"}, "guard": {"minPods": 50}}}
    for name in (ONE_BY_ONE, NEVER, SEVERAL, SHARED)
}
STORIES = Stories()

pytestmark = pytest.mark.timeout(480)  # the first test waits for the cluster, and each for its story
IN_VAIN = 3  # requests that may be refused: a budget's status is as old as the last look of its controller


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(limits_told: Told, story: Story) -> None:
    limits_told.judge(story)


def on_old_nodes(scene: LimitScene, name: str, replicas: int) -> tuple[str, list[str]]:
    """A workload all of whose pods are on nodes of zone `old`, while zone `new` is free."""
    old = scene.zones(GOOD, old=2)["old"]
    workload = scene.deploy(name, replicas)
    scene.zones(GOOD, new=2)
    return workload, old


def answers(scene: LimitScene) -> Counter[int]:
    """How often the operator asked for an eviction, by the API server's answer."""
    return Counter(entry["responseStatus"]["code"] for entry in calls(scene.ground, scene.namespace))


def blocked_budgets(scene: LimitScene) -> list[Json]:
    return scene.status().get("blockedBudgets", [])


@STORIES.under(ONE_BY_ONE)
def a_budget_of_one_drains_ten_pods_one_by_one(scene: LimitScene) -> None:
    workload, old = on_old_nodes(scene, "web", 10)
    scene.budget("web", "web", maxUnavailable=1)
    fell = scene.degrade(*old)
    budget = scene.wait(lambda: blocked_budgets(scene), STATUS_SECONDS, "the status to name the budget")[0]
    assert (budget["namespace"], budget["name"]) == (scene.namespace, "web")
    assert 1 <= budget["pods"] <= 9
    left = scene.wait_departures(10, fell)
    scene.ground.wait_complete(workload)
    assert len({one.uid for one in left}) == 10
    assert all(one.evicted for one in left)
    assert scene.worst(workload, fell) == 1
    assert answers(scene)[201] == 10
    assert answers(scene)[429] <= IN_VAIN
    scene.wait(lambda: not blocked_budgets(scene), STATUS_SECONDS, "the status to forget the budget")


@STORIES.under(NEVER)
def a_budget_that_allows_nothing_is_not_asked(scene: LimitScene) -> None:
    workload, old = on_old_nodes(scene, "web", 4)
    scene.budget("web", "web", maxUnavailable=0)
    fell = scene.degrade(*old)
    entry = scene.wait_limit("budget", 4)
    assert "until" not in entry, "no clock ends it"
    assert blocked_budgets(scene) == [{"namespace": scene.namespace, "name": "web", "pods": 4}]
    assert scene.status()["limitedBy"] == "budget"
    event = scene.event(scene.pods_on(old)[0], "EvictionBlocked")
    assert f"{scene.namespace}/web" in event["note"]
    scene.nobody_leaves(fell)
    assert not answers(scene)
    allowed = time.monotonic()
    scene.cluster.patch("poddisruptionbudgets", "web", {"spec": {"maxUnavailable": 4}}, scene.namespace)
    left = scene.wait_departures(4, allowed)
    last = left[-1].at
    assert last - allowed < LEAVE_SECONDS + scene.lost(allowed, last), "no back-off is waited for"
    scene.ground.wait_complete(workload)


@STORIES.under(SEVERAL)
def a_pod_with_two_budgets_is_told_once_and_never_tried(scene: LimitScene) -> None:
    workload, old = on_old_nodes(scene, "web", 2)
    for name in ("first", "second"):
        scene.budget(name, "web", maxUnavailable=1)
    fell = scene.degrade(*old)
    scene.wait_limit("several-budgets", 2)
    scene.nobody_leaves(fell, OBSERVED_SECONDS)
    for pod in scene.pods_on(old):
        note = scene.event(pod, "EvictionBlocked")["note"]
        for budget in ("first", "second"):
            assert f"{scene.namespace}/{budget}" in note
        assert len(scene.events(pod, "EvictionBlocked")) == 1
    assert not answers(scene)
    scene.cluster.delete("poddisruptionbudgets", "second", scene.namespace)
    scene.wait_departures(2, fell)
    scene.ground.wait_complete(workload)
    assert scene.worst(workload, fell) == 1


@STORIES.under(SHARED)
def a_blocked_workload_holds_up_no_other(scene: LimitScene) -> None:
    blocked, old = on_old_nodes(scene, "blocked", 3)
    scene.budget("blocked", "blocked", maxUnavailable=0)
    free = scene.fill(old, 2)
    fell = scene.degrade(*old)
    for pod in free:
        scene.leaves(pod, fell, slack=LEAVE_SECONDS)
    assert scene.departures(fell, blocked) == []


def test_nobody_was_evicted_twice(working_cluster: ControlPlane, limits_told: Told) -> None:
    limits_told.wait()
    for story, scene in limits_told.scenes.items():
        accepted = [entry for entry in calls(working_cluster, scene.namespace) if entry["responseStatus"]["code"] < 300]
        twice = {name: times for name, times in Counter(map(pod_of, accepted)).items() if times > 1}
        assert twice == {}, story


def pod_of(entry: Json) -> str:
    return entry["objectRef"]["name"]


def test_the_shipped_rights_suffice(limits_told: Told) -> None:
    limits_told.judge_rights()
