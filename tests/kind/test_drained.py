"""The condition ``taintwarden.io/Drained`` on nodes whose kubelets write the rest of the status."""

from collections.abc import Iterator

import pytest

from controlplane import OPERATOR_NAMESPACE, Cluster, Json, wait_until
from controlplane.target import OPERATOR_SERVICE_ACCOUNT
from kind.installation import NAME, Installation, KubeCtl
from kind.nodes import on_node
from kind.scene import LEAVE_SECONDS, RUN_SECONDS, Scene

CONDITION, ROLE = "taintwarden.io/Drained", "taintwarden-drained-condition"
STOP_SECONDS = 12


@pytest.fixture(scope="module")
def writes(cluster: Cluster, on_cluster: KubeCtl) -> Iterator[None]:
    """The right and the setting that the component drained-condition adds."""
    account = {"kind": "ServiceAccount", "name": OPERATOR_SERVICE_ACCOUNT, "namespace": OPERATOR_NAMESPACE}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE}
    cluster.create("clusterrolebindings", {"metadata": {"name": ROLE}, "roleRef": role, "subjects": [account]})
    words = "set", "env", f"--namespace={OPERATOR_NAMESPACE}", f"deployment/{NAME}"
    on_cluster(*words, "TAINTWARDEN_DRAINED_CONDITION=true")
    yield
    on_cluster(*words, "TAINTWARDEN_DRAINED_CONDITION-")
    cluster.delete("clusterrolebindings", ROLE)
    Installation(cluster).wait_complete()


@pytest.fixture
def scene(writes: None, scene: Scene) -> Scene:
    """A story whose operator writes the condition."""
    return scene


def conditions(scene: Scene, node: str) -> dict[str, Json]:
    return {one["type"]: one for one in scene.cluster.get("nodes", node)["status"]["conditions"]}


def wait_condition(scene: Scene, node: str, status: str, seconds: float = LEAVE_SECONDS) -> Json:
    """Wait until the condition has this status; empty: until it is gone."""

    def found() -> Json | bool:
        one = conditions(scene, node).get(CONDITION, {})
        return (one or True) if one.get("status", "") == status else False

    result = wait_until(found, seconds, f"{node} to say {status or 'nothing'}")
    return result if isinstance(result, dict) else {}


def on(scene: Scene, node: str) -> list[str]:
    return [pod["metadata"]["name"] for pod in scene.pods() if pod["spec"].get("nodeName") == node]


def test_a_node_is_drained_when_its_kubelet_has_ended_the_last_pod(scene: Scene) -> None:
    node = scene.workers[0]
    scene.pod("slow", on=node, stop_seconds=STOP_SECONDS)
    scene.wait_running()
    scene.policy()
    scene.wait_enforcing()
    scene.taint(node)
    assert wait_condition(scene, node, "False")["reason"] == "PodsLeave"
    drained = wait_condition(scene, node, "True", LEAVE_SECONDS + STOP_SECONDS)
    assert (on(scene, node), drained["reason"]) == ([], "Drained")
    assert "sla=900:NoExecute" in drained["message"]


def test_a_kubelet_that_starts_again_keeps_the_condition(scene: Scene) -> None:
    node = scene.workers[0]
    scene.policy()
    scene.wait_enforcing()
    scene.taint(node)
    wait_condition(scene, node, "True")
    before = conditions(scene, node)["Ready"]["lastHeartbeatTime"]
    on_node(node, "systemctl", "restart", "kubelet")
    wait_until(lambda: conditions(scene, node)["Ready"]["lastHeartbeatTime"] != before, RUN_SECONDS, "a heartbeat")
    assert conditions(scene, node)["Ready"]["status"] == "True"
    assert conditions(scene, node)[CONDITION]["status"] == "True"


def test_the_condition_goes_with_the_taint(scene: Scene) -> None:
    node = scene.workers[0]
    scene.policy()
    scene.wait_enforcing()
    scene.taint(node)
    wait_condition(scene, node, "True")
    scene.untaint(node)
    wait_condition(scene, node, "")


def test_a_pod_that_a_finalizer_keeps_makes_the_node_stuck(scene: Scene) -> None:
    node, kept = scene.workers[0], ["example.com/backup"]
    scene.pod("kept", on=node, grace_seconds=1)
    scene.cluster.patch("pods", "kept", {"metadata": {"finalizers": kept}}, scene.name)
    scene.wait_running()
    scene.policy()
    scene.wait_enforcing()
    scene.taint(node)
    wait_until(lambda: conditions(scene, node).get(CONDITION, {}).get("reason") == "Stuck", 120, f"{node} to be stuck")
    assert conditions(scene, node)[CONDITION]["status"] == "False"
    scene.cluster.patch("pods", "kept", {"metadata": {"finalizers": None}}, scene.name)
    wait_condition(scene, node, "True")
