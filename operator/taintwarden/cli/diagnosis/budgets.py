"""PodDisruptionBudgets that let nobody go, ever."""

from collections.abc import Iterator

from taintwarden.cli.diagnosis.census import Group
from taintwarden.cli.diagnosis.checks import Check, about
from taintwarden.cli.diagnosis.finding import Found, Severity
from taintwarden.cli.diagnosis.ground import Look
from taintwarden.cli.diagnosis.snapshot import FullBudget
from taintwarden.cli.diagnosis.sources import JUDGING, OWNERS, Source
from taintwarden.cli.diagnosis.subjects import Subject
from taintwarden.controller.selecting import label_selector
from taintwarden.engine.model import Method, Policy


def _several(look: Look) -> Iterator[Found]:
    for group in look.running:
        names = [budget.metadata.name for budget in look.snapshot.budgets if _selects(budget, group)]
        if len(names) > 1:
            message = (
                f"{len(names)} PodDisruptionBudgets select them, {', '.join(sorted(names))}: every eviction is refused"
            )
            yield about(group, message)


def _never(look: Look) -> Iterator[Found]:
    for budget in look.snapshot.budgets:
        why = _why_never(budget)
        groups = [group for group in look.running if _selects(budget, group) and _asking(look, group)] if why else ()
        if groups:
            policies = dict.fromkeys(policy.name for group in groups for policy in _asking(look, group))
            message = f"{why}, and policy {', '.join(policies)} may evict pods that it selects"
            subject = Subject("PodDisruptionBudget", budget.metadata.name, budget.metadata.namespace)
            yield Found(subject, message, pods=sum(group.count for group in groups))


def _asking(look: Look, group: Group) -> list[Policy]:
    """The policies that may evict the group's pods, and never go past a budget."""
    return [policy for policy in look.may_leave(group) if policy.eviction.method is Method.EVICT]


def _selects(budget: FullBudget, group: Group) -> bool:
    return (
        budget.metadata.namespace == group.pod_class.namespace
        and budget.spec.selector is not None
        and label_selector(budget.spec.selector).selects(group.pod_class.labels)
    )


def _why_never(budget: FullBudget) -> str:
    """Why it can allow no disruption even if all its pods are healthy; empty if it can."""
    spec, status = budget.spec, budget.status
    if spec.max_unavailable in (0, "0%"):
        return f"maxUnavailable is {spec.max_unavailable}"
    if spec.min_available == "100%":
        return "minAvailable is 100%"
    if spec.min_available is not None and status is not None and 0 < status.expected_pods <= status.desired_healthy:
        return f"minAvailable is {spec.min_available} of {status.expected_pods} pods"
    return ""


CHECKS = (
    Check(
        id="budgets-several",
        severity=Severity.ERROR,
        finds="pods that more than one PodDisruptionBudget selects: the Eviction API refuses them for good",
        remedy="leave one budget for each pod: narrow the selectors, or remove one",
        needs=(Source.BUDGETS, Source.PODS),
        uses=OWNERS,
        run=_several,
    ),
    Check(
        id="budget-never-allows",
        severity=Severity.WARNING,
        finds="budgets that can never allow a disruption, on pods that a policy may evict",
        remedy="allow at least one, or give the policy eviction.method EvictThenDelete",
        needs=(Source.BUDGETS, *JUDGING),
        run=_never,
    ),
)
