"""A summary of the status of policies: the structure that ``status`` prints.

The structs are what ``-o json`` prints; times are RFC 3339 in UTC.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from taintwarden.api.status import ConditionStatus, PolicyStatus
from taintwarden.controller.words import wording
from taintwarden.controller.words.policy_changes import PAUSED_BY_ANNOTATION
from taintwarden.engine import rfc3339
from taintwarden.engine.limits.refusal import BUDGET, DELAYS
from taintwarden.engine.model import Mode, OnInvalidValue
from taintwarden.engine.reported_status import LimitStatus
from taintwarden.engine.rfc3339 import read_time
from taintwarden_cli.rehearsal.liveness import Liveness
from taintwarden_cli.rehearsal.snapshot import is_kept_from_enforcing

STUCK_SECONDS = 300.0
"""For so long a pod may be stuck until a person has to look, as the alert says."""
NOT_OBSERVED = "no operator has looked at it yet"
TRIPPED, ZONES_FULL, ARMED = "tripped", "zones Full", "armed"
"""What a guard does."""
OUTDATED = "the operator has not looked at its newest version yet"


class PolicySummary(msgspec.Struct, rename="camel", kw_only=True):
    """One policy: its status, and what that means for you."""

    name: str
    mode: str
    """``Paused`` if it is paused, whatever its mode; ``DryRun`` also if the operator runs with --dry-run."""
    accepted: str
    """``True``, ``False``, or ``Unknown`` if the operator has not read its newest version."""
    problem: str = ""
    """What you have to correct or check, if anything."""
    paused_by: str | None = None
    """Who paused it, when and why."""
    on_invalid_value: str = OnInvalidValue.HOLD.value
    """What values do that cannot be compared, by ``timing.onInvalidValue``."""
    status: PolicyStatus = PolicyStatus()

    @property
    def progress(self) -> str:
        """Its present activity, in a sentence."""
        found = self.status.condition("Progressing")
        return found.message if found is not None else ""

    @property
    def invalid(self) -> list[str]:
        """The taints whose values cannot be compared, and what that means for pods."""
        taints = self.status.invalid_taints
        return [wording.not_comparable(one, self.mode, self.on_invalid_value) for one in taints]

    @property
    def needs_a_person(self) -> bool:
        """Whether it requires action."""
        return bool(self.problem)

    @property
    def is_paused(self) -> bool:
        """Whether it evicts no pods because it is paused."""
        return self.mode == Mode.PAUSED

    @property
    def guard(self) -> str | None:
        """``tripped``, ``zones Full`` or ``armed``; None without a guard, or if the operator has not read the policy.

        With ``action: Report`` and in mode DryRun a tripped guard holds no pod.
        """
        condition = self.status.condition("GuardTripped")
        if condition is None or condition.reason == "NoGuard":
            return None
        if self.tripped_at is not None:
            return TRIPPED
        return ZONES_FULL if condition.reason == "AllZonesFull" else ARMED

    @property
    def tripped_at(self) -> str | None:
        """When the guard tripped. The condition may be seconds older than the guard's own status, which decides."""
        if self.status.guard is not None:
            return self.status.guard.tripped_at
        condition = self.status.condition("GuardTripped")
        if condition is None or condition.reason != "MassEviction":
            return None
        return condition.last_transition_time

    @property
    def all_zones_full(self) -> str:
        """What it means that every zone is Full."""
        return "every zone is Full, so only pods that you release are evicted"


class StatusSummary(msgspec.Struct, rename="camel"):
    """The policies, by name. ``at`` is the time of reading, ``reported_at`` that of the operator's last report."""

    at: str
    policies: list[PolicySummary]
    problem: str = ""
    """Why no operator is running: then the status of the policies is out of date. Else why no webhook is."""
    reported_at: str | None = None

    @property
    def needs_a_person(self) -> bool:
        """Whether the operator or any policy requires action."""
        return bool(self.problem) or any(policy.needs_a_person for policy in self.policies)


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
        text = ", ".join(missing)
        msg = f"there is no TaintEvictionPolicy {text}; there is {', '.join(sorted(present)) or 'none at all'}"
        raise LookupError(msg)
    answer = StatusSummary(rfc3339.at(now), [one for one in found if not names or one.name in names])
    if known is not None:
        answer.problem = known.problem
        answer.reported_at = None if known.reported_at is None else rfc3339.at(known.reported_at)
    return answer


