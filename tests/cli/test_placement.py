"""`placement` removes labels only where nothing names them, and prints those of future nodes."""

from typing import Any

import pytest

from cli.policies import POLICIES, empty_cluster
from cli.world import Json, policy
from kube import wire
from localcluster import LocalCluster
from taintwarden.engine.model import Taint
from taintwarden.engine.policy import TaintSelector
from taintwarden_cli.change.placement_removal import remove_labels
from taintwarden_cli.rehearsal.session import ClusterError, Session
from taintwarden_placement.node_labels import neutral_labels, node_labels
from taintwarden_placement.node_labels.names import LabelSubject

SLA = neutral_labels(["sla"])
DRIVER, NUMBER = "example.com/driver", "example.com.label-version.taintwarden.io/driver"
ABOVE = {"key": "value-or-max.taintwarden.io/sla", "operator": "Gt", "values": ["950"]}
NEWER = {"key": NUMBER, "operator": "Gt", "values": ["10000000000001"]}


@pytest.fixture
def cluster() -> LocalCluster:
    cluster = empty_cluster()
    cluster.create("namespaces", {"metadata": {"name": "shop"}})
    for name in ("a", "b", "c"):
        cluster.create("nodes", {"metadata": {"name": name, "labels": {"zone": name, **SLA}}})
    return cluster


def affinity(*expressions: Json) -> Json:
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def pod(*expressions: Json, name: str = "web", **status: Any) -> Json:
    spec = {"containers": [{"name": "main", "image": "x"}], "affinity": affinity(*expressions)}
    return {"metadata": {"name": name, "namespace": "shop"}, "spec": spec, "status": status}


def ours(cluster: LocalCluster) -> dict[str, dict[str, str]]:
    nodes = {name: cluster.store.get("nodes", name)["metadata"]["labels"] for name in ("a", "b", "c")}
    return {name: {one: text for one, text in labels.items() if "taintwarden" in one} for name, labels in nodes.items()}


async def test_it_says_how_many_name_the_labels_of_a_label(run, cluster):
    for name in ("a", "b"):
        cluster.store.modify("nodes", name, "", lambda node: node["metadata"]["labels"].update({NUMBER: "1"}))
    cluster.create("pods", pod(ABOVE, NEWER))
    shown = (await run("placement", "remove", DRIVER, "--yes")).stdout
    assert [line.split() for line in shown.splitlines()][1:3] == [
        ["Nodes", "2"],
        ["Pods", "1:", "shop/web"],
    ]


async def test_a_label_that_a_policy_lists_is_refused(run, cluster):
    cluster.store.modify("nodes", "a", "", lambda node: node["metadata"]["labels"].update({NUMBER: "1"}))
    cluster.create(POLICIES, policy(versionLabels=[DRIVER], mode="DryRun"))
    result = await run("placement", "remove", DRIVER, "--yes")
    assert (result.exit_code, "policy sla (DryRun) uses the key" in result.stderr) == (1, True)
    cluster.create(POLICIES, policy("other", versionLabels=[DRIVER]))
    assert "policies other, sla (DryRun) use the key" in (await run("placement", "remove", DRIVER)).stderr


async def test_what_nothing_names_is_removed_from_every_node(run, cluster):
    result = await run("placement", "remove", "sla", "--yes")
    assert (result.exit_code, ours(cluster)) == (0, {"a": {}, "b": {}, "c": {}})
    assert cluster.store.get("nodes", "a")["metadata"]["labels"] == {"zone": "a"}
    assert result.stdout.endswith("the labels of sla were removed from 3 nodes\n")


async def removed(cluster: LocalCluster, *keys: LabelSubject, of: type[Session] = Session) -> int:
    """Remove the labels of these keys, without a pause before the last look."""
    async with cluster.serve() as server, wire.client(server.url) as client:
        return await remove_labels(of(client, server.url), keys, pause_seconds=0.0)


async def test_labels_of_other_keys_stay(cluster):
    other = node_labels([Taint("cni", "1.2.3")], [TaintSelector("cni", placement=True)]).labels
    cluster.store.modify("nodes", "a", "", lambda node: node["metadata"]["labels"].update(other))
    assert await removed(cluster, LabelSubject("sla")) == 3
    assert ours(cluster)["a"] == other


