"""`repair` prints the commands that restore the last good values, and sets them only if it is asked to."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cli.devices import DRIVER, KEY, claim, for_devices, serve, sick, slice_of
from cli.policies import POLICIES, Run, empty_cluster, running
from cli.test_plan import add_pod
from cli.world import history, namespace, policy, taint
from localcluster import LocalCluster


def add_node(cluster: LocalCluster, name: str, *values: str, drains: bool = False) -> None:
    """A node whose taint had these values, a minute each."""
    ages = range(60 * len(values), 0, -60)
    recorded = json.loads(history(*zip(values, ages, strict=True)))
    recorded["sla:NoExecute"] |= {"drains": True} if drains else {}
    metadata = {"name": name, "annotations": {"taintwarden.io/taint-history": json.dumps(recorded)}}
    other = {"key": "other", "value": "x", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
    cluster.store.create("nodes", {"metadata": metadata, "spec": {"taints": [taint(values[-1]), other]}})


@pytest.fixture
def cluster() -> LocalCluster:
    """a1 fell to 0, with a pod that wants more than 950; b1 is good."""
    cluster = empty_cluster()
    cluster.create("namespaces", namespace())
    add_node(cluster, "a1", "970", "980", "0")
    add_node(cluster, "b1", "900", "980")
    add_pod(cluster, "web-0", "a1")
    add_pod(cluster, "web-1", "b1")
    cluster.create(POLICIES, policy())
    return cluster


@pytest.fixture
async def run(cluster: LocalCluster, cli, tmp_path: Path) -> AsyncIterator[Run]:
    async with running(cluster, cli, tmp_path) as run:
        yield run


def commands(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("#")]


def value_of(cluster: LocalCluster, name: str = "a1") -> str:
    return cluster.store.get("nodes", name)["spec"]["taints"][0]["value"]


async def test_the_last_good_value_is_restored_by_kubectl(cluster, run):
    result = await run("repair", "sla")
    assert result.exit_code == 0
    assert commands(result.stdout) == ["kubectl taint node a1 sla=980:NoExecute --overwrite"]
    assert result.stdout.startswith("# a1: sla=0:NoExecute for ")
    assert ", 1 pod has to leave; 980 before\n" in result.stdout
    assert value_of(cluster) == "0"


async def test_a_paused_policy_is_repaired_too(cluster, run):
    cluster.store.modify(POLICIES, "sla", "", lambda one: one["spec"].update(paused=True))
    assert len(commands((await run("repair", "sla")).stdout)) == 1


@pytest.mark.parametrize(
    ("values", "restored"),
    [
        (("980", "990", "0"), "990"),
        (("980", "940", "0"), "980"),
        (("980", "high", "0"), "980"),
        (("980", "98O"), "980"),
        (("940", "0"), "940"),
    ],
)
async def test_which_value_is_good(cluster, run, values, restored):
    add_node(cluster, "c1", *values)
    add_pod(cluster, "web-2", "c1")
    assert f"kubectl taint node c1 sla={restored}:NoExecute --overwrite" in (await run("repair", "sla")).stdout


async def test_a_node_whose_pods_are_gone_is_repaired(cluster, run):
    add_node(cluster, "c1", "980", "0", drains=True)
    assert "kubectl taint node c1 sla=980:NoExecute --overwrite" in (await run("repair", "sla")).stdout


async def test_without_an_earlier_value_a_person_is_needed(cluster, run):
    add_node(cluster, "c1", "0")
    add_pod(cluster, "web-2", "c1")
    result = await run("repair", "sla")
    assert result.exit_code == 10
    assert "1 pod has to leave; no earlier good value is known" in result.stdout
    assert len(commands(result.stdout)) == 1


async def test_nothing_is_bad(cluster, run):
    cluster.store.delete("pods", "web-0", "shop")
    result = await run("repair", "sla")
    assert (result.exit_code, result.stdout) == (0, "# policy sla: no bad value\n")


async def test_what_a_driver_writes_of_a_device_is_named_and_needs_a_person(cluster, run):
    serve(cluster)
    uid = cluster.store.get("pods", "web-1", "shop")["metadata"]["uid"]
    cluster.create("resourceslices", slice_of("b1", gpu_0=[sick()]))
    cluster.create("resourceclaims", claim(device=f"{DRIVER}/b1/gpu-0", uids=(uid,)))
    cluster.create(POLICIES, for_devices())
    result = await run("repair", "gpu")
    device = f"{KEY}=79:NoSchedule of device {DRIVER}/b1/gpu-0"
    told = f"# b1: {device}, 1 pod has to leave; its driver or a DeviceTaintRule writes it: no command restores it\n"
    assert (result.exit_code, result.stdout) == (10, told)
    found = json.loads((await run("repair", "gpu", "-o", "json")).stdout)
    assert (found["repairs"], found["others"]) == ([], [{"node": "b1", "taint": device, "source": "", "leaving": 1}])


async def test_what_is_read_from_a_node_is_named_and_needs_a_person(cluster, run):
    cluster.create(POLICIES, policy("tier", taints=[{"key": "tier", "from": {"label": "tier"}}]))
    cluster.store.modify("nodes", "b1", "", lambda one: one["metadata"].update(labels={"tier": "bad"}))
    entry = {"key": "tier", "operator": "Equal", "value": "good", "effect": "NoExecute"}
    add_pod(cluster, "picky", "b1", annotations={"taintwarden.io/tolerations": json.dumps([entry])})
    result = await run("repair", "tier")
    told = (
        "# b1: tier=bad:NoExecute, 1 pod has to leave; it is read from label tier of the node: no command restores it\n"
    )
    assert (result.exit_code, result.stdout) == (10, told)


async def test_apply_sets_the_value_and_leaves_other_taints(cluster, run):
    before = cluster.store.get("nodes", "a1")["spec"]["taints"][1]
    result = await run("repair", "sla", "--apply", "--yes")
    assert (result.exit_code, value_of(cluster)) == (0, "980")
    assert cluster.store.get("nodes", "a1")["spec"]["taints"] == [taint("980"), before]


async def test_apply_asks(cluster, run):
    result = await run("repair", "sla", "--apply")
    assert (result.exit_code, value_of(cluster)) == (2, "0")


async def test_a_node_that_was_changed_meanwhile_is_left_alone(cluster, run):
    cluster.faults.answer(409, method="PATCH", path="nodes/a1$")
    result = await run("repair", "sla", "--apply", "--yes")
    assert (result.exit_code, value_of(cluster)) == (1, "0")
    assert result.stderr.startswith("taintwarden: node a1: cannot change nodes: 409 ")


async def test_the_context_is_part_of_the_command(cluster, run):
    assert (await run("repair", "sla", "--context", "localcluster")).exit_code in (0, 2)


async def test_unknown_policy_is_one_line(run):
    result = await run("repair", "absent")
    told = "taintwarden: cannot use TaintEvictionPolicy absent: it does not exist\n"
    assert (result.exit_code, result.stderr) == (1, told)


async def test_output_for_scripts(run):
    found = json.loads((await run("repair", "sla", "-o", "json")).stdout)
    (one,) = found["repairs"]
    assert one["since"] == "2026-01-31T11:59:00Z"
    assert (one["node"], one["current"], one["value"], one["leaving"], one["leavingAfter"]) == ("a1", "0", "980", 1, 0)
