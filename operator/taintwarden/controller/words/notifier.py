"""Reports notices. One row for each type of notice defines its log line, Event, metric and text."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import structlog

from taintwarden.api.types import PROFILE_KIND
from taintwarden.controller.words import wording
from taintwarden.engine import commands, rfc3339
from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.model import Gates, Taint
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import Mode, Policy
from taintwarden.fields.text import shortened
from taintwarden.kube.calls.recorder import MAX_NOTE_BYTES, NORMAL, WARNING, EventSubject, Message, Recorder
from taintwarden.telemetry.metrics import Metrics

MAX_PODS_IN_LINE = 100
"""Maximum number of pods in one log line. Container runtimes split lines of more than 16 KiB."""

Note = str | Callable[[], str]
"""Text of an Event, or a function that returns it, since most Events of a wave are dropped before they are written."""

log = structlog.get_logger()


class Report(NamedTuple):
    """Text about a notice: facts for its log line, note of its Event, and index into its row's lines and reasons."""

    facts: Mapping[str, object]
    note: Note = ""
    variant: int = 0


class Notifier:
    """Reports notices as log lines, Events and metrics."""

    def __init__(self, recorder: Recorder, metrics: Metrics, gates: Gates) -> None:
        self.metrics = metrics
        self._recorder = recorder
        self._gates = gates

    def report(self, notices: Sequence[object]) -> None:
        """Report notices, for example those of one step of the machine. Scheduled evictions are grouped."""
        scheduled: dict[tuple[str, Taint, str, float], list[commands.Scheduled]] = {}
        for notice in notices:
            if isinstance(notice, commands.Scheduled):
                key = (notice.pod.node, notice.verdict.taint, notice.verdict.policy.name, notice.due_at)
                scheduled.setdefault(key, []).append(notice)
            else:
                self._report(notice, ROWS[type(notice)])
        for alike in scheduled.values():
            for first in range(0, len(alike), MAX_PODS_IN_LINE):
                self._scheduled(alike[first : first + MAX_PODS_IN_LINE])

    def why(self, verdict: TaintVerdict) -> str:
        """Return the reason of a verdict, in one clause."""
        return wording.why(verdict, self._gates)

    def defer_note(self, note: str, verdict: TaintVerdict, *values: str) -> Note:
        """Return a function that fills ``note`` with ``values``, reason and policy. It keeps no (large) verdict."""
        return partial(note.format, *values, shortened(self.why(verdict), MAX_NOTE_BYTES), _named(verdict.policy))

    def _scheduled(self, notices: Sequence[commands.Scheduled]) -> None:
        """Report pods with equal node, deadline, taint and policy in one log line, since a node has many pods."""
        node, verdict, due = notices[0].pod.node, notices[0].verdict, rfc3339.at(notices[0].due_at)
        policy, pods = verdict.policy, [str(notice.pod) for notice in notices]
        log.info("eviction-scheduled", pods=pods, node=node, taint=str(verdict.taint), policy=policy.name, due=due)
        fate = "Will" if policy.mode is Mode.ENFORCE else "Would"
        for notice in notices:
            note = self.defer_note("{} be evicted from {} at {}: {} ({})", notice.verdict, fate, node, due)
            self.record(_pod(notice), NORMAL, "EvictionScheduled", "Schedule", note, policy.name)

    def _report(self, notice: object, row: "NoticeRow") -> None:
        facts, note, variant = row.say(self, notice)
        beginning = row.about.facts(notice)
        getattr(log, row.level)(row.lines[variant], **beginning, **facts)
        if row.kind:
            policy = "" if isinstance(note, str) else beginning["policy"]
            self.record(row.about.subject(notice), row.kind, row.reasons[variant], row.action, note, policy)

    def record(self, subject: EventSubject, kind: str, reason: str, action: str, note: Note, policy: str = "") -> None:
        """Queue an Event. ``policy``: the policy that the note is about, if the note is a function."""
        self._recorder.record(Message(subject, kind, reason, action, note, policy))


# -- rows -------------------------------------------------------------------------------------------------------------


class About(NamedTuple):
    """The object that a notice is about: the subject of its Event, and the first facts of its log line."""

    subject: Callable[[Any], EventSubject]
    facts: Callable[[Any], dict[str, str]]


class NoticeRow(NamedTuple):
    """Report of a type of notice: its log line, and the type, reason and action of its Event, if it has one."""

    about: About
    level: str
    lines: Sequence[str]
    kind: str
    reasons: Sequence[str]
    action: str
    say: Callable[[Notifier, Any], Report]
    """Counts the notice, and returns its text."""


ROWS: dict[type, NoticeRow] = {}
"""Type of a notice -> its row."""


def row(
    notice: type, about: About, level: str, lines: str, kind: str = "", reasons: str = "", action: str = ""
) -> Callable[[Callable[[Notifier, Any], Report]], None]:
    """Return a decorator that adds the row of a notice. ``lines`` and ``reasons`` are separated by spaces."""

    def add(say: Callable[[Notifier, Any], Report]) -> None:
        ROWS[notice] = NoticeRow(about, level, lines.split(), kind, reasons.split(), action, say)

    return add


