"""KEP-5721, stories 1 to 3, where nobody writes a taint: what nodes report of themselves decides.

Nodes have no kubelet: their versions and conditions are set as kubelets and other agents set them, in the status.
"""

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from controlplane import Cluster, Json, Target
from e2e.stories import (
    PodRef,
    Scene,
    Stories,
    Story,
    Told,
    annotation,
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
"""How often a condition turns, and a taint changes."""

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
