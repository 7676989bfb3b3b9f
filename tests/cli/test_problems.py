"""A problem of a policy says its cause, its effect and what to do; the worst comes first."""

from typing import Any

import msgspec
import pytest

from cli.policies import condition
from cli.world import NOON, Json, policy
from taintwarden.api.policies import parse_policy
from taintwarden.api.status import PolicyStatus
from taintwarden.controller.words import wording
from taintwarden.engine.rfc3339 import at
from taintwarden_cli.rehearsal.shadowing import acting_first, valid_policies, why_first
from taintwarden_cli.status.problems import (
    Problem,
    ProblemKind,
    by_severity,
    guard_problem,
    status_problems,
    zones_problem,
)

LONG = at(NOON - 2_000)


def problems(**status: Any) -> list[tuple[str, str, str]]:
    """Problems of a status, each as cause, effect and remedy."""
    found = status_problems("sla", msgspec.convert(status, PolicyStatus), NOON, enforces=True)
    return [(one.cause, one.effect, one.remedy) for one in found]


def limit(name: str, pods: int = 1, message: str = "") -> list[Json]:
    return [{"limit": name, "pods": pods, "since": LONG, "message": message}]


def stuck(*nodes: str) -> list[Json]:
    return [{"namespace": "shop", "name": "web", "node": node, "since": LONG} for node in nodes]


def test_an_operator_that_is_cut_off():
    blind = condition("Progressing", "False", wording.blind(["pods"]), "Blind")
    cause, effect = "the operator receives no changes of pods", "nothing is evicted"
    assert problems(conditions=[blind]) == [(cause, effect, "taintwarden doctor; docs/runbooks/stale-view.md")]


def test_devices_that_are_not_known():
    unknown = condition("DevicesKnown", "False", wording.devices_unknown("403"))
    runbook = "docs/runbooks/devices-not-known.md"
    assert problems(conditions=[unknown]) == [("403", "no taint of a device evicts a pod", runbook)]


def test_refused_replacements_have_a_remedy():
    effect = "pods get no replacement first"
    for why, remedy in (
        ('User "x" cannot patch resource "deployments"', "taintwarden doctor --only rights-missing"),
        ("a webhook denied the request", "docs/runbooks/evictions-refused.md"),
    ):
        refused = condition("ReplacesFirst", "False", wording.not_replaced(why))
        assert problems(conditions=[refused]) == [(why, effect, remedy)]


def test_a_source_that_no_node_has():
    missing = condition("SourcesFound", "False", wording.no_value("condition X", "x", 3))
    effect = "so none has the taint x and no pod is evicted by it".removeprefix("so ")
    remedy = "correct from: kubectl edit taintevictionpolicy sla"
    assert problems(conditions=[missing]) == [("none of 3 nodes has condition X", effect, remedy)]


@pytest.mark.parametrize(
    ("nodes", "effect"),
    [
        (["a"], "a cannot be drained"),
        (["a", "b", "b", "c"], "a and 2 more nodes cannot be drained"),
        (["a", *"bcdefghij"], "a and at least 9 more nodes cannot be drained"),
    ],
)
def test_pods_that_should_have_ended(nodes, effect):
    remedy = "taintwarden explain node a; docs/runbooks/pods-stuck.md"
    assert [one[1:] for one in problems(stuck=stuck(*nodes))] == [(effect, remedy)]


@pytest.mark.parametrize(("pods", "wait"), [(1, "1 pod waits"), (2, "2 pods wait")])
def test_a_limit_that_lasts(pods, wait):
    why, runbook = wording.why_held("view", ""), "docs/runbooks/stale-view.md"
    assert problems(limits=limit("view", pods)) == [(why, f"{wait} since {LONG}", runbook)]


def test_a_budget_that_blocks_for_long_is_named_in_the_remedy():
    blocked = [{"namespace": "shop", "name": "web", "pods": 1}]
    ((*_, remedy),) = problems(limits=limit("budget"), blockedBudgets=blocked)
    assert remedy == "kubectl -n shop describe poddisruptionbudget web"
    ((*_, remedy),) = problems(limits=limit("budget"), blockedBudgets=blocked * 2)
    assert remedy == "docs/runbooks/budget-blocked.md"


def test_the_node_on_which_pods_do_not_stop_is_named_in_the_remedy():
    pod = {"namespace": "shop", "name": "web", "taint": "sla", "deadline": LONG, "state": "Waiting"}
    listed = [pod | {"node": "a", "limit": "workload"}, pod | {"node": "b", "limit": "node"}]
    ((*_, remedy),) = problems(limits=limit("node"), nextPods=listed)
    assert remedy == "taintwarden explain node b"


