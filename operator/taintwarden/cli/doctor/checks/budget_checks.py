"""PodDisruptionBudgets that never allow a disruption."""

from collections.abc import Iterator

from taintwarden.cli.doctor.check import Check, Found, Severity, about
from taintwarden.cli.doctor.context import Context
from taintwarden.cli.doctor.doctor_snapshot import FullBudget
from taintwarden.cli.doctor.inventory import PodGroup
from taintwarden.engine.model import Method, Policy
from taintwarden.rehearsal.sources import EVALUATION, OWNERS, Source, Subject


def _several(context: Context) -> Iterator[Found]:
    for group in context.running:
        names = [budget.metadata.name for budget in context.budgets(group)]
        if len(names) > 1:
            message = f"{len(names)} PodDisruptionBudgets select them, {', '.join(names)}: every eviction is refused"
            yield about(group, message)


def _never(context: Context) -> Iterator[Found]:
    found: dict[Subject, tuple[FullBudget, list[PodGroup]]] = {}
    for group in context.running:
        for budget in context.budgets(group) if _asking(context, group) else ():
            subject = Subject("PodDisruptionBudget", budget.metadata.name, budget.metadata.namespace)
            found.setdefault(subject, (budget, []))[1].append(group)
    for subject, (budget, groups) in found.items():
        if why := _why_never(budget):
            policies = dict.fromkeys(policy.name for group in groups for policy in _asking(context, group))
            named = f"{'policy' if len(policies) == 1 else 'policies'} {', '.join(policies)}"
            message = f"{why}, and {named} may evict pods that it selects"
            yield Found(subject, message, pods=sum(group.count for group in groups))


def _failed(context: Context) -> Iterator[Found]:
    for budget in context.snapshot.budgets:
        problem = budget.status.problem if budget.status else ""
        if problem:
            subject = Subject("PodDisruptionBudget", budget.metadata.name, budget.metadata.namespace)
            yield Found(subject, f"its controller cannot compute it, so it allows no disruption: {problem}")


def _asking(context: Context, group: PodGroup) -> list[Policy]:
    """The policies that may evict the group's pods, and always respect budgets."""
    return [policy for policy in context.may_leave(group) if policy.eviction.method is Method.EVICT]


def _why_never(budget: FullBudget) -> str:
    """Why it allows no disruption even if all its pods are healthy; empty if it can allow one."""
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
        id="budget-failed",
        severity=Severity.ERROR,
        finds="budgets whose controller fails: no pod that they select can be evicted, not even by kubectl drain",
        remedy="narrow the selector to pods of one kind of workload, or use minAvailable with a number",
        needs=(Source.BUDGETS,),
        run=_failed,
    ),
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
        needs=(Source.BUDGETS, *EVALUATION),
        run=_never,
    ),
)
