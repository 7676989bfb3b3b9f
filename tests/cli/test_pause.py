"""`pause` stops a policy and `resume` sets it going as it was, whoever else writes it meanwhile."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import Result

from cli.policies import POLICIES, Run, annotations, condition, empty_cluster, running, set_status, stored
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


def mode_of(cluster: LocalCluster, name: str = "sla") -> str:
    return stored(cluster, name)["spec"]["mode"]


def told(result: Result) -> str:
    """What it says, without the cluster, which it has to name."""
    (line,) = result.stdout.splitlines()
    return re.sub(r" \(cluster http://127\.0\.0\.1:\d+, context [a-z-]+\)$", "", line)


async def test_pause_says_which_mode_it_had(cluster, run):
    result = await run("pause", "sla")
    assert (result.exit_code, told(result)) == (0, "policy sla is paused; its mode was Enforce")
    assert (mode_of(cluster), annotations(cluster)) == ("Paused", {PAUSED_MODE_ANNOTATION: "Enforce@2"})


@pytest.mark.parametrize("before", ["Enforce", "DryRun"])
async def test_resume_goes_back_to_the_mode_before(cluster, run, before):
    cluster.store.modify(POLICIES, "sla", "", lambda one: one["spec"].update(mode=before))
    await run("pause", "sla")
    result = await run("resume", "sla")
    assert (result.exit_code, told(result)) == (0, f"policy sla is in mode {before} again")
    assert (mode_of(cluster), annotations(cluster)) == (before, {})


async def test_paused_twice_forgets_no_mode(cluster, run):
    await run("pause", "sla")
    result = await run("pause", "sla")
    assert (result.exit_code, told(result)) == (0, "policy sla is paused already")
    assert annotations(cluster) == {PAUSED_MODE_ANNOTATION: "Enforce@2"}


async def test_resume_of_a_policy_that_is_not_paused_changes_nothing(cluster, run):
    before = stored(cluster)
    result = await run("resume", "sla")
    assert (result.exit_code, told(result)) == (0, "policy sla is not paused: its mode is Enforce")
    assert stored(cluster) == before


async def test_resume_in_another_mode_than_that_of_a_policy_that_is_not_paused_is_an_error(cluster, run):
    before = stored(cluster)
    result = await run("resume", "sla", "--mode", "DryRun")
    assert (result.exit_code, stored(cluster)) == (1, before)
    assert "is not paused: its mode is Enforce; to change it: kubectl patch tep sla" in result.stderr


async def test_mode_before_counts_only_as_long_as_nobody_changes_the_policy(cluster, run):
    await run("pause", "sla")
    for mode in ("DryRun", "Paused"):
        cluster.store.modify(POLICIES, "sla", "", lambda one, mode=mode: one["spec"].update(mode=mode))
    result = await run("resume", "sla")
    assert (result.exit_code, mode_of(cluster)) == (1, "Paused")
    assert (
        "was changed after it was paused, when its mode was Enforce: pass --mode Enforce or --mode DryRun"
        in result.stderr
    )


async def test_resume_says_how_many_pods_are_due(cluster, run):
    await run("pause", "sla")
    set_status(cluster, conditions=[condition("Progressing", "False", "paused, 12 pods would be due", "Paused")])
    assert "policy sla is in mode Enforce again; 12 pods would be due" in (await run("resume", "sla")).stdout


@pytest.fixture
def three(cluster: LocalCluster) -> None:
    """Beside sla, one that is paused by hand and one that rehearses."""
    cluster.create(POLICIES, policy("hand", mode="Paused"))
    cluster.create(POLICIES, policy("spot", mode="DryRun"))


def modes(cluster: LocalCluster) -> list[str]:
    return [mode_of(cluster, name) for name in ("hand", "sla", "spot")]


@pytest.mark.usefixtures("three")
async def test_all_policies_are_paused_and_resumed(cluster, run):
    paused = await run("pause", "--all", "--yes")
    assert (paused.exit_code, modes(cluster)) == (0, ["Paused"] * 3)
    resumed = await run("resume", "--all", "--yes")
    assert (resumed.exit_code, modes(cluster)) == (0, ["Paused", "Enforce", "DryRun"])
    assert "hand    Paused  unchanged  policy hand does not state which mode it had" in resumed.stdout


@pytest.mark.usefixtures("three")
async def test_all_is_shown_first_and_asks(cluster, run):
    for arguments, code in ((("--dry-run",), 0), ((), 2)):
        result = await run("pause", "--all", *arguments)
        assert (result.exit_code, modes(cluster)) == (code, ["Paused", "Enforce", "DryRun"])
        lines = [line.split()[:3] for line in result.stdout.splitlines()[2:]]
        assert lines == [["hand", "Paused", "unchanged"], ["sla", "Enforce", "Paused"], ["spot", "DryRun", "Paused"]]


@pytest.mark.usefixtures("three")
async def test_one_that_cannot_be_paused_costs_no_other(cluster, run):
    cluster.faults.answer(403, method="PATCH", path=WRITE)
    result = await run("pause", "sla", "spot")
    assert (result.exit_code, modes(cluster)) == (1, ["Paused", "Enforce", "Paused"])
    assert (len(result.stdout.splitlines()), len(result.stderr.splitlines())) == (1, 1)


@pytest.mark.parametrize("arguments", [(), ("sla", "--all"), ("sla", "--dry-run")])
async def test_all_or_names(run, arguments):
    assert (await run("pause", *arguments)).exit_code == 2


async def test_paused_by_hand_has_to_be_told_its_mode(cluster, run):
    cluster.store.modify(POLICIES, "sla", "", lambda one: one["spec"].update(mode="Paused"))
    result = await run("resume", "sla")
    assert (result.exit_code, mode_of(cluster)) == (1, "Paused")
    assert "does not state which mode it had: pass --mode Enforce or --mode DryRun" in result.stderr
    assert (await run("resume", "sla", "--mode", "DryRun")).exit_code == 0
    assert mode_of(cluster) == "DryRun"


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
    assert (result.exit_code, result.stdout, mode_of(cluster)) == (1, "", "Enforce")
    assert result.stderr.startswith("taintwarden: you may not change taintevictionpolicies: 403 ")


async def test_somebody_elses_write_meanwhile_is_no_reason_to_fail(cluster, run):
    cluster.faults.answer(409, method="PATCH", path=WRITE, times=3)
    assert (await run("pause", "sla")).exit_code == 0
    assert mode_of(cluster) == "Paused"


async def test_one_who_always_writes_meanwhile_is_told_of(cluster, run):
    cluster.faults.answer(409, method="PATCH", path=WRITE, times=9)
    result = await run("pause", "sla")
    assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1)
    assert result.stderr.startswith("taintwarden: cannot change taintevictionpolicies: 409 ")
