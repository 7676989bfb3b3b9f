"""The recipe that the README teaches first, on the real scheduler: each pod moves once, as `plan` and `doctor` say."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from controlplane import Json, Operator, WorkingCluster, wait_until, webhook_setup
from controlplane.operator_process import EXECUTABLE
from docs.pages import ROOT, Page, objects
from e2e import users
from e2e.runbook import Desk

README = Page(ROOT / "README.md")
REPLICAS, MOVED_SECONDS = 9, 150.0
NODES = ("shop-a-0", "shop-b-0", "shop-c-0")
BAD, GOOD = NODES[:1], NODES[1:]
TAINT = [{"key": "sla", "value": "980", "effect": "NoExecute"}]

pytestmark = pytest.mark.timeout(600)


def blocks(section: str, language: str) -> list[str]:
    """The blocks of this language under a heading of the README."""
    lines = README.text.splitlines()
    first = lines.index(f"## {section}") + 1
    last = next(number for number, line in enumerate([*lines[first:], "## "], first + 1) if line.startswith("## "))
    within = range(first, last + 1)
    found = [one for one in README.blocks if one.language == language and int(one.where.split(":")[1]) in within]
    assert found, section
    return [one.text for one in found]


@pytest.fixture(scope="module")
def desk(own_working_cluster: WorkingCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A cluster with operator and webhook, three nodes, and the objects of the README in files."""
    cluster, folder = own_working_cluster, tmp_path_factory.mktemp("recipe")
    desk = Desk(folder / "desk", cluster.admin_kubeconfig)
    for name in ("shop", "trap"):
        cluster.client.create_namespace(name)  # with its account, which no controller makes here
    cluster.create_zones("shop", {"a": 1, "b": 1, "c": 1}, {}, *TAINT)
    (policy,) = blocks("How do I write a policy?", "yaml")
    (workload,) = blocks("How do I say what a pod tolerates?", "yaml")
    (desk.folder / "policy.yaml").write_text(policy)
    namespace, deployment = yaml.safe_load_all(workload)
    deployment["spec"]["replicas"] = REPLICAS
    (desk.folder / "workload.yaml").write_text(yaml.safe_dump_all([namespace, deployment]))
    operator = Operator(cluster.operator_kubeconfig(), folder)
    with webhook_setup.opened(cluster, folder):
        operator.start()
        try:
            yield desk
        finally:
            operator.process.stop()


def typed(desk: Desk, command: str, *codes: int) -> str:
    done = desk.type(command, {})
    assert done.code in (codes or (0,)), done
    return done.output


def pods(cluster: WorkingCluster) -> list[Json]:
    return [one for one in cluster.client.items("pods", "shop") if "deletionTimestamp" not in one["metadata"]]


def on(cluster: WorkingCluster, *nodes: str) -> set[str]:
    return {one["metadata"]["uid"] for one in pods(cluster) if one["spec"].get("nodeName") in nodes}


def evicted(cluster: WorkingCluster) -> int:
    found: int = cluster.client.get("taintevictionpolicies", "sla")["status"]["evicted"]
    return found


def test_each_pod_moves_once(desk: Desk, own_working_cluster: WorkingCluster) -> None:
    cluster = own_working_cluster
    (shell,) = blocks("How do I write a policy?", "sh")
    for command in shell.splitlines()[:2]:
        typed(desk, command)
    typed(desk, "kubectl apply -f workload.yaml")
    wait_until(lambda: len(on(cluster, *NODES)) == REPLICAS, 60, "the pods to be placed")
    enforce = shell.splitlines()[-1]
    assert "Enforce" in enforce
    typed(desk, enforce)
    cluster.wait_complete("shop/web")
    label = "value.taintwarden.io/sla"
    labels = lambda: [cluster.client.get("nodes", name)["metadata"]["labels"] for name in NODES]  # noqa: E731
    wait_until(lambda: all(label in one for one in labels()), 40, "labels of nodes")
    leaving = on(cluster, *BAD)
    assert leaving
    flags = " ".join(f"--node {name}" for name in BAD)
    plan = json.loads(typed(desk, f"taintwarden plan {flags} --taint sla=900:NoExecute -o json"))
    assert (plan["leaving"], plan["returning"]) == (len(leaving), 0)
    assert "placement-missing" not in typed(desk, "taintwarden doctor --only placement-missing")
    for name in BAD:
        typed(desk, f"kubectl taint node {name} sla=900:NoExecute --overwrite")
    wait_until(lambda: not on(cluster, *BAD), MOVED_SECONDS, "the pods to leave")
    wait_until(lambda: len(on(cluster, *GOOD)) == REPLICAS, 60, "the pods to be on good nodes")
    wait_until(lambda: evicted(cluster) == len(leaving), 20, "the status to be written")
    assert typed(desk, "kubectl get events -n shop --field-selector reason=EvictionBouncing -o name") == ""


def test_the_documented_role_is_enough_for_every_check(own_working_cluster: WorkingCluster, tmp_path: Path) -> None:
    own_working_cluster.client.create_namespace("duty")
    [role] = [one for where, one in objects() if where.startswith("docs/doctor.md") and one["kind"] == "ClusterRole"]
    with users.user(own_working_cluster, "duty", role["rules"], tmp_path / "kubeconfig") as kubeconfig:
        done = users.run([str(EXECUTABLE), "doctor"], kubeconfig)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert "Not checked" not in done.stdout
