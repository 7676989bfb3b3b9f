"""Commands report what the operator does, on a real API server, with the rights of plain users."""

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from controlplane import ApiError, Cluster, Json, Operator, Target, wait_until
from controlplane.binaries import binary
from controlplane.operator_process import EXECUTABLE
from e2e import users
from e2e.stories import NO_LIMITS, annotation, conditions, taint, toleration
from taintwarden.engine import rfc3339

FINE = 0
STAYS, LEAVES = 0, 10
WAIT_SECONDS, GRACE_SECONDS = 40, 600
GOOD = taint("980")
USER = [
    {"apiGroups": ["taintwarden.io"], "resources": ["taintevictionpolicies", "tolerationprofiles"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["pods", "nodes", "namespaces"], "verbs": ["get"]},
]
"""Rights to ask why a pod stays or leaves, without the right to see budgets."""
READER = [
    {"apiGroups": [""], "resources": ["nodes", "pods", "namespaces", "replicationcontrollers"], "verbs": ["list"]},
    {"apiGroups": ["apps"], "resources": ["replicasets", "statefulsets", "daemonsets"], "verbs": ["list"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list"]},
    {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": ["list"]},
    {"apiGroups": ["taintwarden.io"], "resources": ["*"], "verbs": ["get", "list"]},
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["nodes", "pods", "namespaces"], "verbs": ["get"]},
]
FORGER = {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}
ADMIN = [*READER, {"apiGroups": ["taintwarden.io"], "resources": ["taintevictionpolicies"], "verbs": ["patch"]}]

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def operator(control_plane: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """One for all tests, whose policies select nodes of their own."""
    with Operator(control_plane.operator_kubeconfig(), tmp_path_factory.mktemp("commands")) as started:
        started.wait_leading()
        yield started


@pytest.fixture
def kubeconfig(request: pytest.FixtureRequest, control_plane: Target, namespace: str, tmp_path: Path) -> Iterator[Path]:
    """Kubeconfig of a user with the rules of a test, else an admin's."""
    rules = getattr(request, "param", ADMIN)
    with users.user(control_plane, namespace, rules, tmp_path / "user.kubeconfig") as path:
        yield path


@pytest.fixture
def as_user(kubeconfig: Path) -> Command:
    return lambda *args: users.run([EXECUTABLE, *args], kubeconfig)


@pytest.fixture
def node(cluster: Cluster, namespace: str) -> str:
    name = f"{namespace}-n"
    cluster.create_node(name, taints=[GOOD], labels={"test": namespace})
    return name


@pytest.fixture
def policy(cluster: Cluster, operator: Operator, create_policy: Callable[..., Json], namespace: str) -> Any:
    """Create a policy for the nodes of this test, which the operator has accepted; returns its name."""

    def create(**limits: Any) -> str:
        selector = {"matchLabels": {"test": namespace}}
        spec = {"taints": [{"key": "sla"}], "nodeSelector": selector, "limits": {**NO_LIMITS, **limits}}
        name: str = create_policy(spec)["metadata"]["name"]
        wait_until(lambda: conditions(cluster, name).get("Accepted"), WAIT_SECONDS, "the policy to be accepted")
        return name

    return create


def test_a_file_applied_again_does_not_resume(cluster: Cluster, policy: Any, as_user: Command) -> None:
    name = policy()
    assert as_user("pause", name).returncode == FINE

    def apply(force: str, **spec: Any) -> Any:
        body = {"apiVersion": "taintwarden.io/v1alpha1", "kind": "TaintEvictionPolicy", "metadata": {"name": name}}
        body["spec"] = {"taints": [{"key": "sla"}], **spec}
        query = {"fieldManager": "kubectl", "force": force}
        return cluster.patch("taintevictionpolicies", name, body, kind="apply", **query)["spec"]

    assert apply("true", mode="DryRun")["paused"] is True
    assert (apply("true", mode="Enforce")["mode"], apply("true")["paused"]) == ("Enforce", True)
    with pytest.raises(ApiError, match="taintwarden-pause"):
        apply("false", paused=False)


def test_a_resume_of_a_policy_that_is_shadowed_says_so(
    cluster: Cluster, namespace: str, policy: Any, create_policy: Callable[..., Json], as_user: Command
) -> None:
    older = policy()
    made = cluster.get("taintevictionpolicies", older)["metadata"]["creationTimestamp"]
    wait_until(lambda: rfc3339.at(time.time()) > made, WAIT_SECONDS, "another second")
    spec = {"taints": [{"key": "sla"}], "nodeSelector": {"matchLabels": {"test": namespace}}}
    newer = create_policy(spec, f"{namespace}-newer")["metadata"]["name"]
    evicts = "evicts pods that both select"
    for command, said in (("pause", f"it still {evicts}"), ("resume", f"it {evicts}, {newer} does not")):
        shown = as_user(command, newer).stdout
        assert f"policy {older}, which is older, acts first on taint sla: {said}" in shown
    assert "acts first" not in as_user("pause", older).stdout
    assert f"To change that: taintwarden resume {older}" in as_user("resume", newer).stdout


@pytest.mark.parametrize("kubeconfig", [USER], indirect=True)
def test_explain_has_the_operators_deadline(
    cluster: Cluster, namespace: str, node: str, policy: Any, as_user: Command, kubeconfig: Path
) -> None:
    def history() -> str:
        annotations = cluster.get("nodes", node)["metadata"].get("annotations", {})
        return str(annotations.get("taintwarden.io/taint-history", ""))

    name, above = policy(), toleration("Gt", "950", violationGraceSeconds=GRACE_SECONDS)
    cluster.create_pod("web", namespace, node, tolerations=[toleration("Exists")], annotations=annotation(above))
    wait_until(lambda: "980" in history(), WAIT_SECONDS, "the history of the node")
    kubectl = shutil.which("kubectl") or str(binary("kubectl"))
    stays = users.run([kubectl, "taintwarden", "explain", "pod", "web", "-n", namespace], kubeconfig)
    assert (stays.returncode, stays.stderr) == (STAYS, "")
    # The operator saw the pod come; its object says only in which second.
    created = datetime.fromisoformat(cluster.get("pods", "web", namespace)["metadata"]["creationTimestamp"])
    wait_until(lambda: time.time() >= created.timestamp() + 1, 2, "the second in which the pod was created to end")
    cluster.set_taints(node, [taint("940")])
    wait_until(lambda: "940" in history(), WAIT_SECONDS, "the new value in the history")
    leaves = as_user("explain", "pod", f"{namespace}/web", "-o", "json")
    answer = json.loads(leaves.stdout)
    assert (leaves.returncode, answer["fate"], answer["policy"]) == (LEAVES, "Leaves", name)
    assert "you may not read poddisruptionbudgets: 403 Forbidden" in answer["budgetsProblem"]

    def is_announced() -> bool:
        return any(f"at {answer['deadline']}" in event["note"] for event in cluster.items("events", namespace))

    wait_until(is_announced, WAIT_SECONDS, f"an Event that says {answer['deadline']}")


@pytest.mark.parametrize("kubeconfig", [[*READER, FORGER]], indirect=True)
def test_an_event_that_a_tenant_forged_comes_with_a_warning(
    operator: Operator, namespace: str, as_user: Command, kubeconfig: Path, tmp_path: Path
) -> None:
    about = {"kind": "Pod", "name": "web", "namespace": namespace}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "forged", "namespace": namespace}}
    event |= {"reportingComponent": "taintwarden.io/taintwarden", "involvedObject": about, "type": "Normal"}
    event |= {"reason": "Evicted", "message": "never evicted", "lastTimestamp": rfc3339.at(time.time())}
    file = tmp_path / "event.json"
    file.write_text(json.dumps(event))
    assert users.run([binary("kubectl"), "create", "-f", str(file)], kubeconfig).returncode == 0
    said = as_user("history", "-n", namespace).stdout
    assert "never evicted" in said
    assert "any account that may create Events can have written one" in " ".join(said.split())
