"""The end-to-end tests' own ground: the server is real, the operator's rights are the shipped ones, nothing is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from controlplane import (
    ApiError,
    Cluster,
    ControlPlane,
    MissingBinariesError,
    Process,
    ProcessFailedError,
    Pulse,
    Target,
    api_server,
    sleep_until,
)
from controlplane import wait_until as wait
from controlplane.binaries import ROOT, binaries_folder, wanted_version
from controlplane.cluster import SCHEDULER
from controlplane.comparisons import NOT_KNOWN, known_gates
from controlplane.kubeconfig import CONTEXT
from controlplane.lateness import VARIABLE
from controlplane.manifests import documents
from controlplane.processes import exists
from controlplane.target import ForbiddenContextError, check_context, existing_cluster

TAINT = {"key": "sla", "value": "940", "effect": "NoExecute"}


@pytest.mark.skipif("KUBEBUILDER_ASSETS" in os.environ, reason="binaries of another version are given")
def test_the_server_is_the_version_under_test(own_control_plane: ControlPlane) -> None:
    assert own_control_plane.version() == wanted_version()


@pytest.mark.skipif(not known_gates(), reason=NOT_KNOWN)
def test_comparison_operators_are_accepted_and_version_operators_refused(cluster: Cluster) -> None:
    toleration = {"key": "sla", "value": "950", "effect": "NoExecute"}
    assert cluster.refusal_of_toleration({**toleration, "operator": "Gt"}) == ""
    assert "Unsupported value" in cluster.refusal_of_toleration({**toleration, "operator": "SemverGt"})


@pytest.mark.parametrize("folder", ["crds", "deploy/base", "deploy/samples"])
def test_the_server_accepts_every_shipped_manifest(control_plane: Target, folder: str) -> None:
    found = list(documents(ROOT / folder))
    assert found, f"{folder} holds no YAML"
    refusals = []
    for path, document in found:
        try:
            control_plane.client.apply(document, dry_run=True)
        except ApiError as error:
            refusals.append(f"{path.relative_to(ROOT)}: {error}")
    assert refusals == []


class TestFreePorts:
    def test_none_is_given_twice(self, monkeypatch: pytest.MonkeyPatch) -> None:
        first = api_server.free_port()
        monkeypatch.setattr(api_server, "PORTS", range(first, first + 50))
        for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT"):
            monkeypatch.delenv(name, raising=False)
        given = [api_server.free_port() for _ in range(20)]
        assert len({first, *given}) == 21

    def test_processes_that_divide_the_tests_share_none(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "2")
        for number in (0, 1):
            monkeypatch.setenv("PYTEST_XDIST_WORKER", f"gw{number}")
            assert {api_server.free_port() % 2 for _ in range(20)} == {number}


def test_a_node_carries_exactly_the_taints_asked_for(cluster: Cluster, namespace: str) -> None:
    cluster.create_node(f"{namespace}-n1", taints=[TAINT])
    cluster.create_node(f"{namespace}-n2")
    assert cluster.get("nodes", f"{namespace}-n1")["spec"]["taints"] == [TAINT]
    assert "taints" not in cluster.get("nodes", f"{namespace}-n2")["spec"]


def test_a_pod_runs_where_it_is_created_or_bound(cluster: Cluster, namespace: str) -> None:
    node = f"{namespace}-n1"
    cluster.create_node(node)
    cluster.create_pod("direct", namespace, node)
    cluster.create_pod("bound", namespace)
    cluster.bind_pod("bound", namespace, node)
    pods = cluster.items("pods", namespace)
    assert [(pod["spec"]["nodeName"], pod["status"]["phase"]) for pod in pods] == [(node, "Running")] * 2


def test_a_budget_forbids_an_eviction(cluster: Cluster, namespace: str) -> None:
    cluster.create_node(f"{namespace}-n1")
    cluster.create_pod("p1", namespace, f"{namespace}-n1", labels={"app": "a"})
    cluster.create_pdb("budget", namespace, {"app": "a"})
    with pytest.raises(ApiError) as refused:
        cluster.evict("p1", namespace)
    assert refused.value.status == 429
    # A disruption controller, where one runs, comes to the same.
    cluster.patch("poddisruptionbudgets", "budget", {"spec": {"minAvailable": 0}}, namespace)
    cluster.set_disruptions_allowed("budget", namespace, 1)
    cluster.evict("p1", namespace)
    cluster.wait_evicted("p1", namespace)


class TestOperatorRights:
    """The service account holds what deploy/base grants and nothing else."""

    @pytest.mark.parametrize(
        ("verb", "group", "resource"),
        [
            ("list", "", "nodes"),
            ("watch", "", "pods"),
            ("create", "", "pods/eviction"),
            ("list", "taintwarden.io", "taintevictionpolicies"),
        ],
    )
    def test_it_may(self, control_plane: Target, verb: str, group: str, resource: str) -> None:
        assert may(control_plane, verb, group, resource)

    @pytest.mark.parametrize(
        ("verb", "group", "resource"),
        [
            ("delete", "", "nodes"),
            ("create", "", "pods"),
            ("list", "", "secrets"),
            ("create", "", "serviceaccounts/token"),
            ("impersonate", "", "users"),
            ("escalate", "rbac.authorization.k8s.io", "clusterroles"),
            ("update", "policy", "poddisruptionbudgets"),
            ("*", "*", "*"),
        ],
    )
    def test_it_may_not(self, control_plane: Target, verb: str, group: str, resource: str) -> None:
        assert not may(control_plane, verb, group, resource)

    def test_the_server_enforces_it(self, control_plane: Target, namespace: str) -> None:
        node = f"{namespace}-n1"
        control_plane.client.create_node(node)
        as_operator = control_plane.operator_client()
        with pytest.raises(ApiError) as refused:
            as_operator.delete("nodes", node)
        as_operator.close()
        assert refused.value.status == 403
        assert control_plane.client.get("nodes", node)


def may(target: Target, verb: str, group: str, resource: str) -> bool:
    """What the server answers the operator on `kubectl auth can-i`."""
    plural, _, subresource = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": plural, "subresource": subresource}
    as_operator = target.operator_client()
    review = as_operator.create("selfsubjectaccessreviews", {"spec": {"resourceAttributes": attributes}})
    as_operator.close()
    return review["status"]["allowed"]


@pytest.mark.parametrize("kill", [False, True])
def test_an_outage_ends_with_all_data(own_control_plane: ControlPlane, namespace: str, kill: bool) -> None:
    cluster = own_control_plane.client
    cluster.create_node(f"{namespace}-n1", taints=[TAINT])
    before = cluster.get("nodes", f"{namespace}-n1")
    own_control_plane.stop_api_server(kill=kill)
    assert not own_control_plane.answers("/readyz")
    own_control_plane.start_api_server()
    assert cluster.get("nodes", f"{namespace}-n1") == before


def test_the_pulse_tells_what_a_server_that_stands_still_lost(own_control_plane: ControlPlane) -> None:
    pid = own_control_plane.api_server.pid
    assert pid is not None
    with Pulse(own_control_plane.client) as pulse:
        began = time.monotonic()
        os.kill(pid, signal.SIGSTOP)
        try:
            sleep_until(began + 1)
        finally:
            os.kill(pid, signal.SIGCONT)
        assert 0.6 < pulse.lost(began) <= time.monotonic() - began
        assert pulse.lost(began, began) == 0


def test_controllers_run_beside_it(own_control_plane: ControlPlane, namespace: str) -> None:
    cluster = own_control_plane.client
    manager = own_control_plane.start_controller_manager("disruption-controller")
    scheduler = own_control_plane.start_scheduler()
    cluster.create_node(f"{namespace}-n1")
    cluster.create_pod("p1", namespace, labels={"app": "a"}, spec={"schedulerName": SCHEDULER})
    wait(lambda: cluster.get("pods", "p1", namespace)["spec"].get("nodeName"), 60, "the scheduler to bind the pod")
    scheduler.stop()
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    cluster.create("poddisruptionbudgets", {"metadata": {"name": "budget"}, "spec": spec}, namespace)
    budget = wait(lambda: observed_budget(cluster, namespace), 60, "the disruption controller to see the budget")
    manager.stop()
    assert budget["status"]["desiredHealthy"] == 1


def observed_budget(cluster: Cluster, namespace: str) -> dict | None:
    budget = cluster.get("poddisruptionbudgets", "budget", namespace)
    return budget if budget.get("status", {}).get("observedGeneration") else None


def test_the_audit_log_counts_evictions(own_control_plane: ControlPlane, namespace: str) -> None:
    cluster = own_control_plane.client
    cluster.create_pod("p1", namespace)
    cluster.evict("p1", namespace)

    def found() -> list[dict]:
        entries = [entry for entry in own_control_plane.audit() if entry["objectRef"]["namespace"] == namespace]
        return [entry for entry in entries if entry["objectRef"].get("subresource") == "eviction"]

    assert len(wait(found, 60, "the audit log to show the eviction")) == 1


def test_an_existing_cluster_is_reached_by_its_kubeconfig(own_control_plane: ControlPlane, tmp_path: Path) -> None:
    target = existing_cluster(own_control_plane.admin_kubeconfig, CONTEXT, tmp_path)
    assert target.version() == own_control_plane.version()
    target.client.close()


class TestNothingIsLeft:
    def test_stop_ends_every_process(self, tmp_path: Path) -> None:
        with ControlPlane(tmp_path) as started:
            pids = [process.pid for process in started.processes]
            assert all(pid and exists(pid) for pid in pids)
        assert not any(exists(pid) for pid in pids if pid)

    def test_a_process_is_stopped_when_the_interpreter_ends(self, tmp_path: Path) -> None:
        pid = started_elsewhere(tmp_path, "")
        wait(lambda: not exists(pid), 60, "the forgotten process to end")

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent has died")
    def test_a_process_is_stopped_when_the_interpreter_is_killed(self, tmp_path: Path) -> None:
        pid = started_elsewhere(tmp_path, f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})")
        wait(lambda: not exists(pid), 60, "the orphan to be killed")

    def test_a_failed_start_shows_the_end_of_the_log(self, tmp_path: Path) -> None:
        process = Process("broken", ["/bin/sh", "-c", "echo no such luck; exit 7"], tmp_path / "broken.log")
        process.start()
        with pytest.raises(ProcessFailedError, match=r"(?s)broken ended with 7.*no such luck"):
            process.wait_ready(lambda: False, 10)


def started_elsewhere(folder: Path, ending: str) -> int:
    """The pid of a process that another interpreter started and did not stop."""
    script = f"""