@pytest.mark.parametrize("kind", ["pods", "deployments", "daemonsets", "cronjobs"])
async def test_what_something_names_is_not_removed(run, cluster, kind):
    template = {"metadata": {}, "spec": pod(ABOVE)["spec"]}
    workload = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"template": template}}
    cron_job = {**workload, "spec": {"jobTemplate": {"spec": {"template": template}}}}
    made = {"pods": pod(ABOVE), "cronjobs": cron_job}
    cluster.store.create(kind, made.get(kind, workload))
    result = await run("placement", "remove", "sla", "--yes")
    assert (result.exit_code, ours(cluster)["a"]) == (1, SLA)
    assert "the labels are in use" in result.stderr
    assert "shop/web" in result.stdout


async def test_what_something_names_is_removed_by_force(run, cluster):
    cluster.create("pods", pod(ABOVE))
    assert (await run("placement", "remove", "sla", "--yes", "--force")).exit_code == 0
    assert ours(cluster)["a"] == {}


async def test_a_pod_that_has_finished_needs_no_labels(run, cluster):
    cluster.create("pods", pod(ABOVE))
    cluster.store.modify("pods", "web", "shop", lambda one: one.update(status={"phase": "Succeeded"}))
    assert (await run("placement", "remove", "sla", "--yes")).exit_code == 0


@pytest.mark.parametrize("spec", [{"mode": "Enforce"}, {"mode": "DryRun"}, {"paused": True}])
async def test_a_key_that_a_policy_places_by_is_refused(run, cluster, spec):
    cluster.create(POLICIES, policy(taints=[{"key": "sla", "placement": True}], **spec))
    result = await run("placement", "remove", "sla", "--yes", "--force")
    assert (result.exit_code, ours(cluster)["a"]) == (1, SLA)
    assert "uses the key sla: remove placement or versionLabels from it first" in result.stderr


async def test_a_label_whose_versions_were_repeated_is_removed(cluster):
    for name in ("a", "b"):
        cluster.store.modify("nodes", name, "", lambda node: node["metadata"]["labels"].update({NUMBER: "1"}))
    assert await removed(cluster, LabelSubject(DRIVER, of_label=True)) == 2
    assert ours(cluster) == {"a": SLA, "b": SLA, "c": SLA}


async def test_a_key_that_no_node_carries_is_an_error(run):
    result = await run("placement", "remove", "other", "--yes")
    assert (result.exit_code, result.stderr) == (1, "taintwarden: no node carries labels of placement for other\n")


async def test_removal_without_a_terminal_requires_yes(run, cluster):
    result = await run("placement", "remove", "sla")
    assert (result.exit_code, ours(cluster)["a"]) == (2, SLA)
    assert "use --yes to remove the labels" in result.stderr


async def test_interrupted_removal_continues(cluster):
    cluster.store.modify("nodes", "a", "", lambda node: node["metadata"].update(labels={"zone": "a"}))
    assert await removed(cluster, LabelSubject("sla")) == 2
    assert ours(cluster) == {"a": {}, "b": {}, "c": {}}


async def test_labels_that_come_back_are_an_error(cluster):
    """An operator with a policy that is stored with a fault, and keeps its last valid version."""

    class Contested(Session):
        async def patch(self, *args: Any) -> None:
            await super().patch(*args)
            cluster.store.modify("nodes", "a", "", lambda node: node["metadata"]["labels"].update(SLA))

    told = "labels remain on 1 node: another client writes them. Run the command again"
    with pytest.raises(ClusterError, match=told):
        await removed(cluster, LabelSubject("sla"), of=Contested)


@pytest.mark.parametrize(
    ("taints", "expected"),
    [
        (["sla"], SLA),
        (["sla=x:NoExecute"], {"value.taintwarden.io/sla": "x", "value-or-max.taintwarden.io/sla": "x"}),
        (["sla:PreferNoSchedule"], SLA),
    ],
)
def test_labels_of_a_future_node(cli, taints, expected):
    result = cli("placement", "labels", *taints)
    assert dict(line.split("=") for line in result.stdout.splitlines()) == expected


@pytest.mark.parametrize(
    "taint", ["sla=950", "sla=1:Soft", "a/=1:NoExecute", "sla=a b:NoExecute", "sla=0950:NoExecute"]
)
def test_a_taint_that_cannot_be_read_is_an_error(cli, taint):
    result = cli("placement", "labels", taint)
    assert result.exit_code == 2
    assert result.stderr.startswith("taintwarden: ")
