"""What a policy is doing now, for its status and the metrics: read from the machine's state, never kept beside it."""

from heapq import nsmallest

import msgspec

from taintwarden.engine.limits.guard import GuardRecord
from taintwarden.engine.machine.events import Outcome
from taintwarden.engine.machine.machine import Machine
from taintwarden.engine.machine.pending import Pending, Phase
from taintwarden.engine.model import Policy

STALE_VIEW = "stale-view"
"""What holds due pods while a stream is cut off from the API server."""
NEXT_PODS = 10
"""How many of the next pods a report names."""


class LimitReport(msgspec.Struct, frozen=True):
    """A limit that holds due pods of a policy: how many, since when, and when it may let the next one go if known."""

    limit: str
    pods: int
    since: float
    until: float | None


class ZoneReport(msgspec.Struct, frozen=True):
    """The state of a zone for a policy (Normal, Degraded, Full), by the nodes it counts."""

    zone: str
    state: str
    nodes: int
    degraded_nodes: int


class PolicyReport(msgspec.Struct):
    """Counts and the near future of one policy."""

    policy: Policy
    selected_nodes: int = 0
    degraded_nodes: int = 0
    pending: int = 0
    blocked: int = 0
    evicted: int = 0
    held_invalid: int = 0
    next_deadline: float | None = None
    limited_by: str = ""
    blocked_by: dict[str, int] = {}
    """Pods by the outcome of their last try, where that did not make them leave."""
    next_pods: tuple[Pending, ...] = ()
    limits: tuple[LimitReport, ...] = ()
    """What holds due pods, the most pods first."""
    budgets: tuple[tuple[str, int], ...] = ()
    """``namespace/name`` of PodDisruptionBudgets with the number of due pods each holds, the most pods first."""
    zones: tuple[ZoneReport, ...] = ()
    """By name. Empty if the policy has no zoneHealth."""
    guard: GuardRecord | None = None
    """None if the policy has no guard."""


def report(machine: Machine) -> list[PolicyReport]:
    """One report per policy, by name."""
    reports = {policy.name: PolicyReport(policy, evicted=machine.evicted[policy.name]) for policy in machine.policies}
    queues: dict[str, list[Pending]] = {name: [] for name in reports}
    degraded: set[tuple[str, str]] = set()
    for pending in machine.pending.values():
        name = pending.verdict.policy.name
        if name not in reports or pending.phase is Phase.LEAVING:
            continue
        queues[name].append(pending)
        degraded.add((name, pending.pod.node))
        _count(reports[name], pending)
        if machine.is_blind and pending.phase is Phase.READY:
            reports[name].limited_by = STALE_VIEW
    for name, _ in degraded:
        reports[name].degraded_nodes += 1
    for name, queue in queues.items():
        reports[name].next_pods = tuple(nsmallest(NEXT_PODS, queue, key=lambda p: (p.due_at, p.rank, p.pod.uid)))
    _count_nodes(machine, reports)
    return list(reports.values())


def _count(entry: PolicyReport, pending: Pending) -> None:
    entry.pending += 1
    if entry.next_deadline is None or pending.due_at < entry.next_deadline:
        entry.next_deadline = pending.due_at
    if pending.phase is Phase.WAITING and pending.outcome is not None:
        entry.blocked += pending.outcome is Outcome.BLOCKED
        entry.blocked_by[pending.outcome.value] = entry.blocked_by.get(pending.outcome.value, 0) + 1
    if pending.phase is Phase.READY and pending.limit:
        entry.limited_by = pending.limit


def _count_nodes(machine: Machine, reports: dict[str, PolicyReport]) -> None:
    for state in machine.nodes.values():
        if state.node is None:
            continue
        for policy in state.policies or ():
            if policy.name in reports:
                reports[policy.name].selected_nodes += 1
        if state.reported_invalid:
            for pod in state.pods.values():
                for verdict in machine.verdicts_for(state, pod.shared):
                    if verdict.invalid and verdict.policy.name in reports:
                        reports[verdict.policy.name].held_invalid += 1
