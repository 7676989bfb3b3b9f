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
from kind.nodes import name_kubelet, on_node
from kind.scene import LEAVE_SECONDS, Scene, is_ready
from taintwarden.engine.placement.labels import value_label

KUBELET, GPU, DRIVER = "example.com/kubelet", "example.com/gpu", "example.com/driver"
CONDITION = "GPUHealthy"
MIRRORED_SECONDS = 30
PLACED_SECONDS = 60
KUBELET_SECONDS = 60
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


def preferring(*nodes: str) -> Json:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [*nodes]}]}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term}]}}


@pytest.fixture
def versions(scene: Scene) -> Iterator[dict[str, str]]:
    """What all kubelets report, and a later version. They are as before afterwards."""
    before = reported(scene, scene.workers[0], "kubeletVersion")
    found = {"old": before, "new": before[:-1] + str(int(before[-1]) + 1)}
    yield found
    for node in scene.workers:
        if reported(scene, node, "kubeletVersion") != before:
            report(scene, node, found["new"], before)


def report(scene: Scene, node: str, old: str, new: str) -> None:
    """The kubelet of a node reports another version."""
    name_kubelet(node, old, new)

    def reports() -> bool:
        return reported(scene, node, "kubeletVersion") == new and is_ready(scene.cluster.get("nodes", node))

    wait_until(reports, KUBELET_SECONDS, f"the kubelet of {node} to report {new}")


def test_replacements_follow_the_kubelets_that_are_new_enough(marked: Scene, versions: dict[str, str]) -> None:
    """One node is upgraded: its pods may stay, those of others move there. It is rolled back as another is upgraded."""
    scene, cluster, old, new = marked, marked.cluster, versions["old"], versions["new"]
    first, second, third = scene.workers
    cluster.patch("namespaces", scene.name, INJECTED)
    report(scene, third, old, new)
    wanted = annotation(toleration("SemverGt", old, key=KUBELET))
    template = scene.template(grace_seconds=1, annotations=wanted, affinity=preferring(first, second))
    scene.workload("deployments", "web", template, replicas=2)
    assert third not in scene.wait_running(2).values()
    scene.policy(taints=read(KUBELET, "nodeInfo", "kubeletVersion", valueType="Version", placement=True))
    wait_all_on(scene, third)
    report(scene, first, old, new)
    report(scene, third, new, old)
    wait_all_on(scene, first)
    assert taints(scene) == []


def wait_all_on(scene: Scene, node: str) -> None:
    """Wait until both pods run on one node, and no other is left."""

    def all_there() -> bool:
        return [*scene.running().values()] == [node, node] and len(scene.pods()) == 2

    wait_until(all_there, PLACED_SECONDS, f"both pods to be on {node}")


def test_replacements_land_where_an_annotation_says_that_they_may(marked: Scene) -> None:
    """As an agent on each node reports its version; the pods follow it from node to node."""
    scene, cluster = marked, marked.cluster
    first, second, third = scene.workers

    def announce(**versions: str) -> None:
        for node, version in versions.items():
            cluster.annotate("nodes", node, {DRIVER: version})

    cluster.patch("namespaces", scene.name, INJECTED)
    announce(**{first: "1.4.0", second: "1.6.0", third: "1.4.0"})
    scene.policy(taints=read(DRIVER, "annotation", DRIVER, valueType="Version", placement=True))
    scene.wait_enforcing()
    settled(scene, {first: "1.4.0", second: "1.6.0", third: "1.4.0"})
    wanted = annotation(toleration("SemverGt", "1.5.0", key=DRIVER))
    scene.workload("deployments", "web", scene.template(grace_seconds=1, annotations=wanted), replicas=2)
    assert set(scene.wait_running(2).values()) == {second}
    announce(**{third: "1.6.0"})
    settled(scene, {third: "1.6.0"})
    announce(**{second: "1.4.0"})
    assert set(scene.wait_running(2, off=second).values()) == {third}
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
