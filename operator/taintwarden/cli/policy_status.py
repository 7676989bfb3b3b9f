"""A summary of the status of policies: the structure that ``status`` prints.

The structs are what ``-o json`` and ``-o yaml`` print; times are RFC 3339 in UTC.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from taintwarden.api.status import (
    BlockedBudget,
    ConditionStatus,
    GuardStatus,
    InvalidTaintStatus,
    LimitStatus,
    NextPod,
    PolicyStatus,
    ZoneStatus,
)
from taintwarden.controller import wording
from taintwarden.engine.model import Mode
from taintwarden.rehearsal.liveness import Liveness

NOT_OBSERVED = "no operator has looked at it yet"
TRIPPED, ZONES_FULL = "MassEviction", "AllZonesFull"
"""Reasons of the condition GuardTripped while it holds."""
OUTDATED = "the operator has not looked at its newest version yet"


class GuardSummary(msgspec.Struct, rename="camel"):
    """A policy's guard. ``accepted``: the number of pods that a reset released and that still exist."""

    open: bool
    since: str | None = None
    cause: str | None = None
    would_evict: int | None = None
    accepted: int | None = None
    message: str = ""
    zones_full: bool = False
    """Every zone is Full, so that no pod is evicted either."""


class PolicySummary(msgspec.Struct, rename="camel", kw_only=True):
    """One policy."""

    name: str
    mode: str
    accepted: str
    """``True``, ``False``, or ``Unknown`` if the operator has not read its newest version."""
    problem: str = ""
    """What you have to correct or check, if anything."""
    progress: str = ""
    """Its present activity, in a sentence."""
    selected_nodes: int = 0
    degraded_nodes: int = 0
    pending: int = 0
    blocked: int = 0
    evicted: int = 0
    held_invalid: int = 0
    invalid_taints: tuple[InvalidTaintStatus, ...] = ()
    next_deadline: str | None = None
    guard: GuardSummary | None = None
    """None: the policy has no guard, or the operator has not read the policy yet."""
    limited_by: str | None = None
    limits: tuple[LimitStatus, ...] = ()
    zones: tuple[ZoneStatus, ...] = ()
    blocked_budgets: tuple[BlockedBudget, ...] = ()
    next_pods: tuple[NextPod, ...] = ()

    @property
    def needs_a_person(self) -> bool:
        """Whether it requires action."""
        return bool(self.problem)

    @property
    def is_paused(self) -> bool:
        """Whether it evicts no pods because it is paused."""
        return self.mode == Mode.PAUSED

    @property
    def is_halted(self) -> bool:
        """Whether its newest version is in effect, and its guard or its zones stop it."""
        return self.accepted == "True" and self.guard is not None and (self.guard.open or self.guard.zones_full)


class StatusSummary(msgspec.Struct, rename="camel"):
    """The policies, by name. ``at`` is the time of reading, ``reported_at`` that of the operator's last report."""

    at: str
    policies: list[PolicySummary]
    problem: str = ""
    """Why no operator is running, if none is: then the status of the policies is out of date."""
    reported_at: str | None = None

    @property
    def needs_a_person(self) -> bool:
        """Whether the operator or any policy requires action."""
        return bool(self.problem) or any(policy.needs_a_person for policy in self.policies)


class _Status(PolicyStatus, frozen=True):
    guard: GuardStatus | None = None


def summarize(
    stored: Iterable[Mapping[str, Any]], names: Sequence[str], now: float, known: Liveness | None = None
) -> StatusSummary:
    """Summarize the policies ``names``, or all of them. ``known``: the liveness of the operator.

    Raises:
        LookupError: a policy does not exist; the text names it.

    """
    found = sorted((_summary(one) for one in stored), key=lambda one: one.name)
    present = {one.name for one in found}
    if missing := [name for name in names if name not in present]:
        told = ", ".join(missing)
        msg = f"there is no TaintEvictionPolicy {told}; there is {', '.join(sorted(present)) or 'none at all'}"
        raise LookupError(msg)
    answer = StatusSummary(wording.at(now), [one for one in found if not names or one.name in names])
    if known is not None:
        answer.problem = known.problem
        answer.reported_at = None if known.reported_at is None else wording.at(known.reported_at)
    return answer


def _summary(stored: Mapping[str, Any]) -> PolicySummary:
    meta, spec = stored["metadata"], stored.get("spec") or {}
    answer = PolicySummary(name=meta["name"], mode=str(spec.get("mode", "Enforce")), accepted="Unknown")
    try:
        status = msgspec.convert(stored.get("status") or {}, _Status)
    except msgspec.ValidationError as error:
        answer.problem = f"its status cannot be read: {error}"
        return answer
    said = {one.type: one for one in status.conditions}
    for field in ("selected_nodes", "degraded_nodes", "pending", "blocked", "evicted", "held_invalid", "next_deadline"):
        setattr(answer, field, getattr(status, field))
    answer.invalid_taints = status.invalid_taints
    answer.limited_by, answer.limits, answer.zones = status.limited_by, status.limits, status.zones
    answer.blocked_budgets, answer.next_pods = status.blocked_budgets, status.next_pods
    answer.progress = said["Progressing"].message if "Progressing" in said else ""
    told = said.get("GuardTripped")
    if told is not None and told.reason != "NoGuard":
        # The condition may be seconds older than the guard's own status, which decides.
        guard = status.guard or GuardStatus(open=told.reason == TRIPPED)
        answer.guard = GuardSummary(
            guard.open,
            guard.since,
            guard.cause,
            guard.would_evict,
            guard.accepted,
            told.message,
            told.reason == ZONES_FULL,
        )
    zones_full = told is not None and told.reason == ZONES_FULL
    if status.observed_generation is None:
        answer.problem = NOT_OBSERVED
    elif status.observed_generation < meta.get("generation", 0):
        answer.problem = OUTDATED
    else:
        accepted = said.get("Accepted")
        answer.accepted = accepted.status if accepted else "Unknown"
        if accepted is not None and accepted.status is not ConditionStatus.TRUE:
            answer.problem = f"it is not accepted: {accepted.message}"
    if not answer.problem and answer.guard is not None and answer.guard.open:
        answer.problem = "its guard has tripped"
    elif not answer.problem and zones_full:
        answer.problem = "every zone is Full, so nothing is evicted"
    return answer
