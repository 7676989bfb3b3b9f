"""The report of a round: conditions, numbers and sentences for the status, Events and metrics. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import Any

import msgspec

from taintwarden_publisher.deciding import Change, Decision, Kind, State
from taintwarden_publisher.samples import Fault, Samples
from taintwarden_publisher.spec import PublisherMode
from taintwarden_publisher.troubles import NoAnswerError, Trouble

MAX_NAMES = 5
"""Maximum number of names in a sentence."""


class Condition(msgspec.Struct, frozen=True):
    """One condition of the status."""

    type: str
    status: bool
    reason: str
    message: str

    def text(self) -> str:
        """Return the text of an Event."""
        return f"{self.type} is {self.status}: {self.message}"


class Reason(StrEnum):
    """Reasons of conditions. Those of a missing answer are in ``Trouble``."""

    ACCEPTED = "Accepted"
    INVALID_SPEC = "InvalidSpec"
    KEY_TAKEN = "KeyTaken"
    ANSWERED = "Answered"
    PUBLISHING = "Publishing"
    DRY_RUN = "DryRun"
    TOO_MANY_CHANGES = "TooManyChanges"
    WRITE_REFUSED = "WriteRefused"
    WRITE_FAILED = "WriteFailed"
    CLUSTER_UNREACHABLE = "ClusterUnreachable"
    NOT_ACCEPTED = "NotAccepted"
    NOT_ANSWERED = "NotAnswered"


class WriteProblem(msgspec.Struct, frozen=True):
    """An example of why nodes were not written."""

    reason: Reason
    words: str
    """Message of the API server, or of the failed connection."""


class Report(msgspec.Struct, frozen=True):
    """The outcome of a round."""

    conditions: tuple[Condition, ...]
    decision: Decision | None = None
    written: tuple[Change, ...] = ()
    answered_at: datetime | None = None
    is_dry_run: bool = False

    def condition(self, kind: str) -> Condition:
        """Return the condition of a type."""
        return next(condition for condition in self.conditions if condition.type == kind)

    @property
    def summary(self) -> str:
        """Message of the first condition that does not hold, else of the last one."""
        return next((condition for condition in self.conditions if not condition.status), self.conditions[-1]).message

    @property
    def stuck(self) -> str:
        """Reason why taints do not follow their values; empty if they do, and in a dry run."""
        return "" if self.is_dry_run else next((one.reason for one in self.conditions if not one.status), "")


def names_text(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


def change_text(change: Change, key: str) -> str:
    """Return the change of one node as text: ``a1 sla=980 -> 940 (from 939.6)``."""
    measured = "" if change.measured is None else f" (from {change.measured:g})"
    match change.kind:
        case Kind.ADDED:
            return f"{change.node.name} {key}={change.after}{measured}"
        case Kind.CHANGED:
            return f"{change.node.name} {key}={change.before} -> {change.after}{measured}"
        case Kind.REMOVED:
            return f"{change.node.name} {key}={change.before} removed"


def changes_text(changes: Sequence[Change], key: str) -> str:
    """Return the first changes as text, and the number of the others."""
    return names_text([change_text(change, key) for change in changes])


def nodes_text(count: int) -> str:
    """Return a number of nodes as text."""
    return f"{count} node" if count == 1 else f"{count} nodes"


def publishing(
    decision: Decision,
    key: str,
    mode: PublisherMode,
    limit: int | str,
    written: Sequence[Change],
    problem: WriteProblem | None,
    *,
    has_answer: bool,
) -> Condition:
    """Return the condition ``Publishing`` after a round that could list the nodes."""
    changes = decision.changes
    if decision.is_too_much:
        too_much = f"more than maxChangedNodes allows ({limit}: {decision.limit})"
        if mode is PublisherMode.DRY_RUN:
            message = (
                f"mode is DryRun: would change nothing, since {nodes_text(decision.counted)} of {decision.concerned} "
                f"would change within ten minutes, {too_much}: {changes_text(changes, key)}"
            )
            return Condition("Publishing", False, Reason.DRY_RUN, message)
        message = (
            f"nothing is changed: {nodes_text(decision.counted)} of {decision.concerned} would change within ten "
            f"minutes, {too_much}, such as {changes_text(changes, key)}. If the values are right, raise maxChangedNodes"
        )
        return Condition("Publishing", False, Reason.TOO_MANY_CHANGES, message)
    if mode is PublisherMode.DRY_RUN and has_answer:
        would = (
            f"would change {nodes_text(len(changes))}: {changes_text(changes, key)}" if changes else "nothing to change"
        )
        return Condition("Publishing", False, Reason.DRY_RUN, f"mode is DryRun: {would}")
    unwritten = f"{nodes_text(len(changes) - len(written))} to be written again in the next round"
    if problem is not None:
        sentence = (
            "the API server refuses to change nodes"
            if problem.reason is Reason.WRITE_REFUSED
            else f"{unwritten}, since writes fail"
        )
        return Condition("Publishing", False, problem.reason, f"{sentence}: {problem.words}")
    state = {one: len(names) for one, names in decision.states.items()}
    have = state[State.PUBLISHED] + state[State.WAITING] + sum(change.kind is not Kind.REMOVED for change in written)
    message = f"{nodes_text(have)} of {decision.selected} {'has' if have == 1 else 'have'} the taint {key}"
    is_unwritten = len(changes) > len(written) and mode is not PublisherMode.DRY_RUN
    shortfalls = _shortfalls(decision, unwritten if is_unwritten else "")
    if not has_answer:
        message = f"no taint follows its value without an answer: {message} of a recent value{shortfalls}"
        return Condition("Publishing", False, Reason.NOT_ANSWERED, message)
    return Condition("Publishing", True, Reason.PUBLISHING, f"{message} with its value{shortfalls}")


def accepted(trouble: NoAnswerError | None) -> Condition:
    """Return the condition ``Accepted`` of a valid object. Prometheus may still reject its query."""
    if trouble is not None and trouble.trouble is Trouble.QUERY_INVALID:
        return Condition("Accepted", False, trouble.trouble, str(trouble))
    return Condition("Accepted", True, Reason.ACCEPTED, "spec is valid")


def answered(trouble: NoAnswerError | None, found: Samples | None) -> Condition:
    """Return the condition ``Answered``. ``found``: the samples in the answer, if there is one."""
    if trouble is not None:
        return Condition("Answered", False, trouble.trouble, str(trouble))
    unused = "" if found is None else _unused(found)
    message = f"Prometheus answers; series that are not used: {unused}" if unused else "Prometheus answers"
    return Condition("Answered", True, Reason.ANSWERED, message)


def no_usable_series(found: Samples) -> NoAnswerError:
    """Return the error for an answer without any usable series."""
    return NoAnswerError(Trouble.EMPTY, f"no series has a usable value of a node: {_unused(found)}")


def _unused(found: Samples) -> str:
    shared = "; ".join(f"{address}: {names_text(nodes)}" for address, nodes in islice(found.shared.items(), MAX_NAMES))
    more = {Fault.SHARED_ADDRESS: f" ({shared})"}
    return ", ".join(f"{count} {fault}{more.get(fault, '')}" for fault, count in found.faults.items())


def unaccepted_report(reason: Reason, message: str) -> Report:
    """Return the report of an object that is not accepted. There is no query and no write."""
    return Report(
        (
            Condition("Accepted", False, reason, message),
            Condition("Answered", False, Reason.NOT_ACCEPTED, "Prometheus is not asked"),
            Condition("Publishing", False, Reason.NOT_ACCEPTED, "no taint is changed"),
        )
    )


def unreachable_conditions(trouble: NoAnswerError | None, message: str) -> tuple[Condition, ...]:
    """Return the conditions of a round that cannot list the nodes."""
    unreachable = Condition("Publishing", False, Reason.CLUSTER_UNREACHABLE, message)
    return accepted(trouble), answered(trouble, None), unreachable


def _shortfalls(decision: Decision, unwritten: str) -> str:
    found = [
        f"{nodes_text(len(decision.states[state]))} {text} ({names_text(decision.states[state])})"
        for state, text in _STATE_TEXTS.items()
        if decision.states[state]
    ]
    if unwritten:
        found.append(unwritten)
    return "".join(f"; {one}" for one in found)


_STATE_TEXTS = {
    State.STALE: "without a value for too long, whose taint is held",
    State.WITHOUT_VALUE: "without a value",
    State.CONFLICTING: "not changed, since something else wrote the taint",
}


def status(report: Report, generation: int, before: Mapping[str, Any], now: str) -> dict[str, Any]:
    """Return the ``status``. Conditions that did not change keep the times in ``before``."""
    earlier = {condition.get("type"): condition for condition in before.get("conditions") or ()}
    conditions = []
    for condition in report.conditions:
        text = "True" if condition.status else "False"
        old = earlier.get(condition.type, {})
        since = old.get("lastTransitionTime", now) if old.get("status") == text else now
        conditions.append(
            {
                "type": condition.type,
                "status": text,
                "reason": condition.reason,
                "message": condition.message,
                "observedGeneration": generation,
                "lastTransitionTime": since,
            }
        )
    found: dict[str, Any] = {"observedGeneration": generation, "conditions": conditions, "summary": report.summary}
    if report.answered_at is not None:
        found["lastAnswerTime"] = report.answered_at.strftime("%Y-%m-%dT%H:%M:%SZ")
    if (decision := report.decision) is not None:
        counts = {state: len(names) for state, names in decision.states.items()}
        found["nodes"] = {
            "selected": decision.selected,
            "published": counts[State.PUBLISHED] + counts[State.WAITING] + counts[State.STALE] + _count_tainted(report),
            "pending": len(decision.changes) - len(report.written),
            "stale": counts[State.STALE],
            "withoutValue": counts[State.WITHOUT_VALUE],
            "conflicting": counts[State.CONFLICTING],
        }
    return found


def _count_tainted(report: Report) -> int:
    """Return the number of nodes with a change that have a taint of the publisher after the round."""
    assert report.decision is not None  # noqa: S101 - asked only then
    written = {change.node.name for change in report.written}
    return sum(
        (change.kind is not Kind.REMOVED) if change.node.name in written else change.kind is not Kind.ADDED
        for change in report.decision.changes
    )


def changed_conditions(report: Report, before: Iterable[Condition]) -> list[Condition]:
    """Return the conditions whose status or reason changed since the last round. Each causes an Event."""
    known = {(condition.type, condition.status, condition.reason) for condition in before}
    return [one for one in report.conditions if (one.type, one.status, one.reason) not in known]
