"""`pause` stops a policy whatever its mode, and `resume` resumes it, also while other clients write it."""

import re

import pytest
from click.testing import Result

from cli.policies import POLICIES, annotations, condition, empty_cluster, set_status, stored
from cli.world import kept_from_enforcing, policy
from localcluster import LocalCluster
from taintwarden_cli.change.policies import PAUSED_BY_ANNOTATION

WRITE = f"{POLICIES}/sla$"
BY = r"an unknown user at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


@pytest.fixture
def cluster() -> LocalCluster:
    cluster = empty_cluster()
    cluster.create(POLICIES, policy())
    return cluster


def spec_of(cluster: LocalCluster, name: str = "sla") -> tuple[str, bool]:
    """Its mode, and whether it is paused."""
    spec = stored(cluster, name)["spec"]
    return spec["mode"], spec.get("paused", False)


def paused_by(cluster: LocalCluster) -> str:
    return annotations(cluster).get(PAUSED_BY_ANNOTATION, "")


def message_of(result: Result) -> str:
    """The message without the name of the cluster, which it has to contain."""
    (line,) = result.stdout.splitlines()
    return re.sub(r" \(cluster http://127\.0\.0\.1:\d+, context [a-z-]+\)$", "", line)


@pytest.mark.parametrize("mode", ["Enforce", "DryRun"])
async def test_a_pause_leaves_the_mode(cluster, run, mode):
    cluster.store.modify(POLICIES, "sla", "", lambda one: one["spec"].update(mode=mode))
    result = await run("pause", "sla")
    assert (result.exit_code, message_of(result)) == (0, f"policy sla is paused; its mode stays {mode}")
    assert spec_of(cluster) == (mode, True)
    result = await run("resume", "sla")
    assert (result.exit_code, message_of(result)) == (0, f"policy sla is in mode {mode} again")
    assert (spec_of(cluster), annotations(cluster)) == ((mode, False), {})


@pytest.mark.parametrize(("given", "told"), [(("--reason", "zone-a is wrong"), ": zone-a is wrong"), ((), "")])
async def test_a_pause_states_who_and_why(cluster, run, given, told):
    await run("pause", "sla", *given)
    assert re.fullmatch(BY + told, paused_by(cluster))


async def test_paused_twice_keeps_who_was_first(cluster, run):
    await run("pause", "sla", "--reason", "first")
    result = await run("pause", "sla", "--reason", "second")
    assert result.exit_code == 0
    assert re.fullmatch(f"policy sla is paused already, by {BY}: first", message_of(result))
    assert paused_by(cluster).endswith(": first")


async def test_resume_of_a_policy_that_is_not_paused_changes_nothing(cluster, run):
    before = stored(cluster)
    result = await run("resume", "sla")
    assert (result.exit_code, message_of(result)) == (0, "policy sla is not paused: its mode is Enforce")
    assert stored(cluster) == before


@pytest.mark.parametrize("mode", ["Enforce", "DryRun"])
async def test_resume_says_how_many_pods_are_due(cluster, run, mode):
    cluster.store.modify(POLICIES, "sla", "", lambda one: one["spec"].update(mode=mode))
    await run("pause", "sla")
    progress = "paused, 12 pods would be due, 3 more later"
    set_status(cluster, conditions=[condition("Progressing", "False", progress, "Paused")])
    assert f"policy sla is in mode {mode} again; it was {progress} (" in (await run("resume", "sla")).stdout


@pytest.fixture
def three(cluster: LocalCluster) -> None:
    """Beside sla, one that is paused by hand and one that rehearses."""
    cluster.create(POLICIES, policy("hand", paused=True))
    cluster.create(POLICIES, policy("spot", mode="DryRun"))


def are_paused(cluster: LocalCluster) -> list[bool]:
    return [spec_of(cluster, name)[1] for name in ("hand", "sla", "spot")]


@pytest.mark.usefixtures("three")
async def test_all_policies_are_paused_and_resumed(cluster, run):
    paused = await run("pause", "--all", "--yes")
    assert (paused.exit_code, are_paused(cluster)) == (0, [True] * 3)
    resumed = await run("resume", "--all", "--yes")
    assert (resumed.exit_code, are_paused(cluster)) == (0, [False] * 3)
    assert [spec_of(cluster, name)[0] for name in ("hand", "sla", "spot")] == ["Enforce", "Enforce", "DryRun"]


