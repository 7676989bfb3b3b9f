"""PodDisruptionBudgets, as far as they say whether the Eviction API would let one pod go now.

The rules are those of the API server (``pkg/registry/core/pod/storage/eviction.go``), which stays the judge.
"""

from collections.abc import Iterable

from taintwarden.controller import cache
from taintwarden.controller.selecting import label_selector
from taintwarden.kube.objects import BudgetObject, PodObject


def covering(budgets: Iterable[BudgetObject], pod: PodObject) -> list[BudgetObject]:
    """The budgets that select ``pod``, by name. Pods that do not run yet are asked of none."""
    if pod.status.phase == "Pending":
        return []
    found = [
        budget
        for budget in budgets
        if budget.metadata.namespace == pod.metadata.namespace
        and budget.spec.selector is not None
        and label_selector(budget.spec.selector).selects(pod.metadata.labels)
    ]
    return sorted(found, key=lambda budget: budget.metadata.name)


def refusal(budget: BudgetObject, pod: PodObject) -> str:
    """Why ``budget`` alone would not let ``pod`` go now; empty if it would."""
    told, status = cache.budget(budget), budget.status
    if told is None or (told.healthy_enough and not cache.is_ready(pod)):
        return ""
    if status is None or not told.observed:
        return "its controller has not looked at it yet"
    if told.allowed > 0:
        return ""
    return (
        f"it allows no disruption now: {status.current_healthy} pods are healthy, {status.desired_healthy} have to be"
    )
