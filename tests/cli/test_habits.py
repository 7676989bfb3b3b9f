"""Spellings that users of kubectl are used to."""

import pytest

from cli.policies import POLICIES, empty_cluster
from cli.test_plan import add_node, add_pod
from cli.world import namespace, policy
from limits_off import LIMITS_OFF
from localcluster import LocalCluster


@pytest.fixture
def cluster() -> LocalCluster:
    """A bad node with a pod."""
    cluster = empty_cluster()
    cluster.create("namespaces", namespace())
    add_node(cluster, "a1", "900")
    add_pod(cluster, "web-0", "a1")
    cluster.create(POLICIES, policy(limits=LIMITS_OFF))
    return cluster


LEAVES, SILENT = 10, 11


POD = ("pod shop/web-0", "po shop/web-0", "pod/web-0 -n shop", "pods/web-0 -n shop", "po/web-0 -n shop")


@pytest.mark.parametrize("words", POD)
async def test_a_pod_by_its_names(run, words):
    result = await run("explain", *words.split())
    assert (result.exit_code in (LEAVES, SILENT), "Pod         shop/web-0 on node a1" in result.stdout) == (True, True)


@pytest.mark.parametrize("words", ["no a1", "node/a1", "nodes a1"])
async def test_a_node_by_its_names(run, words):
    assert "Node        a1" in (await run("explain", *words.split())).stdout


async def test_a_kind_that_is_not_known(run):
    assert (await run("explain", "job/web")).exit_code == 2


async def test_context_is_accepted_before_the_command(run):
    assert (await run("--context", "local", "status")).exit_code in (0, 10)
    result = await run("--context", "absent", "status")
    assert (result.exit_code, "absent" in result.stderr) == (2, True)
    assert (await run("--context", "absent", "status", "--context", "local")).exit_code in (0, 10)


async def test_commands_that_are_advised_are_about_the_cluster_that_is_selected(run):
    for words, need in (("--context local status", True), ("status --context local", True), ("status", False)):
        shown = (await run(*words.split())).stdout
        assert ("taintwarden" in shown, shown.endswith("\nCommands above need: --context local\n")) == (True, need)


@pytest.mark.parametrize("command", ["status", "run", "webhook"])
async def test_kubeconfig_is_accepted_before_the_command(run, command):
    result = await run("--kubeconfig", "absent.yaml", command)
    assert (result.exit_code, "absent.yaml" in result.stderr) == (2, True)


# -- formats ----------------------------------------------------------------------------------------------------------


async def test_a_form_that_is_not_known(run):
    result = await run("status", "-o", "xml")
    assert (result.exit_code, "json" in result.stderr) == (2, True)


# -- patience ---------------------------------------------------------------------------------------------------------


async def test_request_to_a_server_that_is_initializing_is_retried(cluster, run):
    cluster.faults.answer(429, path="taintevictionpolicies$", message="storage is (re)initializing")
    assert (await run("status")).exit_code == 10


async def test_request_with_a_long_retry_after_is_not_retried(cluster, run):
    cluster.faults.answer(
        429, path="taintevictionpolicies$", retry_after_seconds=300, message="storage is (re)initializing"
    )
    result = await run("status")
    assert (result.exit_code, "storage is (re)initializing" in result.stderr) == (1, True)


async def test_doctor_says_so_if_most_checks_could_not_be_made(cluster, run):
    for path in ("v1/pods$", "v1/nodes$", "namespaces$", "leases/", "webhookconfigurations$", "poddisruptionbudgets$"):
        cluster.faults.answer(403, path=path, times=99)
    cluster.faults.answer(403, path="taintevictionpolicies$", times=99)
    result = await run("doctor")
    assert result.exit_code == 11, result.stdout
