"""`taintwarden explain` on a real API server: the same deadline as the operator's, with the rights of a plain user."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from controlplane import Cluster, Operator, Target, wait_until
from controlplane.binaries import binary
from controlplane.operator_process import BYTECODE, EXECUTABLE
from e2e import users

STAYS, CLUSTER_ERROR, LEAVES = 0, 1, 10
GRACE_SECONDS = 600
USER_RULES = [
    {"apiGroups": [""], "resources": ["pods", "nodes", "namespaces"], "verbs": ["get"]},
    {"apiGroups": ["taintwarden.io"], "resources": ["taintevictionpolicies", "tolerationprofiles"], "verbs": ["list"]},
]
BUDGET_RULE = {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": ["list"]}

Explain = Callable[..., subprocess.CompletedProcess[str]]


def sla(value: str) -> list[dict[str, str]]:
    return [{"key": "sla", "value": value, "effect": "NoExecute"}]


@pytest.fixture
def node(cluster: Cluster, namespace: str) -> str:
    cluster.create_node(f"{namespace}-n", taints=sla("980"))
    return f"{namespace}-n"


@pytest.fixture
def pod(cluster: Cluster, namespace: str, node: str) -> str:
    """A pod that leaves ten minutes after sla falls to 950 or below."""
    extended = [{"key": "sla", "operator": "Gt", "value": "950", "violationGraceSeconds": GRACE_SECONDS}]
    annotations = {"taintwarden.io/tolerations": json.dumps(extended)}
    native = [{"key": "sla", "operator": "Exists"}]
    cluster.create_pod("web", namespace, node, tolerations=native, annotations=annotations, labels={"app": "web"})
    return f"{namespace}/web"


@pytest.fixture
def policy(create_policy: Callable[..., Any]) -> str:
    return create_policy({"taints": [{"key": "sla"}]})["metadata"]["name"]


@pytest.fixture
def user(request: pytest.FixtureRequest, control_plane: Target, namespace: str, tmp_path: Path) -> Iterator[Path]:
    """The kubeconfig of somebody who may read what `explain` needs, and what a test adds: no budgets otherwise."""
    path = tmp_path / "user.kubeconfig"
    with users.user(control_plane, namespace, [*USER_RULES, *getattr(request, "param", [])], path) as kubeconfig:
        yield kubeconfig


def run(command: list[str], kubeconfig: Path) -> subprocess.CompletedProcess[str]:
    path = f"{EXECUTABLE.parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, **BYTECODE, "PATH": path, "KUBECONFIG": str(kubeconfig)}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def explain(user: Path) -> Explain:
    """Run `taintwarden explain pod` as that user."""
    return lambda *args: run([str(EXECUTABLE), "explain", "pod", *args], user)


def history(cluster: Cluster, node: str) -> str:
    return cluster.get("nodes", node)["metadata"].get("annotations", {}).get("taintwarden.io/taint-history", "")


def test_deadline_is_the_operators(
    cluster: Cluster, node: str, pod: str, policy: str, operator: Operator, explain: Explain
) -> None:
    namespace = pod.partition("/")[0]
    wait_until(lambda: "980" in history(cluster, node), 30, "the history of the node")
    stays = explain(pod, "-o", "json")
    assert (stays.returncode, json.loads(stays.stdout)["fate"]) == (STAYS, "Stays")
    # The operator saw the pod come; its object says only in which second.
    created = datetime.fromisoformat(
        cluster.get("pods", pod.partition("/")[2], namespace)["metadata"]["creationTimestamp"]
    )
    wait_until(lambda: time.time() >= created.timestamp() + 1, 2, "the second in which the pod was created to end")
    fell = time.time()
    cluster.set_taints(node, sla("940"))
    wait_until(lambda: "940" in history(cluster, node), 30, "the new value in the history")

    leaves = explain(pod, "-o", "json")
    passed = time.time() - fell
    answer = json.loads(leaves.stdout)
    assert (leaves.returncode, answer["fate"], answer["policy"], answer["notes"]) == (LEAVES, "Leaves", policy, [])
    assert GRACE_SECONDS - passed - 1 < answer["secondsLeft"] <= GRACE_SECONDS
    assert "you may not read poddisruptionbudgets: 403 Forbidden" in answer["budgetsProblem"]

    def told() -> bool:
        return any(f"at {answer['deadline']}" in event["note"] for event in cluster.items("events", namespace))

    wait_until(told, 30, f"an Event that says {answer['deadline']}")


def test_kubectl_finds_it(pod: str, policy: str, user: Path) -> None:
    kubectl = shutil.which("kubectl") or str(binary("kubectl"))
    namespace, _, name = pod.partition("/")
    told = run([kubectl, "taintwarden", "explain", "pod", name, "-n", namespace], user)
    assert (told.returncode, told.stderr) == (STAYS, "")
    assert f"Pod         {pod} on node {namespace}-n" in told.stdout
