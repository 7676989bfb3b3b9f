"""Faults in users' objects, each reported once by the leader, even if found before this replica led."""

from collections import OrderedDict
from collections.abc import Callable

import structlog

from taintwarden.controller.decoding.decoding import PodIssue
from taintwarden.controller.words.notifier import Notifier, policy_subject
from taintwarden.controller.words.policy_changes import ChangeKind
from taintwarden.fields.text import printable
from taintwarden.kube.calls.recorder import NORMAL, WARNING, EventSubject

MAX_WAITING = 1_000
MAX_FAULTS_CHARACTERS = 1_000
"""Maximum characters of the errors of one pod, about the limit of an Event's note. Tenants must not fill the log."""
EVENTS = {
    "toleration-invalid": ("InvalidToleration", "Evaluate"),
    "pod-value-ignored": ("IgnoredValue", "Evaluate"),
    "policy-invalid": ("InvalidPolicy", "Validate"),
    "profile-invalid": ("InvalidProfile", "Validate"),
}
"""Log line of an issue -> reason and action of its Event."""
COUNTED = ("toleration-invalid", "profile-invalid")
"""Log lines of issues that the metric of invalid tolerations counts."""
CHANGES = {ChangeKind.PAUSED: "PolicyPaused", ChangeKind.RESUMED: "PolicyResumed", ChangeKind.EDITED: "PolicyChanged"}
"""Kind of a change -> reason of its Event."""

log = structlog.get_logger()


class Issues:
    """Reports issues while this replica leads, and keeps them until then, because the leader reports them.

    Args:
        notifier: records their Events.
        max_waiting: maximum number of issues kept. Beyond it, the oldest are dropped.

    """

    def __init__(self, notifier: Notifier, *, max_waiting: int = MAX_WAITING) -> None:
        self._notifier = notifier
        self._max_waiting = max_waiting
        self._leading = False
        self._waiting: OrderedDict[tuple[str, ...], Callable[[], None]] = OrderedDict()

    def report_pod(self, issue: PodIssue) -> None:
        """Report a pod with values that cannot be used."""
        subject = EventSubject("Pod", issue.name, issue.uid, issue.namespace)
        for line, faults, effect in (
            ("toleration-invalid", issue.errors, "These tolerations count as absent"),
            ("pod-value-ignored", issue.ignored, "These values of the pod have no effect"),
        ):
            errors = printable("; ".join(map(str, faults)), MAX_FAULTS_CHARACTERS)
            pod = f"{issue.namespace}/{issue.name}"
            self._report_or_keep(line, subject, f"{effect}: {errors}" if faults else "", pod=pod, errors=errors)

    def report_policy(self, name: str, uid: str, reason: str) -> None:
        """Report a policy that cannot be accepted."""
        self._report_or_keep("policy-invalid", policy_subject(name, uid), reason, policy=name, reason=reason)

    def report_policy_change(self, name: str, uid: str, kind: ChangeKind, note: str) -> None:
        """Report that a policy was paused, resumed or edited. That is not an issue, so it is not kept for later."""
        if self._leading:
            log.info("policy-changed", policy=name, kind=kind.value, change=note)
            self._notifier.record(policy_subject(name, uid), NORMAL, CHANGES[kind], "Change", printable(note))

    def report_profile(self, key: str, uid: str, reason: str) -> None:
        """Report the profile ``namespace/name``, which cannot be accepted."""
        namespace, _, name = key.partition("/")
        subject = EventSubject("TolerationProfile", name, uid, namespace, api_version="taintwarden.io/v1alpha1")
        self._report_or_keep("profile-invalid", subject, reason, profile=key, reason=reason)

    def set_leading(self, leading: bool) -> None:  # noqa: FBT001 - a change's one value
        """Note a change of leadership. A replica that gains it reports the issues that it kept."""
        self._leading = leading
        while leading and self._waiting:
            self._waiting.popitem(last=False)[1]()

    def _report_or_keep(self, line: str, subject: EventSubject, note: str, **facts: object) -> None:
        """Report an issue, or keep the newest of each kind and object. Without ``note`` it has ended."""
        key = line, subject.namespace, subject.name
        if not note:
            self._waiting.pop(key, None)
            return

        def report() -> None:
            if line in COUNTED:
                self._notifier.metrics.invalid_values.labels("toleration").inc()
            log.warning(line, **facts)
            self._notifier.record(subject, WARNING, *EVENTS[line], note)

        if self._leading:
            report()
            return
        self._waiting[key] = report
        if len(self._waiting) > self._max_waiting:
            self._waiting.popitem(last=False)