@pytest.mark.usefixtures("three")
async def test_all_is_shown_first_and_asks(cluster, run):
    result = await run("pause", "--all")
    assert (result.exit_code, are_paused(cluster)) == (2, [True, False, False])
    assert result.stdout.startswith("Policies to pause in http://")
    assert result.stdout.endswith(": sla, spot\n")
    assert (await run("resume", "--all")).stdout.endswith(": hand\n")


@pytest.mark.usefixtures("three")
async def test_one_that_cannot_be_paused_costs_no_other(cluster, run):
    cluster.faults.answer(403, method="PATCH", path=WRITE)
    result = await run("pause", "sla", "spot")
    assert (result.exit_code, are_paused(cluster)) == (1, [True, False, True])
    assert (result.stdout.count("is paused"), len(result.stderr.splitlines())) == (1, 1)


@pytest.mark.parametrize(("spec", "is_said"), [({}, True), ({"key": "spot"}, False), ({"mode": "DryRun"}, False)])
async def test_a_pause_without_effect_says_so(cluster, run, spec, is_said):
    cluster.store.create(POLICIES, policy("older", created="2020-01-01T00:00:00Z", **spec))
    shown = (await run("pause", "sla")).stdout
    assert ("policy older, which is older, acts first on taint sla" in shown) == is_said
    assert ("To stop it: taintwarden pause older" in shown) == is_said


async def test_a_policy_that_the_operator_keeps_from_enforcing_acts_first_on_nothing(cluster, run):
    cluster.store.create(POLICIES, kept_from_enforcing(policy("older", created="2020-01-01T00:00:00Z")))
    assert "older" not in (await run("pause", "sla")).stdout + (await run("resume", "sla")).stdout


EDIT = "To change that: kubectl edit taintevictionpolicy"
OLDER = "policy older, which is older, acts first on taint sla: "


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, f"it evicts pods that both select, sla does not. {EDIT} sla"),
        (
            {"paused": True},
            "its mode is Paused, so pods that both select stay. To change that: taintwarden resume older",
        ),
        ({"mode": "DryRun"}, f"its mode is DryRun, so pods that both select stay. {EDIT} older"),
    ],
)
async def test_a_resume_without_effect_says_so(cluster, run, spec, said):
    cluster.store.create(POLICIES, policy("older", created="2020-01-01T00:00:00Z", **spec))
    await run("pause", "sla")
    assert (await run("resume", "sla")).stdout.splitlines()[1:] == [OLDER + said]


async def test_a_resume_that_has_an_effect_says_nothing_of_others(cluster, run):
    cluster.store.create(POLICIES, policy("newer", created="2100-01-01T00:00:00Z"))
    assert len((await run("resume", "sla")).stdout.splitlines()) == 1


async def test_a_pause_needs_no_right_to_list_policies(cluster, run):
    cluster.faults.answer(403, path=f"{POLICIES}[?]")
    assert (await run("pause", "sla")).exit_code == 0


@pytest.mark.parametrize("arguments", [(), ("sla", "--all")])
async def test_all_or_names(run, arguments):
    assert (await run("pause", *arguments)).exit_code == 2


@pytest.mark.parametrize("command", ["pause", "resume"])
async def test_unknown_policy_is_one_line(run, command):
    result = await run(command, "absent")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("taintwarden: there is no TaintEvictionPolicy absent in the cluster at http://")


async def test_missing_right_is_one_line(cluster, run):
    cluster.faults.answer(403, method="PATCH", path=WRITE)
    result = await run("pause", "sla")
    assert (result.exit_code, result.stdout, spec_of(cluster)) == (1, "", ("Enforce", False))
    assert result.stderr.startswith("taintwarden: you may not change taintevictionpolicies: 403 ")


@pytest.mark.parametrize(("times", "code"), [(3, 0), (9, 1)])
async def test_conflicting_writes_are_retried_unless_they_never_end(cluster, run, times, code):
    await run("pause", "sla")
    cluster.faults.answer(409, method="PATCH", path=WRITE, times=times)
    result = await run("resume", "sla")
    assert (result.exit_code, spec_of(cluster)) == (code, ("Enforce", bool(code)))
    assert ("taintwarden: cannot change taintevictionpolicies: 409 " in result.stderr) == bool(code)
    assert len(result.stderr.splitlines()) == code
