"""Pods of every kind leave a tainted node as real kubelets, controllers and the scheduler make them."""

import pytest
import yaml

from controlplane import wait_until
from kind.nodes import remove_file, static_pod, write_file
from kind.scene import KEY, LEAVE_SECONDS, SLACK_SECONDS, Scene

STAYS_SECONDS = 4


@pytest.mark.parametrize(
    ("pod", "least", "most"),
    [
        pytest.param({"stop_seconds": 0}, 0, 1, id="ends-at-once"),
        pytest.param({"stop_seconds": 3}, 3, 4, id="takes-its-time"),
        pytest.param({"stop_seconds": 600, "grace_seconds": 6}, 6, 7, id="ignores-sigterm"),
        pytest.param(
            {"container": {"lifecycle": {"preStop": {"exec": {"command": ["sleep", "3"]}}}}}, 3, 4, id="has-a-pre-stop"
        ),
    ],
)  # fmt: skip
def test_a_pod_has_its_grace(scene: Scene, pod: dict, least: float, most: float) -> None:
    """The pod is bare, so no controller replaces it."""
    node = scene.workers[0]
    uid = scene.pod("web", on=node, **pod)
    scene.wait_running()
    scene.policy()
    scene.wait_enforcing()
    seconds = scene.wait_gone("web", uid, scene.taint(node))
    assert least <= seconds <= most + SLACK_SECONDS
    assert scene.pods() == []


def test_a_stateful_pod_comes_back_elsewhere_with_its_name_and_volume(scene: Scene) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    template = scene.template(container={"volumeMounts": [{"name": "data", "mountPath": "/data"}]})
    scene.workload(
        "statefulsets",
        "web",
        template,
        serviceName="web",
        volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": claim}],
    )
    node = scene.wait_running()["web-0"]
    before = scene.cluster.get("pods", "web-0", scene.name)["metadata"]["uid"]
    scene.policy()
    scene.wait_enforcing()
    scene.wait_gone("web-0", before, scene.taint(node))
    assert list(scene.wait_running(off=node)) == ["web-0"]
    [volume] = scene.cluster.items("v1/persistentvolumeclaims", scene.name)
    assert volume["metadata"]["name"] == "data-web-0"


def test_a_daemon_set_stays_unless_the_policy_says_otherwise(scene: Scene) -> None:
    """The pod is evicted only if the policy includes it, and is created again when the taint is gone.

    By NoSchedule: pods that do not tolerate NoExecute are taken off the node by the controller of the set itself.
    """
    effect = "NoSchedule"
    scene.workload("daemonsets", "web", scene.template())
    number = len(scene.workers)
    scene.wait_running(number)
    node = scene.workers[0]
    scene.policy(taints=[{"key": KEY, "effects": [effect]}])
    scene.wait_enforcing()
    scene.taint(node, effect=effect)
    with pytest.raises(TimeoutError):
        wait_until(lambda: len(scene.running()) < number, STAYS_SECONDS, "a pod to leave, which none should")
    scene.cluster.patch("taintevictionpolicies", scene.name, {"spec": {"exclude": {"daemonSets": False}}})
    wait_until(lambda: node not in scene.running().values(), LEAVE_SECONDS, "its pod to leave")
    scene.untaint(node)
    scene.wait_running(number)


def test_a_static_pod_is_left_to_its_kubelet(scene: Scene) -> None:
    node = scene.workers[0]
    template = scene.template()
    template["metadata"] |= {"name": "web", "namespace": scene.name}
    write_file(node, static_pod(scene.name), yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", **template}))
    try:
        scene.wait_running()
        uid = scene.pod("beside", on=node)
        scene.wait_running(2)
        scene.policy()
        scene.wait_enforcing()
        scene.wait_gone("beside", uid, scene.taint(node))
        assert list(scene.running()) == [f"web-{node}"]
    finally:
        remove_file(node, static_pod(scene.name))
    wait_until(lambda: scene.pods() == [], LEAVE_SECONDS, "the kubelet to end it")


def test_a_job_is_finished_elsewhere(scene: Scene) -> None:
    """The eviction does not count as a failure where the Job says so."""
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    template = scene.template(restartPolicy="Never", grace_seconds=1, exit_code=1)
    scene.workload("batch/v1/jobs", "web", template, backoffLimit=0, podFailurePolicy={"rules": [rule]})
    [(name, node)] = scene.wait_running().items()
    uid = scene.cluster.get("pods", name, scene.name)["metadata"]["uid"]
    scene.policy()
    scene.wait_enforcing()
    scene.wait_gone(name, uid, scene.taint(node))
    scene.wait_running(off=node)
    assert "failed" not in scene.cluster.get("batch/v1/jobs", "web", scene.name)["status"]