import sys, pathlib
sys.path.insert(0, {str(ROOT / "tests")!r})
from controlplane import Process
process = Process("sleeper", ["/bin/sleep", "600"], pathlib.Path({str(folder)!r}) / "sleeper.log")
process.start()
print(process.pid, flush=True)
{ending}
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    return int(result.stdout)


class TestNoClusterNoGreenRun:
    def test_missing_binaries_are_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
        with pytest.raises(MissingBinariesError, match="no executable etcd and kube-apiserver"):
            binaries_folder()

    def test_contexts_are_refused_unless_allowed(self) -> None:
        check_context("kind-taintwarden-e2e", {})
        check_context("mine", {"TAINTWARDEN_E2E_CONTEXTS": "other,mine"})
        for name in ("production", ""):
            with pytest.raises(ForbiddenContextError, match="refuse the context"):
                check_context(name, {"TAINTWARDEN_E2E_CONTEXTS": ""})

    @pytest.mark.parametrize(
        ("options", "message"),
        [([], "holds no executable etcd"), (["--kubeconfig=any", "--context=production"], "refuse the context")],
    )
    def test_the_run_fails(self, tmp_path: Path, options: list[str], message: str) -> None:
        result = subprocess.run(
            [sys.executable, "-m", "pytest", "tests/e2e/test_control_plane.py", "-k", "audit", *options],
            cwd=ROOT,
            env={**os.environ, "KUBEBUILDER_ASSETS": str(tmp_path), VARIABLE: ""},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert result.returncode != 0
        assert message in result.stdout + result.stderr