def _pod(notice: Any) -> EventSubject:
    return EventSubject("Pod", notice.pod.name, notice.pod.uid, notice.pod.namespace)


def _facts(notice: Any) -> dict[str, str]:
    pod, verdict = notice.pod, notice.verdict
    return {
        "pod": str(pod),
        "uid": pod.uid,
        "node": pod.node,
        "taint": str(verdict.taint),
        "policy": verdict.policy.name,
    }


POD = About(_pod, _facts)
NODE = About(lambda n: EventSubject("Node", n.node, n.node_uid), lambda n: {"node": n.node})
POLICY = About(lambda n: policy_subject(n.policy.name, n.policy.uid), lambda n: {"policy": n.policy.name})


@row(commands.Cancelled, POD, "info", "eviction-cancelled", NORMAL, "EvictionCancelled", "Cancel")
def _cancelled(to: Notifier, n: commands.Cancelled) -> Report:
    to.metrics.cancelled.labels(n.verdict.policy.name).inc()
    if n.node_gone:
        return Report({}, f"Node {n.pod.node} is gone, so its taint {n.verdict.taint} evicts no pod")
    policy, taint = n.verdict.policy, n.verdict.taint
    if policy.mode is Mode.PAUSED:
        return Report({}, f"Stays on {n.pod.node}: policy {policy.name} is paused, so taint {taint} evicts no pod")
    # The deadline makes each cancellation an Event of its own, so that their number shows a flapping taint.
    due_at = n.verdict.due_at(n.pod.bound_at)
    deadline = "" if due_at is None else f", its deadline was {rfc3339.at(due_at)}"
    return Report({}, f"Stays on {n.pod.node}: taint {taint} no longer evicts it{deadline}")


@row(commands.Decided, POD, "info", "eviction-decided")
def _decided(to: Notifier, n: commands.Decided) -> Report:
    return Report({"due": rfc3339.at(n.due_at), "why": to.why(n.verdict)})


@row(commands.Rehearsed, POD, "info", "eviction-rehearsed", NORMAL, "EvictionDryRun", "Evict")
def _rehearsed(to: Notifier, n: commands.Rehearsed) -> Report:
    policy, why = n.verdict.policy, to.why(n.verdict)
    to.metrics.evictions.labels(policy.name, "dry-run").inc()
    return Report({"why": why}, f"Would be evicted from {n.pod.node} now: {why} ({_named(policy)})")


@row(commands.Evicted, POD, "info", "eviction-settled", NORMAL, "Evicted", "Evict")
def _evicted(to: Notifier, n: commands.Evicted) -> Report:
    outcome = "past-budget" if n.past_budgets else "evicted"
    to.metrics.evictions.labels(n.verdict.policy.name, outcome).inc()
    to.metrics.lateness.observe(n.lateness)
    done = f"Deleted {wording.in_spite_of(n.past_budgets)}" if n.past_budgets else "Evicted"
    note = to.defer_note("{} from {}: {} ({})", n.verdict, done, n.pod.node)
    return Report({"outcome": outcome, "lateness": round(n.lateness, 3)}, note)


@row(commands.ReplacementAsked, POD, "info", "replacement-asked", NORMAL, "ReplacementAsked", "Evict")
def _replacement_asked(to: Notifier, n: commands.ReplacementAsked) -> Report:
    to.metrics.evictions.labels(n.verdict.policy.name, Outcome.ASKED).inc()
    until = rfc3339.until(n.until)
    text = f"Asked Deployment {n.deployment} for a replacement. If it still runs on {{}} at {until}, it is evicted: "
    return Report({"deployment": n.deployment, "until": until}, to.defer_note(text + "{} ({})", n.verdict, n.pod.node))


@row(
    commands.EvictionFailed,
    POD,
    "info",
    "eviction-settled eviction-settled",
    WARNING,
    "EvictionFailed EvictionBlocked",
    "Evict",
)
def _eviction_failed(to: Notifier, n: commands.EvictionFailed) -> Report:
    to.metrics.evictions.labels(n.verdict.policy.name, n.outcome).inc()
    facts = {"outcome": n.outcome, "message": n.message, "attempts": n.attempts, "retry": rfc3339.at(n.retry_at)}
    note = f"Not evicted from {n.pod.node} ({n.outcome.row.why}): {n.message}. It is retried."
    return Report(facts, note, int(n.outcome.row.by_budget))


@row(commands.PodAlreadyGone, POD, "info", "eviction-settled")
def _pod_already_gone(to: Notifier, n: commands.PodAlreadyGone) -> Report:
    to.metrics.evictions.labels(n.verdict.policy.name, "gone").inc()
    return Report({"outcome": "gone"})


