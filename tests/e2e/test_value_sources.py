"""KEP-5721, stories 1 to 3, where nobody writes a taint: what nodes report of themselves decides.

Nodes have no kubelet: their versions and conditions are set as kubelets and other agents set them, in the status.
"""

import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from statistics import quantiles
from typing import Any

import pytest

from controlplane import Cluster, Json, Target, WorkingCluster, wait_until
from controlplane.client import ApiError
from e2e.limit_scenes import SCENE_LABEL
from e2e.placement_scenes import PlacementScene, placing
from e2e.replay.pod_watch import RUN_LABEL
from e2e.stories import (
    NO_LIMITS,
    PATIENCE_SECONDS,
    POLICY_LABEL,
    PodRef,
    Scene,
    Stories,
    Story,
    Told,
    annotation,
    conditions,
    policies,
    policy,
    taint,
    telling,
    toleration,
)

KUBELET, RUNTIME, GPU, RACK, TEAM = "kubelet", "runtime", "gpu", "rack", "team"


def read(key: str, source: str, name: str, **more: Any) -> Json:
    return {"taints": [{"key": key, "from": {source: name}, **more}]}


POLICIES: dict[str, Json] = {
    KUBELET: read(KUBELET, "nodeInfo", "kubeletVersion", valueType="Version"),
    RUNTIME: read(RUNTIME, "nodeInfo", "containerRuntimeVersion", valueType="Version"),
    GPU: read(GPU, "condition", "GPUHealthy"),
    RACK: read(RACK, "label", "example.com/rack"),
    TEAM: read(TEAM, "annotation", "example.com/team"),
}
STORIES = Stories()
OBSERVED_SECONDS = 3
TRIES = int(os.environ.get("TRIES", "5"))
"""How often a condition turns, and a taint changes: docs/benchmarks.md has the times of 50."""

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def told(
    request: pytest.FixtureRequest, control_plane: Target, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Told]:
    with telling(request, control_plane, tmp_path_factory.mktemp("sources"), STORIES, POLICIES) as told:
        yield told


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_story(told: Told, story: Story) -> None:
    told.judge(story)


def test_the_shipped_rights_suffice(told: Told) -> None:
    told.judge_rights()


def reports(cluster: Cluster, node: str, **info: str) -> float:
    """The node reports these fields of ``nodeInfo``; returns the moment."""
    began = time.monotonic()
    cluster.patch("nodes", node, {"status": {"nodeInfo": info}}, subresource="status", kind="strategic")
    return began


def turns(cluster: Cluster, node: str, kind: str, status: str) -> float:
    """A condition of the node gets this status; returns the moment."""
    began, now = time.monotonic(), datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    one = {"type": kind, "status": status, "lastTransitionTime": now, "lastHeartbeatTime": now}
    cluster.patch("nodes", node, {"status": {"conditions": [one]}}, subresource="status", kind="strategic")
    return began


def demanding(scene: Scene, name: str, node: str, key: str, operator: str, value: str, **more: int) -> PodRef:
    """A pod that needs no native toleration, since no taint is in the node's spec."""
    return scene.pod(name, node, annotations=annotation(toleration(operator, value, key=key, **more)))


def written(scene: Scene, node: str) -> list[Json]:
    """The taints in the spec of a node."""
    taints: list[Json] = scene.cluster.get("nodes", node)["spec"].get("taints", [])
    return taints


@STORIES.under(KUBELET)
def pods_run_only_where_the_kubelet_is_new_enough(scene: Scene) -> None:
    old, new = scene.node(name="old"), scene.node(name="new")
    reports(scene.cluster, old, kubeletVersion="v1.34.2+k3s1")
    reports(scene.cluster, new, kubeletVersion="v1.36.1")
    began = time.monotonic()
    on_old = demanding(scene, "on-old", old, KUBELET, "SemverGt", "1.35.0")
    on_new = demanding(scene, "on-new", new, KUBELET, "SemverGt", "1.35.0")
    unaware = scene.pod("unaware", old)
    scene.leaves(on_old, began)
    scene.stays(on_new, unaware, until=began + OBSERVED_SECONDS)
    assert "kubelet=v1.34.2+k3s1:NoExecute" in scene.event(on_old, "Evicted")["note"]
    assert written(scene, old) == []


