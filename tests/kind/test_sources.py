"""KEP-5721, stories 1 to 3, on real kubelets and with no taint in any node: what nodes say of themselves decides."""

import datetime
import time
from collections.abc import Iterator
from typing import Any

import pytest

from controlplane import Json, wait_until
from controlplane.cluster import now
from e2e.stories import annotation, toleration
from kind.installation import Installation
from kind.nodes import on_node
from kind.scene import LEAVE_SECONDS, Scene, is_ready
from taintwarden.api.placement_labels import value_label

KUBELET, GPU, DRIVER = "example.com/kubelet", "example.com/gpu", "example.com/driver"
CONDITION = "GPUHealthy"
MIRRORED_SECONDS = 30
PLACED_SECONDS = 60
INJECTED = {"metadata": {"labels": {"taintwarden.io/inject": "true"}}}


def read(key: str, source: str, name: str, **more: Any) -> list[Json]:
    return [{"key": key, "from": {source: name}, **more}]


def reported(scene: Scene, node: str, field: str) -> str:
    """What the kubelet of a node reports, without a scheme."""
    value: str = scene.cluster.get("nodes", node)["status"]["nodeInfo"][field]
    return value.rpartition("://")[2]


def taints(scene: Scene) -> list[Json]:
    """Those that clients wrote."""
    return [one for node in scene.workers for one in scene.cluster.get("nodes", node)["spec"].get("taints", [])]


def demanding(scene: Scene, name: str, node: str, wanted: Json) -> str:
    """A pod with an extended toleration alone; its UID."""
    return scene.pod(name, on=node, grace_seconds=1, annotations=annotation(wanted))


def settled(scene: Scene, labels: dict[str, str]) -> None:
    """Wait until nodes have these labels of placement."""

    def found() -> dict[str, str]:
        nodes = {node: scene.cluster.get("nodes", node)["metadata"]["labels"] for node in labels}
        return {node: has.get(value_label(DRIVER)) for node, has in nodes.items()}

    wait_until(lambda: found() == labels, MIRRORED_SECONDS, f"the labels {labels}")


@pytest.fixture
def marked(scene: Scene) -> Iterator[Scene]:
    """With what the stories write on nodes removed again."""
    yield scene
    gone = {"status": {"conditions": [{"$patch": "delete", "type": CONDITION}]}}
    for node in scene.workers:
        scene.cluster.annotate("nodes", node, {DRIVER: None})
        scene.cluster.patch("nodes", node, gone, subresource="status", kind="strategic")


@pytest.mark.parametrize(
    ("field", "greater", "old"),
    [
        ("kubeletVersion", "SemverGt", "1.30.0"),
        ("containerRuntimeVersion", "SemverGt", "1.6.0"),
        ("kernelVersion", "VersionGt", "4.0"),
    ],
)
def test_what_a_kubelet_reports_decides(scene: Scene, field: str, greater: str, old: str) -> None:
    """A pod that needs more than the version of its node leaves. One that needs an older one stays, as others do."""
    key, node = f"example.com/{field.lower()}", scene.workers[0]
    version = reported(scene, node, field)
    uid = demanding(scene, "newer", node, toleration(greater, version, key=key))
    demanding(scene, "older", node, toleration(greater, old, key=key))
    demanding(scene, "exact", node, toleration(greater.replace("Gt", "Eq"), version, key=key))
    scene.pod("unaware", on=node)
    scene.wait_running(4)
    began = time.monotonic()
    scene.policy(taints=read(key, "nodeInfo", field, valueType="Version"))
    scene.wait_gone("newer", uid, began)
    events = scene.cluster.items("events", scene.name)
    [note] = [one["note"] for one in events if one["reason"] == "Evicted"]
    assert f"{key}={version}:NoExecute" in note
    assert set(scene.running()) == {"older", "exact", "unaware"}
    assert taints(scene) == []


def turn(scene: Scene, node: str, status: str) -> float:
    """The condition gets this status, as node-problem-detector writes it; the moment."""
    began, at = time.monotonic(), now()
    one = {"type": CONDITION, "status": status, "lastTransitionTime": at, "lastHeartbeatTime": at}
    scene.cluster.patch("nodes", node, {"status": {"conditions": [one]}}, subresource="status", kind="strategic")
    return began


def test_a_condition_that_turns_evicts_within_seconds(marked: Scene, operator: Installation) -> None:
    """The kubelet keeps a condition that is not its own, also when it starts again."""
    scene, node = marked, marked.workers[0]
    turn(scene, node, "True")
    uid = demanding(scene, "demanding", node, toleration("Equal", "True", key=GPU))
    demanding(scene, "lenient", node, toleration("In", key=GPU, values=["True", "False"]))
    scene.wait_running(2)
    scene.policy(taints=read(GPU, "condition", CONDITION))
    scene.wait_enforcing()

    def heartbeat() -> datetime.datetime:
        found = scene.cluster.get("nodes", node)
        assert is_ready(found)
        [ready] = [one for one in found["status"]["conditions"] if one["type"] == "Ready"]
        return datetime.datetime.fromisoformat(ready["lastHeartbeatTime"])

    before = heartbeat()
    on_node(node, "systemctl", "restart", "kubelet")
    wait_until(lambda: heartbeat() > before, LEAVE_SECONDS, "the kubelet to report again")
    assert set(scene.running()) == {"demanding", "lenient"}
    scene.wait_gone("demanding", uid, turn(scene, node, "False"))
    assert set(scene.running()) == {"lenient"}
    turn(scene, node, "True")
    demanding(scene, "next", node, toleration("Equal", "True", key=GPU))
    assert set(scene.wait_running(2)) == {"lenient", "next"}
    assert taints(scene) == []
    operator.wait_complete()
