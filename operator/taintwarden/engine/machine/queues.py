"""Pods on their way out: one queue until they are due, then one per policy until they may go."""

from collections.abc import Container

from taintwarden.engine.deadlines import DeadlineQueue, Entry
from taintwarden.engine.machine.events import Instant
from taintwarden.engine.machine.pending import Pending, Phase


class Queues:
    """Where WAITING, LEAVING and READY pods are kept. Every order here is total, so that two runs agree."""

    def __init__(self) -> None:
        self._waiting = DeadlineQueue()
        self._ready: dict[str, DeadlineQueue] = {}

    def wait(self, pending: Pending) -> None:
        """Until its deadline and its next try."""
        pending.phase = Phase.WAITING
        self._waiting.schedule(pending.pod.uid, max(pending.due_at, pending.retry_at), pending.rank)

    def expect_gone(self, pending: Pending, by: float) -> None:
        """Until the watch says that it left, or ``by`` then."""
        pending.phase = Phase.LEAVING
        self._waiting.schedule(pending.pod.uid, by, pending.rank)

    def make_ready(self, pending: Pending, now: Instant) -> None:
        """It is due: let it stand in its policy's queue, in the order of deadlines."""
        pending.phase = Phase.READY
        pending.ready_since = now.monotonic
        pending.limit = ""
        queue = self._ready.setdefault(pending.verdict.policy.name, DeadlineQueue())
        queue.schedule(pending.pod.uid, pending.due_at, pending.rank)

    def remove(self, pending: Pending) -> None:
        """Take it out, wherever it stands. Its verdict must still be the one it was queued with."""
        self._waiting.cancel(pending.pod.uid)
        if pending.phase is Phase.READY:
            self._ready[pending.verdict.policy.name].cancel(pending.pod.uid)

    def pop_due(self, now: float) -> str | None:
        """Take the first pod whose time has come."""
        return self._waiting.pop_due(now)

    def next_at(self) -> float | None:
        """When the next pod's time comes."""
        return self._waiting.next_at()

    def first_ready(self, besides: Container[str] = ()) -> tuple[Entry, str] | None:
        """The pod whose turn it is and its policy, among the policies not named in ``besides``."""
        heads = [
            (head, policy)
            for policy, queue in self._ready.items()
            if policy not in besides and (head := queue.head()) is not None
        ]
        return min(heads, default=None)

    def ready_policies(self) -> list[str]:
        """The policies that have pods standing ready."""
        return [policy for policy, queue in self._ready.items() if len(queue)]
