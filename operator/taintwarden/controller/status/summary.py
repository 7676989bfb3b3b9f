"""From a report to a status: the fields of policies, and conditions that answer "why is nothing happening?"."""

import math

import msgspec

from taintwarden.api.status import (
    MAX_BLOCKED_BUDGETS,
    MAX_INVALID_TAINTS,
    MAX_LIMITS,
    MAX_RECLAIMS,
    MAX_ZONES,
    BlockedBudget,
    InvalidTaintStatus,
    LimitStatus,
    NextPod,
    PodState,
    PolicyStatus,
    ReclaimStatus,
    ZoneStatus,
)
from taintwarden.api.text import printable
from taintwarden.controller.words import wording
from taintwarden.engine.limits.refusal import BUDGET, CALLS, FAILING, GUARD
from taintwarden.engine.limits.zones import ZoneState
from taintwarden.engine.machine import ClaimView, LimitReport, PolicyReport
from taintwarden.engine.model import Instant, Mode, OnInvalidValue

MAX_MESSAGE_CHARACTERS = 200
"""Of what an API server or a limit says about one pod."""
ConditionRow = tuple[str, str, str, str]
"""Type, status, reason and message of a condition."""


def summary(entry: PolicyReport, now: Instant) -> PolicyStatus:
    """The status of a policy, without its conditions."""
    return PolicyStatus(
        selected_nodes=entry.selected_nodes,
        evicting_nodes=entry.evicting_nodes,
        pending=entry.pending,
        blocked=entry.blocked,
        evicted=entry.evicted,
        retained=retained(entry),
        invalid_taints=tuple(
            InvalidTaintStatus(one.node, one.taint, one.pods) for one in entry.invalid[:MAX_INVALID_TAINTS]
        ),
        next_deadline=None if entry.next_deadline is None else wording.at(entry.next_deadline),
        limited_by=entry.limited_by or None,
        limits=tuple(_limit(one) for one in entry.limits[:MAX_LIMITS]),
        blocked_budgets=tuple(_budget(*one) for one in entry.budgets[:MAX_BLOCKED_BUDGETS]),
        zones=tuple(
            ZoneStatus(one.zone, ZoneState(one.state), one.nodes, one.unhealthy_nodes)
            for one in entry.zones[:MAX_ZONES]
        ),
        reclaims=tuple(
            ReclaimStatus(one.node, wording.at(one.gone_at), one.pods, one.at_risk, one.missed)
            for one in entry.ends[:MAX_RECLAIMS]
        ),
        next_pods=tuple(_next_pod(claim, now) for claim in entry.next_pods),
    )


def all_zones_full(entry: PolicyReport) -> bool:
    """Whether every zone is Full, so that no due pod is evicted. With ``reclaim`` the health of zones has no effect."""
    return entry.all_zones_full and entry.policy.reclaim is None


def retained(entry: PolicyReport) -> int:
    """Pairs of a pod and a taint whose value cannot be compared, and does not evict the pod for that."""
    return entry.held_invalid if entry.policy.timing.on_invalid_value is OnInvalidValue.HOLD else 0


def conditions(entry: PolicyReport | None, problem: str, *, dry_run: bool = False) -> list[ConditionRow]:
    """What holds of a policy. ``problem``: why its newest version is not accepted, if so.

    ``dry_run``: the operator lets no policy enforce.
    """
    said = [_accepted(problem)]
    if entry is None:
        none = "no valid version of this policy is known, so it does nothing"
        return [*said, ("Enforcing", "False", "NotAccepted", none)]
    return [
        *said,
        ("Enforcing", *_enforcing(entry, dry_run=dry_run)),
        ("Progressing", *_progressing(entry)),
        ("GuardTripped", *_guard_tripped(entry)),
        *_sources(entry),
        *_devices(entry),
    ]


def accepted(problem: str, *, in_force: bool) -> ConditionRow:
    """What holds of a profile. ``problem`` is as above; ``in_force``: a version of it counts."""
    still = "its last valid version stays in force" if in_force else "no version of it counts, so it does nothing"
    return _accepted(f"{problem}; {still}" if problem else "")


def _accepted(problem: str) -> ConditionRow:
    return ("Accepted", "False", "Invalid", problem) if problem else ("Accepted", "True", "Valid", "")


def _sources(entry: PolicyReport) -> list[ConditionRow]:
    """Whether what the policy reads from nodes is there; nothing for one that reads only taints."""
    if not entry.sources:
        return []
    if missing := [one for one in entry.sources if not one.nodes]:
        told = "; ".join(wording.no_value(one.source, one.key, entry.selected_nodes) for one in missing)
        return [("SourcesFound", "False", "NoNode", told)]
    told = ", ".join(f"{one.source} on {wording.several(one.nodes, 'node')}" for one in entry.sources)
    return [("SourcesFound", "True", "Found", told)]


def _devices(entry: PolicyReport) -> list[ConditionRow]:
    """Whether devices are known; nothing for a policy that selects no taints of devices."""
    devices = entry.devices
    if devices is None:
        return []
    if devices.problem:
        return [("DevicesKnown", "False", "NotFollowed", wording.devices_unknown(devices.problem))]
    if devices.blind:
        return [("DevicesKnown", "False", "Stale", wording.devices_unknown(wording.no_changes(devices.blind)))]
    return [("DevicesKnown", "True", "Followed", f"{wording.pods(devices.pods)} with devices")]


