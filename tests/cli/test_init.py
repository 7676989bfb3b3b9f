"""`init` prints a first policy for the taints of a cluster; `validate` accepts them, nothing is written."""

import pytest
import yaml

from cli.policies import POLICIES, Run, empty_cluster, running
from cli.world import Json, policy, taint
from localcluster import LocalCluster


def add_node(cluster: LocalCluster, name: str, *taints: Json) -> None:
    cluster.store.create("nodes", {"metadata": {"name": name}, "spec": {"taints": list(taints)}})


@pytest.fixture
def cluster() -> LocalCluster:
    """Two nodes with numbers, and taints of others."""
    cluster = empty_cluster()
    add_node(cluster, "a1", taint("970"), taint("", key="node.kubernetes.io/not-ready"))
    add_node(cluster, "b1", taint("980"), taint("x", key="nvidia.com/gpu", effect="NoSchedule"))
    return cluster


async def written(run: Run, *arguments: str) -> tuple[str, list[Json]]:
    """Output of `init`, which `validate` accepts without a warning, and its objects."""
    result = await run("init", *arguments)
    assert result.exit_code == 0, result.stderr
    checked = await run("validate", "-o", "json", "-", stdin=result.stdout)
    assert (checked.exit_code, yaml.safe_load(checked.stdout)["findings"]) == (0, [])
    return result.stdout, [one for one in yaml.safe_load_all(result.stdout) if one]


async def test_a_policy_in_dry_run_with_placement(cluster, run):
    text, (first,) = await written(run)
    assert (first["kind"], first["metadata"]["name"], first["spec"]["mode"]) == ("TaintEvictionPolicy", "sla", "DryRun")
    assert first["spec"]["taints"] == [{"key": "sla", "valueType": "Integer", "placement": True}]
    assert "from 970 to 980" in text
    assert cluster.store.list(POLICIES) == []


@pytest.mark.parametrize("labels", [{}, {"topology.kubernetes.io/zone": "a"}])
async def test_the_health_of_zones_is_proposed_where_nodes_have_zones(cluster, run, labels):
    cluster.store.modify("nodes", "b1", "", lambda one: one["metadata"].update(labels=labels))
    _, (first,) = await written(run)
    unhealthy = {"unhealthy": [{"key": "sla", "operator": "Lt", "value": "970"}]}
    assert first["spec"].get("limits", {}) == ({"zoneHealth": unhealthy} if labels else {})


async def test_what_is_left_out_is_named_with_the_reason(run):
    text, _ = await written(run)
    assert "# node.kubernetes.io/not-ready is left out: a controller sets and removes it." in text
    assert "# nvidia.com/gpu is left out: it states the class of a node, which does not change." in text


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (("1.30.0", "v1.29.1"), "from v1.29.1 to 1.30.0"),
        (("2", "1.5"), "from 1.5 to 2"),
        (("5.15.0-100-generic", "5.15.0-97-generic"), "from 5.15.0-97-generic to 5.15.0-100-generic"),
    ],
)
async def test_versions(run, cluster, values, told):
    for number, value in enumerate(values):
        add_node(cluster, f"v{number}", taint(value, key="example.com/driver", effect="NoSchedule"))
    text, (first,) = await written(run, "--key", "example.com/driver")
    (selector,) = first["spec"]["taints"]
    assert (first["metadata"]["name"], selector["valueType"], selector["effects"], told in text) == (
        "driver",
        "Version",
        ["NoSchedule"],
        True,
    )


async def test_a_node_with_two_effects_of_a_key_counts_once(run, cluster):
    add_node(cluster, "c1", taint("5", key="load"), taint("5", key="load", effect="NoSchedule"))
    assert "# The policy for load, which 1 node has." in (await written(run, "--key", "load"))[0]


async def test_text_with_a_number_is_no_version(run, cluster):
    for number in range(2):
        add_node(cluster, f"v{number}", taint(f"rack-{number}", key="example.com/rack"))
    _, (first,) = await written(run, "--key", "example.com/rack")
    assert first["spec"]["taints"][0]["valueType"] == "String"


async def test_a_value_that_is_mistyped_is_named(run, cluster):
    for name, value in (("c1", "98O"), ("c2", "990")):
        add_node(cluster, name, taint(value))
    text, (first,) = await written(run)
    assert first["spec"]["taints"][0]["valueType"] == "Integer"
    assert "# Not of this type: 98O on c1. Correct them first." in text


async def test_values_that_cannot_be_compared(run, cluster):
    add_node(cluster, "c1", taint("blue", key="color"))
    _, (first,) = await written(run, "--key", "color")
    assert first["spec"]["taints"][0]["valueType"] == "String"
    assert "# color is left out: its values are neither" in (await run("init")).stdout


async def test_keys_with_the_same_end_get_different_names(run, cluster):
    add_node(cluster, "c1", taint("5", key="a.example/load"), taint("5", key="b.example/load"))
    _, documents = await written(run, "--key", "a.example/load", "--key", "b.example/load")
    assert [one["metadata"]["name"] for one in documents] == ["load", "load-2"]


async def test_a_key_of_a_policy_is_left_out(run, cluster):
    cluster.create(POLICIES, policy())
    result = await run("init")
    assert (result.exit_code, result.stdout) == (10, "")
    assert "sla: policy sla acts on it" in result.stderr


async def test_a_key_that_a_policy_selects_by_its_domain_is_left_out(run, cluster):
    add_node(cluster, "c1", taint("5", key="a.example/load"))
    cluster.create(POLICIES, policy("all", taints=[{"key": "a.example/*"}]))
    text, documents = await written(run)
    assert "# a.example/load is left out: policy all acts on it." in text
    assert [one["metadata"]["name"] for one in documents] == ["sla"]


async def test_a_draft_replaces_no_policy_of_its_name(run, cluster):
    add_node(cluster, "c1", taint("5", key="a.example/sla"))
    cluster.create(POLICIES, policy())
    _, (draft,) = await written(run)
    assert draft["metadata"]["name"] == "sla-2"


async def test_a_key_that_no_node_has(run):
    result = await run("init", "--key", "nothing")
    assert result.exit_code == 10
    assert "name one by --key (left out: nothing: no node has it)" in result.stderr


async def test_without_the_definitions(cli, tmp_path):
    cluster = LocalCluster()
    add_node(cluster, "a1", taint("970"))
    async with running(cluster, cli, tmp_path) as run:
        _, documents = await written(run)
    assert len(documents) == 1


async def test_a_cluster_that_may_not_be_read(run, cluster):
    cluster.faults.answer(403, path="/nodes")
    assert (await run("init")).exit_code == 1
