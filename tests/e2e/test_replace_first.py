"""A Deployment of one replica starts the replacement before its pod is removed, on a cluster that lives."""

import time
from collections.abc import Callable

import pytest

from e2e.limit_scenes import ALL_SECONDS, GOOD, LimitScene
from e2e.stories import NO_LIMITS, RunningStories, Stories, Story

TIMEOUT_SECONDS = 40
# The operator sees the Deployment complete in another stream than the taint, which must not come first.
LIMITS = {**NO_LIMITS, "guard": {"minPods": 1_000, "settleSeconds": 2}}
FIRST = {"eviction": {"replaceFirst": {"timeoutSeconds": TIMEOUT_SECONDS}}, "limits": LIMITS}
POLICIES = {"replace-first": {"eviction": {"replaceFirst": {}}, "limits": LIMITS}, "replace-late": FIRST}
RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
STORIES = Stories()

pytestmark = pytest.mark.timeout(480)


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(running_limits: RunningStories, story: Story) -> None:
    running_limits.judge(story)


def deploy(scene: LimitScene) -> str:
    """Create Deployment web of one replica, and wait until its status says that no rollout is in progress."""
    workload = scene.deploy("web", 1)

    def is_complete() -> bool:
        status = scene.cluster.get("deployments", "web", scene.namespace)["status"]
        return (status.get("updatedReplicas"), status.get("availableReplicas")) == (1, 1)

    scene.wait(is_complete, ALL_SECONDS, "the status of the Deployment")
    return workload


def restarts(scene: LimitScene, name: str = "web") -> list[str]:
    """The values that the annotation of a Deployment had, by its ReplicaSets."""
    found = [one for one in scene.cluster.items("replicasets", scene.namespace) if one["metadata"]["name"][:3] == name]
    values = (one["spec"]["template"]["metadata"].get("annotations", {}).get(RESTARTED_AT) for one in found)
    return [value for value in values if value]


def note_of(scene: LimitScene, reason: str) -> Callable[[], list[str]]:
    def notes() -> list[str]:
        return [one["note"] for one in scene.cluster.items("events", scene.namespace) if one["reason"] == reason]

    return notes


@STORIES.under("replace-first")
def the_replacement_is_ready_before_the_pod_is_removed_whatever_the_budget_allows(scene: LimitScene) -> None:
    [bad], [good] = scene.nodes(GOOD, a=1), scene.nodes(GOOD, b=1)
    scene.cordon([good])
    workload = deploy(scene)
    scene.cluster.create_pdb("web", scene.namespace, {"app": "web"})
    scene.cordon([good], off=True)
    began = time.monotonic()
    scene.degrade(bad)
    [left] = scene.wait_departures(1, began)
    scene.ground.wait_complete(workload)
    assert left.node == bad
    assert min(one.available for one in scene.ground.availability.counts(workload, began)) == 1, "never without a pod"
    assert len(restarts(scene)) == 1
    scene.wait(note_of(scene, "ReplacementAsked"), scene.event_seconds, "an Event")
    scene.wait(lambda: scene.status().get("evicted") == 1, 30, "the pod to count as evicted")


@STORIES.under("replace-late")
def a_pod_whose_replacement_never_gets_ready_is_evicted_after_the_timeout(scene: LimitScene) -> None:
    [bad] = scene.nodes(GOOD, a=1)
    workload = deploy(scene)
    began = time.monotonic()
    scene.degrade(bad)  # no other node takes the replacement
    entry = scene.wait_limit("workload")
    assert entry["message"].startswith("asked Deployment web for a replacement at ")
    [left] = scene.wait_departures(1, began)
    assert TIMEOUT_SECONDS - 2 < left.at - began < TIMEOUT_SECONDS + ALL_SECONDS
    assert len(restarts(scene)) == 1
    scene.recover(bad)
    scene.ground.wait_complete(workload)


@STORIES.under("replace-late")
def a_paused_rollout_has_its_pod_evicted_at_once(scene: LimitScene) -> None:
    [bad], [good] = scene.nodes(GOOD, a=1), scene.nodes(GOOD, b=1)
    scene.cordon([good])
    workload = deploy(scene)
    scene.cordon([good], off=True)
    scene.cluster.patch("deployments", "web", {"spec": {"paused": True}}, scene.namespace)
    began = time.monotonic()
    scene.degrade(bad)
    [left] = scene.wait_departures(1, began)
    assert left.at - began < TIMEOUT_SECONDS
    assert restarts(scene) == []
    scene.ground.wait_complete(workload)


@STORIES.under("replace-late")
def a_revert_of_the_annotation_causes_no_second_request(scene: LimitScene) -> None:
    [bad] = scene.nodes(GOOD, a=1)
    workload = deploy(scene)
    began = time.monotonic()
    scene.degrade(bad)  # no other node takes the replacement
    scene.wait(lambda: restarts(scene), ALL_SECONDS, "the request")
    reverted = {"spec": {"template": {"metadata": {"annotations": {RESTARTED_AT: None}}}}}
    scene.cluster.patch("deployments", "web", reverted, scene.namespace)
    replacement, left = scene.wait_departures(2, began)
    assert (replacement.node, left.node) == ("", bad)
    assert TIMEOUT_SECONDS - 2 < left.at - began < TIMEOUT_SECONDS + ALL_SECONDS
    assert len(restarts(scene)) == 1
    scene.recover(bad)
    scene.ground.wait_complete(workload)
