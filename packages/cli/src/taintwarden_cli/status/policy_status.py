"""A summary of the status of policies: the structure that ``status`` prints.

The structs are what ``-o json`` and ``-o yaml`` print; times are RFC 3339 in UTC.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from taintwarden.api.status import (
    BlockedBudget,
    Condition,
    ConditionStatus,
    GuardStatus,
    InvalidTaintStatus,
    LimitStatus,
    NextPod,
    PolicyStatus,
    ReclaimStatus,
    ZoneStatus,
)
from taintwarden.controller.words import wording
from taintwarden.controller.words.policy_changes import PAUSED_BY_ANNOTATION
from taintwarden.engine.limits.refusal import BOUNCE, BUDGET, CALLS, FAILING, NODE, VIEW
from taintwarden.engine.model import Mode, OnInvalidValue
from taintwarden_cli.rehearsal.liveness import Liveness

MAY_LAST_SECONDS = {FAILING: 60.0, CALLS: 300.0, VIEW: 180.0, NODE: 1_800.0, BUDGET: 1_800.0, BOUNCE: 300.0}
"""Limits that do not always end by themselves: after so long a person has to look, as the alerts say."""
_OF_EVICTIONS = (NODE, BUDGET, BOUNCE)
"""Of these, those that do no harm where nothing is evicted."""
NOT_OBSERVED = "no operator has looked at it yet"
TRIPPED, ZONES_FULL = "MassEviction", "AllZonesFull"
"""Reasons of the condition GuardTripped while it holds."""
OUTDATED = "the operator has not looked at its newest version yet"


class GuardSummary(msgspec.Struct, rename="camel"):
    """A policy's guard. ``released``: the number of pods that a person released and that still exist."""

    tripped_at: str | None = None
    cause: str | None = None
    counted: int = 0
    """Pods as they were counted since it tripped."""
    released: int | None = None
    message: str = ""
    zones_full: bool = False
    """Every zone is Full, so that no pod is evicted either."""

    @property
    def is_tripped(self) -> bool:
        """Whether too many pods would be evicted. With ``action: Report`` and in mode DryRun it holds none of them."""
        return self.tripped_at is not None


class PolicySummary(msgspec.Struct, rename="camel", kw_only=True):
    """One policy."""

    name: str
    mode: str
    """``Paused`` if it is paused, whatever its mode."""
    accepted: str
    """``True``, ``False``, or ``Unknown`` if the operator has not read its newest version."""
    problem: str = ""
    """What you have to correct or check, if anything."""
    devices_problem: str | None = None
    """The message of its condition DevicesKnown, if that is False."""
    paused_by: str | None = None
    """Who paused it, when and why."""
    progress: str = ""
    """Its present activity, in a sentence."""
    selected_nodes: int = 0
    evicting_nodes: int = 0
    pending: int = 0
    blocked: int = 0
    evicted: int = 0
    retained: int = 0
    invalid_taints: tuple[InvalidTaintStatus, ...] = ()
    on_invalid_value: str = OnInvalidValue.HOLD.value
    """What these values do, by ``timing.onInvalidValue``."""
    next_deadline: str | None = None
    guard: GuardSummary | None = None
    """None: the policy has no guard, or the operator has not read the policy yet."""
    limited_by: str | None = None
    limits: tuple[LimitStatus, ...] = ()
    zones: tuple[ZoneStatus, ...] = ()
    reclaims: tuple[ReclaimStatus, ...] = ()
    blocked_budgets: tuple[BlockedBudget, ...] = ()
    next_pods: tuple[NextPod, ...] = ()

    @property
    def needs_a_person(self) -> bool:
        """Whether it requires action."""
        return bool(self.problem)

    @property
    def is_refused(self) -> bool:
        """Whether the operator does not accept its newest version."""
        return self.accepted == "False"

    @property
    def is_paused(self) -> bool:
        """Whether it evicts no pods because it is paused."""
        return self.mode == Mode.PAUSED

    @property
    def is_halted(self) -> bool:
        """Whether its newest version is in effect, and its guard or its zones stop it."""
        return self.accepted == "True" and self.guard is not None and (self.guard.is_tripped or self.guard.zones_full)


class StatusSummary(msgspec.Struct, rename="camel"):
    """The policies, by name. ``at`` is the time of reading, ``reported_at`` that of the operator's last report."""

    at: str
    policies: list[PolicySummary]
    problem: str = ""
    """Why no operator is running: then the status of the policies is out of date. Else why no webhook is."""
    reported_at: str | None = None

    def differs(self, other: "StatusSummary") -> bool:
        """Whether anything but the times of reading and reporting differs, which are in the problem, too."""
        return (self.policies, bool(self.problem)) != (other.policies, bool(other.problem))

    @property
    def resource_names(self) -> list[str]:
        """As kubectl names them."""
        return [f"taintevictionpolicy.taintwarden.io/{one.name}" for one in self.policies]

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
    found = sorted((_summary(one, now) for one in stored), key=lambda one: one.name)
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


