"""PodDisruptionBudgets, as far as they say whether the Eviction API would let one pod go now.

The rules are those of the API server (``pkg/registry/core/pod/storage/eviction.go``); the operator itself never asks
them, it reads the answer to its call.
"""

from collections.abc import Iterable

import msgspec

from taintwarden.engine.selectors import LabelSelector, Requirement, SelectorOperator
from taintwarden.kube.objects import PodObject


class BudgetMeta(msgspec.Struct, rename="camel"):
    """``metadata`` of a budget."""

    name: str = ""
    namespace: str = ""
    generation: int = 0


class BudgetSelector(msgspec.Struct, rename="camel"):
    """``spec.selector``."""

    match_labels: dict[str, str] = {}
    match_expressions: list[Requirement] = []

    def selects(self, labels: dict[str, str]) -> bool:
        """Whether every requirement holds."""
        exact = [Requirement(key, SelectorOperator.IN, (value,)) for key, value in self.match_labels.items()]
        return LabelSelector((*exact, *self.match_expressions)).selects(labels)


class BudgetSpec(msgspec.Struct, rename="camel"):
    """``spec`` of a budget. Without a selector it covers no pod."""

    selector: BudgetSelector | None = None
    unhealthy_pod_eviction_policy: str = "IfHealthyBudget"


class BudgetStatus(msgspec.Struct, rename="camel"):
    """``status`` of a budget."""

    observed_generation: int = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0


class Budget(msgspec.Struct):
    """A policy/v1 PodDisruptionBudget."""

    metadata: BudgetMeta = msgspec.field(default_factory=BudgetMeta)
    spec: BudgetSpec = msgspec.field(default_factory=BudgetSpec)
    status: BudgetStatus | None = None


def covering(budgets: Iterable[Budget], pod: PodObject) -> list[Budget]:
    """The budgets that select ``pod``, by name. Pods that do not run yet are asked of none."""
    if pod.status.phase == "Pending":
        return []
    found = [
        budget
        for budget in budgets
        if budget.metadata.namespace == pod.metadata.namespace
        and budget.spec.selector is not None
        and budget.spec.selector.selects(pod.metadata.labels)
    ]
    return sorted(found, key=lambda budget: budget.metadata.name)


def refusal(budget: Budget, pod: PodObject) -> str:
    """Why ``budget`` alone would not let ``pod`` go now; empty if it would."""
    status = budget.status
    if status is None or status.observed_generation < budget.metadata.generation:
        return "its controller has not looked at it yet"
    is_ready = any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions)
    if not is_ready:
        always = budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow"
        if always or status.current_healthy >= status.desired_healthy > 0:
            return ""
    if status.disruptions_allowed > 0:
        return ""
    return (
        f"it allows no disruption now: {status.current_healthy} pods are healthy, {status.desired_healthy} have to be"
    )
