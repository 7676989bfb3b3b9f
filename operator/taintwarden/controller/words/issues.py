"""Errors in users' objects, reported once and by the leader, also those found before it led."""

from collections import OrderedDict
from collections.abc import Callable

from taintwarden.controller.decoding.decoding import PodIssue
from taintwarden.controller.words.notifier import Notifier
from taintwarden.controller.words.policy_changes import PolicyChange

MAX_WAITING = 1_000


class Issues:
    """Keeps issues while another replica leads, because that replica reports them.

    Args:
        notifier: reports them.
        max_waiting: how many issues are kept, the newest.

    """

    def __init__(self, notifier: Notifier, *, max_waiting: int = MAX_WAITING) -> None:
        self._notifier = notifier
        self._max_waiting = max_waiting
        self._leading = False
        self._waiting: OrderedDict[str, Callable[[], None]] = OrderedDict()

    def pod(self, issue: PodIssue) -> None:
        """A pod's annotation has entries which cannot be used."""
        self._tell_or_keep(issue.uid, lambda: self._notifier.pod_issue(issue))

    def policy(self, name: str, uid: str, reason: str) -> None:
        """A policy cannot be accepted."""
        self._tell_or_keep(f"policy {name}", lambda: self._notifier.policy_issue(name, uid, reason))

    def policy_change(self, change: PolicyChange) -> None:
        """A policy was changed, which is no issue. The leader of that time reports it, and no later one."""
        if self._leading:
            self._notifier.policy_change(change)

    def profile(self, key: str, uid: str, reason: str) -> None:
        """The profile ``namespace/name`` cannot be accepted."""
        self._tell_or_keep(f"profile {key}", lambda: self._notifier.profile_issue(key, uid, reason))

    def guard_reset(self, name: str, uid: str, asked: str, generation: int) -> None:
        """A policy's guard is to be reset for another version of the policy than the stored one."""
        self._tell_or_keep(f"reset {name}", lambda: self._notifier.guard_reset_outdated(name, uid, asked, generation))

    def lead(self, leading: bool) -> None:  # noqa: FBT001 - a change's one value
        """Leadership changed: a replica that gains it reports what it kept."""
        self._leading = leading
        while leading and self._waiting:
            self._waiting.popitem(last=False)[1]()

    def _tell_or_keep(self, key: str, tell: Callable[[], None]) -> None:
        if self._leading:
            tell()
            return
        self._waiting[key] = tell
        if len(self._waiting) > self._max_waiting:
            self._waiting.popitem(last=False)