def _summary(stored: Mapping[str, Any], now: float) -> PolicySummary:
    meta, spec = stored["metadata"], stored.get("spec") or {}
    answer = PolicySummary(name=meta["name"], mode=str(spec.get("mode", "Enforce")), accepted="Unknown")
    timing = spec.get("timing")
    answer.on_invalid_value = str((timing or {}).get("onInvalidValue", answer.on_invalid_value))
    if spec.get("paused"):
        answer.mode, answer.paused_by = Mode.PAUSED.value, (meta.get("annotations") or {}).get(PAUSED_BY_ANNOTATION)
    elif is_kept_from_enforcing(stored):
        answer.mode = Mode.DRY_RUN.value
    try:
        status = answer.status = msgspec.convert(stored.get("status") or {}, PolicyStatus)
    except msgspec.ValidationError as error:
        answer.problem = f"its status cannot be read: {error}"
        return answer
    if status.observed_generation is None:
        answer.problem = NOT_OBSERVED
    elif status.observed_generation < meta.get("generation", 0):
        answer.problem = OUTDATED
    elif (accepted := status.condition("Accepted")) is not None:
        answer.accepted = accepted.status
        if accepted.status is not ConditionStatus.TRUE:
            answer.problem = f"it is not accepted: {accepted.message}"
    answer.problem = answer.problem or next(filter(None, _problems(answer, now)), "")
    return answer


def _problems(policy: PolicySummary, now: float) -> Iterator[str]:
    """What is wrong with a policy that is in effect, the worst first; empty: not that."""
    status = policy.status
    yield status.says("Progressing", "Blind")
    if policy.mode != Mode.DRY_RUN:
        yield why_halted(policy)
    yield long_stuck(status, now)
    yield _refused(status, now, enforces=policy.mode == Mode.ENFORCE)
    if unknown := status.says("DevicesKnown", "False"):
        yield f"condition DevicesKnown is False: {unknown}"
    yield status.says("SourcesFound", "False")


def why_halted(policy: PolicySummary) -> str:
    """That its guard or its zones stop it; empty: they do not."""
    if policy.guard == TRIPPED:
        counted = wording.without_advice(policy.status.says("GuardTripped", "True"), policy.name)
        return "its guard has tripped" + (f": {counted}" if counted else "")
    return policy.all_zones_full if policy.guard == ZONES_FULL else ""


def long_stuck(status: PolicyStatus, now: float) -> str:
    """Which pods should have ended long ago; empty: none."""
    return wording.not_ended([one for one in status.stuck if now - (read_time(one.since) or now) >= STUCK_SECONDS])


def _refused(status: PolicyStatus, now: float, *, enforces: bool) -> str:
    """What keeps pods from being evicted, and does not pass by itself, or did not for long."""
    for one in status.limits:
        delay = DELAYS.get(one.limit)
        if delay is None or (delay.needs_evictions and not enforces):
            continue
        if now - (one.since_at or now) >= delay.may_last_seconds:
            return _wait_for(one)
    return ""


def _wait_for(one: LimitStatus) -> str:
    wait = "waits" if one.pods == 1 else "wait"
    return f"{wording.pods(one.pods)} {wait}: {wording.why_held(one.limit, one.message)}"


def is_of_budgets(policy: PolicySummary) -> bool:
    """Whether its problem is that budgets have blocked pods for long."""
    return policy.problem in [_wait_for(one) for one in policy.status.limits if one.limit == BUDGET]
