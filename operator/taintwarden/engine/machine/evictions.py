"""Evictions from their calls until the pods are seen to leave, and the number of pods that each policy evicted.

A pod counts as evicted once, when the pod stream or a read shows that it leaves within a window after a call, unless
the answer shows that the call did nothing, as that of a PodDisruptionBudget. No other answer counts: a webhook may turn
an accepted eviction into a dry run, or deny one and move the pod itself.
"""

from collections import Counter

import msgspec

from taintwarden.engine.commands import Evict
from taintwarden.engine.deadlines import DeadlineQueue
from taintwarden.engine.model import Instant, MonotonicTime, WallTime, later
from taintwarden.engine.policy import Policy


class OpenCall(msgspec.Struct, frozen=True, gc=False):
    """A call, issued ``at`` a time, that may evict a pod that was due at ``due_at``."""

    order: Evict
    due_at: WallTime
    at: MonotonicTime

    @property
    def policy(self) -> Policy:
        """The policy that evicts the pod."""
        return self.order.verdict.policy

    @property
    def counts_until(self) -> MonotonicTime:
        """Time until which the pod counts as evicted if it leaves."""
        return later(self.at, self.policy.limits.guard.window_seconds)


class Evictions:
    """Calls of the last window by the UIDs of their pods, and the number of pods that left after them."""

    def __init__(self) -> None:
        self._in_flight: dict[str, OpenCall] = {}
        self._open: dict[str, OpenCall] = {}
        """Last answered call for each pod, unless its answer shows that it did not evict the pod."""
        self._ends: DeadlineQueue[MonotonicTime] = DeadlineQueue()
        """UIDs of the pods in ``_open``, by the time at which the call stops counting."""
        self._evicted: Counter[tuple[str, str]] = Counter()
        """Name and UID of a policy -> number of pods that it evicted."""
        self._past_budgets: Counter[tuple[str, str]] = Counter()
        """Name and UID of a policy -> number of pods that it deleted in spite of a PodDisruptionBudget."""

    def evicted(self, policy: Policy) -> int:
        """Number of pods that a policy has evicted since this process began to lead."""
        return self._evicted[policy.name, policy.uid]

    def past_budgets(self, policy: Policy) -> int:
        """Number of these pods that were deleted in spite of a PodDisruptionBudget."""
        return self._past_budgets[policy.name, policy.uid]

    def restart(self) -> None:
        """Count from zero: this process begins to lead."""
        self._evicted.clear()
        self._past_budgets.clear()

    def keep_only(self, policies: set[tuple[str, str]]) -> None:
        """Drop the numbers of all policies but these (name and UID)."""
        for counted in (self._evicted, self._past_budgets):
            for key in counted.keys() - policies:
                del counted[key]

    def begin(self, order: Evict, due_at: WallTime, now: Instant) -> None:
        """Record that a call is issued."""
        self._in_flight[order.pod.uid] = OpenCall(order, due_at, now.monotonic)

    def settle(self, uid: str, *, stays: bool) -> None:
        """Record that the call for a pod ended. ``stays``: True if it is known not to have evicted the pod."""
        called = self._in_flight.pop(uid)
        if not stays:
            self._open[uid] = called
            self._ends.schedule(uid, called.counts_until)

    def note_leaving(self, uid: str, now: Instant) -> OpenCall | None:
        """Count a pod that is seen to leave. Returns the call that evicted it; None if none did, or one runs."""
        self._forget_old(now)
        if uid in self._in_flight or (called := self._open.pop(uid, None)) is None:
            return None
        self._ends.cancel(uid)
        key, past_budgets = (called.policy.name, called.policy.uid), called.order.past_budgets
        self._evicted[key] += 1
        self._past_budgets[key] += bool(past_budgets)
        return called

    def _forget_old(self, now: Instant) -> None:
        """Drop the calls whose window has passed. Pods that leave later do not count as evicted."""
        while (uid := self._ends.pop_due(now.monotonic)) is not None:
            del self._open[uid]
