"""The commands for people on duty against a real API server and the running operator, with a plain admin's rights."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane import Cluster, Json, Operator, Target, wait_until
from controlplane.operator_process import EXECUTABLE
from e2e import users
from e2e.stories import taint, toleration
from e2e.test_explain import run

FINE, REFUSED, PERSON = 0, 1, 10
LEAVES = 10
WAIT_SECONDS = 40
GOOD, BAD = taint("980"), taint("900")
READERS = [
    {"apiGroups": [""], "resources": ["nodes", "pods", "namespaces", "replicationcontrollers"], "verbs": ["list"]},
    {"apiGroups": ["apps"], "resources": ["replicasets", "statefulsets", "daemonsets"], "verbs": ["list"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list"]},
    {"apiGroups": ["policy"], "resources": ["poddisruptionbudgets"], "verbs": ["list"]},
    {"apiGroups": ["taintwarden.io"], "resources": ["*"], "verbs": ["get", "list"]},
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["nodes", "pods", "namespaces"], "verbs": ["get"]},
]
ADMIN = [*READERS, {"apiGroups": ["taintwarden.io"], "resources": ["taintevictionpolicies"], "verbs": ["patch"]}]

Command = Callable[..., Any]


@pytest.fixture(scope="module")
def operator(control_plane: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    """One for all tests, whose policies select nodes of their own."""
    with Operator(control_plane.operator_kubeconfig(), tmp_path_factory.mktemp("status")) as started:
        started.wait_leading()
        yield started


@pytest.fixture
def as_user(request: pytest.FixtureRequest, control_plane: Target, namespace: str, tmp_path: Path) -> Iterator[Command]:
    """Run `taintwarden` as somebody with the rules of a test, else an admin's."""
    path = tmp_path / "user.kubeconfig"
    with users.user(control_plane, namespace, getattr(request, "param", ADMIN), path) as kubeconfig:
        yield lambda *args: run([str(EXECUTABLE), *args], kubeconfig)


@pytest.fixture
def policy(create_policy: Command, namespace: str) -> Command:
    """Create a policy for the nodes of this test; returns its name."""

    def create(**limits: Any) -> str:
        spec = {
            "taints": [{"key": "sla"}],
            "nodeSelector": {"matchLabels": {"test": namespace}},
            "limits": {"base": "None", **limits},
        }
        name: str = create_policy(spec)["metadata"]["name"]
        return name

    return create


@pytest.fixture
def pods(cluster: Cluster, namespace: str) -> list[str]:
    """Six pods on a good node which want more than 950."""
    cluster.create_node(f"{namespace}-n", taints=[GOOD], labels={"test": namespace})
    names = [f"web-{number}" for number in range(6)]
    for name in names:
        cluster.create_pod(name, namespace, f"{namespace}-n", tolerations=[toleration("Gt", "950")])
    return names


def told(as_user: Command, name: str) -> Json:
    (found,) = json.loads(as_user("status", name, "-o", "json").stdout)["policies"]
    return found


def gone(cluster: Cluster, namespace: str) -> list[str]:
    """Who was evicted, in order, also within a second: nobody is there to end them."""
    found = cluster.items("pods", namespace)
    leaving = [one["metadata"] for one in found if "deletionTimestamp" in one["metadata"]]
    in_order = sorted(leaving, key=lambda one: (one["deletionTimestamp"], int(one["resourceVersion"])))
    return [one["name"] for one in in_order]


def test_open_guard_is_told_of_and_reset(
    cluster: Cluster, namespace: str, pods: list[str], policy: Command, operator: Operator, as_user: Command
) -> None:
    name = policy(guard={"minPods": 3, "maxPercent": 20})
    wait_until(lambda: told(as_user, name)["accepted"] == "True", WAIT_SECONDS, "the policy to be looked at")
    closed = as_user("guard", "reset", name, "--yes")
    assert (closed.returncode, closed.stdout) == (REFUSED, "")
    assert "there is nothing to reset" in closed.stderr
    cluster.set_taints(f"{namespace}-n", [BAD])
    wait_until(lambda: (told(as_user, name)["guard"] or {}).get("cause"), WAIT_SECONDS, "the guard to open")
    shown = as_user("status", name)
    assert (shown.returncode, "its guard has tripped" in shown.stdout) == (PERSON, True)
    assert gone(cluster, namespace) == []

    reset = as_user("guard", "reset", name, "--yes")
    assert reset.returncode == FINE, reset.stderr
    assert "6 pods due in the next 10m, 3 are allowed" in " ".join(reset.stdout.split())
    wait_until(lambda: len(gone(cluster, namespace)) == len(pods), WAIT_SECONDS, "all to leave")
    wait_until(lambda: as_user("status", name).returncode == FINE, WAIT_SECONDS, "the status to be fine again")
    annotations = lambda: cluster.get("taintevictionpolicies", name)["metadata"].get("annotations", {})  # noqa: E731
    is_removed = lambda: "taintwarden.io/guard-reset" not in annotations()  # noqa: E731
    wait_until(is_removed, WAIT_SECONDS, "the annotation to be removed")


@pytest.mark.parametrize("as_user", [READERS], indirect=True)
def test_whoever_may_only_read_is_told_so(policy: Command, as_user: Command) -> None:
    name = policy()
    told = as_user("pause", name)
    assert (told.returncode, told.stdout, len(told.stderr.splitlines())) == (REFUSED, "", 1)
    assert told.stderr.startswith("taintwarden: you may not change taintevictionpolicies: 403 Forbidden")


def test_plan_is_what_then_happens(
    cluster: Cluster, namespace: str, pods: list[str], policy: Command, operator: Operator, as_user: Command
) -> None:
    name = policy(evictionsPerSecond=0.5, burst=1)
    wait_until(lambda: told(as_user, name)["selectedNodes"] == 1, WAIT_SECONDS, "the policy to be looked at")
    plan = as_user("plan", "--node", f"{namespace}-n", "--taint", "sla=900:NoExecute", "-o", "json")
    assert plan.returncode == FINE, plan.stderr
    planned = [one for one in json.loads(plan.stdout)["pods"] if one["namespace"] == namespace]
    assert [round(one["afterSeconds"]) for one in planned] == [0, 2, 4, 6, 8, 10]
    assert gone(cluster, namespace) == []
    cluster.set_taints(f"{namespace}-n", [BAD])
    wait_until(lambda: len(gone(cluster, namespace)) == len(pods), WAIT_SECONDS, "all to leave")
    assert gone(cluster, namespace) == [one["name"] for one in planned]
