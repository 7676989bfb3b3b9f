"""Hard deadlines: pods that will miss theirs are reported before it, and those that missed it are counted.

A pod is at risk if its policy leaves it on its node, or if it has not left by when it could just stop gracefully.
"""

from collections.abc import Iterator
from typing import Self

import msgspec

from taintwarden.engine.deadlines import DeadlineQueue
from taintwarden.engine.limits.refusal import BUDGET
from taintwarden.engine.machine import commands
from taintwarden.engine.machine.claims import Claim, Phase
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import Instant, Method, Mode, Pod, WallTime

TOLERANCE_SECONDS = 1.0
"""Kubernetes counts grace periods in whole seconds."""
CLEARLY_SECONDS = 0.1
"""So much later than that a pod is at risk, whatever the rounding of times."""

REMEMBERED_SECONDS, REMEMBERED_NODES = 600.0, 1_000
"""For how long, and for how many nodes, it is reported that pods were still there when they were gone."""


class NodeEnd(msgspec.Struct, frozen=True):
    """The end of a node: when it counts as gone, and the pods of one policy on it.

    ``pods`` have to leave it or are left on it. Of these, ``at_risk`` will not have left. ``missed`` were still on it
    when it was gone.
    """

    node: str
    gone_at: float
    pods: int = 0
    at_risk: int = 0
    missed: int = 0

    @property
    def is_bad(self) -> bool:
        """Whether pods will be, or were, killed with the node."""
        return bool(self.at_risk or self.missed)

    def joined(self, other: Self) -> Self:
        """The same with what others say of the node."""
        gone_at, pods = min(self.gone_at, other.gone_at), self.pods + other.pods
        return type(self)(self.node, gone_at, pods, self.at_risk + other.at_risk, self.missed + other.missed)


