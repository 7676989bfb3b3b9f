"""Each way in which an eviction call can fail is told in each view: one that looks calm then is a fault."""

import re

import pytest

from cli.policies import condition
from cli.world import policy
from monitoring.rules import alerts
from taintwarden.cli.status.policy_status import summarize
from taintwarden.controller import wording
from taintwarden.engine.outcomes import Outcome

NOW = 1_769_860_800.0
FAILING = [one for one in Outcome if one.row.why and one is not Outcome.NOT_SENT]
OF_CALLS = [one for one in FAILING if not one.row.by_budget]


def problem(limit: str, seconds: float, enforces: str = "True") -> str:
    """What status says of a policy of which this has delayed pods for so long."""
    status = {
        "observedGeneration": 1,
        "conditions": [condition("Accepted", "True"), condition("Enforcing", enforces)],
        "limits": [{"limit": limit, "pods": 14, "since": wording.at(NOW - seconds)}],
    }
    stored = policy() | {"status": status}
    stored["metadata"]["generation"] = 1
    (answer,) = summarize([stored], [], NOW).policies
    return answer.problem


@pytest.mark.parametrize("outcome", OF_CALLS)
def test_what_lasts_needs_a_person(outcome):
    assert problem(outcome.value, int(outcome.row.may_last_seconds) + 1) == f"14 pods wait: {outcome.row.why}"


@pytest.mark.parametrize("outcome", OF_CALLS)
def test_what_does_not_end_by_itself_needs_a_person_at_once(outcome):
    assert bool(problem(outcome.value, 1)) is (outcome.row.may_last_seconds == 0.0)


def test_what_a_webhook_wants_later_may_take_as_long_as_a_migration():
    assert problem("postponed", 1_700) == ""


@pytest.mark.parametrize("limit", ["several-budgets", "budget-unreadable"])
def test_budgets_that_a_person_has_to_correct(limit):
    assert problem(limit, 1) == f"14 pods wait: {wording.HOLDS[limit]}"


@pytest.mark.parametrize("limit", ["window", "policy-rate", "max-unavailable"])
def test_what_only_takes_time_needs_nobody(limit):
    assert problem(limit, 3_600) == ""


@pytest.mark.parametrize(
    ("limit", "alert"), [("budget", "TaintwardenBudgetBlocked"), ("bounce", "TaintwardenWorkloadBounces")]
)
def test_what_does_not_end_for_as_long_as_its_alert_waits_needs_a_person(limit, alert):
    (seconds,) = (one.seconds for one in alerts() if one.name == alert)
    assert problem(limit, seconds - 10) == ""
    assert problem(limit, seconds + 10) == f"14 pods wait: {wording.HOLDS[limit]}"
    assert problem(limit, seconds + 10, enforces="False") == ""


def test_a_policy_whose_operator_is_cut_off_needs_a_person():
    told = condition("Progressing", "False", wording.blind(["nodes"]), "Blind")
    status = {"observedGeneration": 1, "conditions": [condition("Accepted", "True"), told]}
    stored = policy() | {"status": status}
    stored["metadata"]["generation"] = 1
    (answer,) = summarize([stored], [], NOW).policies
    assert "receives no changes of nodes" in answer.problem


def test_a_guard_that_holds_a_namespace_needs_a_person():
    held = condition("GuardTripped", "False", "the pods of namespace shop are held", "HoldsNamespace")
    status = {"observedGeneration": 1, "conditions": [condition("Accepted", "True"), held]}
    stored = policy() | {"status": status}
    stored["metadata"]["generation"] = 1
    (answer,) = summarize([stored], [], NOW).policies
    assert answer.problem == "its guard holds the pods of a namespace"


@pytest.mark.parametrize("outcome", [one for one in FAILING if one is not Outcome.BLOCKED])
def test_an_alert_fires_for_it(outcome):
    (refused,) = [one for one in alerts() if one.name == "TaintwardenEvictionsRefused"]
    named = {one for names in re.findall(r'reason=~?"([^"]+)"', refused.expr) for one in names.split("|")}
    assert outcome.value in named


@pytest.mark.parametrize("outcome", OF_CALLS)
def test_it_is_a_limit_with_words(outcome):
    assert wording.HOLDS[outcome.value] == outcome.row.why
