"""limits.guard on a real API server: a wave that is too large evicts nobody until somebody has looked at it."""

import re
import time

import pytest

from e2e.limit_scenes import GOOD, LEAVE_SECONDS, STATUS_SECONDS, LimitScene
from e2e.stories import PATIENCE_SECONDS, PodRef, Stories, Story, Told, taint

GUARDED, RESET, APPLIED = "guarded", "guard-reset", "guard-applied"
SHARE, FEWER = "guard-share", "guard-fewer"
ALLOWED = 5
PODS = 8
SETTLE_SECONDS = 8
"""So long a wave may take: nodes fall one after the other, and on a busy machine that takes a while."""
OBSERVED_SECONDS = SETTLE_SECONDS + 5
GUARD = {"minPods": ALLOWED, "maxPercent": 20, "windowSeconds": 600, "settleSeconds": SETTLE_SECONDS}
HALF = {"base": "None", "guard": {"settleSeconds": 2}, "evictionsPerSecond": 1, "burst": 1}
"""Half of few pods may be evicted, more slowly than they are counted."""
POLICIES = {
    GUARDED: {"limits": {"base": "None", "guard": GUARD}},
    RESET: {"limits": {"guard": GUARD}},
    APPLIED: {"limits": {"guard": GUARD}},
    SHARE: {"limits": HALF},
    FEWER: {"limits": HALF},
}
STORIES = Stories()

pytestmark = pytest.mark.timeout(480)  # the first test waits for the cluster, and each for its story
RESET_ANNOTATION = "taintwarden.io/guard-reset"
ZERO = taint("0")


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(limits_told: Told, story: Story) -> None:
    limits_told.judge(story)


def too_many(scene: LimitScene) -> tuple[list[str], list[PodRef]]:
    """Eight pods on four nodes, more than may go."""
    nodes = scene.nodes(GOOD, a=2, b=2)
    return nodes, scene.fill(nodes, 2)


def zero(scene: LimitScene, nodes: list[str]) -> float:
    """What a monitoring fault looks like: everybody's level is 0."""
    began = time.monotonic()
    for node in nodes:
        scene.cluster.set_taints(node, [ZERO])
    return began


def annotations_of(scene: LimitScene) -> dict[str, str]:
    return scene.cluster.get("taintevictionpolicies", scene.policy)["metadata"].get("annotations", {})


@STORIES.under(GUARDED)
def a_zero_on_every_node_evicts_nobody(scene: LimitScene) -> None:
    nodes, pods = too_many(scene)
    fell = zero(scene, nodes)
    scene.wait_limit("guard", PODS)
    told = lambda: scene.wait_condition("GuardTripped", "True")["message"]  # noqa: E731
    scene.wait(lambda: f"{PODS} pods due" in told(), STATUS_SECONDS, "the condition to say how many pods are due")
    assert "sla=0 (980 before)" in told()
    event = scene.event(scene.policy, "GuardTripped")
    assert event["type"] == "Warning"
    assert event["regarding"]["kind"] == "TaintEvictionPolicy"
    [due] = re.findall(r"(\d+) pods due", event["note"])
    assert ALLOWED < int(due) <= PODS, "those that it knew of when it tripped"
    assert "sla=0 (980 before)" in event["note"]
    assert not any(pod.name in event["note"] for pod in pods), "an Event of a policy names no pod of a tenant"
    counted = lambda: scene.status()["guard"].get("wouldEvict") == len(pods)  # noqa: E731
    scene.wait(counted, STATUS_SECONDS, "the guard to count all pods")
    status = scene.status()
    assert status["limitedBy"] == "guard"
    assert status["guard"]["open"] is True
    scene.stays(*pods, until=fell + OBSERVED_SECONDS)
    scene.recover(*nodes)
    scene.wait_condition("GuardTripped", "False")
    scene.event(scene.policy, "GuardArmed")
    scene.stays(*pods, until=time.monotonic() + OBSERVED_SECONDS)
    assert len(scene.policy_events("GuardTripped")) == 1


@STORIES.under(APPLIED)
def a_taint_that_states_that_it_is_old_is_counted_for_all(scene: LimitScene) -> None:
    """As whoever keeps it in a manifest applies it: no pod came to a bad node because of that."""
    nodes, pods = too_many(scene)
    for node in nodes:
        scene.cluster.set_taints(node, [])
    began = time.monotonic()
    for node in nodes:
        scene.cluster.set_taints(node, [ZERO | {"timeAdded": "2020-02-02T02:02:02Z"}])
    assert scene.wait_condition("GuardTripped", "True")["reason"] != "HoldsNamespace"
    scene.event(scene.policy, "GuardTripped")
    scene.stays(*pods, until=began + OBSERVED_SECONDS)


@STORIES.under(RESET)
def a_reset_lets_them_go(scene: LimitScene) -> None:
    nodes, pods = too_many(scene)
    zero(scene, nodes)
    scene.wait_condition("GuardTripped", "True")
    generation = scene.status()["observedGeneration"]
    scene.cluster.annotate("taintevictionpolicies", scene.policy, {RESET_ANNOTATION: str(generation + 1)})
    scene.stays(*pods, until=time.monotonic() + OBSERVED_SECONDS)
    reset = time.monotonic()
    scene.cluster.annotate("taintevictionpolicies", scene.policy, {RESET_ANNOTATION: str(generation)})
    for pod in pods:
        scene.leaves(pod, reset, slack=LEAVE_SECONDS)
    scene.wait(lambda: RESET_ANNOTATION not in annotations_of(scene), PATIENCE_SECONDS, "the annotation to be removed")
    scene.wait_condition("GuardTripped", "False")
    assert scene.status()["observedGeneration"] == generation


def nearly_half(scene: LimitScene) -> tuple[str, list[PodRef]]:
    """A node that all pods have to leave, once two have left, and the pods of another one. None is replaced."""
    bad, fine = scene.nodes(GOOD, a=2)
    scene.fill([bad], 10)
    staying = scene.fill([fine], 12)
    scene.wait_pods_seen(fine)
    zero(scene, [bad])
    scene.wait(lambda: len(scene.pods_on([bad])) <= 8, LEAVE_SECONDS, "two pods to leave")
    return bad, staying


@STORIES.under(SHARE)
def a_wave_that_it_has_let_pass_ends_although_the_pods_become_fewer(scene: LimitScene) -> None:
    bad, staying = nearly_half(scene)
    scene.wait(lambda: not scene.pods_on([bad]), LEAVE_SECONDS, "all to leave")
    scene.stays(*staying, until=time.monotonic())
    assert scene.status()["guard"]["open"] is False


@STORIES.under(FEWER)
def fewer_pods_for_another_reason_make_the_rest_wait_for_the_next_window(scene: LimitScene) -> None:
    bad, staying = nearly_half(scene)
    for pod in staying:
        scene.cluster.delete("pods", pod.name, scene.namespace)
    entry = scene.wait_limit("guard-window")
    assert entry["until"] > entry["since"]
    assert scene.status()["guard"]["open"] is False
    assert scene.pods_on([bad])
