"""From the machine's notices to what people see: one table from notice to metric, log line and Event."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import assert_never

import structlog

from taintwarden.api.field_errors import FieldError
from taintwarden.api.text import printable
from taintwarden.api.types import PROFILE_KIND
from taintwarden.controller.decoding.decoding import PodIssue
from taintwarden.controller.words import wording
from taintwarden.controller.words.policy_changes import ChangeKind, PolicyChange
from taintwarden.engine import times
from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.machine import commands
from taintwarden.engine.model import Gates, Mode, Pod, Policy, Taint
from taintwarden.kube.calls.recorder import MAX_NOTE_BYTES, NORMAL, WARNING, EventSubject, Message, Recorder
from taintwarden.telemetry.metrics import Metrics

MISSED = {
    "not-evicted": "It was not evicted in time and ends with its node",
    "grace-cut": "It had less time to stop than its terminationGracePeriodSeconds",
    "exempt": "The policy does not evict it, so it ends with its node",
}
"""Reason of a missed deadline -> what happened."""

MAX_FAULTS_CHARACTERS = 1_000
"""Of the errors of one pod: about the limit of an Event's note. Tenants must not fill the log."""

MAX_PODS_IN_LINE = 100
"""Of one log line: container runtimes split lines of more than 16 KiB."""

_AboutPod = (
    commands.Cancelled
    | commands.Decided
    | commands.Rehearsed
    | commands.Evicted
    | commands.Hindered
    | commands.Left
    | commands.HeldByBudget
    | commands.Bounced
    | commands.HeldAsBouncing
    | commands.DeadlineAtRisk
    | commands.DeadlineMissed
)

log = structlog.get_logger()


