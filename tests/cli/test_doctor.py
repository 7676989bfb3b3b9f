"""`doctor` reads a cluster with whatever rights there are, and says what is wrong in tables, JSON and exit codes."""

import json
from pathlib import Path

import pytest

from cli.doctor.scene import controlled, replicas
from cli.policies import POLICIES, Run, condition, empty_cluster, running, set_status
from cli.test_plan import add_node
from cli.world import Json, budget, namespace, pod, policy, taint, toleration
from localcluster import LocalCluster
from taintwarden.engine import rfc3339
from taintwarden.engine.model import Taint
from taintwarden.engine.policy import TaintSelector, ValueType
from taintwarden.kube.calls.lease import LEASE_NAME
from taintwarden_cli.doctor.checks import CATALOGUE
from taintwarden_demo.definitions import shipped_definitions
from taintwarden_demo.scenario import make_scenario
from taintwarden_demo.world import build_world
from taintwarden_placement.node_labels import node_labels

STRICT = toleration("Gt", "950")
EXISTS = toleration("Exists")
FINE = [condition("Accepted", "True"), condition("GuardTripped", "False", reason="Armed")]
SYSTEM = "taintwarden-system"


def placed(value: str) -> dict[str, str]:
    """The labels that the operator writes to a node with this value."""
    selector = TaintSelector("sla", value_type=ValueType.INTEGER, placement=True)
    return node_labels([Taint("sla", value)], [selector]).labels


def hold_lease(cluster: LocalCluster) -> None:
    """Hold the Lease as a running leader does."""
    spec = {
        "holderIdentity": "taintwarden-0",
        "leaseDurationSeconds": 15,
        "renewTime": rfc3339.exactly(cluster.store.clock().timestamp()),
    }
    cluster.create("leases", {"metadata": {"name": LEASE_NAME, "namespace": SYSTEM}, "spec": spec})


@pytest.fixture
def cluster() -> LocalCluster:
    """A good cluster: two nodes, three pods that one of them could take over, and an operator that leads."""
    cluster = empty_cluster()
    for name in ("shop", SYSTEM):
        labels = {"taintwarden.io/inject": "true"} if name == "shop" else {}
        cluster.create("namespaces", namespace() | {"metadata": {"name": name, "labels": labels}})
    for name in ("a1", "b1"):
        add_node(cluster, name, **placed("980"))
    for one in replicas(3, EXISTS, extended=[STRICT], on=("a1",)):
        cluster.store.create(f"{one['kind'].lower()}s", one)
    cluster.create(POLICIES, policy(taints=[{"key": "sla", "valueType": "Integer", "placement": True}]))
    set_status(cluster, conditions=FINE)
    hold_lease(cluster)
    return cluster


async def doctor_json(run: Run, *args: str) -> Json:
    result = await run("doctor", "-o", "json", *args)
    assert result.exit_code in (0, 10), result.output
    found: Json = json.loads(result.stdout)
    return found


def checks(found: Json) -> list[str]:
    return [one["check"] for one in found["findings"]]


