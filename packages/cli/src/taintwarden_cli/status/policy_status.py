"""Summaries of the status of policies, as ``status`` prints them.

The structs are what ``-o json`` prints; times are RFC 3339 in UTC.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from taintwarden.api.status import ConditionStatus, PolicyStatus
from taintwarden.controller.words import wording
from taintwarden.controller.words.policy_changes import PAUSED_BY_ANNOTATION
from taintwarden.engine import rfc3339
from taintwarden.engine.policy import Mode, OnInvalidValue
from taintwarden.engine.rfc3339 import read_time
from taintwarden_cli.rehearsal.liveness import LIST_PODS, Liveness
from taintwarden_cli.rehearsal.snapshot import is_kept_from_enforcing
from taintwarden_cli.rehearsal.staying import StayingGroup
from taintwarden_cli.status.findings import PolicyFindings
from taintwarden_cli.status.problems import (
    Problem,
    ProblemKind,
    by_severity,
    guard_problem,
    invalid_values_problem,
    split_problem,
    status_problems,
    zones_problem,
)

NOT_OBSERVED, OUTDATED = "no operator has observed it yet", "the operator has not observed its newest version yet"
UNREAD_SECONDS = 15.0
"""Seconds after which a version that no operator has read is a problem. A leader reads it in 3 s, a new one in 15 s."""
TRIPPED, UNHEALTHY, ARMED = "tripped", "unhealthy", "armed"
"""States of a guard."""


class PolicySummary(PolicyFindings, rename="camel", kw_only=True):
    """One policy: its status, and what that means for you."""

    name: str
    mode: str
    """``Paused`` if it is paused, whatever its mode; ``DryRun`` too if the operator runs with --dry-run."""
    accepted: str
    """``True``, ``False``, or ``Unknown`` if the operator has not read its newest version."""
    paused_by: str | None = None
    """The person who paused the policy, with time and reason."""
    waits_for_operator: str = ""
    """Why the policy waits for the operator to read its newest version; else empty. A problem after a while."""
    on_invalid_value: str = OnInvalidValue.HOLD.value
    """``timing.onInvalidValue``: effect of values that cannot be compared."""
    status: PolicyStatus = PolicyStatus()

    @property
    def progress(self) -> str:
        """The present activity of the policy, in a sentence."""
        found = self.status.condition("Progressing")
        return found.message if found is not None else ""

    @property
    def invalid(self) -> list[str]:
        """The taints whose values cannot be compared, and what that means for pods."""
        taints = self.status.invalid_taints
        return [wording.not_comparable(taint, self.mode, self.on_invalid_value) for taint in taints]

    @property
    def stays(self) -> list[StayingGroup]:
        """Pods that stay on tainted nodes, as counted by an inspection, or by the operator if there was none."""
        reported = [StayingGroup(one.reason, one.pods, []) for one in self.status.staying]
        return reported if self.staying is None else self.staying

    def add(self, *problems: Problem) -> None:
        """Add problems, and sort all by severity."""
        self.problems = by_severity([*self.problems, *problems])

    def add_findings(self, found: PolicyFindings) -> None:
        """Add the findings of an inspection."""
        self.removals, self.missed, self.staying = found.removals, found.missed, found.staying
        self.add(*found.problems)

    def has_problem(self, *kinds: ProblemKind) -> bool:
        """True if the policy has a problem of one of these kinds."""
        return any(problem.kind in kinds for problem in self.problems)

    @property
    def is_paused(self) -> bool:
        """True if the policy evicts no pods because it is paused."""
        return self.mode == Mode.PAUSED

    @property
    def guard(self) -> str | None:
        """``tripped``, ``unhealthy`` or ``armed``; None without a guard, or if the operator has not read the policy.

        With ``action: Report`` and in mode DryRun a tripped guard holds no pod; with ``action: Pace`` some wait.
        """
        condition = self.status.condition("GuardTripped")
        if condition is None or condition.reason == "NoGuard":
            return None
        if self.tripped_at is not None:
            return TRIPPED
        return UNHEALTHY if condition.reason == "AllNodesUnhealthy" else ARMED

    @property
    def tripped_at(self) -> str | None:
        """When the guard tripped. ``status.guard`` takes precedence, since the condition may be seconds older."""
        if self.status.guard is not None:
            return self.status.guard.tripped_at
        condition = self.status.condition("GuardTripped")
        if condition is None or condition.reason != "MassEviction":
            return None
        return condition.last_transition_time


class StatusSummary(msgspec.Struct, rename="camel"):
    """The policies, by name. ``at`` is the time of reading, ``reported_at`` that of the operator's last report."""

    at: str
    policies: list[PolicySummary]
    problems: list[Problem] = []
    """Why no operator is running, so that the statuses are out of date; why no webhook answers."""
    reported_at: str | None = None
    inspected_at: str | None = None
    """When nodes, pods and budgets were inspected."""
    unread: list[str] = []
    """Why that inspection could not read some objects."""
    leading_since: str | None = None
    """When this operator began to lead, and to count evictions."""

    @property
    def needs_action(self) -> bool:
        """True if the operator, the webhook or a policy has a problem."""
        return bool(self.problems) or any(policy.problems for policy in self.policies)


