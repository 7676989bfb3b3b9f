"""Evicted is not gone: a node is empty when its pods have ended."""

from blackbox.box import FINE, Box
from controlplane import Operator
from controlplane.cluster import IMAGE
from e2e.pod_watch import RUN_LABEL
from e2e.stories import taint

BAD = taint("900")
STUCK_SECONDS = 15


def test_a_pod_that_does_not_end_is_named_until_it_is_gone(box: Box, operator: Operator) -> None:
    box.enforce()
    node = box.node()
    metadata = {"name": "kept", "labels": {RUN_LABEL: box.run}, "finalizers": ["example.com/kept"]}
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": IMAGE}]}
    box.cluster.create("pods", {"metadata": metadata, "spec": spec}, box.namespace)
    box.taint(node, BAD)
    box.wait(lambda: box.status().get("leaving") == 1, 30, "the status to count the pod")
    # As a kubelet does when the containers have ended.
    box.cluster.patch("pods", "kept", {"status": {"phase": "Succeeded"}}, box.namespace, subresource="status")
    box.wait(lambda: box.status().get("stuck"), STUCK_SECONDS + 30, "the pod to be stuck")
    condition = box.wait_condition("Progressing", "True")
    assert (condition["reason"], f"{box.namespace}/kept on {node}" in condition["message"]) == ("Stuck", True)
    operator.restart()  # the next process finds a pod that terminates already
    observed = box.status()["observedAt"]
    box.wait(lambda: box.status()["observedAt"] > observed, 30, "the next process to report")
    assert (box.status()["leaving"], [one["name"] for one in box.status()["stuck"]]) == (1, ["kept"])
    box.cluster.patch("pods", "kept", {"metadata": {"finalizers": None}}, box.namespace)
    assert box.wait_condition("Progressing", "False")["reason"] == "Idle"
    assert box.status_code() == FINE