class Notifier:
    """Reports what happened. The only place that does."""

    def __init__(self, recorder: Recorder, metrics: Metrics, gates: Gates) -> None:
        self._recorder = recorder
        self._metrics = metrics
        self._gates = gates

    def tell(self, notices: Sequence[commands.Notice]) -> None:  # noqa: C901, PLR0912 - one row for each kind of notice
        """Report the notices of one step of the machine."""
        scheduled: dict[tuple[str, Taint, str, float], list[commands.Scheduled]] = {}
        for notice in notices:
            match notice:
                case commands.Scheduled(pod, verdict, due_at):
                    scheduled.setdefault((pod.node, verdict.taint, verdict.policy.name, due_at), []).append(notice)
                case commands.Cancelled():
                    self._cancelled(notice)
                case commands.Decided():
                    self._decided(notice)
                case commands.Rehearsed():
                    self._rehearsed(notice)
                case commands.Evicted():
                    self._evicted(notice)
                case commands.Hindered():
                    self._hindered(notice)
                case commands.Left():
                    self._left(notice)
                case commands.InvalidValue():
                    self._invalid_value(notice)
                case commands.NotMirrored():
                    self._not_mirrored(notice)
                case commands.LabelsContested():
                    self._labels_contested(notice)
                case commands.Degraded():
                    self._degraded(notice)
                case commands.HeldByBudget():
                    self._held_by_budget(notice)
                case commands.Bounced():
                    self._bounced(notice)
                case commands.HeldAsBouncing():
                    self._held_as_bouncing(notice)
                case commands.GuardTripped():
                    self._guard_tripped(notice)
                case commands.GuardArmed():
                    self._guard_armed(notice)
                case commands.EvictionsHalted():
                    self._evictions_halted(notice)
                case commands.EvictionsResumed():
                    self._evictions_resumed(notice)
                case commands.DeadlineAtRisk():
                    self._deadline_at_risk(notice)
                case commands.DeadlineMissed():
                    self._deadline_missed(notice)
                case commands.UnreadableHistory():
                    self._unreadable_history(notice)
                case _:
                    assert_never(notice)
        for alike in scheduled.values():
            for first in range(0, len(alike), MAX_PODS_IN_LINE):
                self._scheduled(alike[first : first + MAX_PODS_IN_LINE])

    def pod_issue(self, issue: PodIssue) -> None:
        """A pod has values which cannot be used."""
        pod, subject = f"{issue.namespace}/{issue.name}", EventSubject("Pod", issue.name, issue.uid, issue.namespace)
        if issue.errors:
            self._metrics.invalid_values.labels("toleration").inc()
            log.warning("toleration-invalid", pod=pod, errors=_line(issue.errors))
            note = f"These tolerations count as absent: {_line(issue.errors)}"
            self._recorder.record(Message(subject, WARNING, "InvalidToleration", "Evaluate", note))
        if issue.ignored:
            log.warning("pod-value-ignored", pod=pod, errors=_line(issue.ignored))
            note = f"These values of the pod have no effect: {_line(issue.ignored)}"
            self._recorder.record(Message(subject, WARNING, "IgnoredValue", "Evaluate", note))

    def policy_issue(self, name: str, uid: str, reason: str) -> None:
        """A policy cannot be accepted."""
        log.warning("policy-invalid", policy=name, reason=reason)
        self._recorder.record(Message(_subject(name, uid), WARNING, "InvalidPolicy", "Validate", reason))

    def policy_change(self, change: PolicyChange) -> None:
        """A policy was paused, resumed or edited."""
        log.info("policy-changed", policy=change.name, kind=change.kind.value, change=change.note)
        unpaused = "PolicyResumed" if change.kind is ChangeKind.RESUMED else "PolicyChanged"
        reason = "PolicyPaused" if change.kind is ChangeKind.PAUSED else unpaused
        subject = _subject(change.name, change.uid)
        self._recorder.record(Message(subject, NORMAL, reason, "Change", printable(change.note)))

    def profile_issue(self, key: str, uid: str, reason: str) -> None:
        """The profile ``namespace/name`` cannot be accepted."""
        self._metrics.invalid_values.labels("toleration").inc()
        log.warning("profile-invalid", profile=key, reason=reason)
        namespace, _, name = key.partition("/")
        subject = EventSubject("TolerationProfile", name, uid, namespace, api_version="taintwarden.io/v1alpha1")
        self._recorder.record(Message(subject, WARNING, "InvalidProfile", "Validate", reason))

    def guard_reset_outdated(self, name: str, uid: str, asked: str, generation: int) -> None:
        """A guard is to be reset for another version of its policy than the one that is stored."""
        log.warning("guard-reset-outdated", policy=name, asked=asked, generation=generation)
        note = (
            f"The annotation requests a reset of the guard of generation {asked}, and the policy is at generation "
            f"{generation}: check it again, then run: {wording.guard_reset(name, generation)}"
        )
        self._recorder.record(Message(_subject(name, uid), WARNING, "GuardResetOutdated", "Guard", note))

    def _why(self, verdict: TaintVerdict) -> str:
        return wording.why(verdict, self._gates)

    def _short_why(self, verdict: TaintVerdict) -> str:
        """For a note that is made late: until then it holds no tolerations of pods that may be gone."""
        return self._why(verdict)[:MAX_NOTE_BYTES]

    def _scheduled(self, notices: Sequence[commands.Scheduled]) -> None:
        """Pods of a node with the same deadline, by the same taint and policy: one line, since a node has many."""
        node, verdict, due = notices[0].pod.node, notices[0].verdict, times.at(notices[0].due_at)
        policy = verdict.policy
        pods = [str(notice.pod) for notice in notices]
        log.info("eviction-scheduled", pods=pods, node=node, taint=str(verdict.taint), policy=policy.name, due=due)
        fate, named = "Will" if policy.mode is Mode.ENFORCE else "Would", _named(policy)

        def note(why: str) -> str:
            return f"{fate} be evicted from {node} at {due}: {why} ({named})"

        for notice in notices:
            late = partial(note, self._short_why(notice.verdict))
            self._pod_event(notice.pod, NORMAL, "EvictionScheduled", "Schedule", late, policy)

    def _cancelled(self, notice: commands.Cancelled) -> None:
        self._metrics.cancelled.labels(notice.verdict.policy.name).inc()
        log.info("eviction-cancelled", **_facts(notice))
        node, taint = notice.pod.node, notice.verdict.taint
        note = f"Node {node} is gone, so its taint {taint} evicts no pod"
        if not notice.node_gone:
            note = f"Stays on {node}: taint {taint} no longer evicts it"
        self._pod_event(notice.pod, NORMAL, "EvictionCancelled", "Cancel", note)

    def _decided(self, notice: commands.Decided) -> None:
        if notice.limit:
            self._metrics.limit_wait.labels(notice.limit).observe(notice.waited)
        log.info("eviction-decided", **_facts(notice), due=times.at(notice.due_at), why=self._why(notice.verdict))

    def _rehearsed(self, notice: commands.Rehearsed) -> None:
        self._metrics.evictions.labels(notice.verdict.policy.name, "dry-run").inc()
        log.info("eviction-rehearsed", **_facts(notice), why=self._why(notice.verdict))
        policy = notice.verdict.policy
        note = f"Would be evicted from {notice.pod.node} now: {self._why(notice.verdict)} ({_named(policy)})"
        self._pod_event(notice.pod, NORMAL, "EvictionDryRun", "Evict", note)

    def _evicted(self, notice: commands.Evicted) -> None:
        self._metrics.evictions.labels(notice.verdict.policy.name, "evicted").inc()
        self._metrics.lateness.observe(notice.lateness)
        log.info("eviction-settled", **_facts(notice), outcome="evicted", lateness=round(notice.lateness, 3))

        node, policy, why = notice.pod.node, notice.verdict.policy, self._short_why(notice.verdict)

        def note() -> str:
            return f"Evicted from {node}: {why} ({_named(policy)})"

        self._pod_event(notice.pod, NORMAL, "Evicted", "Evict", note, policy)

    def _hindered(self, notice: commands.Hindered) -> None:
        self._metrics.evictions.labels(notice.verdict.policy.name, notice.outcome).inc()
        facts = _facts(notice) | {"outcome": notice.outcome, "message": notice.message, "attempts": notice.attempts}
        log.info("eviction-settled", **facts, retry=times.at(notice.retry_at))
        reason = "EvictionBlocked" if notice.outcome.row.by_budget else "EvictionFailed"
        why = wording.hindered(notice.outcome)
        note = f"Not evicted from {notice.pod.node} ({why}): {notice.message}. It is retried."
        self._pod_event(notice.pod, WARNING, reason, "Evict", note)

    def _left(self, notice: commands.Left) -> None:
        self._metrics.evictions.labels(notice.verdict.policy.name, "gone").inc()
        log.info("eviction-settled", **_facts(notice), outcome="gone")

    def _held_by_budget(self, notice: commands.HeldByBudget) -> None:
        until = {} if notice.until is None else {"until": times.until(notice.until)}
        log.info("eviction-held", **_facts(notice), reason=notice.reason, **until)
        end = "It waits until that changes."
        if until:
            end = f"It is deleted at {until['until']} (EvictThenDelete), unless a limit holds it then."
        note = f"Has to leave {notice.pod.node}, but {notice.reason}. {end}"
        self._pod_event(notice.pod, WARNING, "EvictionBlocked", "Evict", note)

    def _bounced(self, notice: commands.Bounced) -> None:
        self._metrics.bounces.labels(notice.verdict.policy.name).inc()
        log.info("eviction-bounced", **_facts(notice), in_a_row=notice.in_a_row)

    def _held_as_bouncing(self, notice: commands.HeldAsBouncing) -> None:
        until = times.until(notice.until)
        log.warning("eviction-bouncing", **_facts(notice), reason=notice.reason, until=until)
        note = f"Waits until {until}: {notice.reason}. {wording.comes_back(notice.pod)}."
        self._pod_event(notice.pod, WARNING, "EvictionBouncing", "Evict", note)

    def _guard_tripped(self, notice: commands.GuardTripped) -> None:
        policy = notice.policy
        log.warning(
            "guard-tripped",
            policy=policy.name,
            cause=notice.cause,
            waiting=notice.waiting,
            evicted=notice.evicted,
            population=notice.population,
            limit=notice.limit,
            halts=notice.halts,
            examples=list(notice.examples),
        )
        window = policy.limits.guard.window_seconds if policy.limits.guard is not None else 0
        counted = wording.Counted(notice.waiting, notice.evicted, notice.limit, window, notice.bad)
        told = wording.tripped(policy, counted, "", halts=notice.halts)
        advice = wording.guard_advice(policy.name)
        note = f"{_mode(policy)}{told[0].upper()}{told[1:]}. Cause: {_public(notice.cause)}. {advice}"
        self._policy_event(policy, WARNING, "GuardTripped", "Guard", note)

    def _guard_armed(self, notice: commands.GuardArmed) -> None:
        policy, released = notice.policy, notice.released
        log.info("guard-armed", policy=policy.name, released=released)
        reset = f"The guard was reset: it releases {wording.pods(released or 0)}"
        none = "None of the pods that it held has to leave any more"
        ended = f"The policy is paused. {none}" if policy.mode is Mode.PAUSED else f"{none}: evictions continue"
        note = ended if released is None else reset
        self._policy_event(policy, NORMAL, "GuardArmed", "Guard", note)

    def _evictions_halted(self, notice: commands.EvictionsHalted) -> None:
        policy = notice.policy
        log.warning("evictions-halted", policy=policy.name, zones=notice.zones, waiting=notice.waiting)
        note = _mode(policy) + wording.all_zones_full(policy, notice.waiting, notice.zones)
        self._policy_event(policy, WARNING, "EvictionsHalted", "Halt", note)

    def _evictions_resumed(self, notice: commands.EvictionsResumed) -> None:
        log.info("evictions-resumed", policy=notice.policy.name)
        note = "Not every zone is Full any more: evictions continue"
        self._policy_event(notice.policy, NORMAL, "EvictionsResumed", "Halt", note)

    def _deadline_at_risk(self, notice: commands.DeadlineAtRisk) -> None:
        gone = times.at(notice.hard_at)
        log.warning("deadline-at-risk", **_facts(notice), gone=gone, reason=notice.reason)
        note = f"{notice.pod.node} is gone at {gone}, before the pod can stop gracefully: {notice.reason}"
        self._pod_event(notice.pod, WARNING, "DeadlineAtRisk", "Schedule", note)

    def _deadline_missed(self, notice: commands.DeadlineMissed) -> None:
        gone = times.at(notice.hard_at)
        self._metrics.missed_deadlines.labels(notice.verdict.policy.name, notice.reason).inc()
        log.warning("deadline-missed", **_facts(notice), gone=gone, reason=notice.reason)
        word = "at" if notice.reason == "grace-cut" else "since"
        note = f"{MISSED.get(notice.reason, notice.reason)}: {notice.pod.node} is gone {word} {gone}"
        self._pod_event(notice.pod, WARNING, "DeadlineMissed", "Evict", note)

    def _invalid_value(self, notice: commands.InvalidValue) -> None:
        self._metrics.invalid_values.labels("taint").inc()
        verdict, held = notice.verdict, notice.held
        policy, judged = verdict.policy, verdict.judged_value
        facts = {"node": notice.node, "taint": str(verdict.taint), "policy": policy.name}
        log.warning("taint-value-invalid", **facts, held=held, judged_by=judged)
        effect = f"{wording.invalid_effect(verdict, held=held)} (policy {policy.name})"
        note = f"{_mode(policy)}Taint {verdict.taint} is invalid ({wording.invalid_value(verdict)}): {effect}"
        self._node_event(notice.node, notice.node_uid, "InvalidTaintValue", note)

    def _not_mirrored(self, notice: commands.NotMirrored) -> None:
        subject, reason = str(notice.subject), notice.reason
        note = (
            f"{subject} cannot be repeated in labels of placement: {reason}. "
            f"New pods that compare its value are kept off this node"
        )
        if isinstance(notice.subject, Taint):
            log.warning("taint-not-mirrored", node=notice.node, taint=subject, reason=reason)
            self._node_event(notice.node, notice.node_uid, "TaintNotMirrored", f"Taint {note}")
        else:
            log.warning("label-not-mirrored", node=notice.node, label=subject, reason=reason)
            self._node_event(notice.node, notice.node_uid, "LabelNotMirrored", f"Label {note}")

    def _labels_contested(self, notice: commands.LabelsContested) -> None:
        self._metrics.labels_contested.inc()
        labels, after = list(notice.labels), round(notice.after)
        log.warning("node-labels-contested", node=notice.node, labels=labels, times=notice.number, after=after)
        note = (
            f"Another client has changed labels of placement {notice.number} times: {', '.join(labels)}. "
            f"They are written again after {wording.duration(after)}; until then the scheduler uses what the other "
            f"client wrote. To find it: kubectl get node {notice.node} -o yaml --show-managed-fields"
        )
        self._node_event(notice.node, notice.node_uid, "LabelsContested", note)

    def _degraded(self, notice: commands.Degraded) -> None:
        policy = notice.policy
        log.info("node-evicting", node=notice.node, taint=str(notice.taint), policy=policy.name, pods=notice.pods)
        must = "have" if policy.mode is Mode.ENFORCE else "would have"
        note = f"{_mode(policy)}Pods {must} to leave because of taint {notice.taint} (policy {policy.name})"
        self._node_event(notice.node, notice.node_uid, "EvictingNode", note)

    def _unreadable_history(self, notice: commands.UnreadableHistory) -> None:
        log.warning("taint-history-unreadable", node=notice.node, reason=notice.reason)

    def _pod_event(
        self,
        pod: Pod,
        kind: str,
        reason: str,
        action: str,
        note: str | Callable[[], str],
        policy: Policy | None = None,
    ) -> None:
        """With a note that is made late, the policy that it is about."""
        subject = EventSubject("Pod", pod.name, pod.uid, pod.namespace)
        self._recorder.record(Message(subject, kind, reason, action, note, policy.name if policy else ""))

    def _policy_event(self, policy: Policy, kind: str, reason: str, action: str, note: str) -> None:
        self._recorder.record(Message(_subject(policy.name, policy.uid), kind, reason, action, note))

    def _node_event(self, name: str, uid: str, reason: str, note: str) -> None:
        self._recorder.record(Message(EventSubject("Node", name, uid), WARNING, reason, "Evaluate", note))


