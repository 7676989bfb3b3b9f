"""The condition `taintwarden.io/Drained` on a real API server, with the shipped rights: the audit log judges it."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from chaos.judge.audit import Record, read
from controlplane import OPERATOR_USER, ApiError, Cluster, ControlPlane, Json, Operator, wait_until
from docs.pages import ROOT
from e2e.runbook import Desk, commands
from e2e.stories import policies, taint, toleration

CONDITION, NAMESPACE, LABEL = "taintwarden.io/Drained", "drained", "taintwarden-e2e/drained"
NODES = ("a1", "a2", "a3")
KNOWN_SECONDS = 1.0
"""Until the read before a write has a pod. It is some milliseconds before the write."""
CHURN_SECONDS, CALM_SECONDS, LEASE_SECONDS = 20.0, 20.0, 40.0

pytestmark = pytest.mark.timeout(300)


@dataclass
class Park:
    """Three nodes, their operator, and who removes pods that terminate, as kubelets do."""

    plane: ControlPlane
    operator: Operator
    cluster: Cluster
    number: int = 0

    def pod(self, node: str, grace: int | None = None) -> str:
        """A pod that stays for `grace` seconds after the taint; with None it is evicted at once."""
        self.number += 1
        tolerations = [] if grace is None else [toleration("Exists", seconds=grace)]
        name, stops = f"p{self.number}", self.number % 2  # every other pod stays Terminating
        with suppress(ApiError):  # 404: it is evicted before its status is written
            self.cluster.create_pod(name, NAMESPACE, node, tolerations=tolerations, grace_seconds=stops)
        return name

    def end(self, *, all_pods: bool = False) -> None:
        for pod in self.cluster.items("pods", NAMESPACE):
            if all_pods or "deletionTimestamp" in pod["metadata"]:
                with suppress(ApiError):  # 404: its eviction has removed it
                    self.cluster.delete("pods", pod["metadata"]["name"], NAMESPACE, grace_seconds=0)

    def said(self, node: str) -> tuple[str, str]:
        """Status and reason of the condition."""
        found = condition_of(self.cluster.get("nodes", node))
        return found.get("status", ""), found.get("reason", "")

    def wait(self, node: str, *wanted: str, seconds: float = CALM_SECONDS) -> None:
        wait_until(lambda: self.said(node) == wanted, seconds, f"{node} to say {wanted}")


def condition_of(node: Json) -> Json:
    return next((one for one in node.get("status", {}).get("conditions", ()) if one["type"] == CONDITION), {})


@pytest.fixture(scope="module")
def park(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Park]:
    plane, folder = own_control_plane, tmp_path_factory.mktemp("drained")
    cluster = plane.client
    cluster.create_namespace(NAMESPACE)
    for node in NODES:
        cluster.create_node(node, {LABEL: "yes"})
    selected = {"nodeSelector": {"matchLabels": {LABEL: "yes"}}}
    flags = ["--drained-condition"]
    with (
        policies(cluster, {"drained": selected}),
        Operator(plane.operator_kubeconfig(), folder, args=flags) as operator,
    ):
        operator.wait_leading()
        yield Park(plane, operator, cluster)
    cluster.remove_namespace(NAMESPACE)
    for node in NODES:
        cluster.delete("nodes", node)


def test_the_steps_to_reboot_a_node_work_as_documented(park: Park, tmp_path: Path) -> None:
    desk = Desk(tmp_path / "desk", park.plane.admin_kubeconfig)
    *steps, remove = commands(ROOT / "docs" / "policies.md", "Drained nodes")
    assert len(steps) == 3
    park.pod("a1", grace=4)
    park.pod("a1", grace=8)
    ending = threading.Event()

    def kubelet() -> None:
        while not ending.wait(0.5):
            park.end()

    thread = threading.Thread(target=kubelet)
    thread.start()
    try:
        for step in steps:
            assert (done := desk.type(step, {})).code == 0, done
        assert not park.cluster.items("pods", NAMESPACE)
    finally:
        ending.set()
        thread.join()
    park.operator.stop()
    assert (done := desk.type(remove, {})).code == 0, done
    assert park.said("a1") == ("", "")
    park.operator.start()


def test_drained_is_never_true_while_a_pod_has_to_leave(park: Park) -> None:
    """Nodes fall and recover, pods come and end, and the operator is killed: the audit log says what was there."""
    chance, began = random.Random(7), time.time()
    ends_at, is_killed = time.monotonic() + CHURN_SECONDS, False
    while time.monotonic() < ends_at:
        node = chance.choice(NODES)
        chance.choice(
            (
                lambda node=node: park.cluster.set_taints(node, [taint(chance.choice(("0", "1", "2")))]),
                lambda node=node: park.cluster.set_taints(node, [taint(chance.choice(("0", "1", "2")))]),
                lambda node=node: park.pod(node, grace=chance.choice((None, 2, 600))),
                lambda: park.end(all_pods=chance.random() < 0.3),
                lambda: time.sleep(chance.uniform(0.1, 1.5)),
            )
        )()
        if not is_killed and time.monotonic() > ends_at - CHURN_SECONDS / 2:
            is_killed = True
            park.operator.kill9()
            park.operator.start(wait_ready=False)
    park.operator.wait_leading(LEASE_SECONDS)
    park.end(all_pods=True)
    for node in NODES:
        park.cluster.set_taints(node, [taint("0")])
        park.wait(node, "True", "Drained")
    trues = judged([one for one in read(park.plane.folder / "audit.log") if one.received >= began])
    assert trues > len(NODES)


def judged(records: list[Record]) -> int:
    """Return how often a node was reported as drained, and assert that no pod was there that has to leave."""
    said = [one for one in records if one.resource == "nodes/status" and one.user == OPERATOR_USER and one.succeeded]
    trues = [one for one in said if condition_of(one.answer).get("status") == "True"]
    pods = stays(records)
    for one in trues:
        there = [pod for pod in pods if pod.node == one.name and pod.spans(one.received, one.completed)]
        assert not there, f"{one.name} is drained in spite of {there} at {one.received}"
    return len(trues)


@dataclass
class Stay:
    """A pod, from when it surely was on its node until it perhaps was not."""

    node: str
    grace_seconds: int
    begins: float
    ends: float = float("inf")

    def spans(self, begin: float, end: float) -> bool:
        return self.begins + KNOWN_SECONDS < begin and end < self.ends


def stays(records: list[Record]) -> list[Stay]:
    """Those of all pods. Without a grace period an eviction removes the pod at once."""
    found: dict[str, Stay] = {}
    for one in records:
        if one.namespace != NAMESPACE or not one.succeeded or one.resource not in ("pods", "pods/eviction"):
            continue
        if one.resource == "pods" and one.verb == "create":
            spec = one.answer["spec"]
            found[one.answer["metadata"]["name"]] = Stay(
                spec["nodeName"], spec["terminationGracePeriodSeconds"], one.completed
            )
        elif one.verb == "delete" or (one.resource == "pods/eviction" and not found[one.name].grace_seconds):
            found[one.name].ends = min(found[one.name].ends, one.received)
    assert found
    return list(found.values())


def test_no_right_is_missing(park: Park) -> None:
    assert not [line for line in park.operator.logs() if "not-saved" in line.get("event", "")]


def test_drained_is_removed_with_the_policy(park: Park) -> None:
    park.cluster.delete("taintevictionpolicies", "drained")
    for node in NODES:
        park.wait(node, "", "")