@STORIES.under(RUNTIME)
def a_rollback_of_the_container_runtime_moves_the_pod(scene: Scene) -> None:
    node = scene.node()
    reports(scene.cluster, node, containerRuntimeVersion="containerd://2.1.4")
    pod = demanding(scene, "demanding", node, RUNTIME, "SemverGt", "2.0.99")
    scene.stays(pod, until=time.monotonic() + OBSERVED_SECONDS)
    rolled_back = reports(scene.cluster, node, containerRuntimeVersion="containerd://1.7.13")
    scene.leaves(pod, rolled_back)
    assert written(scene, node) == []


@STORIES.under(GPU)
def a_condition_that_turns_and_returns(scene: Scene) -> None:
    node = scene.node()
    turns(scene.cluster, node, "GPUHealthy", "True")
    patient = demanding(scene, "patient", node, GPU, "Equal", "True")
    scene.stays(patient, until=time.monotonic() + OBSERVED_SECONDS)
    turned = turns(scene.cluster, node, "GPUHealthy", "False")
    scene.leaves(patient, turned)
    turns(scene.cluster, node, "GPUHealthy", "True")
    second = demanding(scene, "second", node, GPU, "Equal", "True")
    scene.stays(second, until=time.monotonic() + OBSERVED_SECONDS)


@STORIES.under(RACK)
def a_label_is_read(scene: Scene) -> None:
    node = scene.node(labels={"example.com/rack": "7"})
    pod = demanding(scene, "demanding", node, RACK, "Lt", "9")
    scene.stays(pod, until=time.monotonic() + OBSERVED_SECONDS)
    moved = time.monotonic()
    scene.cluster.patch("nodes", node, {"metadata": {"labels": {"example.com/rack": "12"}}})
    scene.leaves(pod, moved)


@STORIES.under(TEAM)
def an_annotation_is_read_and_a_taint_of_the_spec_counts_instead(scene: Scene) -> None:
    node = scene.node()
    scene.cluster.annotate("nodes", node, {"example.com/team": "blue"})
    pod = demanding(scene, "demanding", node, TEAM, "Equal", "blue")
    scene.taint(node, taint("blue", TEAM))
    scene.cluster.annotate("nodes", node, {"example.com/team": "red"})
    scene.stays(pod, until=time.monotonic() + OBSERVED_SECONDS)
    freed = scene.taint(node)
    scene.leaves(pod, freed)


# -- placement --------------------------------------------------------------------------------------------------------

PLACED = Stories()
PLACING = "placing-kubelets"


@pytest.fixture(scope="module")
def placed(
    request: pytest.FixtureRequest, own_working_cluster: WorkingCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Told]:
    spec = {PLACING: read(KUBELET, "nodeInfo", "kubeletVersion", valueType="Version", placement=True)}
    with placing(request, own_working_cluster, tmp_path_factory.mktemp("placing"), PLACED, spec) as told:
        yield told


@pytest.mark.parametrize("story", PLACED, ids=str)
def test_placement(placed: Told, story: Story) -> None:
    placed.judge(story)


@PLACED.under(PLACING)
def replacements_land_where_the_kubelet_is_new_enough(scene: PlacementScene) -> None:
    wanted = toleration("SemverGt", "1.35.0", key=KUBELET)
    first, second = scene.place_node("a"), scene.place_node("b")
    for node in (first, second):
        reports(scene.cluster, node, kubeletVersion="v1.36.1")
    scene.wait_mirrored({first: "v1.36.1", second: "v1.36.1"}, KUBELET)
    scene.opt_in(wanted)
    selected = {SCENE_LABEL: scene.namespace}
    scene.ground.create_deployment(
        "web", scene.namespace, 2, node_selector=selected, annotations=annotation(wanted), labels={RUN_LABEL: scene.run}
    )
    wait_until(lambda: len(scene.placed("web")) == 2, PATIENCE_SECONDS, "two pods to run")
    reports(scene.cluster, second, kubeletVersion="v1.34.2")
    scene.wait_mirrored({second: "v1.34.2"}, KUBELET)
    scene.wait_placed("web", first, first)
    assert [written(scene, node) for node in (first, second)] == [[], []]


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ({"nodeInfo": "kubletVersion"}, "nodeInfo"),
        ({"condition": "GPUHealthy", "label": "gpu"}, "names one of nodeInfo, condition, label and annotation"),
        ({}, "names one of nodeInfo, condition, label and annotation"),
        ({"condition": "not a name"}, "condition"),
    ],
)
def test_a_source_that_cannot_be_is_refused(cluster: Cluster, source: Json, told: str) -> None:
    with pytest.raises(ApiError, match=told):
        cluster.create("taintevictionpolicies", policy("never", taints=[{"key": "k", "from": source}]))


