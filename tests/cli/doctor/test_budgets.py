"""Budgets that never allow a disruption."""

import pytest

from cli.doctor.scene import asking, named, replicas
from cli.world import budget, policy

never = several = asking("budget-never-allows")


def test_several_budgets_on_one_pod_are_found():
    (found,) = several(replicas(3), budget("a"), budget("b"))
    assert (str(found.subject), found.pods, "a, b" in found.message) == ("Deployment shop/web", 3, True)


def test_one_budget_per_pod_is_no_finding():
    other = budget("b", selector={"matchLabels": {"app": "db"}})
    elsewhere = budget("c")
    elsewhere["metadata"]["namespace"] = "other"
    assert several(replicas(3), budget("a"), other, elsewhere) == []


@pytest.mark.parametrize(
    ("spec", "expected", "told"),
    [
        ({"maxUnavailable": 0}, 3, True),
        ({"maxUnavailable": "0%"}, 3, True),
        ({"minAvailable": "100%"}, 3, True),
        ({"minAvailable": 3}, 3, True),
        ({"minAvailable": 2}, 3, False),
        ({"maxUnavailable": 1}, 3, False),
        ({"minAvailable": 3}, 0, False),
    ],
)
def test_budget_that_can_never_allow_a_disruption_is_found(spec, expected, told):
    made = budget("web", **spec)
    wanted = spec.get("minAvailable")
    made["status"] |= {"expectedPods": expected, "desiredHealthy": wanted if isinstance(wanted, int) else 1}
    assert bool(never(named("n1"), replicas(3), made, policy())) is told


@pytest.mark.parametrize(
    "rules",
    [
        {"eviction": {"method": "Delete"}},
        {"eviction": {"method": "EvictThenDelete"}},
        {"exclude": {"namespaces": ["shop"]}},
        {"nodeSelector": {"matchLabels": {"pool": "spot"}}},
    ],
)
def test_strict_budget_that_no_policy_depends_on_is_no_finding(rules):
    strict = budget("web", maxUnavailable=0)
    assert never(named("n1"), replicas(3), strict, policy(**rules)) == never(named("n1"), replicas(3), strict) == []


def test_budget_whose_controller_fails_is_found():
    failed = budget("web")
    condition = {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed"}
    failed["status"]["conditions"] = [condition | {"message": "found no controllers"}]
    (found,) = never(failed, budget("db"))
    assert (str(found.subject), found.severity) == ("PodDisruptionBudget shop/web", "error")
    assert found.message.endswith("as its controller cannot compute it (found no controllers)")
