"""Hard deadlines: pods that will miss theirs are reported before it, and those that missed it are counted."""

from collections.abc import Iterator
from heapq import heapify, heappop
from itertools import islice
from typing import NamedTuple, Self

import msgspec

from taintwarden.engine.deadlines import DeadlineQueue
from taintwarden.engine.limits.refusal import BUDGET
from taintwarden.engine.machine import commands
from taintwarden.engine.machine.claims import Claim, Phase
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import Instant, Method, Mode, MonotonicTime, Pod, WallTime, later
from taintwarden.engine.order import OrderKey, place_of

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


class _Alike(NamedTuple):
    """What the forecast of a claim depends on: claims that do not differ in it share one."""

    place: OrderKey
    due_at: WallTime
    hard_at: float
    grace_seconds: int


class Reclaims:
    """The claims on pods of nodes that will be removed."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.claims: dict[str, _Alike] = {}
        """By key; without any there is nothing to forecast or to forget."""
        self._alike: dict[_Alike, dict[str, Claim]] = {}
        self._gone_at: DeadlineQueue[WallTime] = DeadlineQueue()
        self._late_at: DeadlineQueue[WallTime] = DeadlineQueue()
        """Claims by when they are at risk, if they still stand by then."""
        self._at_risk: set[str] = set()
        """Claims that were reported as going to miss their deadline. Never iterated."""
        self._missed: set[str] = set()
        """Claims that were counted as missed. Never iterated."""
        self._ended: dict[tuple[str, str], NodeEnd] = {}
        """Policy and node -> its end, for nodes with pods that missed their deadline; the earliest first."""
        self._changed = False
        self._forecast_at = MonotonicTime(0.0)
        self._forecasting: Iterator[commands.DeadlineAtRisk | None] | None = None
        """The forecast that is being made."""

    def expect(self, claim: Claim) -> None:
        """A claim has a new verdict."""
        hard_at, pod = claim.grounds.hard_at, self._world.cluster.pod(claim.node, claim.uid)
        if hard_at is None or pod is None:
            return
        place = place_of(pod.shared, claim.policy, claim.due_at, hard_at)
        alike = _Alike(place, claim.due_at, hard_at, claim.grace_seconds(pod))
        self._remove(claim.key)
        self.claims[claim.key] = alike
        self._alike.setdefault(alike, {})[claim.key] = claim
        if claim.key not in self._missed:
            self._gone_at.schedule(claim.key, WallTime(hard_at))
        if claim.key not in self._at_risk:
            latest = hard_at - alike.grace_seconds + TOLERANCE_SECONDS
            self._late_at.schedule(claim.key, WallTime(latest + CLEARLY_SECONDS))
        self._changed = True

    def forget(self, key: str) -> None:
        """The pod no longer has to leave, or its eviction was accepted."""
        if self._remove(key):
            self._gone_at.cancel(key)
            self._late_at.cancel(key)
            self._at_risk.discard(key)
            self._missed.discard(key)

    def _remove(self, key: str) -> bool:
        alike = self.claims.pop(key, None)
        if alike is None:
            return False
        del self._alike[alike][key]
        if not self._alike[alike]:
            del self._alike[alike]
        return True

    def next_in(self, now: Instant) -> float | None:
        """Seconds until a forecast is due or a node is removed."""
        if self._forecasting is not None:
            return 0.0
        waits = [max(0.0, self._forecast_at - now.monotonic)] if self._changed else []
        nexts = (self._gone_at.next_at(), self._late_at.next_at())
        return min([*waits, *(at - now.wall for at in nexts if at is not None)], default=None)

    def missed(self, now: WallTime, most: int) -> Iterator[commands.DeadlineMissed]:
        """Pods that still existed when their node was removed: so many at most."""
        for _ in range(most):
            key = self._gone_at.pop_due(now)
            if key is None:
                return
            claim = self._alike[self.claims[key]][key]
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
        alike = self.claims.get(claim.key)
        if alike is None or claim.policy.mode is not Mode.ENFORCE:
            return None
        return NodeEnd(claim.node, alike.hard_at, pods=1, at_risk=int(self._is_at_risk(claim)))

    def ended(self, now: Instant) -> dict[str, list[NodeEnd]]:
        """By policy, the nodes that lately were gone with pods on them."""
        for key in [key for key, end in self._ended.items() if end.gone_at + REMEMBERED_SECONDS <= now.wall]:
            del self._ended[key]
        found: dict[str, list[NodeEnd]] = {}
        for (policy, _), end in self._ended.items():
            found.setdefault(policy, []).append(end)
        return found

    def _is_at_risk(self, claim: Claim) -> bool:
        is_held = claim.phase in (Phase.EXEMPT, Phase.BLOCKED, Phase.DELAYED) or claim.failed is not None
        return (is_held and not _is_deleted_in_time(claim)) or claim.key in self._at_risk

    def forecast(self, rate: float | None, now: Instant, most: int) -> Iterator[commands.DeadlineAtRisk]:
        """Pods that will not have stopped gracefully by their hard deadline, at ``rate`` evictions per second.

        Looks at so many pods at most; those that are left are looked at next.
        """
        for _ in range(most):
            if self._late_at.pop_due(now.wall) is None:
                break
            self._changed = True
        if self._forecasting is None:
            if not self._changed or now.monotonic < self._forecast_at:
                return
            self._changed, self._forecast_at = False, later(now.monotonic, self._world.timings.forecast)
            self._forecasting = self._forecast(rate, now)
        for risk in islice(self._forecasting, most):
            if risk is not None:
                yield risk
            most -= 1
        if most > 0:
            self._forecasting = None

    def _forecast(self, rate: float | None, now: Instant) -> Iterator[commands.DeadlineAtRisk | None]:
        """For each pod of those that may be at risk, whether it is and was not reported."""
        ahead = 0
        for alike in sorted(self._alike):
            standing = self._alike.get(alike, {})
            number = len(standing)
            yield from self._risks(alike, standing, ahead, rate, now)
            ahead += number

    def _risks(
        self, alike: _Alike, claims: dict[str, Claim], ahead: int, rate: float | None, now: Instant
    ) -> Iterator[commands.DeadlineAtRisk | None]:
        """The claims at risk of those alike, behind so many others. The last of them is at risk first."""
        last = _left(alike, ahead + len(claims), rate, now)
        is_exempt = any(claim.phase is Phase.EXEMPT for claim in claims.values())
        if last + TOLERANCE_SECONDS >= alike.grace_seconds and not is_exempt:
            return
        keys = list(claims)
        heapify(keys)  # to sort all of them at once would take long
        for position in range(ahead, ahead + len(keys)):
            key = heappop(keys)
            yield self._risk(alike, key, _left(alike, position, rate, now))

    def _risk(self, alike: _Alike, key: str, left: float) -> commands.DeadlineAtRisk | None:
        """What to report of a claim; None: nothing, or its pod is gone by now."""
        claim = self._alike.get(alike, {}).get(key)
        pod = None if claim is None else self._world.cluster.pod(claim.node, claim.uid)
        if claim is None or pod is None or key in self._at_risk or key in self._missed:
            return None
        if claim.phase is Phase.REHEARSED:  # it would have been evicted in time
            return None
        if claim.phase is Phase.EXEMPT:
            reason = f"it is not evicted, since {claim.grounds.exempt}"
        elif left + TOLERANCE_SECONDS < alike.grace_seconds:
            reason = f"it asks for {alike.grace_seconds} s to stop, and {max(0, int(left))} s are left at best"
        else:
            return None
        self._at_risk.add(key)
        return commands.DeadlineAtRisk(pod, claim.verdict, alike.hard_at, reason)


def _is_deleted_in_time(claim: Claim) -> bool:
    """Whether only a budget holds a pod, which it does until the latest moment at most."""
    if claim.policy.eviction.method is not Method.EVICT_THEN_DELETE or claim.grounds.exempt:
        return False
    if claim.failed is not None:
        return claim.failed.row.by_budget
    return claim.phase is Phase.BLOCKED and claim.refusal is not None and claim.refusal.limit == BUDGET


def _left(alike: _Alike, position: int, rate: float | None, now: Instant) -> float:
    """Seconds from the turn of a claim until its node is removed."""
    turn = now.wall if rate is None else now.wall + position / rate
    return alike.hard_at - max(alike.due_at, turn)
