"""KEP-5721, stories 1 to 3, on real kubelets and without a taint: the versions that kubelets report decide."""

import time

import pytest

from controlplane import Json
from e2e.stories import annotation, toleration
from kind.scene import Scene


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
    scene.policy(taints=[{"key": key, "from": {"nodeInfo": field}, "valueType": "Version"}])
    scene.wait_gone("newer", uid, began)
    events = scene.cluster.items("events", scene.name)
    [note] = [one["note"] for one in events if one["reason"] == "Evicted"]
    assert f"{key}={version}:NoExecute" in note
    assert set(scene.running()) == {"older", "exact", "unaware"}
    assert taints(scene) == []
