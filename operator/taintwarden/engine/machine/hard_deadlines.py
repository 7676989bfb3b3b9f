"""Pods whose node is removed at a known time (``reclaim``), until they leave or are reported as missed."""

from collections.abc import Iterable

from msgspec.structs import replace

from taintwarden.engine import commands
from taintwarden.engine.deadlines import DeadlineQueue
from taintwarden.engine.evaluate import Grounds, exclusion
from taintwarden.engine.machine.claims import Claim
from taintwarden.engine.machine.cluster import NodeState
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import Instant, Pod, WallTime
from taintwarden.engine.policy import Mode

NOT_EVICTED, GRACE_CUT = "not-evicted", "grace-cut"
"""Reasons: the pod was still there when its node was removed; it had less time to stop than it asks for."""


class HardDeadlines:
    """Claims with a hard deadline, and reports of those that missed it.

    A pod that is seen to leave in time loses a part of its grace period at most. An accepted eviction does not suffice.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._ends: DeadlineQueue[WallTime] = DeadlineQueue()
        """Keys of claims by the time at which their node counts as removed, until that is reported."""
        self._reported: DeadlineQueue[WallTime] = DeadlineQueue()
        """Keys (pod, policy, end) of the reported pods that end with their node, until the node counts as removed."""

    def next_in(self, now: Instant) -> float | None:
        """Seconds until a node with pods that have to leave counts as removed; None if there is none."""
        at = self._ends.next_at()
        return None if at is None else at - now.wall

    def schedule(self, claim: Claim, *, is_new: bool) -> None:
        """Schedule the hard deadline of a claim, a past one only if the claim ``is_new``: its pod came late."""
        hard_at = claim.grounds.hard_at
        if hard_at is not None and (is_new or hard_at > self._world.now.wall):
            self._ends.schedule(claim.key, WallTime(hard_at))

    def cancel(self, claim: Claim) -> None:
        """Drop the hard deadline of a claim that has ended, or whose policy does not reclaim nodes any more."""
        self._ends.cancel(claim.key)

    def report_due(self, most: int) -> None:
        """Report at most ``most`` pods that are still there when their node counts as removed."""
        for _ in range(most):
            if self._reported.pop_due(self._world.now.wall) is None:
                break
        for _ in range(most):
            head = self._ends.head()
            if head is None or head.at > self._world.now.wall:
                return
            claim = self._world.claims.get(head.key)
            pod = None if claim is None else self._world.cluster.pod(claim.node, claim.uid)
            if claim is not None and pod is not None:
                self.report_missed(claim, pod, NOT_EVICTED)
            self._ends.cancel(head.key)

    def report_ending(self, state: NodeState, pod: Pod, grounds: Iterable[Grounds]) -> None:
        """Report a pod that opts out of evictions and therefore ends with its node, once for each notice.

        ``grounds``: why other policies evict it. If one does so before the end of the node, nothing is reported.
        """
        world = self._world
        selecting = (policy for policy in world.verdicts.policies_on(state) if policy.reclaim is not None)
        if not any(policy.selector_for(taint) for policy in selecting for taint, _ in state.taints()):
            return
        evictable = replace(pod.shared, do_not_evict=False, do_not_disrupt=False)
        for ground in world.verdicts.compute(state, evictable)[1]:
            end = ground.hard_at
            if end is None or end <= world.now.wall or ground.policy.mode is not Mode.ENFORCE or not world.leading:
                continue
            leaves = any(own.policy.mode is Mode.ENFORCE and own.first(pod.bound_at)[0] < end for own in grounds)
            why = exclusion(ground.policy, pod.shared, world.verdicts.namespace_labels(pod.namespace))
            if why and not leaves and (key := f"{pod.uid}/{ground.policy.name}/{end}") not in self._reported:
                self._reported.schedule(key, WallTime(end))
                world.report(commands.EndsWithNode(pod, ground.first(pod.bound_at)[1], end, why))

    def report_missed(self, claim: Claim, pod: Pod, reason: str) -> None:
        """Report a pod that missed its hard deadline, once. A claim that is not enforced misses nothing."""
        hard_at = claim.grounds.hard_at
        if hard_at is not None and claim.key in self._ends and claim.is_enforced:
            self._ends.cancel(claim.key)
            self._world.report(commands.DeadlineMissed(pod, claim.verdict, hard_at, reason))
