"""Answers are not believed: a pod is evicted when it is seen to leave, whatever a webhook of others answered."""

import time

import pytest

from blackbox.box import LEAVES, NO_LIMIT, Box
from blackbox.webhook import taking
from controlplane import ControlPlane
from e2e.stories import taint

BAD = taint("900")
READ_SECONDS, BACK_OFF_SECONDS = 5, 5
"""Seconds until an accepted pod that still runs is read, and the first back-off after that, without jitter."""
ALLOWED, ON_A_NODE, REPLICAS = 10, 8, 8
GUARDED = NO_LIMIT | {"guard": {"minPods": ALLOWED, "maxPercent": 1, "settleSeconds": 2}}
TAKES = pytest.mark.parametrize("behaviour", ["postpone", "deny"])


def evicted(box: Box) -> int:
    return box.status().get("evicted", 0)


def test_an_accepted_eviction_that_removes_no_pod_is_made_again_and_counts_as_none(
    box: Box, control_plane: ControlPlane
) -> None:
    box.enforce()
    node = box.node()
    pod = box.pod("a", node)
    with taking(control_plane, box.namespace, "dry-run", 0.0):
        began = time.time()
        box.taint(node, BAD)
        box.wait(lambda: len(box.received(began)) > 1, 40, "a second call")
        first, second, *_ = box.received(began)
        assert second - first > READ_SECONDS + 0.8 * BACK_OFF_SECONDS - 1
        assert (evicted(box), box.explains(pod)) == (0, LEAVES)
        box.wait(lambda: "without effect" in box.delay("calls"), 30, "the status to say why")
        assert "PodDisruptionBudget" not in box.delay("calls")


def test_a_pod_that_a_webhook_deletes_after_a_dry_run_is_evicted_once(box: Box, control_plane: ControlPlane) -> None:
    box.enforce()
    node = box.node()
    pods = [box.pod(name, node, grace_seconds=0) for name in "ab"]
    with taking(control_plane, box.namespace, "dry-run", READ_SECONDS + 2.0) as webhook:
        began = box.taint(node, BAD)
        box.wait(lambda: len(webhook.asked) == len(pods), 10, "both calls")
        assert evicted(box) == 0
        box.last_gone(pods, began, 20)
        box.wait(lambda: evicted(box) == len(pods), 10, "both to count")


@TAKES
def test_pods_that_a_webhook_keeps_count_as_missing_from_their_workload(
    box: Box, control_plane: ControlPlane, behaviour: str
) -> None:
    box.enforce(limits=NO_LIMIT | {"perWorkload": {"maxUnavailable": "25%"}})
    node = box.node()
    spec = {"replicas": REPLICAS, "selector": {"matchLabels": {"app": "web"}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
    body = {"metadata": {"name": "web"}, "spec": spec | {"template": template}}
    made = box.cluster.create("replicasets", body, box.namespace)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": made["metadata"]["uid"]}
    pods = [box.pod(f"web-{number}", node, owner=owner, labels={"app": "web"}) for number in range(REPLICAS)]
    with taking(control_plane, box.namespace, behaviour, 0.0) as webhook:
        fell = box.taint(node, BAD)
        box.stays(*pods, until=fell + 15)
        assert len(webhook.asked) == REPLICAS // 4
        assert not any("PodDisruptionBudget" in one.get("message", "") for one in box.status()["limits"])


def test_pods_that_a_webhook_moves_itself_count_at_the_guard(box: Box, control_plane: ControlPlane) -> None:
    box.enforce(limits=GUARDED)
    nodes = [box.node(name=f"n{number}") for number in range(2)]
    first, second = (
        [box.pod(f"{node[-2:]}-{number}", node, grace_seconds=0) for number in range(ON_A_NODE)] for node in nodes
    )
    with taking(control_plane, box.namespace, "postpone", 3.0):
        box.last_gone(first, box.taint(nodes[0], BAD), 30)
        fell = box.taint(nodes[1], BAD)
        box.wait_condition("GuardTripped", "True")
        box.stays(*second, until=fell + 8)
        assert evicted(box) == len(first)
