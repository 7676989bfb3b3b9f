"""PodDisruptionBudgets on a real API server: what they hold stays until they allow it, or for as long as a policy says.

No disruption controller runs: the tests say what each budget allows.
"""

import time
from collections import Counter
from collections.abc import Iterator

import pytest

from controlplane import ControlPlane, Json, Target, wait_until
from e2e.stories import (
    PATIENCE_SECONDS,
    SLACK_SECONDS,
    PodRef,
    Scene,
    Stories,
    Story,
    Told,
    calls,
    taint,
    telling,
    toleration,
)

ASKING, FORCING, PRESSING = "asking", "forcing", "pressing"
TIMEOUT_SECONDS = 5
POLICIES = {
    ASKING: {"eviction": {"method": "Evict"}},
    PRESSING: {"eviction": {"method": "EvictThenDelete", "pdbTimeoutSeconds": TIMEOUT_SECONDS}},
    FORCING: {"eviction": {"method": "Delete"}},
}
STORIES = Stories()

APP = {"app": "web"}
# A blocked pod is tried again after 2 s, then after twice as long each time; the server may ask for 10 s.
RETRY_SECONDS = 12
OBSERVED_SECONDS = 5


@pytest.fixture(scope="module")
def told(
    request: pytest.FixtureRequest, own_control_plane: Target, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Told]:
    with telling(request, own_control_plane, tmp_path_factory.mktemp("budgets"), STORIES, POLICIES) as told:
        yield told


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(told: Told, story: Story) -> None:
    told.judge(story)


def blocked_pod(scene: Scene, *budgets: str, tolerates_seconds: int = 0) -> tuple[PodRef, float]:
    """A pod that has to leave so many seconds after a moment, and that these budgets hold."""
    node = scene.node()
    pod = scene.pod("web", node, toleration("Exists", "", tolerates_seconds), labels=APP)
    for budget in budgets:
        scene.cluster.create_pdb(budget, scene.namespace, APP)
    return pod, scene.taint(node, taint("940"))


@STORIES.under(ASKING)
def a_budget_holds_a_pod_until_it_allows_its_eviction(scene: Scene) -> None:
    pod, tainted = blocked_pod(scene, "web-budget")
    event = scene.event(pod, "EvictionBlocked")
    assert event["type"] == "Warning"
    assert "web-budget" in event["note"]
    status = wait_until(lambda: scene.status() if scene.status().get("blocked") else None, PATIENCE_SECONDS, "blocked")
    assert (status["blocked"], status["pending"], status["evicted"]) == (1, 1, 0)
    assert [(each["name"], each["state"]) for each in status["nextPods"]] == [("web", "Blocked")]
    assert scene.operator.metric("taintwarden_blocked_evictions", policy=scene.policy, reason="blocked") == 1
    scene.stays(pod, until=tainted + OBSERVED_SECONDS)
    allowed = time.monotonic()
    scene.cluster.set_disruptions_allowed("web-budget", scene.namespace, 1)
    scene.leaves(pod, allowed, slack=RETRY_SECONDS + SLACK_SECONDS)
    wait_until(lambda: scene.status()["evicted"] == 1 and scene.status()["blocked"] == 0, PATIENCE_SECONDS, "the end")


@STORIES.under(PRESSING)
def what_a_budget_blocks_for_too_long_is_deleted(scene: Scene) -> None:
    # Nothing orders the watch of budgets and that of nodes: the pod stays until its budget is known.
    pod, tainted = blocked_pod(scene, "web-budget", tolerates_seconds=2)
    scene.leaves(pod, tainted, 2 + TIMEOUT_SECONDS)
    assert disruption_target(scene, pod)["reason"] == "DeletionByTaintwarden"


@STORIES.under(PRESSING)
def what_two_budgets_block_is_deleted_also_if_it_is_not_ready(scene: Scene) -> None:
    node = scene.node()
    pod = scene.pod("web", node, toleration("Exists", "", 2), labels=APP, ready=False)
    for budget in ("one", "two"):  # with as many healthy pods as desired each alone would admit it
        scene.cluster.create_pdb(budget, scene.namespace, APP)
    scene.leaves(pod, scene.taint(node, taint("940")), 2 + TIMEOUT_SECONDS)
    assert disruption_target(scene, pod)["reason"] == "DeletionByTaintwarden"


@STORIES.under(FORCING)
def deleting_asks_no_budget(scene: Scene) -> None:
    pod, tainted = blocked_pod(scene, "web-budget")
    scene.leaves(pod, tainted)
    condition = disruption_target(scene, pod)
    assert (condition["status"], condition["reason"]) == ("True", "DeletionByTaintwarden")
    assert "sla=940:NoExecute" in condition["message"]


def disruption_target(scene: Scene, pod: PodRef) -> Json:
    """The condition that tells Jobs and people that the pod did not fail."""
    found = {condition["type"]: condition for condition in scene.watch.last(pod.uid)["status"]["conditions"]}
    return found["DisruptionTarget"]


def test_each_method_makes_the_calls_it_should(own_control_plane: ControlPlane, told: Told) -> None:
    told.wait()
    made = {
        story.play: Counter(name_of(entry) for entry in calls(own_control_plane, scene.namespace))
        for story, scene in told.scenes.items()
    }
    assert made[deleting_asks_no_budget] == {"delete 200": 1}
    assert made[what_a_budget_blocks_for_too_long_is_deleted] == {"delete 200": 1}
    assert made[a_budget_holds_a_pod_until_it_allows_its_eviction]["create eviction 201"] == 1


def name_of(entry: Json) -> str:
    """What an audit entry is about: "create eviction 429"."""
    words = (entry["verb"], entry["objectRef"].get("subresource"), str(entry["responseStatus"]["code"]))
    return " ".join(word for word in words if word)


def test_the_shipped_rights_suffice(told: Told) -> None:
    told.judge_rights()
