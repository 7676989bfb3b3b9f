"""What policies do and profiles select now, for status and metrics: read from the state, never kept beside it."""

from collections import Counter
from heapq import nsmallest

import msgspec

from taintwarden.engine.limits.guard import GuardRecord
from taintwarden.engine.limits.refusal import (
    ALL_ZONES_FULL,
    BUDGET_LIMITS,
    GUARD,
    SEVERAL_BUDGETS,
    STALE_VIEW,
    WINDOW,
)
from taintwarden.engine.machine.events import Outcome
from taintwarden.engine.machine.machine import Machine
from taintwarden.engine.machine.pending import Pending, Phase
from taintwarden.engine.model import Instant, Policy

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
    bouncing: int = 0
    """Workloads that come back to a node again and again."""
    guard: GuardRecord | None = None
    """None if the policy has no guard."""


def report(machine: Machine, now: Instant) -> list[PolicyReport]:
    """One report per policy, by name."""
    reports = {policy.name: PolicyReport(policy, evicted=machine.evicted[policy.name]) for policy in machine.policies}
    queues: dict[str, list[Pending]] = {name: [] for name in reports}
    holding: dict[str, dict[str, list[tuple[float, float | None]]]] = {name: {} for name in reports}
    budgets: dict[str, Counter[str]] = {name: Counter() for name in reports}
    degraded: set[tuple[str, str]] = set()
    for pending in machine.pending.values():
        name = pending.policy.name
        if name not in reports or pending.phase is Phase.LEAVING:
            continue
        queues[name].append(pending)
        degraded.add((name, pending.pod.node))
        _count(reports[name], pending)
        budgets[name].update(blocking_budgets(machine, pending))
        if (held := holding_limit(machine, pending)) is not None:
            limit, until = held
            holding[name].setdefault(limit, []).append((pending.ready_at, until))
    for name, _ in degraded:
        reports[name].degraded_nodes += 1
    bouncing = machine.limiter.bounces.bouncing(now.monotonic)
    for name, entry in reports.items():
        entry.bouncing = bouncing[name]
        entry.next_pods = tuple(
            nsmallest(NEXT_PODS, queues[name], key=lambda one: (one.compute_place(), one.due_at, one.pod.uid))
        )
        entry.limits = _limits(holding[name], now)
        entry.limited_by = entry.limits[0].limit if entry.limits else ""
        entry.budgets = tuple(sorted(budgets[name].items(), key=lambda one: (-one[1], one[0])))
        entry.zones = tuple(ZoneReport(*zone) for zone in machine.limiter.zones.table(name))
        guard = machine.limiter.guards.get(name)
        entry.guard = guard.current_record(now) if guard else None
    _count_nodes(machine, reports)
    return list(reports.values())


def matched_pods(machine: Machine) -> dict[str, int]:
    """How many running pods each profile selects, by ``namespace/name``."""
    profiles = machine.profiles
    matched = dict.fromkeys(map(str, profiles), 0)
    if matched:
        namespaces = {profile.namespace for profile in profiles}
        pods = Counter(pod.shared for state in machine.nodes.values() for pod in state.pods.values())
        for shared, count in pods.items():
            if shared.namespace in namespaces:
                for profile in machine.profiles_of(shared):
                    matched[str(profile)] += count
    return matched


def _count(entry: PolicyReport, pending: Pending) -> None:
    entry.pending += 1
    if entry.next_deadline is None or pending.due_at < entry.next_deadline:
        entry.next_deadline = pending.due_at
    outcome: str | None = None
    if pending.phase is Phase.WAITING and pending.outcome is not None:
        outcome = pending.outcome.value
    elif pending.phase is Phase.HELD and pending.limit in BUDGET_LIMITS:
        outcome = (Outcome.MISCONFIGURED if pending.limit == SEVERAL_BUDGETS else Outcome.BLOCKED).value
    if outcome is not None:
        entry.blocked += outcome == Outcome.BLOCKED.value
        entry.blocked_by[outcome] = entry.blocked_by.get(outcome, 0) + 1


def blocking_budgets(machine: Machine, pending: Pending) -> list[str]:
    """The budgets that keep a due pod from leaving, whether their status says so or the API server did."""
    held = pending.phase is Phase.HELD and pending.limit in BUDGET_LIMITS
    asked = pending.phase is Phase.WAITING and pending.outcome in (Outcome.BLOCKED, Outcome.MISCONFIGURED)
    return [str(budget) for budget in machine.limiter.budgets.of(pending.pod.shared)] if held or asked else []


def holding_limit(machine: Machine, pending: Pending) -> tuple[str, float | None] | None:
    """Which limit holds a due pod, and until when on the monotonic clock; None where none does."""
    if pending.phase not in (Phase.READY, Phase.HELD):
        return None
    if machine.is_blind:
        return STALE_VIEW, None
    refusal, of_all = pending.refusal, machine.refused.get(pending.lane)
    if pending.phase is Phase.READY or (of_all is not None and of_all.limit in (WINDOW, GUARD, ALL_ZONES_FULL)):
        refusal = of_all  # whoever is behind the first of its lane waits for the same
    return None if refusal is None else (refusal.limit, refusal.until)


def _limits(holding: dict[str, list[tuple[float, float | None]]], now: Instant) -> tuple[LimitReport, ...]:
    found = []
    for limit, pods in holding.items():
        until = min((until for _, until in pods if until is not None), default=None)
        at = None if until is None else now.wall + max(0.0, until - now.monotonic)
        found.append(LimitReport(limit, len(pods), min(since for since, _ in pods), at))
    return tuple(sorted(found, key=lambda one: (-one.pods, one.limit)))


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