def _cut_off(said: Mapping[str, Condition]) -> str:
    """Why the operator cannot know which pods have to leave."""
    progress = said.get("Progressing")
    return progress.message if progress is not None and progress.reason == "Blind" else ""


def _devices_unknown(said: Mapping[str, Condition]) -> str | None:
    """Why no taint of a device evicts a pod."""
    known = said.get("DevicesKnown")
    return known.message if known is not None and known.status is ConditionStatus.FALSE else None


def _held_by_guard(answer: PolicySummary, *, rehearses: bool) -> str:
    """What its guard or its zones stop, if they do."""
    guard = answer.guard
    if guard is None or rehearses:
        return ""
    if guard.is_tripped:
        says = guard.message.removesuffix(wording.guard_advice(answer.name)).strip().removesuffix(".")
        return f"its guard has tripped: {says}" if says else "its guard has tripped"
    return "every zone is Full, so nothing is evicted" if guard.zones_full else ""


def _ended(status: PolicyStatus, now: float) -> str:
    """Pods that will be killed with their nodes, or were."""
    bad = [one for one in status.reclaims if one.at_risk or one.missed]
    more = f" (and {wording.several(len(bad) - 1, 'more node')})" if len(bad) > 1 else ""
    return wording.node_end(bad[0], now) + more if bad else ""


def _enforces(said: Mapping[str, Condition]) -> bool:
    """Whether the policy evicts pods, as far as its status says."""
    return "Enforcing" not in said or said["Enforcing"].status is ConditionStatus.TRUE


def _rehearses(said: Mapping[str, Condition], mode: str) -> bool:
    """Whether it only reports: by its mode, or because the operator runs with --dry-run."""
    return Mode.DRY_RUN in (mode, said["Enforcing"].reason if "Enforcing" in said else "")


def _refused(status: PolicyStatus, now: float, *, enforces: bool) -> str:
    """What keeps pods from being evicted, and does not pass by itself, or did not for long."""
    for one in status.limits:
        may_last = MAY_LAST_SECONDS.get(one.limit, math.inf)
        if now - (one.since_at or now) >= may_last and (enforces or one.limit not in _OF_EVICTIONS):
            wait = "waits" if one.pods == 1 else "wait"
            return f"{wording.pods(one.pods)} {wait}: {wording.why_held(one.limit, one.pods, one.message)}"
    return ""


def _summary(stored: Mapping[str, Any], now: float) -> PolicySummary:
    meta, spec = stored["metadata"], stored.get("spec") or {}
    answer = PolicySummary(name=meta["name"], mode=str(spec.get("mode", "Enforce")), accepted="Unknown")
    timing = spec.get("timing")
    answer.on_invalid_value = str((timing or {}).get("onInvalidValue", answer.on_invalid_value))
    if spec.get("paused"):
        answer.mode, answer.paused_by = Mode.PAUSED.value, (meta.get("annotations") or {}).get(PAUSED_BY_ANNOTATION)
    try:
        status = msgspec.convert(stored.get("status") or {}, _Status)
    except msgspec.ValidationError as error:
        answer.problem = f"its status cannot be read: {error}"
        return answer
    said = {one.type: one for one in status.conditions}
    for field in PolicyStatus.__struct_fields__:  # the guard is not one of them
        if hasattr(answer, field):
            setattr(answer, field, getattr(status, field))
    answer.progress = said["Progressing"].message if "Progressing" in said else ""
    answer.devices_problem = _devices_unknown(said)
    told = said.get("GuardTripped")
    if told is not None and told.reason != "NoGuard":
        # The condition may be seconds older than the guard's own status, which decides.
        guard = status.guard or GuardStatus(tripped_at=told.last_transition_time if told.reason == TRIPPED else None)
        answer.guard = GuardSummary(
            guard.tripped_at,
            guard.cause,
            sum(one.pods for one in guard.counted),
            guard.released,
            told.message,
            told.reason == ZONES_FULL,
        )
    if status.observed_generation is None:
        answer.problem = NOT_OBSERVED
    elif status.observed_generation < meta.get("generation", 0):
        answer.problem = OUTDATED
    else:
        accepted = said.get("Accepted")
        answer.accepted = accepted.status if accepted else "Unknown"
        if accepted is not None and accepted.status is not ConditionStatus.TRUE:
            answer.problem = f"it is not accepted: {accepted.message}"
    answer.problem = answer.problem or _cut_off(said) or _ended(status, now)
    answer.problem = answer.problem or _refused(status, now, enforces=_enforces(said))
    answer.problem = answer.problem or _held_by_guard(answer, rehearses=_rehearses(said, answer.mode))
    if answer.devices_problem and not answer.problem:
        answer.problem = f"condition DevicesKnown is False: {answer.devices_problem}"
    return answer