def _line(faults: Sequence[FieldError]) -> str:
    return printable("; ".join(map(str, faults)), MAX_FAULTS_CHARACTERS)


def _public(cause: str) -> str:
    """A cause without the name of an object in a namespace: many may read the Events of the namespace default.

    The status of the policy has the whole cause, and the log also some of the pods.
    """
    return "a TolerationProfile was changed" if cause.startswith(PROFILE_KIND) else cause


def _named(policy: Policy) -> str:
    """The policy, and its mode where that means that nothing is evicted."""
    return f"policy {policy.name}" + ("" if policy.mode is Mode.ENFORCE else f": {policy.mode}")


def _mode(policy: Policy) -> str:
    """What a note on a policy or node begins with where nothing is evicted in its mode."""
    return "" if policy.mode is Mode.ENFORCE else f"Dry run, policy {policy.name} is in mode {policy.mode}: "


def _subject(policy: str, uid: str) -> EventSubject:
    return EventSubject("TaintEvictionPolicy", policy, uid, api_version="taintwarden.io/v1alpha1")


def _facts(notice: _AboutPod) -> dict[str, str]:
    return {
        "pod": str(notice.pod),
        "uid": notice.pod.uid,
        "node": notice.pod.node,
        "taint": str(notice.verdict.taint),
        "policy": notice.verdict.policy.name,
    }
