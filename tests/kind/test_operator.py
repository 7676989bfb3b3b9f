"""The operator's own pods crash, are deleted, freeze and are drained: exactly one replica continues."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from controlplane import OPERATOR_NAMESPACE, wait_until
from kind.installation import Installation
from kind.nodes import cut_off, frozen, on_node
from kind.scene import LEAVE_SECONDS, Scene, is_ready

LEASE_SECONDS = 15
START_SECONDS = 8.0  # a container's start on a busy machine: interpreter, first lists, Lease
NODE_SECONDS = 120


@pytest.fixture
def waiting(scene: Scene, operator: Installation) -> tuple[str, str]:
    """A pod that has to leave once its node is tainted, on a node without the leader: its node and UID."""
    operator.replace_restarted()
    leading = operator.leader_among(scene.workers)["spec"]["nodeName"]
    node = next(one for one in scene.workers if one != leading)
    uid = scene.pod("web", on=node, grace_seconds=1)
    scene.wait_running()
    scene.policy()
    scene.wait_enforcing()
    return node, uid


def evicted_after(scene: Scene, waiting: tuple[str, str], since: float, seconds: float = 60) -> float:
    """Taint the pod's node now; how many seconds after the disturbance the pod was gone."""
    node, uid = waiting
    scene.taint(node)
    return scene.wait_gone("web", uid, since, seconds)


def test_a_container_that_crashes_leads_again_at_once(scene: Scene, operator: Installation, waiting) -> None:
    """The container has the identity of its pod, so it need not wait until its own Lease expires."""
    leader, holder = operator.leader(), operator.holder()
    assert operator.restarts(leader) == 0, "a kubelet waits before it starts a container a third time"
    operator.crash(leader)
    seconds = evicted_after(scene, waiting, time.monotonic())
    assert seconds < START_SECONDS
    wait_until(lambda: operator.restarts(leader) == 1, LEAVE_SECONDS, "the kubelet to report the restart")
    assert operator.holder() == holder


def test_a_stopping_replica_ends_in_order(operator: Installation) -> None:
    """No probe of its kubelet gets an answer that means a fault, and it is gone long before its grace is over."""
    leader = operator.leader()
    name, since = leader["metadata"]["name"], time.monotonic()
    operator.cluster.delete("pods", name, OPERATOR_NAMESPACE)

    def gone() -> bool:
        return operator.cluster.find("pods", name, OPERATOR_NAMESPACE) is None

    wait_until(gone, LEAVE_SECONDS, f"{name} to be gone")
    assert time.monotonic() - since < START_SECONDS
    events = operator.cluster.items("events", OPERATOR_NAMESPACE)
    notes = [one.get("note", "") for one in events if one["regarding"].get("name") == name]
    assert not [note for note in notes if "statuscode: 404" in note]


def test_a_pod_that_is_deleted_as_it_starts_is_gone_at_once(operator: Installation) -> None:
    """SIGTERM ends it while it imports; once such a pod lived for all of its 30 s."""
    assert operator.stop_starting() < START_SECONDS


def test_a_tainted_node_keeps_its_replica_of_the_operator(scene: Scene, operator: Installation) -> None:
    leader = operator.leader_among(scene.workers)
    node = leader["spec"]["nodeName"]
    uid = scene.pod("web", on=node, grace_seconds=1)
    scene.wait_running()
    scene.policy(podSelector={})
    scene.wait_enforcing()
    scene.wait_gone("web", uid, scene.taint(node))
    assert operator.leader()["metadata"]["uid"] == leader["metadata"]["uid"]


def test_a_drained_node_gives_its_replica_away(scene: Scene, operator: Installation, waiting) -> None:
    leader = operator.leader()
    node, name = leader["spec"]["nodeName"], leader["metadata"]["name"]
    operator.wait_budget()
    operator.cluster.patch("nodes", node, {"spec": {"unschedulable": True}})
    try:
        since = time.monotonic()
        operator.cluster.evict(name, OPERATOR_NAMESPACE)
        assert evicted_after(scene, waiting, since) < START_SECONDS
        operator.wait_complete()
        assert node not in {pod["spec"]["nodeName"] for pod in operator.pods()}
    finally:
        operator.cluster.patch("nodes", node, {"spec": {"unschedulable": False}})


@pytest.mark.parametrize("away", [frozen, cut_off])
def test_a_leader_on_a_node_that_is_away_loses_its_lease_and_does_not_act_when_it_is_back(
    scene: Scene, operator: Installation, waiting, away: Callable[[str], AbstractContextManager[None]]
) -> None:
    leader = operator.leader()
    with away(leader["spec"]["nodeName"]):
        seconds = evicted_after(scene, waiting, time.monotonic())
        assert LEASE_SECONDS - 3 < seconds < LEASE_SECONDS + START_SECONDS
        holder = operator.holder()
        assert holder.partition("_")[0] != leader["metadata"]["name"]
    wait_until(lambda: operator.metric(leader, "taintwarden_leader") == 0, 60, "the replica that was away to know")
    assert operator.holder() == holder


def test_a_deleted_node_comes_back_with_a_replica(scene: Scene, operator: Installation, waiting) -> None:
    leader = operator.leader()
    node = leader["spec"]["nodeName"]
    since = time.monotonic()
    operator.cluster.delete("nodes", node)
    try:
        seconds = evicted_after(scene, waiting, since, 90)
        assert seconds < LEASE_SECONDS + START_SECONDS
    finally:
        on_node(node, "systemctl", "restart", "kubelet")

        def back() -> bool:
            return is_ready(operator.cluster.find("nodes", node) or {"status": {}})

        wait_until(back, NODE_SECONDS, f"{node} to be back")
    operator.wait_complete()
