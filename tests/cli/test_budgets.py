"""What `explain` says of the PodDisruptionBudgets of a pod."""

import pytest

from cli.world import Json, budget, explained, node, pod, policy
from taintwarden_cli.explain.explanation import BudgetExplanation

NOT_READY = {"conditions": [{"type": "Ready", "status": "False"}]}


def told(*budgets: Json, **more) -> list[BudgetExplanation]:
    return explained(pod(**more), node(), policy(), *budgets).budgets


def given_budget(name="web", allowed=0, status=None, **spec) -> Json:
    made = budget(name, allowed, **spec)
    made["status"] |= status or {}
    return made


@pytest.mark.parametrize(
    ("selector", "covers"),
    [
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "db"}}, False),
        ({}, True),
        (None, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_selector_covers_pod(selector, covers):
    assert bool(told(given_budget(selector=selector))) == covers


def test_budget_of_another_namespace_covers_nothing():
    other = given_budget()
    other["metadata"]["namespace"] = "bank"
    assert told(other) == []


def test_pending_pod_is_asked_of_no_budget():
    assert told(given_budget(), status={"phase": "Pending"}) == []


def test_budgets_come_by_name():
    found = told(given_budget("b"), given_budget("a"))
    assert [one.name for one in found] == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"allowed": 1}, ""),
        ({"allowed": 0}, "it allows no disruption now: 1 pod is healthy, 1 has to be"),
        ({"allowed": 1, "status": {"observedGeneration": 0}}, "it was not looked at by its controller yet"),
        (
            {"status": {"currentHealthy": 0}, "unhealthyPodEvictionPolicy": "AlwaysAllow"},
            "it allows no disruption now: 0",
        ),
    ],
)
def test_refusal_of_a_ready_pod(given, why):
    (one,) = told(given_budget(**given))
    assert one.allows == (not why)
    assert one.reason.startswith(why or "it allows a disruption")


@pytest.mark.parametrize(
    ("given", "allowed"),
    [
        ({"unhealthyPodEvictionPolicy": "AlwaysAllow", "status": {"currentHealthy": 0}}, True),
        ({"status": {"currentHealthy": 1, "desiredHealthy": 1}}, True),
        ({"status": {"currentHealthy": 0, "desiredHealthy": 1}}, False),
        ({"status": {"currentHealthy": 0, "desiredHealthy": 0}}, False),
    ],
)
def test_unready_pod_may_go_where_it_does_not_count(given, allowed):
    (one,) = told(given_budget(**given), status=NOT_READY)
    assert one.allows == allowed


def test_budget_without_status_was_not_looked_at():
    fresh = given_budget()
    del fresh["status"]
    (one,) = told(fresh)
    assert "not looked at" in one.reason
