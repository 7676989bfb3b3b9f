"""PodDisruptionBudgets of a pod in the answer of `explain`."""

import pytest

from cli.world import Json, budget, explained, node, pod, policy
from taintwarden_cli.explain.explanation import BudgetExplanation


def explained_budgets(*budgets: Json) -> list[BudgetExplanation]:
    return explained(pod(), node(), policy(), *budgets).budgets


def given_budget(name="web", allowed=0, status=None, **spec) -> Json:
    made = budget(name, allowed, **spec)
    made["status"] |= status or {}
    return made


def test_budgets_are_sorted_by_name():
    found = explained_budgets(given_budget("b"), given_budget("a"))
    assert [one.name for one in found] == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"allowed": 1}, ""),
        ({"allowed": 0}, "it allows no disruption now: 1 pod is healthy, 1 has to be"),
        ({"allowed": 1, "status": {"observedGeneration": 0}}, "it has not been evaluated by its controller yet"),
        (
            {"status": {"currentHealthy": 0}, "unhealthyPodEvictionPolicy": "AlwaysAllow"},
            "it allows no disruption now: 0",
        ),
    ],
)
def test_budget_answers_for_a_ready_pod(given, why):
    (one,) = explained_budgets(given_budget(**given))
    assert one.allows == (not why)
    assert one.reason.startswith(why or "it allows a disruption")


def test_a_budget_that_allows_none_does_not_keep_a_pod_that_is_not_ready():
    unready = pod(status={"conditions": [{"type": "Ready", "status": "False"}]})
    always = given_budget(unhealthyPodEvictionPolicy="AlwaysAllow")
    (one,) = explained(unready, node(), policy(), always).budgets
    assert (one.allows, one.reason) == (True, "it does not keep a pod that is not Ready")
