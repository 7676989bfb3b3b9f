"""Hard deadlines: pods that will miss theirs are reported before it, and those that missed it are counted."""

from collections.abc import Iterator

from taintwarden.engine.deadlines import DeadlineQueue
from taintwarden.engine.machine import commands
from taintwarden.engine.machine.claims import Claim, Phase
from taintwarden.engine.machine.cluster import Cluster
from taintwarden.engine.machine.timings import Timings
from taintwarden.engine.model import Instant, Mode, MonotonicTime, Pod, WallTime, later
from taintwarden.engine.order import place_of

TOLERANCE_SECONDS = 1.0
"""Kubernetes counts grace periods in whole seconds."""


class Reclaims:
    """The claims on pods of nodes that will be removed.

    Args:
        cluster: what is known.
        timings: how often the forecast is computed.

    """

    def __init__(self, cluster: Cluster, timings: Timings) -> None:
        self._cluster = cluster
        self._timings = timings
        self._claims: dict[str, Claim] = {}
        self._gone_at: DeadlineQueue[WallTime] = DeadlineQueue()
        self._at_risk: set[str] = set()
        """Claims that were reported as going to miss their deadline. Never iterated."""
        self._missed: set[str] = set()
        """Claims that were counted as missed. Never iterated."""
        self._changed = False
        self._forecast_at = MonotonicTime(0.0)

    def expect(self, claim: Claim) -> None:
        """A claim has a new verdict."""
        hard_at = claim.verdict.hard_at
        if hard_at is None:
            return
        self._claims[claim.key] = claim
        if claim.key not in self._missed:
            self._gone_at.schedule(claim.key, WallTime(hard_at))
        self._changed = True

    def forget(self, key: str) -> None:
        """The pod no longer has to leave, or its eviction was accepted."""
        if self._claims.pop(key, None) is not None:
            self._gone_at.cancel(key)
            self._at_risk.discard(key)
            self._missed.discard(key)

    def next_in(self, now: Instant) -> float | None:
        """Seconds until a forecast is due or a node is removed."""
        waits = [max(0.0, self._forecast_at - now.monotonic)] if self._changed else []
        gone_at = self._gone_at.next_at()
        return min([*waits, *([] if gone_at is None else [gone_at - now.wall])], default=None)

    def missed(self, now: WallTime) -> Iterator[commands.DeadlineMissed]:
        """Pods that still existed when their node was removed."""
        while (key := self._gone_at.pop_due(now)) is not None:
            claim = self._claims[key]
            pod = self._cluster.pod(claim.node, claim.uid)
            if pod is not None:
                yield from self.miss(claim, pod, "not-evicted")

    def miss(self, claim: Claim, pod: Pod, reason: str) -> Iterator[commands.DeadlineMissed]:
        """Count a pod that missed its deadline, once. A DryRun policy misses nothing."""
        hard_at = claim.verdict.hard_at
        if hard_at is None or claim.key in self._missed or claim.phase is Phase.LEAVING:
            return
        if claim.policy.mode is Mode.DRY_RUN:
            return
        self._missed.add(claim.key)
        yield commands.DeadlineMissed(pod, claim.verdict, hard_at, reason)

    def forecast(self, rate: float | None, now: Instant) -> Iterator[commands.DeadlineAtRisk]:
        """Pods that will not have stopped gracefully by their hard deadline, at ``rate`` evictions per second."""
        if not self._changed or now.monotonic < self._forecast_at:
            return
        self._changed, self._forecast_at = False, later(now.monotonic, self._timings.forecast)
        ahead = []
        for claim in self._claims.values():
            pod = self._cluster.pod(claim.node, claim.uid)
            if pod is not None and claim.phase is not Phase.LEAVING:
                place = place_of(pod.shared, claim.policy, claim.due_at, claim.verdict.hard_at, claim.attempts)
                ahead.append((place, claim.key, claim, pod))
        ahead.sort(key=lambda one: one[:2])
        for position, (_, key, claim, pod) in enumerate(ahead):
            turn = now.wall if rate is None else now.wall + position / rate
            begins, hard_at = max(claim.due_at, turn), claim.verdict.hard_at or 0.0
            left, grace = hard_at - begins, claim.grace_seconds(pod)
            if key in self._at_risk or left + TOLERANCE_SECONDS >= grace:
                continue
            self._at_risk.add(key)
            reason = f"it asks for {grace} s to stop, and {max(0, int(left))} s are left at best"
            yield commands.DeadlineAtRisk(pod, claim.verdict, hard_at, reason)
