"""Problems that a person has to act on: cause, effect and remedy of each that a policy's status shows."""

import re
from collections.abc import Iterator
from enum import StrEnum

import msgspec

from taintwarden.api.status import PolicyStatus
from taintwarden.controller.words import wording
from taintwarden.engine.limits.bounces import CAME_BACK
from taintwarden.engine.limits.refusal import BOUNCE, BUDGET, CALLS, DELAYS, FAILING, NODE, VIEW
from taintwarden.engine.reported_status import MAX_INVALID_TAINTS, MAX_STUCK, LimitStatus
from taintwarden.engine.rfc3339 import read_time

RIGHTS_REMEDY = "taintwarden doctor --only rights-missing"
"""Remedy for a right that the operator lacks, by the check that names what grants it."""
STUCK_SECONDS = 300.0
"""Seconds after which a stuck or Pending pod is a problem, as for the alerts about stuck pods and bounces."""
_SERVICE = re.compile(r"https://(?P<service>[a-z0-9-]+)\.(?P<space>[a-z0-9-]+)\.svc")
"""The Service in the message of the API server about a failed call of a webhook."""


class ProblemKind(StrEnum):
    """Kinds of problems, the worst first."""

    OPERATOR = "Operator"
    NOT_READABLE = "NotReadable"
    NOT_ACCEPTED = "NotAccepted"
    NOT_OBSERVED = "NotObserved"
    BLIND = "Blind"
    GUARD = "GuardTripped"
    ZONES = "ZonesFull"
    RECLAIM = "Reclaim"
    SHADOWED = "Shadowed"
    FAILING = "CallsFail"
    SERVER = "ServerFails"
    STUCK = "Stuck"
    NEVER = "BudgetNeverAllows"
    BUDGET = "Budget"
    WORKLOAD = "Workload"
    NODE = "Node"
    BOUNCE = "Bounce"
    VIEW = "View"
    INVALID = "InvalidValue"
    DEVICES = "DevicesNotKnown"
    REPLACEMENTS = "NotReplacedFirst"
    SOURCES = "SourcesNotFound"
    PUBLISHER = "PublisherFails"
    NO_NODE = "NoNode"
    WEBHOOK = "Webhook"


_LIMITS = {
    FAILING: (ProblemKind.FAILING, "docs/runbooks/evictions-refused.md"),
    CALLS: (ProblemKind.SERVER, "kubectl get --raw '/readyz?verbose'"),
    NODE: (ProblemKind.NODE, "docs/runbooks/pods-stuck.md"),
    BUDGET: (ProblemKind.BUDGET, "docs/runbooks/budget-blocked.md"),
    BOUNCE: (ProblemKind.BOUNCE, "taintwarden doctor --only placement-missing; docs/runbooks/workload-bounces.md"),
    VIEW: (ProblemKind.VIEW, "docs/runbooks/stale-view.md"),
}
"""The kind and remedy of the problem when a limit delays pods for long. :func:`_remedy` may know a better remedy."""
_RANK = {kind: rank for rank, kind in enumerate(ProblemKind)}


class Problem(msgspec.Struct, frozen=True):
    """One problem, in three short lines. Times in them are RFC 3339 text in UTC."""

    kind: ProblemKind
    cause: str
    effect: str
    remedy: str

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.cause, self.effect)))


def by_severity(problems: list[Problem]) -> list[Problem]:
    """The problems, the worst first, and the worst of each cause only."""
    found: dict[str, Problem] = {}
    for problem in sorted(problems, key=lambda problem: _RANK[problem.kind]):
        found.setdefault(problem.cause, problem)
    return list(found.values())


def split_problem(kind: ProblemKind, sentence: str, remedy: str) -> Problem:
    """Split a sentence ``CAUSE: EFFECT`` into a problem."""
    cause, _, effect = sentence.partition(": ")
    return Problem(kind, cause, effect, remedy)


