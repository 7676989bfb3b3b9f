"""`init` prints a first policy and profile for the taints of a cluster; `validate` accepts them, nothing is written."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from cli.policies import POLICIES, Run, empty_cluster, running
from cli.world import Json, namespace, pod, policy, taint, toleration
from localcluster import LocalCluster
from taintwarden.engine.natural import parse_natural
from taintwarden.engine.versions import parse_version

ANY = toleration("Exists", effect="")


def add_node(cluster: LocalCluster, name: str, *taints: Json) -> None:
    cluster.store.create("nodes", {"metadata": {"name": name}, "spec": {"taints": list(taints)}})


def add_pods(cluster: LocalCluster, number: int, app: str, *tolerations: Json, space: str = "shop", **more) -> None:
    for count in range(number):
        metadata = {"name": f"{app}-{count}", "namespace": space, "uid": f"{space}-{app}-{count}"}
        metadata["labels"] = {"app": app} if app else {}
        cluster.store.create("pods", pod(*tolerations, metadata=metadata, spec={"nodeName": "a1"}, **more))


@pytest.fixture
def cluster() -> LocalCluster:
    """Two nodes with numbers, of which web and api tolerate all, and a taint of Kubernetes."""
    cluster = empty_cluster()
    cluster.create("namespaces", namespace())
    add_node(cluster, "a1", taint("970"), taint("", key="node.kubernetes.io/not-ready"))
    add_node(cluster, "b1", taint("980"), taint("x", key="nvidia.com/gpu", effect="NoSchedule"))
    add_pods(cluster, 1, "api", ANY)
    add_pods(cluster, 3, "web", ANY)
    return cluster


@pytest.fixture
async def run(cluster: LocalCluster, cli, tmp_path: Path) -> AsyncIterator[Run]:
    async with running(cluster, cli, tmp_path) as run:
        yield run


async def written(run: Run, *arguments: str) -> tuple[str, list[Json]]:
    """What is printed, which `validate` accepts without a warning."""
    result = await run("init", *arguments)
    assert result.exit_code == 0, result.stderr
    checked = await run("validate", "-o", "json", "-", stdin=result.stdout)
    assert (checked.exit_code, yaml.safe_load(checked.stdout)["findings"]) == (0, [])
    return result.stdout, [one for one in yaml.safe_load_all(result.stdout) if one]


async def test_a_policy_in_dry_run_with_placement_and_a_profile_for_most_pods(cluster, run):
    text, (first, profile) = await written(run)
    assert (first["kind"], first["metadata"]["name"], first["spec"]["mode"]) == ("TaintEvictionPolicy", "sla", "DryRun")
    assert first["spec"]["taints"] == [{"key": "sla", "valueType": "Integer", "placement": True}]
    assert profile["metadata"] == {"name": "sla", "namespace": "shop"}
    assert profile["spec"]["podSelector"] == {"matchLabels": {"app": "web"}}
    (tolerated,) = profile["spec"]["tolerations"]
    assert (tolerated["operator"], tolerated["value"], tolerated["effect"]) == ("Gt", "969", "NoExecute")
    assert "# For others copy it: 1 pod of namespace shop with app=api." in text
    assert "from 970 to 980" in text
    assert cluster.store.list(POLICIES) == []


@pytest.mark.parametrize("labels", [{}, {"topology.kubernetes.io/zone": "a"}])
async def test_the_health_of_zones_is_proposed_where_nodes_have_zones(cluster, run, labels):
    cluster.store.modify("nodes", "b1", "", lambda one: one["metadata"].update(labels=labels))
    _, (first, _) = await written(run)
    unhealthy = {"unhealthy": [{"key": "sla", "operator": "Lt", "value": "970"}]}
    assert first["spec"].get("limits", {}) == ({"zoneHealth": unhealthy} if labels else {})


async def test_what_is_left_out_is_named_with_the_reason(run):
    text, _ = await written(run)
    assert "# node.kubernetes.io/not-ready is left out: a controller sets and removes it." in text
    assert "# nvidia.com/gpu is left out: it states the class of a node, which does not change." in text


async def test_the_value_of_the_profile_evicts_no_pod(cluster, run):
    """What is printed is applied, with mode Enforce."""
    _, documents = await written(run)
    documents[0]["spec"]["mode"] = "Enforce"
    for document in documents:
        kind = {"TaintEvictionPolicy": POLICIES, "TolerationProfile": "tolerationprofiles"}[document["kind"]]
        cluster.create(kind, document)
    for name in ("web-0", "api-0"):
        answer = await run("explain", "pod", f"shop/{name}", "-o", "json")
        assert yaml.safe_load(answer.stdout)["fate"] == "Stays"


@pytest.mark.parametrize(
    ("values", "threshold"),
    [(("1.29.1", "1.30.0"), "1.29.1-0"), (("v1.29", "v1.30"), "1.29.0-0"), (("2", "1.5"), "1.5.0-0")],
)
async def test_versions(run, cluster, values, threshold):
    for number, value in enumerate(values):
        add_node(cluster, f"v{number}", taint(value, key="example.com/driver", effect="NoSchedule"))
    add_pods(cluster, 1, "gpu", toleration("Exists", key="example.com/driver", effect="NoSchedule"))
    _, (first, profile) = await written(run, "--key", "example.com/driver")
    (selector,) = first["spec"]["taints"]
    assert (first["metadata"]["name"], selector["valueType"], selector["effects"]) == (
        "driver",
        "Version",
        ["NoSchedule"],
    )
    (tolerated,) = profile["spec"]["tolerations"]
    assert (tolerated["operator"], tolerated["value"], tolerated["effect"]) == ("SemverGt", threshold, "NoSchedule")
    assert all(parse_version(value) > parse_version(threshold) for value in values)


@pytest.mark.parametrize(
    ("values", "lowest", "threshold"),
    [
        (("5.15.0-100-generic", "5.15.0-97-generic"), "5.15.0-97-generic", "5.15.0-97~"),
        (("v1.31.3-gke.1162000", "v1.31.3-gke.900"), "v1.31.3-gke.900", "v1.31.3-gke.900~"),
        (("5.14.0-427.el9.x86_64", "5.14.0-503.el9.aarch64"), "5.14.0-427.el9.x86_64", "5.14.0-427.el9.x86_64~"),
        (("1.1.1k", "1.1.1w", "1.1.1"), "1.1.1", "1.1.1~"),
        (("6.8", "6.8.0-1042-gke"), "6.8", "6.8~"),
    ],
)
async def test_versions_of_vendors_are_compared_in_the_natural_order(run, cluster, values, lowest, threshold):
    for number, value in enumerate(values):
        add_node(cluster, f"v{number}", taint(value, key="example.com/kernel"))
    add_pods(cluster, 1, "gpu", toleration("Exists", key="example.com/kernel"))
    text, (first, profile) = await written(run, "--key", "example.com/kernel")
    assert first["spec"]["taints"][0]["valueType"] == "Version"
    (tolerated,) = profile["spec"]["tolerations"]
    assert (tolerated["operator"], tolerated["value"]) == ("VersionGt", threshold)
    assert all(parse_natural(value) > parse_natural(threshold) for value in values)
    assert f"as the lowest has {lowest}: raise it" in text


async def test_text_with_a_number_is_no_version(run, cluster):
    for number in range(2):
        add_node(cluster, f"v{number}", taint(f"rack-{number}", key="example.com/rack"))
    _, (first,) = await written(run, "--key", "example.com/rack")
    assert first["spec"]["taints"][0]["valueType"] == "String"


async def test_a_value_that_is_mistyped_is_named(run, cluster):
    for name, value in (("c1", "98O"), ("c2", "990")):
        add_node(cluster, name, taint(value))
    text, (first, _) = await written(run)
    assert first["spec"]["taints"][0]["valueType"] == "Integer"
    assert "# Not of this type: 98O on c1. Correct them first." in text


async def test_pods_that_compare_already_need_no_profile(run, cluster):
    add_pods(cluster, 2, "strict", ANY, extended=[toleration("Gt", "950")])
    text, documents = await written(run)
    assert len(documents) == 1
    assert "# 2 pods compare the value already, so no profile is needed." in text


async def test_a_taint_that_no_pod_tolerates(run, cluster):
    add_node(cluster, "c1", taint("5", key="load"))
    text, documents = await written(run, "--key", "load")
    assert (len(documents), "# No profile: no pod tolerates the taint." in text) == (1, True)


async def test_values_that_cannot_be_compared(run, cluster):
    add_node(cluster, "c1", taint("blue", key="color"))
    add_pods(cluster, 1, "", toleration("Equal", "blue", key="color"))
    text, (first,) = await written(run, "--key", "color")
    assert first["spec"]["taints"][0]["valueType"] == "String"
    assert "It is tolerated by: 1 pod of namespace shop." in text
    assert "# color is left out: its values are neither" in (await run("init")).stdout


async def test_pods_without_a_label_select_the_namespace(run, cluster):
    add_node(cluster, "c1", taint("5", key="load"))
    add_pods(cluster, 1, "", toleration("Exists", key="load"))
    _, (_, profile) = await written(run, "--key", "load")
    assert profile["spec"]["podSelector"] == {}


async def test_keys_with_the_same_end_get_different_names(run, cluster):
    add_node(cluster, "c1", taint("5", key="a.example/load"), taint("5", key="b.example/load"))
    _, documents = await written(run, "--key", "a.example/load", "--key", "b.example/load")
    assert [one["metadata"]["name"] for one in documents] == ["load", "load-2"]


async def test_a_key_of_a_policy_is_left_out(run, cluster):
    cluster.create(POLICIES, policy())
    result = await run("init")
    assert (result.exit_code, result.stdout) == (10, "")
    assert "sla: policy sla acts on it" in result.stderr


async def test_a_key_that_no_node_has(run):
    result = await run("init", "--key", "nothing")
    assert result.exit_code == 10
    assert "name one by --key (left out: nothing: no node has it)" in result.stderr


async def test_without_the_definitions(cli, tmp_path):
    cluster = LocalCluster()
    add_node(cluster, "a1", taint("970"))
    add_pods(cluster, 1, "web", ANY)
    async with running(cluster, cli, tmp_path) as run:
        _, documents = await written(run)
    assert len(documents) == 2


async def test_a_cluster_that_may_not_be_read(run, cluster):
    cluster.faults.answer(403, path="/nodes")
    assert (await run("init")).exit_code == 1
