"""Limits that do not end by themselves, and calls that fail, need a person: a view that looks calm then is a fault."""

import re

import pytest

from cli.policies import condition
from cli.world import policy
from monitoring.rules import alerts
from taintwarden.controller.words import wording
from taintwarden.engine import rfc3339
from taintwarden.engine.outcomes import Outcome
from taintwarden_cli.status.policy_status import summarize

NOW = 1_769_860_800.0
NO_FAILURES = (Outcome.NOT_SENT, Outcome.BLOCKED, Outcome.ASKED, Outcome.NOT_REPLACED)
FAILING = [one for one in Outcome if one.row.why and one not in NO_FAILURES]


def problem(limit: str, seconds: float, mode: str = "Enforce") -> str:
    """Problem in the status of a policy of which `limit` has delayed pods for `seconds` seconds."""
    status = {
        "observedGeneration": 1,
        "conditions": [condition("Accepted", "True")],
        "limits": [{"limit": limit, "pods": 14, "since": rfc3339.at(NOW - seconds)}],
    }
    stored = policy(mode=mode) | {"status": status}
    stored["metadata"]["generation"] = 1
    (answer,) = summarize([stored], [], NOW).policies
    return next((one.cause for one in answer.problems), "")


@pytest.mark.parametrize(("limit", "seconds"), [("failing", 60.0), ("calls", 1_800.0)])
def test_calls_that_fail_for_long_need_a_person(limit, seconds):
    assert problem(limit, seconds - 10) == ""
    assert problem(limit, seconds + 10) == wording.why_held(limit, "")


@pytest.mark.parametrize("limit", ["window", "policy-rate", "workload", "guard", "zone"])
def test_limit_that_only_takes_time_is_no_problem(limit):
    assert problem(limit, 3_600) == ""


@pytest.mark.parametrize(
    ("limit", "alert"), [("budget", "TaintwardenBudgetBlocked"), ("bounce", "TaintwardenWorkloadBounces")]
)
def test_what_does_not_end_for_as_long_as_its_alert_waits_needs_a_person(limit, alert):
    (seconds,) = (one.seconds for one in alerts() if one.name == alert)
    assert problem(limit, seconds - 10) == ""
    assert problem(limit, seconds + 10) == wording.why_held(limit, "")
    assert problem(limit, seconds + 10, mode="DryRun") == ""


def test_a_view_that_is_stale_for_as_long_as_its_alert_waits_needs_a_person():
    (seconds,) = (one.seconds for one in alerts() if one.name == "TaintwardenStaleView")
    assert (problem("view", seconds - 10), bool(problem("view", seconds + 10))) == ("", True)


def test_pods_that_do_not_stop_on_their_node_need_a_person():
    assert (problem("node", 1_790), bool(problem("node", 1_810)), problem("node", 1_810, "DryRun")) == ("", True, "")


def test_a_policy_whose_operator_is_cut_off_needs_a_person():
    told = condition("Progressing", "False", wording.blind(["nodes"]), "Blind")
    status = {"observedGeneration": 1, "conditions": [condition("Accepted", "True"), told]}
    stored = policy() | {"status": status}
    stored["metadata"]["generation"] = 1
    (answer,) = summarize([stored], [], NOW).policies
    assert "receives no changes of nodes" in answer.problems[0].cause


@pytest.mark.parametrize("outcome", FAILING)
def test_an_alert_fires_for_it(outcome):
    (refused,) = [one for one in alerts() if one.name == "TaintwardenEvictionsRefused"]
    named = {one for names in re.findall(r'reason=~?"([^"]+)"', refused.expr) for one in names.split("|")}
    assert outcome.value in named