@pytest.mark.parametrize("name", ["window", "policy-rate", "workload"])
def test_a_limit_that_only_takes_time_is_no_problem(name):
    assert problems(limits=limit(name)) == []


def test_what_waits_for_full_zones_says_its_cause_without_advice():
    full = condition(
        "GuardTripped", "True", "All 3 nodes are unhealthy: 7 pods wait. Check the monitoring", "AllNodesUnhealthy"
    )
    found = zones_problem("sla", msgspec.convert({"conditions": [full]}, PolicyStatus))
    assert (found.cause, found.remedy[:20]) == ("All 3 nodes are unhealthy: 7 pods wait", "check the monitoring")
    assert found.effect == "all nodes are unhealthy, so no pod is evicted"  # no guard, so nothing to reset


@pytest.mark.parametrize("holds", [True, False])
def test_only_a_guard_that_holds_pods_is_reset(holds):
    advice = wording.guard_advice("sla", holds=holds)
    tripped = condition("GuardTripped", "True", f"since {LONG} 9 pods due. {advice}", "MassEviction")
    found = guard_problem("sla", msgspec.convert({"conditions": [tripped]}, PolicyStatus), is_paused=False)
    assert (found.effect, "guard reset sla" in found.remedy) == ("9 pods due", holds)


def test_the_worst_comes_first_and_each_once():
    made = [Problem(kind, kind, "e", "r") for kind in (ProblemKind.WEBHOOK, ProblemKind.GUARD, ProblemKind.WEBHOOK)]
    assert [one.kind for one in by_severity(made)] == [ProblemKind.GUARD, ProblemKind.WEBHOOK]


def test_of_one_cause_only_the_worst_problem_is_reported():
    made = [Problem(kind, "two budgets", "e", "r") for kind in (ProblemKind.BUDGET, ProblemKind.NEVER)]
    assert [one.kind for one in by_severity(made)] == [ProblemKind.NEVER]


# -- policies that act first ------------------------------------------------------------------------------------------


OLD, NEW = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
ONLY_A, NOT_A = {"matchLabels": {"pool": "a"}}, {"matchLabels": {"pool": "b"}}
OLDER = "policy z, which is older, acts first on taint sla"
CLOSER = "policy z, which selects the key more specifically, acts first on taint sla"
NO_A = {"matchExpressions": [{"key": "pool", "operator": "NotIn", "values": ["a"]}]}


@pytest.mark.parametrize(
    ("mine", "other", "why"),
    [
        ({"created": NEW}, {"created": OLD}, OLDER),
        ({"created": OLD}, {"created": NEW}, ""),
        ({"key": "*", "created": OLD}, {"created": NEW}, CLOSER),
        ({"key": "a.io/x", "created": NEW}, {"key": "*", "created": OLD}, ""),
        ({"key": "*", "created": NEW}, {"key": "*", "created": OLD}, OLDER.replace("sla", "*")),
        ({"created": NEW}, {"created": OLD, "paused": True}, OLDER),
        ({"created": NEW}, {"created": OLD, "key": "spot"}, ""),
        ({"created": NEW}, {"created": OLD, "taints": [{"key": "sla", "effects": ["NoSchedule"]}]}, ""),
        ({"created": NEW, "podSelector": ONLY_A}, {"created": OLD, "podSelector": NOT_A}, ""),
        ({"created": NEW, "namespaceSelector": ONLY_A}, {"created": OLD, "namespaceSelector": NOT_A}, ""),
        ({"created": NEW, "nodeSelector": ONLY_A}, {"created": OLD, "nodeSelector": NO_A}, OLDER),
        ({"created": NEW, "nodeSelector": NO_A}, {"created": OLD, "nodeSelector": ONLY_A}, OLDER),
    ],
)  # fmt: skip
def test_which_policy_acts_first_and_why(mine, other, why):
    one, two = parse_policy(policy("a", **mine)), parse_policy(policy("z", **other))
    assert [why_first(one, *found) for found in acting_first(one, [one, two])] == [why] * bool(why)


def test_of_two_policies_of_one_age_the_first_by_name_acts():
    one, two = parse_policy(policy("z")), parse_policy(policy("a"))
    ((other, key),) = acting_first(one, [one, two])
    assert why_first(one, other, key) == "policy a, which comes first by its name, acts first on taint sla"


def test_a_policy_that_cannot_be_read_is_left_out():
    assert [one.name for one in valid_policies([policy(), policy("bad", mode="Sometimes")])] == ["sla"]
