"""`guard reset` shows what is held, and why, asks, and annotates the policy that was looked at; nothing else."""

import sys
from typing import Any

import pytest

from cli.policies import POLICIES, annotations, condition, empty_cluster, set_status, stored
from cli.world import policy
from localcluster import LocalCluster
from taintwarden.controller.words.wording import all_nodes_unhealthy, guard_advice, would_be_due
from taintwarden.engine.policy import Policy
from taintwarden.kube.calls.own_kinds import GUARD_RESET_ANNOTATION
from taintwarden_cli.change import policies

SINCE = "2026-01-31T12:00:00.250000Z"
GUARD = {"trippedAt": SINCE, "cause": "taint sla=900 on 4 nodes", "counted": [{"namespace": "shop", "pods": 120}]}


def held(limit: str, pods: int) -> dict[str, Any]:
    return {"limit": limit, "pods": pods, "since": SINCE}


@pytest.fixture
def cluster() -> LocalCluster:
    cluster = empty_cluster()
    cluster.create(POLICIES, policy())
    set_status(
        cluster,
        guard=GUARD,
        limits=[held("guard", 100), held("zone", 17)],  # three of what it counted were evicted before
        conditions=[condition("GuardTripped", "True", "120 pods would leave", "MassEviction")],
    )
    return cluster


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard input is a terminal, so that the command may ask."""
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda stream: True, raising=False)


async def test_yes_shows_what_is_held_and_asks_the_operator(cluster, run):
    result = await run("guard", "reset", "sla", "--yes")
    asked = ("the operator of http://127.0.0.1:", "is asked to release what is held of policy sla\n")
    for told in (
        "2026-01-31T12:00:00Z\n",
        "Held        117 pods due now\n",
        "taint sla=900 on 4 nodes",
        "120 pods would leave",
        *asked,
    ):
        assert told in result.stdout
    assert result.exit_code == 0
    assert annotations(cluster) == {GUARD_RESET_ANNOTATION: str(stored(cluster)["metadata"]["generation"])}


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        (f"no pod is evicted: 12 pods due. {guard_advice('sla')}", "MassEviction"),
        (all_nodes_unhealthy(Policy(name="sla", created_at=0.0), 7, 3), "AllNodesUnhealthy"),
    ],
)
async def test_a_reset_does_not_advise_to_reset(cluster, run, says, reason):
    set_status(cluster, guard=GUARD, conditions=[condition("GuardTripped", "True", says, reason)])
    result = await run("guard", "reset", "sla", "--yes")
    assert (says[:20] in result.stdout, "taintwarden guard reset" in result.stdout) == (True, False)


async def test_a_reset_of_a_paused_policy_says_that_it_evicts_none(cluster, run):
    cluster.store.modify(POLICIES, "sla", "", lambda one: one["spec"].update(paused=True))
    set_status(cluster, guard=GUARD, conditions=[condition("Progressing", "False", would_be_due(7, 0), "Paused")])
    result = await run("guard", "reset", "sla", "--yes")
    said = "none is evicted before you resume it: taintwarden resume sla"
    assert (result.exit_code, said in result.stdout, "Held        7 pods would be due\n" in result.stdout) == (
        0,
        True,
        True,
    )


async def test_a_reset_of_a_dry_run_says_that_nothing_is_evicted(cluster, run):
    says = "mode is DryRun: nothing is evicted"
    set_status(cluster, guard=GUARD, conditions=[condition("Enforcing", "False", says, "DryRun")])
    assert f"Mode        {says}\n" in (await run("guard", "reset", "sla", "--yes")).stdout


async def test_reset_without_a_terminal_requires_yes(cluster, run):
    result = await run("guard", "reset", "sla")
    assert (result.exit_code, annotations(cluster)) == (2, {})
    assert result.stderr == "taintwarden: cannot ask for confirmation here: use --yes to release them\n"


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
@pytest.mark.usefixtures("terminal")
async def test_reset_on_a_terminal_asks(cluster, run, answer, code):
    result = await run("guard", "reset", "sla", stdin=answer)
    assert (result.exit_code, GUARD_RESET_ANNOTATION in annotations(cluster)) == (code, code == 0)
    assert "Release them? [y/N]" in result.stderr


FULL = condition("GuardTripped", "True", "All 3 nodes are unhealthy: 7 pods are held", "AllNodesUnhealthy")


async def test_zones_that_are_all_full_can_be_overruled(cluster, run):
    set_status(cluster, limits=[held("zone", 7)], pending=9, conditions=[FULL])  # its guard had nothing to store yet
    result = await run("guard", "reset", "sla", "--yes")
    assert result.exit_code == 0
    assert "7 pods due now, because all nodes are unhealthy" in result.stdout
    assert annotations(cluster) == {GUARD_RESET_ANNOTATION: str(stored(cluster)["metadata"]["generation"])}


ARMED = "policy sla holds no pods: its guard has not tripped, and none waits for healthy nodes"
NO_GUARD = "policy sla has no guard, so there is nothing to reset"
UNSEEN = (
    "the operator has not observed generation 2 of policy sla yet: try again in some seconds, or check that it runs"
)


@pytest.mark.parametrize(
    ("spec", "status", "why"),
    [
        ({}, {"guard": {"term": 1}}, ARMED),
        ({"limits": {"guard": {"maxPercent": 100}}}, {"conditions": [FULL]}, NO_GUARD),
        ({"reclaim": {"deadlineSeconds": 60}}, {"conditions": [FULL]}, NO_GUARD),
        ({"mode": "DryRun"}, {"observedGeneration": 1, "guard": GUARD}, UNSEEN),
    ],
)
async def test_reset_is_refused_if_nothing_is_held_or_the_version_is_not_observed(cluster, run, spec, status, why):
    cluster.store.modify(POLICIES, "sla", "", lambda one: one["spec"].update(spec))
    set_status(cluster, **status)
    result = await run("guard", "reset", "sla", "--yes")
    assert (result.exit_code, result.stderr, annotations(cluster)) == (1, f"taintwarden: {why}\n", {})


async def test_guard_that_tripped_again_meanwhile_is_not_reset(cluster, run, monkeypatch):
    look = policies.read_halted_policy

    async def slow_look(session, name):
        found = await look(session, name)
        set_status(cluster, guard=GUARD | {"trippedAt": "2026-01-31T13:00:00.000000Z"})
        return found

    monkeypatch.setattr(policies, "read_halted_policy", slow_look)
    result = await run("guard", "reset", "sla", "--yes")
    assert (result.exit_code, annotations(cluster)) == (1, {})
    assert "has changed since you were asked" in result.stderr


async def test_missing_right_is_one_line(cluster, run):
    cluster.faults.answer(403, method="PATCH", path="sla$")
    result = await run("guard", "reset", "sla", "--yes")
    assert (result.exit_code, len(result.stderr.splitlines())) == (1, 1)
    assert result.stderr.startswith("taintwarden: you may not change taintevictionpolicies: 403 ")


def test_standard_input_of_these_tests_is_no_terminal():
    assert not sys.stdin.isatty()