@row(
    commands.Held, POD, "info", "eviction-held eviction-bouncing", WARNING, "EvictionBlocked EvictionBouncing", "Evict"
)
def _held(_: Notifier, n: commands.Held) -> Report:
    until = {} if n.until is None else {"until": rfc3339.until(n.until)}
    if n.is_bouncing:
        note = f"Waits until {until['until']}: {n.reason}. {wording.comes_back(n.pod)}."
        return Report({"reason": n.reason, **until}, note, 1)
    end = "It waits until that changes."
    if until:
        end = f"It is deleted at {until['until']} (EvictThenDelete), unless a limit holds it then."
    return Report({"reason": n.reason, **until}, f"Has to leave {n.pod.node}, but {n.reason}. {end}")


@row(commands.DeadlineMissed, POD, "warning", "deadline-missed", WARNING, "DeadlineMissed", "Evict")
def _deadline_missed(to: Notifier, n: commands.DeadlineMissed) -> Report:
    to.metrics.missed_deadlines.labels(n.verdict.policy.name, n.reason).inc()
    gone, is_gone = rfc3339.at(n.hard_at), "is gone at" if n.reason == "grace-cut" else "counts as gone since"
    note = f"{wording.MISSED[n.reason]}: {n.pod.node} {is_gone} {gone} ({_named(n.verdict.policy)})"
    return Report({"gone": gone, "reason": n.reason}, note)


@row(commands.EndsWithNode, POD, "warning", "ends-with-node", WARNING, "EndsWithNode", "Reclaim")
def _ends_with_node(_: Notifier, n: commands.EndsWithNode) -> Report:
    gone = rfc3339.at(n.hard_at)
    note = f"Is not evicted and ends with its node, since {n.reason}: {n.pod.node} is gone at {gone}"
    return Report({"gone": gone, "reason": n.reason}, f"{note} ({_named(n.verdict.policy)})")


@row(commands.GuardTripped, POLICY, "warning", "guard-tripped", WARNING, "GuardTripped", "Guard")
def _guard_tripped(_: Notifier, n: commands.GuardTripped) -> Report:
    policy, guard, cause = n.policy, n.guard, n.guard.record.cause
    text = wording.tripped(policy, guard, "one namespace" if guard.scope else "")  # not its name: see _public
    advice = wording.tripped_advice(policy, guard)
    note = f"{_mode(policy)}{text[0].upper()}{text[1:]}. Cause: {_public(cause)}. {advice}"
    counts = {"due": guard.due, "evicted": guard.evicted, "allowance": guard.allowance}
    return Report({"cause": cause, **counts, "halts": guard.halts}, note)


@row(commands.GuardArmed, POLICY, "info", "guard-armed", NORMAL, "GuardArmed", "Guard")
def _guard_armed(_: Notifier, n: commands.GuardArmed) -> Report:
    none = "None of the pods that it counted has to leave any more"
    note = f"{none}: evictions continue" if n.policy.mode is Mode.ENFORCE else f"{_mode(n.policy)}{none}"
    if n.released is not None:
        kept = "" if n.released else ". Pods that a PodDisruptionBudget keeps count when it allows them"
        note = f"The guard was reset: it releases {wording.pods(n.released)}{kept}"
    return Report({"released": n.released}, note)


@row(commands.InvalidValue, NODE, "warning", "taint-value-invalid", WARNING, "InvalidTaintValue", "Evaluate")
def _invalid_value(to: Notifier, n: commands.InvalidValue) -> Report:
    to.metrics.invalid_values.labels("taint").inc()
    verdict, policy, taint = n.verdict, n.verdict.policy, str(n.verdict.taint)
    effect = f"{wording.invalid_effect(verdict, held=n.held)} (policy {policy.name})"
    note = f"{_mode(policy)}Taint {taint} is invalid ({wording.invalid_value(verdict)}): {effect}"
    return Report({"taint": taint, "policy": policy.name, "held": n.held, "judged_by": verdict.judged_value}, note)


@row(commands.UnreadableHistory, NODE, "warning", "taint-history-unreadable")
def _unreadable_history(_: Notifier, n: commands.UnreadableHistory) -> Report:
    return Report({"reason": n.reason})


# -- words ------------------------------------------------------------------------------------------------------------


def _public(cause: str) -> str:
    """Return a cause that names no profile and no namespace: many clients may read Events of namespace default.

    The status of the policy, and the log, have the whole cause.
    """
    parts = cause.split("; ")
    return "; ".join("a TolerationProfile was changed" if part.startswith(PROFILE_KIND) else part for part in parts)


def _named(policy: Policy) -> str:
    """Return the name of a policy, with its mode unless that is Enforce."""
    return f"policy {policy.name}" + ("" if policy.mode is Mode.ENFORCE else f": {policy.mode}")


def _mode(policy: Policy) -> str:
    """Return the prefix of a note on a policy or node: its policy is paused or in dry run. Empty in mode Enforce."""
    if policy.mode is Mode.PAUSED:
        return f"Policy {policy.name} is paused: "
    return "" if policy.mode is Mode.ENFORCE else "Dry run: "


def policy_subject(policy: str, uid: str) -> EventSubject:
    """Return the subject of Events about a policy."""
    return EventSubject("TaintEvictionPolicy", policy, uid, api_version="taintwarden.io/v1alpha1")