async def test_good_cluster_has_no_findings(run):
    result = await run("doctor", "-o", "json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["errors"], found["warnings"]) == (0, 0, 0)
    assert checks(found) == []


async def test_cluster_of_the_demo_has_no_findings(cli, tmp_path):
    cluster = LocalCluster(comparison_operators=True)
    scenario = make_scenario()
    build_world(cluster, scenario, shipped_definitions())
    for node in scenario.nodes:
        labels = placed(node.sla)
        cluster.store.modify("nodes", node.name, "", lambda one, new=labels: one["metadata"]["labels"].update(new))
    set_status(cluster, conditions=FINE)
    hold_lease(cluster)
    async with running(cluster, cli, tmp_path) as run:
        result = await run("doctor")
    assert (result.exit_code, "0 errors, 0 warnings" in result.stdout) == (0, True), result.stdout


async def test_error_exits_with_10_and_shows_its_remedy(cluster, run):
    for name in ("one", "two"):
        cluster.store.create("poddisruptionbudgets", budget(name))
    result = await run("doctor", "--only", "budget-never-allows")
    assert result.exit_code == 10
    assert "error budget-never-allows: 1 object, 3 pods" in result.stdout
    assert "more than one PodDisruptionBudget (one, two)" in " ".join(result.stdout.split())
    assert "Remedy: leave one budget for each pod" in result.stdout
    assert result.stdout.splitlines()[-1] == "1 error, 0 warnings; 1 check"


async def test_nothing_is_fetched_that_no_check_uses(cluster, run):
    await doctor_json(run, "--only", "taint-left")
    assert [one.path for one in cluster.faults.requests if "/version" not in one.path] == ["/api/v1/nodes"]


async def test_nothing_is_written(cluster, run):
    before = {one: cluster.store.list(one) for one in ("nodes", "pods", POLICIES, "leases", "deployments")}
    await run("doctor")
    assert {one: cluster.store.list(one) for one in before} == before


async def test_forbidden_list_skips_only_its_checks(cluster, run):
    cluster.faults.answer(403, path="/apis/policy/v1/poddisruptionbudgets", times=1_000)
    found = await doctor_json(run)
    (lost,) = [one for one in found["notChecked"] if "budget-never-allows" in one["checks"]]
    assert (lost["partly"], lost["reason"].startswith("you may not read poddisruptionbudgets: 403")) == (False, True)
    assert "policy-problem" not in lost["checks"]


async def test_forbidden_optional_list_makes_a_check_partial(cluster, run):
    cluster.faults.answer(403, path="/apis/apps/v1/deployments", times=1_000)
    found = await doctor_json(run, "--only", "toleration-invalid")
    assert [(one["reason"][:28], one["partly"]) for one in found["notChecked"] if "deployments" in one["reason"]] == [
        ("you may not read deployments", True)
    ]
    assert found["checks"] == 1


async def test_what_the_inspection_of_policies_may_not_read_is_not_checked(cluster, run):
    cluster.faults.answer(403, path="/api/v1/nodes", times=1_000)
    (lost,) = (await doctor_json(run, "--only", "policy-problem"))["notChecked"]
    assert (lost["reason"][:22], lost["checks"], lost["partly"]) == ("you may not read nodes", ["policy-problem"], True)


def flap(cluster: LocalCluster, pod_name: str, value: str) -> None:
    event = {
        "metadata": {"name": f"{pod_name}-{value}", "namespace": "shop"},
        "eventTime": rfc3339.exactly(cluster.store.clock().timestamp()),
        "reportingComponent": "taintwarden.io/taintwarden",
        "reason": "EvictionCancelled",
        "message": f"Stays on a1: taint sla={value}:NoExecute no longer evicts it",
        "type": "Normal",
        "involvedObject": {"kind": "Pod", "name": pod_name, "namespace": "shop"},
    }
    cluster.store.create("events", event)


async def test_repeatedly_cancelled_evictions_are_found(cluster, run):
    for value in ("980", "981", "982"):
        flap(cluster, "web-0", value)
    flap(cluster, "web-1", "980")
    [found] = (await doctor_json(run, "--only", "grace-restarted"))["findings"]
    told_of = "evictions of 1 pod because of sla were cancelled up to 3 times in an hour"
    assert (found["name"], found["message"]) == ("a1", f"{told_of}: their grace begins again each time")


async def test_cluster_that_forbids_every_read_is_one_clear_line(cluster, run):
    cluster.faults.answer(403, times=1_000)
    result = await run("doctor")
    assert (result.exit_code, result.stdout, len(result.stderr.splitlines())) == (1, "", 1)


async def test_cluster_without_definitions_is_found(cli, tmp_path):
    cluster = LocalCluster(comparison_operators=True)
    async with running(cluster, cli, tmp_path) as run:
        found = await doctor_json(run)
    assert checks(found)[:2] == ["operator-not-running", "operator-not-running"]
    assert any("apply the CRDs first" in one["reason"] for one in found["notChecked"])


async def test_tripped_guard_comes_first(cluster, run):
    """The value falls to 0 on every node, and the guard trips."""
    tripped = condition("GuardTripped", "True", "since 12:00 nothing is evicted", reason="MassEviction")
    for name in ("a1", "b1"):
        cluster.store.modify("nodes", name, "", lambda one: one["spec"].update(taints=[taint("0")]))
    set_status(cluster, conditions=[FINE[0], tripped], guard={"trippedAt": "2026-01-31T12:00:00.000000Z"})
    assert (await doctor_json(run))["findings"][0]["check"] == "policy-problem"


async def test_unknown_check_is_one_clear_line(run):
    result = await run("doctor", "--only", "absent")
    assert (result.exit_code, result.stderr) == (
        2,
        "taintwarden: there is no check absent; docs/doctor.md lists them\n",
    )


async def test_many_objects_are_cut_unless_asked(cluster, run):
    for number in range(30):
        lone = pod(
            extended=[STRICT],
            metadata={
                "name": f"w{number}",
                "uid": f"w{number}",
                "ownerReferences": controlled("ReplicaSet", f"w{number}"),
            },
        )
        cluster.store.create("pods", lone)
    only = ("--only", "native-missing")
    assert "... and 10 more: --all shows them" in (await run("doctor", *only)).stdout
    assert "more: --all" not in (await run("doctor", *only, "--all")).stdout


@pytest.mark.usefixtures("terminal")
async def test_table_fits_into_100_columns(cluster, run):
    cluster.store.create(
        "pods", pod(toleration("Gt", "950", key="example.com/" + "x" * 60), metadata={"name": "y" * 250, "uid": "y"})
    )
    assert max(map(len, (await run("doctor")).stdout.splitlines())) <= 100


async def test_a_long_name_is_in_one_piece_in_a_pipe(cluster, run):
    cluster.store.create("pods", pod(extended=[STRICT], metadata={"name": "y" * 250, "uid": "y"}))
    assert f"shop/{'y' * 250}" in (await run("doctor", "--only", "native-missing")).stdout


def test_checks_have_words_of_their_own():
    assert len({check.id for check in CATALOGUE}) == len(CATALOGUE)
    assert all(check.finds and check.remedy for check in CATALOGUE)


def test_every_check_has_a_test():
    """By its ID, in a test without a cluster."""
    texts = [path.read_text() for path in Path(__file__).parent.rglob("test_*.py")]
    assert [one.id for one in CATALOGUE if not any(f'"{one.id}"' in text for text in texts)] == []
