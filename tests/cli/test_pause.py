"""`pause` stops a policy and `resume` sets it going as it was, whoever else writes it meanwhile."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cli.policies import POLICIES, Run, annotations, empty_cluster, running, stored
from cli.world import policy
from localcluster import LocalCluster
from taintwarden.cli.pausing import PAUSED_MODE_ANNOTATION

WRITE = f"{POLICIES}/sla$"


@pytest.fixture
def cluster() -> LocalCluster:
    cluster = empty_cluster()
    cluster.create(POLICIES, policy())
    return cluster


@pytest.fixture
async def run(cluster: LocalCluster, cli, tmp_path: Path) -> AsyncIterator[Run]:
    async with running(cluster, cli, tmp_path) as run:
        yield run


def mode(cluster: LocalCluster) -> str:
    return stored(cluster)["spec"]["mode"]


async def test_pause_says_which_mode_it_had(cluster, run):
    result = await run("pause", "sla")
    assert (result.exit_code, result.stdout) == (0, "policy sla is paused; its mode was Enforce\n")
    assert (mode(cluster), annotations(cluster)) == ("Paused", {PAUSED_MODE_ANNOTATION: "Enforce"})


@pytest.mark.parametrize("before", ["Enforce", "DryRun"])
async def test_resume_goes_back_to_the_mode_before(cluster, run, before):
    cluster.store.modify(POLICIES, "sla", "", lambda one: one["spec"].update(mode=before))
    await run("pause", "sla")
    result = await run("resume", "sla")
    assert (result.exit_code, result.stdout) == (0, f"policy sla is in mode {before} again\n")
    assert (mode(cluster), annotations(cluster)) == (before, {})


async def test_paused_twice_forgets_no_mode(cluster, run):
    await run("pause", "sla")
    result = await run("pause", "sla")
    assert (result.exit_code, result.stdout) == (0, "policy sla is paused already\n")
    assert annotations(cluster) == {PAUSED_MODE_ANNOTATION: "Enforce"}


async def test_resume_of_a_policy_that_is_not_paused_changes_nothing(cluster, run):
    before = stored(cluster)
    result = await run("resume", "sla", "--mode", "DryRun")
    assert (result.exit_code, result.stdout) == (0, "policy sla is not paused: its mode is Enforce\n")
    assert stored(cluster) == before


async def test_paused_by_hand_has_to_be_told_its_mode(cluster, run):
    cluster.store.modify(POLICIES, "sla", "", lambda one: one["spec"].update(mode="Paused"))
    result = await run("resume", "sla")
    assert (result.exit_code, mode(cluster)) == (1, "Paused")
    assert "does not tell which mode it had: say --mode Enforce or --mode DryRun" in result.stderr
    assert (await run("resume", "sla", "--mode", "DryRun")).exit_code == 0
    assert mode(cluster) == "DryRun"


async def test_annotation_that_is_no_mode_is_not_believed(cluster, run):
    await run("pause", "sla")
    cluster.store.modify(
        POLICIES, "sla", "", lambda one: one["metadata"]["annotations"].update({PAUSED_MODE_ANNOTATION: "Paused"})
    )
    assert (await run("resume", "sla")).exit_code == 1


@pytest.mark.parametrize("command", ["pause", "resume"])
async def test_unknown_policy_is_one_line(run, command):
    result = await run(command, "absent")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("taintwarden: there is no TaintEvictionPolicy absent in the cluster at http://")


async def test_missing_right_is_one_line(cluster, run):
    cluster.faults.answer(403, method="PATCH", path=WRITE)
    result = await run("pause", "sla")
    assert (result.exit_code, result.stdout, mode(cluster)) == (1, "", "Enforce")
    assert result.stderr.startswith("taintwarden: you may not change taintevictionpolicies: 403 ")


async def test_somebody_elses_write_meanwhile_is_no_reason_to_fail(cluster, run):
    cluster.faults.answer(409, method="PATCH", path=WRITE, times=3)
    assert (await run("pause", "sla")).exit_code == 0
    assert mode(cluster) == "Paused"


async def test_one_who_always_writes_meanwhile_is_told_of(cluster, run):
    cluster.faults.answer(409, method="PATCH", path=WRITE, times=9)
    result = await run("pause", "sla")
    assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1)
    assert result.stderr.startswith("taintwarden: cannot change taintevictionpolicies: 409 ")
