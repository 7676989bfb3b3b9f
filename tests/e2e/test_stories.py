"""Promises of policies on a real API server: stories that run side by side against one operator.

Budgets that are respected are in tests/blackbox. Nodes have no kubelet: their versions and conditions are set as
kubelets and other agents set them.
"""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from api.profile_cases import profile
from controlplane import ControlPlane, Json, Target, wait_until
from e2e.stories import (
    PATIENCE_SECONDS,
    TOLERATIONS,
    PodRef,
    RunningStories,
    Scene,
    Stories,
    Story,
    annotation,
    calls,
    running_stories,
    taint,
    toleration,
)
from taintwarden.api.opt_outs import DO_NOT_EVICT

STRICT, FORCING, KUBELET, GPU, RECLAIM = "strict", "forcing", "kubelet", "gpu", "reclaim"
POLICIES: dict[str, Json] = {
    STRICT: {},
    FORCING: {"eviction": {"method": "Delete"}},
    KUBELET: {"taints": [{"key": KUBELET, "from": {"nodeInfo": "kubeletVersion"}, "valueType": "Version"}]},
    GPU: {"taints": [{"key": GPU, "from": {"condition": "GPUHealthy"}}]},
    RECLAIM: {"taints": [{"key": RECLAIM}], "limits": {}, "reclaim": {"deadlineSeconds": 600}},
}
STORIES = Stories()

APP = {"app": "web"}
OBSERVED_SECONDS = 4
ANY = toleration("Exists")


@pytest.fixture(scope="module")
def running(
    request: pytest.FixtureRequest, own_control_plane: Target, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningStories]:
    with running_stories(request, own_control_plane, tmp_path_factory.mktemp("stories"), STORIES, POLICIES) as running:
        yield running


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(running: RunningStories, story: Story) -> None:
    running.judge(story)


@STORIES.under(FORCING)
def deleting_asks_no_budget(scene: Scene) -> None:
    """Event, status and metric say so."""
    node = scene.node()
    pod = scene.pod("web", node, labels=APP)
    scene.cluster.create_pdb("web-budget", scene.namespace, APP)
    wait_budget(scene, "web-budget")
    scene.leaves(pod, scene.taint(node, taint("940")))
    expected = f"Deleted in spite of PodDisruptionBudget {scene.namespace}/web-budget from "
    assert scene.event(pod, "Evicted")["note"].startswith(expected)
    wait_until(lambda: scene.status().get("pastBudgets") == 1, PATIENCE_SECONDS, "the status to count it")
    assert scene.operator.metric("taintwarden_evictions_total", policy=scene.policy, outcome="past-budget") == 1
    conditions = {one["type"]: one for one in scene.watch.last(pod.uid)["status"]["conditions"]}
    condition = conditions["DisruptionTarget"]
    assert (condition["status"], condition["reason"]) == ("True", "DeletionByTaintwarden")
    assert "sla=940:NoExecute" in condition["message"]


def wait_budget(scene: Scene, name: str) -> None:
    """Wait until a budget that allows no eviction is known: it holds a pod on a node of another policy, which says so.

    Budgets and nodes are two watches, and a node may be known before the budget is.
    """
    scene.pod("held", scene.node(taint("940"), name="held", policy=STRICT), labels=APP)

    def holds() -> bool:
        status = scene.cluster.get("taintevictionpolicies", STRICT).get("status", {})
        return (scene.namespace, name) in [(one["namespace"], one["name"]) for one in status.get("blockedBudgets", ())]

    scene.wait(holds, PATIENCE_SECONDS, f"{name} to hold a pod")


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
    """KEP-5721, story 1, where no client writes a taint."""
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


@STORIES.under(STRICT)
def pods_that_stay_are_counted_in_the_status(scene: Scene) -> None:
    scene.pod("kept", scene.node(taint("940")), annotations={DO_NOT_EVICT: "true"})

    def counted() -> list[Json]:
        return [one for one in scene.status().get("staying", ()) if one["reason"] == "opted out"]

    scene.wait(counted, PATIENCE_SECONDS, "the status to count it")
    assert all(one["pods"] >= 1 for one in counted())


@STORIES.under(RECLAIM)
def a_pod_that_opts_out_is_told_that_it_ends_with_its_node(scene: Scene) -> None:
    node = scene.node()
    kept = scene.pod("kept", node, annotations={DO_NOT_EVICT: "true"})
    other = scene.pod("other", node)
    scene.leaves(other, scene.taint(node, taint("soon", key=RECLAIM)))
    event = scene.event(kept, "EndsWithNode")
    assert (event["type"], DO_NOT_EVICT in event["note"]) == ("Warning", True)
    scene.stays(kept, until=time.monotonic() + OBSERVED_SECONDS)
    assert len(scene.events(kept, "EndsWithNode")) == 1
    assert scene.events(kept, "EndsWithNode")[0].get("series") is None


def test_deleting_is_one_call(own_control_plane: ControlPlane, running: RunningStories) -> None:
    running.wait()
    [scene] = [scene for story, scene in running.scenes.items() if story.play is deleting_asks_no_budget]
    made = [one for one in calls(own_control_plane, scene.namespace) if one["objectRef"]["name"] == "web"]
    assert [(one["verb"], one["responseStatus"]["code"]) for one in made] == [("delete", 200)]


def test_the_shipped_rights_suffice(running: RunningStories) -> None:
    running.judge_rights()
