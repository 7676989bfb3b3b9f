"""Hard deadlines: who will not make it is told before, and who did not is counted after."""

from collections.abc import Iterator

from taintwarden.engine.deadlines import DeadlineQueue
from taintwarden.engine.machine import commands
from taintwarden.engine.machine.pending import Pending, Phase
from taintwarden.engine.model import Instant, Mode

TOLERANCE_SECONDS = 1.0
"""Kubernetes counts graces in whole seconds."""


LOOK_AGAIN_SECONDS = 1.0
"""A wave comes node by node: what it means for everybody's turn is computed at most once a second."""


class Reclaims:
    """The pods that have to leave nodes which will be gone."""

    def __init__(self) -> None:
        self._pods: dict[str, Pending] = {}
        self._gone_at = DeadlineQueue()
        self._changed = False
        self._look_at = 0.0

    def expect(self, pending: Pending) -> None:
        """A pod's verdict is a new one."""
        uid, hard_at = pending.pod.uid, pending.verdict.hard_at
        if hard_at is None:
            self.forget(uid)
            return
        self._pods[uid] = pending
        if not pending.missed:
            self._gone_at.schedule(uid, hard_at)
        self._changed = True

    def forget(self, uid: str) -> None:
        """It has not to leave, or has left."""
        if self._pods.pop(uid, None) is not None:
            self._gone_at.cancel(uid)

    def next_look(self, now: Instant) -> float | None:
        """Seconds until something may be foretold."""
        return max(0.0, self._look_at - now.monotonic) if self._changed else None

    def next_at(self) -> float | None:
        """When the next node is gone."""
        return self._gone_at.next_at()

    def missed(self, now: float) -> Iterator[commands.DeadlineMissed]:
        """Pods that stood there still when their node was gone."""
        while (uid := self._gone_at.pop_due(now)) is not None:
            yield from miss(self._pods[uid], "not-evicted")

    def foretell(self, rate: float | None, now: Instant) -> Iterator[commands.DeadlineAtRisk]:
        """Pods that will not have stopped in order by their hard deadline, at ``rate`` evictions per second."""
        if not self._changed or now.monotonic < self._look_at:
            return
        self._changed, self._look_at = False, now.monotonic + LOOK_AGAIN_SECONDS
        pods = [one for one in self._pods.values() if one.phase is not Phase.LEAVING]
        pods.sort(key=lambda one: (one.compute_place(), one.pod.uid))
        for position, pending in enumerate(pods):
            turn = now.wall if rate is None else now.wall + position / rate
            begins, hard_at = max(pending.due_at, turn), pending.verdict.hard_at or 0.0
            left = hard_at - begins
            if pending.at_risk or left + TOLERANCE_SECONDS >= pending.grace_seconds:
                continue
            pending.at_risk = True
            reason = f"it asks for {pending.grace_seconds} s to stop, and {max(0, int(left))} s are left at best"
            yield commands.DeadlineAtRisk(pending.pod, pending.verdict, hard_at, reason)


def miss(pending: Pending, reason: str) -> Iterator[commands.DeadlineMissed]:
    """Count a pod that did not make it, once. A policy that only rehearses misses nothing."""
    hard_at = pending.verdict.hard_at
    if hard_at is None or pending.missed or pending.phase is Phase.LEAVING or pending.policy.mode is Mode.DRY_RUN:
        return
    pending.missed = True
    yield commands.DeadlineMissed(pending.pod, pending.verdict, hard_at, reason)