def status_problems(name: str, status: PolicyStatus, now: float, *, enforces: bool) -> Iterator[Problem]:
    """Problems that keep pods of a policy in effect from leaving, and do not pass by themselves or have lasted long."""
    if blind := status.message_if("Progressing", "Blind"):
        effect, _, cause = blind.partition(": ")
        yield Problem(ProblemKind.BLIND, cause.partition(", so ")[0], effect, f"taintwarden doctor; {_LIMITS[VIEW][1]}")
    yield from _stuck_problem(status, now)
    for limit in status.limits:
        delay = DELAYS.get(limit.limit)
        if delay is None or limit.limit not in _LIMITS or (delay.needs_evictions and not enforces):
            continue
        if now - (limit.since_at or now) >= delay.may_last_seconds:
            kind, remedy = _LIMITS[limit.limit]
            effect = f"{wording.pods(limit.pods)} {'waits' if limit.pods == 1 else 'wait'} since {limit.since}"
            yield Problem(kind, wording.why_held(limit.limit, limit.message), effect, _remedy(limit, status) or remedy)
    if unknown := status.message_if("DevicesKnown", "False"):
        effect, _, cause = unknown.partition(": ")
        yield Problem(ProblemKind.DEVICES, cause, effect, "docs/runbooks/devices-not-known.md")
    if refused := status.message_if("ReplacesFirst", "False"):
        effect, _, cause = refused.partition(": ")
        remedy = RIGHTS_REMEDY if '" cannot ' in cause else _LIMITS[FAILING][1]
        yield Problem(ProblemKind.REPLACEMENTS, cause, effect, remedy)
    if missing := status.message_if("SourcesFound", "False"):
        cause, _, effect = missing.partition(", so ")
        yield Problem(ProblemKind.SOURCES, cause, effect, f"correct from: kubectl edit taintevictionpolicy {name}")


def _stuck_problem(status: PolicyStatus, now: float) -> Iterator[Problem]:
    """The problem that pods should have ended long ago, if there are any."""
    stuck = [pod for pod in status.stuck if now - (read_time(pod.since) or now) >= STUCK_SECONDS]
    if stuck:
        nodes = list(dict.fromkeys(pod.node for pod in stuck))
        more = f" {wording.following(nodes, 'node', is_full=len(stuck) == MAX_STUCK)}" * (len(nodes) > 1)
        effect, remedy = f"{nodes[0]}{more} cannot be drained", f"taintwarden explain node {nodes[0]}"
        yield Problem(ProblemKind.STUCK, wording.not_ended(stuck), effect, f"{remedy}; docs/runbooks/pods-stuck.md")


def _remedy(limit: LimitStatus, status: PolicyStatus) -> str:
    """The remedy for a limit if message or status name the object to check; else empty."""
    if limit.limit == FAILING and (found := _SERVICE.search(limit.message)):
        space, service = found["space"], found["service"]
        label = f"kubernetes.io/service-name={service}"
        return f"check that Service {space}/{service} has ready pods: kubectl -n {space} get endpointslices -l {label}"
    if limit.limit == BUDGET and len(status.blocked_budgets) == 1:
        (budget,) = status.blocked_budgets
        return f"kubectl -n {budget.namespace} describe poddisruptionbudget {budget.name}"
    waiting = next((pod.node for pod in status.next_pods if pod.limit == limit.limit == NODE), "")
    return waiting and f"taintwarden explain node {waiting}"


def guard_problem(name: str, status: PolicyStatus, *, is_paused: bool) -> Problem:
    """The problem that the guard of a policy has tripped."""
    says, at, guard = status.message_if("GuardTripped", "True"), "", status.guard
    counted, reset = wording.without_advice(says, name), f"taintwarden guard reset {name}"
    if counted.startswith("since "):
        at, _, counted = counted.removeprefix("since ").partition(" ")
    cause = f"its guard tripped at {at}" if at else "its guard has tripped"
    cause += f": {guard.cause}" if guard is not None and guard.cause else ""
    correct = "keep pods off such nodes: docs/placement.md" if CAME_BACK in cause else "correct the cause"
    again = f"{correct}; taintwarden plan --enforce {name}; taintwarden resume {name}"
    remedy = again if is_paused else f"taintwarden pause {name}; {again}"
    return Problem(
        ProblemKind.GUARD, cause, counted, remedy + f". Only to evict all of them: {reset}" * (reset in says)
    )


def zones_problem(name: str, status: PolicyStatus) -> Problem:
    """The problem that all nodes of a policy are unhealthy."""
    says = status.message_if("GuardTripped", "AllNodesUnhealthy")
    cause = says.partition(". ")[0] or "all nodes are unhealthy"
    effect, remedy = "all nodes are unhealthy, so no pod is evicted", "check the monitoring; taintwarden plan"
    if (release := f"taintwarden guard reset {name}") in says:
        effect = "all nodes are unhealthy, so only pods that you release are evicted"
        remedy += f". Only to evict all of them: {release}"
    return Problem(ProblemKind.ZONES, cause, effect, remedy)


def invalid_values_problem(values: list[str]) -> Problem:
    """The problem that values of taints cannot be compared. ``values`` has the effect of each on pods."""
    cause, _, effect = values[0].partition(" cannot be compared: ")
    more = f" ({wording.following(values, 'taint', is_full=len(values) == MAX_INVALID_TAINTS)})" * (len(values) > 1)
    remedy = "set a valid value; taintwarden doctor --only taint-value-invalid says which"
    return Problem(ProblemKind.INVALID, f"{cause} cannot be compared{more}", effect, remedy)