def summarize(
    stored: Iterable[Mapping[str, Any]], names: Sequence[str], now: float, known: Liveness | None = None
) -> StatusSummary:
    """Summarize the policies ``names``, or all of them. ``known`` is the liveness of the operator.

    Raises LookupError if a policy does not exist; the text names it.
    """
    found = sorted((_summary(one, now) for one in stored), key=lambda policy: policy.name)
    present = {policy.name for policy in found}
    if missing := [name for name in names if name not in present]:
        text = ", ".join(missing)
        msg = f"there is no TaintEvictionPolicy {text}; there is {', '.join(sorted(present)) or 'none at all'}"
        raise LookupError(msg)
    answer = StatusSummary(rfc3339.at(now), [policy for policy in found if not names or policy.name in names])
    if known is not None:
        if known.problem:
            answer.problems = [split_problem(ProblemKind.OPERATOR, known.problem, LIST_PODS)]
            for policy in answer.policies:  # no version of it is in force, and the cause is known
                policy.problems = [one for one in policy.problems if one.kind is not ProblemKind.NOT_OBSERVED]
        answer.reported_at = None if known.reported_at is None else rfc3339.at(known.reported_at)
        answer.leading_since = None if known.leading_since is None else rfc3339.at(known.leading_since)
    return answer


def _summary(stored: Mapping[str, Any], now: float) -> PolicySummary:
    meta, spec = stored["metadata"], stored.get("spec") or {}
    answer = PolicySummary(name=meta["name"], mode=str(spec.get("mode", "Enforce")), accepted="Unknown")
    timing = spec.get("timing")
    answer.on_invalid_value = str((timing or {}).get("onInvalidValue", answer.on_invalid_value))
    if spec.get("paused"):
        answer.mode, answer.paused_by = Mode.PAUSED.value, _paused_by(meta)
    elif is_kept_from_enforcing(stored):
        answer.mode = Mode.DRY_RUN.value
    try:
        status = answer.status = msgspec.convert(stored.get("status") or {}, PolicyStatus)
    except msgspec.ValidationError as error:
        answer.add(Problem(ProblemKind.NOT_READABLE, f"its status cannot be read: {error}", "", LIST_PODS))
        return answer
    late = NOT_OBSERVED if status.observed_generation is None else ""
    late = OUTDATED if not late and status.observed_generation < meta.get("generation", 0) else late
    if late:
        answer.waits_for_operator = late
        if now - changed_at(meta) >= UNREAD_SECONDS:
            effect = "it evicts no pod" if late == NOT_OBSERVED else "the version before stays in force"
            answer.add(Problem(ProblemKind.NOT_OBSERVED, late, effect, LIST_PODS))
    elif (accepted := status.condition("Accepted")) is not None:
        answer.accepted = accepted.status
        if accepted.status is not ConditionStatus.TRUE:
            remedy = f"kubectl edit taintevictionpolicy {answer.name}"
            effect = status.message_if("Enforcing", "NotAccepted") or "its last valid version stays in force"
            cause = f"it is not accepted: {accepted.message}"
            answer.add(Problem(ProblemKind.NOT_ACCEPTED, cause, effect, remedy))
    answer.add(*_problems(answer, now))
    return answer


def _paused_by(meta: Mapping[str, Any]) -> str | None:
    """The person who paused a policy; None if unknown, as when the client that wrote the name does not pause it now."""
    writers, pausing = set[str](), set[str]()
    for one in meta.get("managedFields") or []:
        fields = one.get("fieldsV1") or {}
        if f"f:{PAUSED_BY_ANNOTATION}" in fields.get("f:metadata", {}).get("f:annotations", {}):
            writers.add(one.get("manager", ""))
        if "f:paused" in fields.get("f:spec", {}):
            pausing.add(one.get("manager", ""))
    return None if pausing and not writers & pausing else (meta.get("annotations") or {}).get(PAUSED_BY_ANNOTATION)


def changed_at(meta: Mapping[str, Any]) -> float:
    """When the spec of an object was last changed, in seconds since the epoch; 0 if that is unknown."""
    managed = meta.get("managedFields") or []
    times = [read_time(one.get("time")) for one in managed if "f:spec" in (one.get("fieldsV1") or {})]
    return max(filter(None, times), default=0.0)


def _problems(policy: PolicySummary, now: float) -> Iterator[Problem]:
    """Problems of a policy that is in effect."""
    name, status = policy.name, policy.status
    if policy.mode != Mode.DRY_RUN:
        if policy.guard == TRIPPED:
            yield guard_problem(name, status, is_paused=policy.is_paused)
        elif policy.guard == UNHEALTHY:
            yield zones_problem(name, status)
    yield from status_problems(name, status, now, enforces=policy.mode == Mode.ENFORCE)
    if policy.invalid:
        yield invalid_values_problem(policy.invalid)