def test_a_condition_that_nobody_sets(cluster: Cluster, namespace: str, told: Told) -> None:
    node, labels = f"{namespace}-n1", {POLICY_LABEL: namespace}
    cluster.create_node(node, labels)
    cluster.create_pod("demanding", namespace, node, annotations=annotation(toleration("Equal", "True", key="typo")))
    with policies(cluster, {namespace: read("typo", "condition", "GPUHealthi")}):
        found = lambda: conditions(cluster, namespace).get("SourcesFound", {})  # noqa: E731
        wait_until(lambda: found().get("status") == "False", PATIENCE_SECONDS, "the condition")
        assert found()["message"] == (
            "none of 1 node has condition GPUHealthi, so none has the taint typo and no pod is evicted by it"
        )
        turns(cluster, node, "GPUHealthi", "True")
        wait_until(lambda: found().get("status") == "True", PATIENCE_SECONDS, "the condition is set")
    assert cluster.get("pods", "demanding", namespace)["metadata"].get("deletionTimestamp") is None


def test_two_sources_for_one_key(cluster: Cluster, namespace: str, told: Told) -> None:
    older, younger = f"{namespace}-a", f"{namespace}-b"

    def accepted(name: str) -> Json:
        return conditions(cluster, name).get("Accepted", {})

    specs = {older: read("k", "nodeInfo", "kubeletVersion"), younger: read("k", "nodeInfo", "kernelVersion")}
    with policies(cluster, specs):
        wait_until(lambda: accepted(younger).get("status") == "False", PATIENCE_SECONDS, "the younger one is refused")
        assert (
            f"policy {older}, which is older, reads the taint k from nodeInfo kubeletVersion"
            in accepted(younger)["message"]
        )
        wait_until(lambda: accepted(older).get("status") == "True", PATIENCE_SECONDS, "the older one is accepted")
        cluster.delete("taintevictionpolicies", older)
        wait_until(lambda: accepted(younger).get("status") == "True", PATIENCE_SECONDS, "the other one is free")


# -- latency ----------------------------------------------------------------------------------------------------------


def test_each_turn_of_a_condition_evicts_as_a_taint_does(cluster: Cluster, namespace: str, told: Told) -> None:
    """From the write of a condition, or of a taint, until the eviction is stored. The times are printed, not judged."""
    taints = [{"key": "gpu", "from": {"condition": "GPUHealthy"}}, {"key": "sla"}]
    node, spec = f"{namespace}-n1", {"taints": taints, "timing": {}, "limits": {**NO_LIMITS}}
    cluster.create_node(node, {POLICY_LABEL: namespace})
    fails: dict[str, Callable[[], float]] = {
        "condition": lambda: turns(cluster, node, "GPUHealthy", "False"),
        "taint": lambda: _tainted(cluster, node, "900"),
    }
    mends: dict[str, Callable[[], float]] = {
        "condition": lambda: turns(cluster, node, "GPUHealthy", "True"),
        "taint": lambda: _tainted(cluster, node, "980"),
    }
    wanted = {"condition": toleration("Equal", "True", key="gpu"), "taint": toleration("Gt", "950")}
    found: dict[str, list[float]] = {name: [] for name in fails}
    with policies(cluster, {namespace: spec}):
        for number in range(TRIES):
            for name, fail in fails.items():
                for mend in mends.values():
                    mend()
                pod = f"{name}-{number}"
                extended = annotation(wanted[name])
                natives = [toleration("Exists", key="sla")]
                cluster.create_pod(pod, namespace, node, annotations=extended, tolerations=natives)
                time.sleep(0.3)
                began = fail()
                found[name].append(_left_at(cluster, pod, namespace) - began)
                cluster.delete("pods", pod, namespace, grace_seconds=0)
    for name, seconds in found.items():
        percentiles = quantiles(seconds, n=100)
        print(f"{name}: p50 {percentiles[49] * 1e3:.0f} ms, p99 {percentiles[98] * 1e3:.0f} ms of {len(seconds)}")  # noqa: T201


def _tainted(cluster: Cluster, node: str, value: str) -> float:
    began = time.monotonic()
    cluster.set_taints(node, [taint(value)])
    return began


def _left_at(cluster: Cluster, pod: str, namespace: str) -> float:
    """When the pod was evicted, looked at every few milliseconds."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up_at:
        found = cluster.find("pods", pod, namespace)
        if found is None or "deletionTimestamp" in found["metadata"]:
            return time.monotonic()
        time.sleep(0.005)
    msg = f"{pod} was not evicted"
    raise TimeoutError(msg)