class Reclaims:
    """The claims on pods of nodes that will be removed."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.claims: dict[str, Claim] = {}
        """By key; without any there is nothing to report or to forget."""
        self._gone_at: DeadlineQueue[WallTime] = DeadlineQueue()
        self._late_at: DeadlineQueue[WallTime] = DeadlineQueue()
        """Claims by when they are at risk, if they still stand by then."""
        self._at_risk: set[str] = set()
        """Claims that were reported as going to miss their deadline. Never iterated."""
        self._missed: set[str] = set()
        """Claims that were counted as missed. Never iterated."""
        self._ended: dict[tuple[str, str], NodeEnd] = {}
        """Policy and node -> its end, for nodes with pods that missed their deadline; the earliest first."""

    def expect(self, claim: Claim) -> None:
        """A claim has a new verdict."""
        hard_at, pod = claim.grounds.hard_at, self._world.cluster.pod(claim.node, claim.uid)
        if hard_at is None or pod is None:
            return
        self.claims[claim.key] = claim
        if claim.key not in self._missed:
            self._gone_at.schedule(claim.key, WallTime(hard_at))
        now, latest = self._world.now.wall, hard_at - claim.grace_seconds(pod) + TOLERANCE_SECONDS
        is_late = claim.grounds.exempt or claim.due_at > latest
        if not is_late and now <= latest:  # an edit of its policy may have averted it
            self._at_risk.discard(claim.key)
        if claim.key not in self._at_risk:
            self._late_at.schedule(claim.key, now if is_late else WallTime(latest + CLEARLY_SECONDS))

    def forget(self, key: str) -> None:
        """The pod no longer has to leave, or its eviction was accepted."""
        if self.claims.pop(key, None) is not None:
            self._gone_at.cancel(key)
            self._late_at.cancel(key)
            self._at_risk.discard(key)
            self._missed.discard(key)

    def next_in(self, now: Instant) -> float | None:
        """Seconds until pods are at risk or a node is removed."""
        nexts = (self._gone_at.next_at(), self._late_at.next_at())
        return min((at - now.wall for at in nexts if at is not None), default=None)

    def missed(self, now: WallTime, most: int) -> Iterator[commands.DeadlineMissed]:
        """Pods that still existed when their node was removed: so many at most."""
        for _ in range(most):
            key = self._gone_at.pop_due(now)
            if key is None:
                return
            claim = self.claims[key]
            pod = self._world.cluster.pod(claim.node, claim.uid)
            if pod is not None:
                yield from self.miss(claim, pod, "not-evicted")

    def miss(self, claim: Claim, pod: Pod, reason: str) -> Iterator[commands.DeadlineMissed]:
        """Count a pod that missed its deadline, once. A policy that does not enforce misses nothing."""
        hard_at = claim.grounds.hard_at
        if hard_at is None or claim.key in self._missed or claim.phase is Phase.LEAVING:
            return
        if claim.policy.mode is not Mode.ENFORCE:
            return
        self._missed.add(claim.key)
        if reason != "grace-cut":
            self._remember(claim, hard_at)
        yield commands.DeadlineMissed(pod, claim.verdict, hard_at, "exempt" if claim.grounds.exempt else reason)

    def _remember(self, claim: Claim, hard_at: float) -> None:
        key = claim.policy.name, claim.node
        known = self._ended.pop(key, None) or NodeEnd(claim.node, hard_at)
        self._ended[key] = msgspec.structs.replace(known, missed=known.missed + 1)
        if len(self._ended) > REMEMBERED_NODES:
            del self._ended[next(iter(self._ended))]

    def end_of(self, claim: Claim) -> NodeEnd | None:
        """What a standing claim says of its node; None if that is not removed, or the policy does not enforce."""
        hard_at = claim.grounds.hard_at
        if hard_at is None or claim.key not in self.claims or claim.policy.mode is not Mode.ENFORCE:
            return None
        return NodeEnd(claim.node, hard_at, pods=1, at_risk=int(self._is_at_risk(claim)))

    def ended(self, now: Instant) -> dict[str, list[NodeEnd]]:
        """By policy, the nodes that lately were gone with pods on them."""
        for key in [key for key, end in self._ended.items() if end.gone_at + REMEMBERED_SECONDS <= now.wall]:
            del self._ended[key]
        found: dict[str, list[NodeEnd]] = {}
        for (policy, _), end in self._ended.items():
            found.setdefault(policy, []).append(end)
        return found

    def _is_at_risk(self, claim: Claim) -> bool:
        is_blocked = claim.phase is Phase.BLOCKED and not (claim.refusal is not None and claim.refusal.is_brief)
        is_held = is_blocked or claim.phase in (Phase.EXEMPT, Phase.DELAYED) or claim.failed is not None
        return (is_held and not _is_deleted_in_time(claim)) or claim.key in self._at_risk

    def risks(self, now: WallTime, most: int) -> Iterator[commands.DeadlineAtRisk]:
        """Pods that are at risk from now on: so many at most."""
        for _ in range(most):
            key = self._late_at.pop_due(now)
            if key is None:
                return
            claim = self.claims[key]
            hard_at, pod = claim.grounds.hard_at, self._world.cluster.pod(claim.node, claim.uid)
            if hard_at is None or pod is None or key in self._missed or claim.phase in (Phase.REHEARSED, Phase.PAUSED):
                continue
            left = max(0, int(hard_at - max(claim.due_at, now)))
            reason = f"it asks for {claim.grace_seconds(pod)} s to stop, and {left} s are left at best"
            if claim.grounds.exempt:
                reason = f"it is not evicted, since {claim.grounds.exempt}"
            self._at_risk.add(key)
            yield commands.DeadlineAtRisk(pod, claim.verdict, hard_at, reason)


def _is_deleted_in_time(claim: Claim) -> bool:
    """Whether only a budget holds a pod, which it does until the latest moment at most."""
    if claim.policy.eviction.method is not Method.EVICT_THEN_DELETE or claim.grounds.exempt:
        return False
    if claim.failed is not None:
        return claim.failed.row.by_budget
    return claim.phase is Phase.BLOCKED and claim.refusal is not None and claim.refusal.limit == BUDGET
