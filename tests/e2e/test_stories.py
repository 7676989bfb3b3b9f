"""What policies promise, on a real API server: stories that one operator tells side by side.

No disruption controller runs: the stories say what each budget allows. Nodes have no kubelet: their versions and
conditions are set as kubelets and other agents set them.
"""

import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from api.profile_cases import profile
from controlplane import ControlPlane, Json, Target, wait_until
from e2e.stories import (
    PATIENCE_SECONDS,
    SLACK_SECONDS,
    TOLERATIONS,
    PodRef,
    Scene,
    Stories,
    Story,
    Told,
    annotation,
    calls,
    taint,
    telling,
    toleration,
)

STRICT, ASKING, FORCING, PRESSING, KUBELET, GPU = "strict", "asking", "forcing", "pressing", "kubelet", "gpu"
TIMEOUT_SECONDS = 5
POLICIES: dict[str, Json] = {
    STRICT: {},
    ASKING: {"eviction": {"method": "Evict"}},
    PRESSING: {"eviction": {"method": "EvictThenDelete", "pdbTimeoutSeconds": TIMEOUT_SECONDS}},
    FORCING: {"eviction": {"method": "Delete"}},
    KUBELET: {"taints": [{"key": KUBELET, "from": {"nodeInfo": "kubeletVersion"}, "valueType": "Version"}]},
    GPU: {"taints": [{"key": GPU, "from": {"condition": "GPUHealthy"}}]},
}
STORIES = Stories()

APP = {"app": "web"}
RETRY_SECONDS = 12
"""A blocked pod is tried again after 2 s, then after twice as long each time; the server may ask for 10 s."""
OBSERVED_SECONDS = 4
ANY = toleration("Exists")


@pytest.fixture(scope="module")
def told(
    request: pytest.FixtureRequest, own_control_plane: Target, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Told]:
    with telling(request, own_control_plane, tmp_path_factory.mktemp("stories"), STORIES, POLICIES) as told:
        yield told


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(told: Told, story: Story) -> None:
    told.judge(story)


def blocked_pod(scene: Scene, tolerates_seconds: int = 0) -> tuple[PodRef, float]:
    """A pod that has to leave so many seconds after a moment, and that a budget holds."""
    node = scene.node()
    pod = scene.pod("web", node, toleration("Exists", "", tolerates_seconds), labels=APP)
    scene.cluster.create_pdb("web-budget", scene.namespace, APP)
    return pod, scene.taint(node, taint("940"))


@STORIES.under(ASKING)
def a_budget_holds_a_pod_until_it_allows_its_eviction(scene: Scene) -> None:
    pod, tainted = blocked_pod(scene)
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
    pod, tainted = blocked_pod(scene, tolerates_seconds=2)
    scene.leaves(pod, tainted, 2 + TIMEOUT_SECONDS)
    in_spite_of_its_budget(scene, pod)


def in_spite_of_its_budget(scene: Scene, pod: PodRef) -> None:
    """Event, status and metric call the deletion so."""
    told = f"Deleted in spite of PodDisruptionBudget {scene.namespace}/web-budget from "
    assert scene.event(pod, "Evicted")["note"].startswith(told)
    wait_until(lambda: scene.status().get("pastBudgets") == 1, PATIENCE_SECONDS, "the status to count it")
    assert scene.operator.metric("taintwarden_evictions_total", policy=scene.policy, outcome="past-budget") == 1


@STORIES.under(FORCING)
def deleting_asks_no_budget(scene: Scene) -> None:
    pod, tainted = blocked_pod(scene)
    scene.leaves(pod, tainted)
    in_spite_of_its_budget(scene, pod)
    conditions = {one["type"]: one for one in scene.watch.last(pod.uid)["status"]["conditions"]}
    condition = conditions["DisruptionTarget"]
    assert (condition["status"], condition["reason"]) == ("True", "DeletionByTaintwarden")
    assert "sla=940:NoExecute" in condition["message"]


@STORIES.under(STRICT)
def a_profile_narrows_what_a_pod_tolerates_by_itself(scene: Scene) -> None:
    pod = scene.pod("lenient", scene.node(taint("940")), ANY)
    scene.stays(pod, until=time.monotonic() + OBSERVED_SECONDS)
    given, spec = time.monotonic(), {"podSelector": {}, "tolerations": [toleration("Gt", "950")]}
    scene.cluster.create("tolerationprofiles", profile(spec, "strict", scene.namespace), scene.namespace)
    scene.leaves(pod, given)
    assert "sla Gt '950' does not hold" in scene.event(pod, "Evicted")["note"].replace(":NoExecute does", " does")


@STORIES.under(STRICT)
def a_malformed_annotation_is_told_and_the_native_tolerations_decide(scene: Scene) -> None:
    node = scene.node(taint("980"))
    broken = {TOLERATIONS: '[{"key": "sla", "operator": "Gt", '}
    lenient = scene.pod("lenient", node, ANY, annotations=broken)
    critical = scene.pod("critical", node, toleration("Equal", "980"), annotations=broken)
    event = scene.event(lenient, "InvalidToleration")
    assert event["type"] == "Warning"
    assert f"metadata.annotations[{TOLERATIONS}]" in event["note"]
    fell = scene.taint(node, taint("940"))
    scene.leaves(critical, fell)
    scene.stays(lenient, until=fell + OBSERVED_SECONDS)


def demanding(scene: Scene, name: str, node: str, key: str, operator: str, value: str) -> PodRef:
    """A pod that needs no native toleration, since no taint is in the node's spec."""
    return scene.pod(name, node, annotations=annotation(toleration(operator, value, key=key)))


def report(scene: Scene, node: str, **status: object) -> float:
    """The node reports this in its status; returns the moment."""
    began = time.monotonic()
    scene.cluster.patch("nodes", node, {"status": status}, subresource="status", kind="strategic")
    return began


@STORIES.under(KUBELET)
def pods_run_only_where_the_kubelet_is_new_enough(scene: Scene) -> None:
    """KEP-5721, story 1, where nobody writes a taint."""
    old, new = scene.node(name="old"), scene.node(name="new")
    report(scene, old, nodeInfo={"kubeletVersion": "v1.34.2+k3s1"})
    began = report(scene, new, nodeInfo={"kubeletVersion": "v1.36.1"})
    on_old = demanding(scene, "on-old", old, KUBELET, "SemverGt", "1.35.0")
    on_new = demanding(scene, "on-new", new, KUBELET, "SemverGt", "1.35.0")
    unaware = scene.pod("unaware", old)
    scene.leaves(on_old, began)
    scene.stays(on_new, unaware, until=began + OBSERVED_SECONDS)
    assert "kubelet=v1.34.2+k3s1:NoExecute" in scene.event(on_old, "Evicted")["note"]


@STORIES.under(GPU)
def a_condition_that_turns_and_returns(scene: Scene) -> None:
    def turn(status: str) -> float:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        one = {"type": "GPUHealthy", "status": status, "lastTransitionTime": now, "lastHeartbeatTime": now}
        return report(scene, node, conditions=[one])

    node = scene.node()
    turn("True")
    patient = demanding(scene, "patient", node, GPU, "Equal", "True")
    scene.stays(patient, until=time.monotonic() + OBSERVED_SECONDS)
    scene.leaves(patient, turn("False"))
    turn("True")
    second = demanding(scene, "second", node, GPU, "Equal", "True")
    scene.stays(second, until=time.monotonic() + OBSERVED_SECONDS)


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