def _enforcing(entry: PolicyReport, *, dry_run: bool) -> tuple[str, str, str]:
    if entry.policy.mode is Mode.ENFORCE:
        return "True", "Enforcing", ""
    if dry_run and entry.policy.mode is Mode.DRY_RUN:
        return "False", Mode.DRY_RUN.value, "the operator runs with --dry-run: nothing is evicted"
    why = "it is paused" if entry.policy.mode is Mode.PAUSED else f"mode is {entry.policy.mode.value}"
    return "False", entry.policy.mode.value, f"{why}: nothing is evicted"


def _progressing(entry: PolicyReport) -> tuple[str, str, str]:
    if entry.policy.mode is Mode.PAUSED:
        return "False", Mode.PAUSED.value, wording.would_be_due(entry.due, entry.pending - entry.due)
    if entry.blind:
        return "False", "Blind", wording.blind(entry.blind)
    if not entry.pending:
        return "False", "Idle", "no pod has to leave"
    is_dry = entry.policy.mode is Mode.DRY_RUN
    have = (
        f"{wording.pods(entry.pending)} {'would have' if is_dry else 'has' if entry.pending == 1 else 'have'} to leave"
    )
    main = entry.limits[0] if entry.limits else None
    if entry.blocked and (main is None or main.limit == BUDGET or entry.blocked > main.pods):
        return "True", "Blocked", f"{have}; {_by_budgets(entry, main)}"
    if main is not None:
        reason = "Failing" if main.limit == FAILING else "Limited"
        # Calls that fail are named although a limit holds more pods: perhaps it does because of them.
        failing = (one for one in entry.limits if one is not main and one.limit in (FAILING, CALLS))
        # Of the others, the detail is that of one pod, and changes often.
        details = ((one, one.detail if one.limit == GUARD else "") for one in (main, *failing))
        told = (wording.held(one.limit, one.pods, one.since, _until(one), detail) for one, detail in details)
        return "True", reason, "; ".join([have, *told])
    if entry.next_deadline is None:
        return "True", "Pending", have
    return "True", "Pending", f"{have}, the first at {wording.at(entry.next_deadline)}"


def _by_budgets(entry: PolicyReport, main: LimitReport | None) -> str:
    since = f" since {wording.at(main.since)}" if main is not None and main.limit == BUDGET else ""
    most = f", most of them {entry.budgets[0][0]}" if entry.budgets else ""
    return f"PodDisruptionBudgets block {entry.blocked}{since}{most}"


def _guard_tripped(entry: PolicyReport) -> tuple[str, str, str]:
    policy, guard = entry.policy, entry.guard
    if guard is not None and (record := guard.record).tripped_at is not None:
        counted = wording.Counted(guard.due, guard.evicted, guard.allowance, guard.window_seconds, guard.bad)
        effect = wording.tripped(policy, counted, guard.scope, halts=guard.halts)
        message = f"since {wording.at(record.tripped_at)} {effect}. {wording.guard_advice(policy.name)}"
        return "True", "MassEviction", message
    if all_zones_full(entry) and entry.due and policy.mode is not Mode.PAUSED:
        return "True", "AllZonesFull", wording.all_zones_full(policy, entry.due, len(entry.zones))
    if guard is None:
        return "False", "NoGuard", "the policy has no guard"
    released = guard.record.released
    return "False", "Armed", f"a reset released {wording.pods(released)}" if released else ""


def _limit(one: LimitReport) -> LimitStatus:
    until = _until(one)
    return LimitStatus(
        one.limit,
        one.pods,
        wording.at(one.since),
        None if until is None else wording.until(until),
        printable(one.detail, MAX_MESSAGE_CHARACTERS),
    )


def _until(one: LimitReport) -> float | None:
    """When it may let the next one go. A window that never opens is no time to wait for."""
    return None if one.until is None or math.isinf(one.until) else one.until


def _budget(name: str, pods: int) -> BlockedBudget:
    namespace, _, short = name.partition("/")
    return BlockedBudget(namespace, short, pods)


def _next_pod(claim: ClaimView, now: Instant) -> NextPod:
    pod, taint = claim.pod, str(claim.verdict.taint)
    told = NextPod(pod.namespace, pod.name, pod.node, taint, wording.at(claim.due_at), _state(claim, now.wall))
    if not claim.limit:
        return told
    return msgspec.structs.replace(
        told,
        limit=claim.limit,
        message=printable(claim.detail, MAX_MESSAGE_CHARACTERS),
        attempts=claim.attempts if claim.failed is not None else 0,
        until=None if claim.until is None or math.isinf(claim.until) else wording.until(now.wall_at(claim.until)),
    )


def _state(claim: ClaimView, now: float) -> PodState:
    if claim.limit == BUDGET:
        return PodState.BLOCKED
    return PodState.WAITING if claim.due_at <= now else PodState.SCHEDULED
