"""From the machine's notices to what people see: one table from notice to metric, log line and Event."""

from collections.abc import Callable
from typing import Any

import structlog

from taintwarden.controller import wording
from taintwarden.controller.cache import PodIssue
from taintwarden.engine.machine import commands
from taintwarden.engine.model import Gates, Mode, Pod, Policy
from taintwarden.kube.recorder import NORMAL, WARNING, Message, Recorder, Subject
from taintwarden.telemetry.metrics import Metrics

MISSED = {
    "not-evicted": "It was not evicted in time",
    "grace-cut": "It had less time to stop than it asks for",
}
"""Reason of a missed deadline -> what happened."""

log = structlog.get_logger()


class Record:
    """Tells people what happened. The only place that does."""

    def __init__(self, recorder: Recorder, metrics: Metrics, gates: Gates) -> None:
        self._recorder = recorder
        self._metrics = metrics
        self._gates = gates
        self._tell: dict[type, Callable[[Any], None]] = {
            commands.Scheduled: self._scheduled,
            commands.Cancelled: self._cancelled,
            commands.Decided: self._decided,
            commands.Rehearsed: self._rehearsed,
            commands.Evicted: self._evicted,
            commands.Hindered: self._hindered,
            commands.Left: self._left,
            commands.InvalidValue: self._invalid_value,
            commands.NotMirrored: self._not_mirrored,
            commands.Degraded: self._degraded,
            commands.HeldByBudget: self._held_by_budget,
            commands.Bounced: self._bounced,
            commands.HeldAsBouncing: self._held_as_bouncing,
            commands.GuardOpened: self._guard_opened,
            commands.GuardClosed: self._guard_closed,
            commands.DeadlineAtRisk: self._deadline_at_risk,
            commands.DeadlineMissed: self._deadline_missed,
            commands.UnreadableHistory: self._unreadable_history,
        }

    def notice(self, notice: commands.Notice) -> None:
        """Tell one notice of the machine."""
        self._tell[type(notice)](notice)

    def pod_issue(self, issue: PodIssue) -> None:
        """A pod's annotation has entries which cannot be used."""
        self._metrics.invalid_values.labels("toleration").inc()
        faults = "; ".join(str(error) for error in issue.errors)
        log.warning("toleration-invalid", pod=f"{issue.namespace}/{issue.name}", errors=faults)
        subject = Subject("Pod", issue.name, issue.uid, issue.namespace)
        note = f"These tolerations count as absent: {faults}"
        self._recorder.record(Message(subject, WARNING, "InvalidToleration", "Evaluate", note))

    def policy_issue(self, name: str, uid: str, reason: str) -> None:
        """A policy cannot be accepted."""
        log.warning("policy-invalid", policy=name, reason=reason)
        self._recorder.record(Message(_subject(name, uid), WARNING, "InvalidPolicy", "Validate", reason))

    def profile_issue(self, key: str, uid: str, reason: str) -> None:
        """The profile ``namespace/name`` cannot be accepted."""
        self._metrics.invalid_values.labels("toleration").inc()
        log.warning("profile-invalid", profile=key, reason=reason)
        namespace, _, name = key.partition("/")
        subject = Subject("TolerationProfile", name, uid, namespace, api_version="taintwarden.io/v1alpha1")
        self._recorder.record(Message(subject, WARNING, "InvalidProfile", "Validate", reason))

    def guard_reset_outdated(self, name: str, uid: str, asked: str, generation: int) -> None:
        """A guard is to be reset for another version of its policy than the one that is stored."""
        log.warning("guard-reset-outdated", policy=name, asked=asked, generation=generation)
        note = (
            f"The annotation asks to reset the guard of generation {asked}, and the policy is at generation "
            f"{generation}: look again, then {wording.guard_reset(name, generation)}"
        )
        self._recorder.record(Message(_subject(name, uid), WARNING, "GuardResetOutdated", "Guard", note))

    def _why(self, notice: Any) -> str:
        return wording.why(notice.verdict, self._gates)

    def _scheduled(self, notice: commands.Scheduled) -> None:
        due = wording.at(notice.due_at)
        log.info("eviction-scheduled", **_facts(notice), due=due)
        policy = _policy(notice)
        fate, mode = ("Would", ": DryRun") if policy.mode is Mode.DRY_RUN else ("Will", "")
        note = f"{fate} be evicted from {notice.pod.node} at {due}: {self._why(notice)} (policy {policy.name}{mode})"
        self._pod_event(notice.pod, NORMAL, "EvictionScheduled", "Schedule", note)

    def _cancelled(self, notice: commands.Cancelled) -> None:
        self._metrics.cancelled.labels(_policy(notice).name).inc()
        log.info("eviction-cancelled", **_facts(notice))
        note = f"Stays on {notice.pod.node}: taint {notice.verdict.taint} no longer makes it leave"
        self._pod_event(notice.pod, NORMAL, "EvictionCancelled", "Cancel", note)

    def _decided(self, notice: commands.Decided) -> None:
        if notice.limit:
            self._metrics.limit_wait.labels(notice.limit).observe(notice.waited)
        log.info("eviction-decided", **_facts(notice), due=wording.at(notice.due_at), why=self._why(notice))

    def _rehearsed(self, notice: commands.Rehearsed) -> None:
        self._metrics.evictions.labels(_policy(notice).name, "dry-run").inc()
        log.info("eviction-rehearsed", **_facts(notice), why=self._why(notice))
        note = (
            f"Would be evicted from {notice.pod.node} now: {self._why(notice)} (policy {_policy(notice).name}: DryRun)"
        )
        self._pod_event(notice.pod, NORMAL, "EvictionDryRun", "Evict", note)

    def _evicted(self, notice: commands.Evicted) -> None:
        self._metrics.evictions.labels(_policy(notice).name, "evicted").inc()
        self._metrics.lateness.observe(notice.lateness)
        log.info("eviction-settled", **_facts(notice), outcome="evicted", lateness=round(notice.lateness, 3))
        note = f"Evicted from {notice.pod.node}: {self._why(notice)} (policy {_policy(notice).name})"
        self._pod_event(notice.pod, NORMAL, "Evicted", "Evict", note)

    def _hindered(self, notice: commands.Hindered) -> None:
        self._metrics.evictions.labels(_policy(notice).name, notice.outcome).inc()
        facts = _facts(notice) | {"outcome": notice.outcome, "message": notice.message, "attempts": notice.attempts}
        log.info("eviction-settled", **facts, retry=wording.at(notice.retry_at))
        blocked = notice.outcome == "blocked"
        reason = "EvictionBlocked" if blocked else "EvictionFailed"
        by = "A PodDisruptionBudget" if blocked else "The API server"
        note = f"{by} does not let it leave {notice.pod.node}: {notice.message}. It is tried again."
        self._pod_event(notice.pod, WARNING, reason, "Evict", note)

    def _left(self, notice: commands.Left) -> None:
        self._metrics.evictions.labels(_policy(notice).name, "gone").inc()
        log.info("eviction-settled", **_facts(notice), outcome="gone")

    def _held_by_budget(self, notice: commands.HeldByBudget) -> None:
        until = {} if notice.until is None else {"until": wording.at(notice.until)}
        log.info("eviction-held", **_facts(notice), reason=notice.reason, **until)
        end = f"It is deleted at {until['until']} (EvictThenDelete)." if until else "It waits until that changes."
        note = f"Has to leave {notice.pod.node}, but {notice.reason}. {end}"
        self._pod_event(notice.pod, WARNING, "EvictionBlocked", "Evict", note)

    def _bounced(self, notice: commands.Bounced) -> None:
        self._metrics.bounces.labels(_policy(notice).name).inc()
        log.info("eviction-bounced", **_facts(notice), in_a_row=notice.in_a_row)

    def _held_as_bouncing(self, notice: commands.HeldAsBouncing) -> None:
        until = wording.at(notice.until)
        log.warning("eviction-bouncing", **_facts(notice), reason=notice.reason, until=until)
        note = f"Is held until {until}: {notice.reason}. {wording.comes_back(notice.pod)}."
        self._pod_event(notice.pod, WARNING, "EvictionBouncing", "Evict", note)

    def _guard_opened(self, notice: commands.GuardOpened) -> None:
        policy = notice.policy
        log.warning(
            "guard-opened",
            policy=policy.name,
            cause=notice.cause,
            pods=notice.pods,
            population=notice.population,
            limit=notice.limit,
            halts=notice.halts,
            examples=list(notice.examples),
        )
        effect = "Nothing is evicted" if notice.halts else "Evictions go on (action Report)"
        examples = f". Among them: {', '.join(notice.examples)}" if notice.examples else ""
        note = (
            f"{effect}: {notice.pods} of {wording.pods(notice.population)} would leave within one window, "
            f"and {notice.limit} may. Cause: {notice.cause}. "
            f"To let them go: {wording.guard_reset(policy.name, policy.generation)}{examples}"
        )
        self._recorder.record(Message(_subject(policy.name, policy.uid), WARNING, "GuardOpened", "Guard", note))

    def _guard_closed(self, notice: commands.GuardClosed) -> None:
        policy, accepted = notice.policy, notice.accepted
        log.info("guard-closed", policy=policy.name, accepted=accepted)
        reset = f"It was reset: {wording.pods(accepted or 0)} may leave, once"
        note = "No window would hold too many evictions any more" if accepted is None else reset
        self._recorder.record(Message(_subject(policy.name, policy.uid), NORMAL, "GuardClosed", "Guard", note))

    def _deadline_at_risk(self, notice: commands.DeadlineAtRisk) -> None:
        gone = wording.at(notice.hard_at)
        log.warning("deadline-at-risk", **_facts(notice), gone=gone, reason=notice.reason)
        note = f"{notice.pod.node} is gone at {gone}, before it can have stopped in order: {notice.reason}"
        self._pod_event(notice.pod, WARNING, "DeadlineAtRisk", "Schedule", note)

    def _deadline_missed(self, notice: commands.DeadlineMissed) -> None:
        gone = wording.at(notice.hard_at)
        self._metrics.missed_deadlines.labels(_policy(notice).name, notice.reason).inc()
        log.warning("deadline-missed", **_facts(notice), gone=gone, reason=notice.reason)
        note = f"{MISSED.get(notice.reason, notice.reason)}: {notice.pod.node} is gone at {gone}"
        self._pod_event(notice.pod, WARNING, "DeadlineMissed", "Evict", note)

    def _invalid_value(self, notice: commands.InvalidValue) -> None:
        self._metrics.invalid_values.labels("taint").inc()
        effect = "judged by their last valid value" if notice.held else "evicted (onInvalidValue: Evict)"
        log.warning("taint-value-invalid", node=notice.node, taint=str(notice.taint), held=notice.held)
        note = f"The value of taint {notice.taint} cannot be compared: pods that ask for a comparison are {effect}"
        self._node_event(notice.node, notice.node_uid, "InvalidTaintValue", note)

    def _not_mirrored(self, notice: commands.NotMirrored) -> None:
        log.warning("taint-not-mirrored", node=notice.node, taint=str(notice.taint), reason=notice.reason)
        note = (
            f"Taint {notice.taint} cannot be repeated in labels: {notice.reason}. "
            f"New pods that compare its value are kept off this node"
        )
        self._node_event(notice.node, notice.node_uid, "TaintNotMirrored", note)

    def _degraded(self, notice: commands.Degraded) -> None:
        log.info("node-degraded", node=notice.node, taint=str(notice.taint), pods=notice.pods)
        note = f"Pods have to leave because of taint {notice.taint}"
        self._node_event(notice.node, notice.node_uid, "DegradedNode", note)

    def _unreadable_history(self, notice: commands.UnreadableHistory) -> None:
        log.warning("taint-history-unreadable", node=notice.node, reason=notice.reason)

    def _pod_event(self, pod: Pod, kind: str, reason: str, action: str, note: str) -> None:
        subject = Subject("Pod", pod.name, pod.uid, pod.namespace)
        self._recorder.record(Message(subject, kind, reason, action, note))

    def _node_event(self, name: str, uid: str, reason: str, note: str) -> None:
        self._recorder.record(Message(Subject("Node", name, uid), WARNING, reason, "Evaluate", note))


def _policy(notice: Any) -> Policy:
    policy: Policy = notice.verdict.policy
    return policy


def _subject(policy: str, uid: str) -> Subject:
    return Subject("TaintEvictionPolicy", policy, uid, api_version="taintwarden.io/v1alpha1")


def _facts(notice: Any) -> dict[str, str]:
    pod: Pod = notice.pod
    return {
        "pod": str(pod),
        "uid": pod.uid,
        "node": pod.node,
        "taint": str(notice.verdict.taint),
        "policy": _policy(notice).name,
    }
