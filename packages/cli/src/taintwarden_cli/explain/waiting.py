"""The reasons why a due pod waits, as text: the limit that the operator reports, and PodDisruptionBudgets."""

from collections.abc import Iterable, Iterator

from taintwarden.api.status import PolicyStatus
from taintwarden.controller.words import wording
from taintwarden.engine.limit_settings import GuardAction
from taintwarden.engine.limits import Refusal
from taintwarden.engine.limits.refusal import BUDGET, CALLS, FAILING, GUARD, PLACE, WINDOW
from taintwarden.engine.model import Budget, Pod, several_budgets
from taintwarden.engine.policy import Method, Policy
from taintwarden.engine.reported_status import NextPod
from taintwarden.engine.rfc3339 import read_time
from taintwarden.kube.wire.kinds import BudgetObject
from taintwarden_cli.explain.explanation import BudgetExplanation

_POLICY_WIDE = (WINDOW, GUARD, CALLS)
"""Limits whose message is about the whole policy, not about one pod."""


def waiting(pod: Pod, policy: Policy, status: PolicyStatus, budgets: list[BudgetExplanation], now: float) -> list[str]:
    """Reasons why a due pod of an enforcing policy waits: the limit in its ``status``, and budgets that block it."""
    here = (pod.namespace, pod.name, pod.node)
    row = next((one for one in status.next_pods if (one.namespace, one.name, one.node) == here), None)
    blocked = blocked_by(budgets, policy, row)
    if row is not None and row.limit == BUDGET and blocked:
        return [blocked]
    text = _refusal(row, policy.name, status, now) if row is not None else _any_refusal(pod, policy.name, status)
    text, reported_at = text or tripped_guard(policy, status), read_time(status.observed_at)
    if text and reported_at is not None:
        text += f" (reported {wording.ago(reported_at, now)})"
    return list(filter(None, (text, blocked)))


def tripped_guard(policy: Policy, status: PolicyStatus) -> str:
    """The report of a guard that has tripped and delays pods; else empty. The status may list none as held yet."""
    is_tripped = status.guard is not None and status.guard.tripped_at
    is_acting = is_tripped and policy.limits.guard.action is not GuardAction.REPORT
    return _limit(GUARD, "", policy.name, status) if is_acting else ""


def _refusal(row: NextPod, policy: str, status: PolicyStatus, now: float) -> str:
    if not row.limit:
        return row.message and f"its eviction: {row.message}"
    again, until = "", row.until_at
    if until is None:  # pods that a limit holds for one reason wait until the same time
        same = (limit.until for limit in status.limits if (limit.limit, limit.message) == (row.limit, row.message))
        until = read_time(next(same, None))
    if until is not None and until > now:  # the report may be older
        again = f"; {wording.next_one(row.limit, wording.relative(until, now))}"
    message = row.message
    if row.limit == FAILING and not row.attempts:
        message = f"of another pod of its namespace: {message}"
    return f"{_limit(row.limit, message, policy, status)}{again}"


def _any_refusal(pod: Pod, policy: str, status: PolicyStatus) -> str:
    """The limits that delay pods of the policy, for a pod that the status does not list.

    Budgets are left out, since those of the pod are known. Places count only if the pod's node has none.
    """
    limits = [limit for limit in status.limits if limit.limit != BUDGET]
    place = next((limit for limit in limits if limit.limit == PLACE), None)
    if status.places is not None and any(node.node == pod.node for node in status.places.nodes):
        limits = [limit for limit in limits if limit is not place]
    elif place is not None:
        _, colon, why = place.message.partition(": ")
        return _limit(PLACE, colon and f"node {pod.node} waits for a place: {why}", policy, status)
    if len(limits) > 1:
        text = ", ".join(f"{limit.limit} ({limit.pods})" for limit in limits)
        return f"one of the limits of policy {policy} (by the number of pods that each delays): {text}"
    message = limits[0].message if limits and limits[0].limit in _POLICY_WIDE else ""  # others are about one pod
    return _limit(limits[0].limit, message, policy, status) if limits else ""


def _limit(limit: str, message: str, policy: str, status: PolicyStatus) -> str:
    """Describe a limit. For a guard also what it counted and which nodes are bad, without the advice."""
    says = wording.without_advice(status.message_if("GuardTripped", "True"), policy) if limit == GUARD else ""
    detail = "; ".join(filter(None, ("" if message in says else message, says)))
    return wording.waiting(limit, policy, detail)


def blocked_by(budgets: list[BudgetExplanation], policy: Policy, row: NextPod | None = None) -> str:
    """The PodDisruptionBudgets that block a pod, as text; empty if the method does not, or no longer, respect them."""
    is_over = policy.eviction.method is Method.EVICT_THEN_DELETE and row is not None and row.limit != BUDGET
    if policy.eviction.method is Method.DELETE or is_over:
        return ""
    if len(budgets) > 1:
        return f"its PodDisruptionBudgets have to be repaired: {several_budgets(budget.name for budget in budgets)}"
    blocking = [budget for budget in budgets if not budget.allows]
    return "".join(f"for PodDisruptionBudget {budget.name}{_timeout(policy)}: {budget.reason}" for budget in blocking)


def _timeout(policy: Policy) -> str:
    """The maximum time for which a budget can block a pod, as text; empty if it can indefinitely."""
    if policy.eviction.method is not Method.EVICT_THEN_DELETE:
        return ""
    most = f"{wording.duration(policy.eviction.pdb_timeout_seconds)} at most from this operator's first try on"
    if policy.reclaim is not None:
        most += " and, at the latest, until only its grace is left before its node is gone"
    return f", {most}, then it is deleted"


def explain_budgets(
    found: Iterable[tuple[Budget, Refusal | None]], stored: Iterable[BudgetObject]
) -> Iterator[BudgetExplanation]:
    """Explain the budgets of a pod and their refusals. ``stored`` has the status of each."""
    statuses = {(one.metadata.namespace, one.metadata.name): one.status for one in stored}
    for budget, refusal in found:
        status = statuses[budget.namespace, budget.name]
        why = "allows a disruption" if budget.observed and budget.allowed else "does not keep a pod that is not Ready"
        if refusal is not None:
            why = budget.why_no_disruption
            if status is not None and budget.observed and not budget.problem:
                healthy, desired = status.current_healthy, status.desired_healthy
                counted = f"1 pod is healthy, {desired}" if healthy == 1 else f"{healthy} pods are healthy, {desired}"
                why += f": {counted} {'has' if desired == 1 else 'have'} to be"
        yield BudgetExplanation(budget.name, refusal is None, f"it {why}")
