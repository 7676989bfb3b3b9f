"""Pods whose node is removed at a known time (``reclaim``), until they leave or are reported as missed."""

from taintwarden.engine.deadlines import DeadlineQueue
from taintwarden.engine.machine import commands
from taintwarden.engine.machine.claims import Claim, Phase
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import Instant, Pod, WallTime

NOT_EVICTED, GRACE_CUT = "not-evicted", "grace-cut"
"""Reasons: the pod was still there when its node was removed; it had less time to stop than it asks for."""


class HardDeadlines:
    """The claims that have a hard deadline, and reports of those that missed it.

    A pod that leaves misses nothing but a part of its grace. An accepted eviction alone does not count as leaving.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._ends: DeadlineQueue[WallTime] = DeadlineQueue()
        """Claims by when their nodes count as removed, until that is reported."""

    def next_in(self, now: Instant) -> float | None:
        """Seconds until a node counts as removed on which pods have to leave."""
        at = self._ends.next_at()
        return None if at is None else at - now.wall

    def expect(self, claim: Claim, *, is_new: bool) -> None:
        """Note when the node of a claim is removed. A new pod may come even after that."""
        hard_at = claim.grounds.hard_at
        acts = claim.phase not in (Phase.REHEARSED, Phase.PAUSED)
        if acts and hard_at is not None and (is_new or hard_at > self._world.now.wall):
            self._ends.schedule(claim.key, WallTime(hard_at))

    def cancel(self, claim: Claim) -> None:
        """The claim has ended, or its policy removes no nodes any more."""
        self._ends.cancel(claim.key)

    def report_due(self, most: int) -> None:
        """Report the pods that are still there when their node counts as removed: ``most`` at a time."""
        for _ in range(most):
            head = self._ends.head()
            if head is None or head.at > self._world.now.wall:
                return
            claim = self._world.claims.get(head.key)
            pod = None if claim is None else self._world.cluster.pod(claim.node, claim.uid)
            if claim is not None and pod is not None:
                self.miss(claim, pod, NOT_EVICTED)
            self._ends.cancel(head.key)

    def miss(self, claim: Claim, pod: Pod, reason: str) -> None:
        """Report a pod that missed its hard deadline, once. A policy that does not enforce misses nothing."""
        hard_at = claim.grounds.hard_at
        if hard_at is not None and claim.key in self._ends and claim.is_enforced:
            self._ends.cancel(claim.key)
            self._world.report(commands.DeadlineMissed(pod, claim.verdict, hard_at, reason))
