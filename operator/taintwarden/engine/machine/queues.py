"""The queues of claims: the only code that changes their phase. Every order is total, so that two runs agree.

Each policy has a lane of due pods. Each refusal that concerns only some pods (a workload, a node, a budget) has lines
of its own, so that those pods delay no other. When such a limit may admit again, the first of them returns to its
policy's lane, and each that leaves that lane releases the next one: however many wait, none is checked in vain.
"""

from collections.abc import Container
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from taintwarden.engine.deadlines import DeadlineQueue, Entry
from taintwarden.engine.limits import Refusal
from taintwarden.engine.machine.claims import TRANSITIONS, Claim, Phase
from taintwarden.engine.model import (
    Instant,
    MonotonicTime,
    OrderBy,
    Pod,
    Policy,
    SpreadConstraint,
    WallTime,
    WorkloadKey,
)
from taintwarden.engine.order import OrderKey, place_of
from taintwarden.engine.spread import Group, Spread
from taintwarden.engine.tally import Tally

REVISION_LABELS = ("pod-template-hash", "controller-revision-hash")
"""The labels with the revision of a pod of a Deployment's ReplicaSet, and of a StatefulSet or DaemonSet."""

# The lookup of a member on its class costs more than the rest of a transition.
_WAITING, _READY, _BLOCKED = Phase.WAITING, Phase.READY, Phase.BLOCKED
_ON_A_DELAY = (Phase.DELAYED, Phase.LEAVING)


class Lane(NamedTuple):
    """A policy's due pods; lanes with hard deadlines come first.

    Limits that hold a whole policy do not hold the pods that a person released: these have a lane of their own.
    """

    soft: bool
    policy: str
    is_released: bool = False

    @classmethod
    def of(cls, policy: Policy, *, is_released: bool = False) -> "Lane":
        """The lane of a policy."""
        return cls(policy.reclaim is None, policy.name, is_released)


class _Position(msgspec.Struct, frozen=True, gc=False):
    """The place of a claim that is due."""

    lane: Lane
    pod: Pod
    """As it was when the claim was queued: the same pod is used to remove it from the line."""
    place: OrderKey
    blocked_by: str = ""
    """Key of the refusal in whose line it waits; empty: it waits in its policy's lane."""
    released_by: str = ""
    """Key of the refusal that released it: the next one there is released when it leaves the lane."""


class IllegalTransition(RuntimeError):  # noqa: N818 - reads as what it says
    """A claim cannot change from its phase to that one. Nothing was changed."""

    def __init__(self, claim: Claim, phase: Phase) -> None:
        super().__init__(f"claim {claim.key} cannot go from {claim.phase.name} to {phase.name}")


class Queues:
    """All queues in which a claim can wait.

    Args:
        spread: counts pods by topology domain.

    """

    def __init__(self, spread: Spread) -> None:
        self._spread = spread
        self._deadlines: DeadlineQueue[WallTime] = DeadlineQueue()
        self._delays: DeadlineQueue[MonotonicTime] = DeadlineQueue()
        self._lanes: dict[Lane, _Line] = {}
        self._blocked: dict[str, dict[Lane, _Line]] = {}
        self._positions: dict[str, _Position] = {}
        self._releases: DeadlineQueue[MonotonicTime] = DeadlineQueue()
        """Keys of refusals by when they end."""
        self._ready: Tally[str] = Tally()
        """Namespace -> its READY claims."""

    # -- phases ---------------------------------------------------------------------------------------------------

    def move(self, claim: Claim, phase: Phase) -> None:
        """Remove a claim from its queue, into a phase that needs no queue.

        Raises:
            IllegalTransition: the phases have no such transition.

        """
        self._enter(claim, phase)

    def wait(self, claim: Claim) -> None:
        """Begin, or begin again: wait for its deadline, or for as long as its policy does not act."""
        rests = claim.rests
        if rests is not _WAITING or claim.phase is not _WAITING:
            self._enter(claim, rests)
        if rests is _WAITING:
            self._deadlines.schedule(claim.key, claim.due_at)

    def delay(self, claim: Claim) -> None:
        """Wait until ``not_before``."""
        self._enter(claim, Phase.DELAYED)
        self._delays.schedule(claim.key, claim.not_before)

    def expect_gone(self, claim: Claim, by: MonotonicTime) -> None:
        """Wait until the watch reports that the pod is gone, until ``by`` at most."""
        self._enter(claim, Phase.LEAVING)
        self._delays.schedule(claim.key, by)

    def make_ready(self, claim: Claim, pod: Pod, now: Instant, *, is_released: bool) -> None:
        """It is due: move it into its policy's lane. Released pods have one of their own."""
        self._enter(claim, Phase.READY)
        claim.become_ready(now.monotonic)
        due_at = max(claim.due_at, now.wall) if claim.attempts else claim.due_at
        place = place_of(pod.shared, claim.policy, due_at, claim.grounds.hard_at, claim.attempts)
        self._line_up(claim, _Position(Lane.of(claim.policy, is_released=is_released), pod, place))

    def block(self, claim: Claim, refusal: Refusal) -> None:
        """Move a READY claim into the line of ``refusal``, until that limit may admit it."""
        position = self._position(claim, Phase.READY, Phase.BLOCKED)
        self._enter(claim, Phase.BLOCKED, release_next=False)
        lines = self._blocked.setdefault(refusal.key, {})
        self._positions[claim.key] = replace(position, blocked_by=refusal.key, released_by="")
        lines.setdefault(position.lane, _Line(self._spread)).add(claim, position)
        if refusal.until is not None:
            self._releases.schedule(refusal.key, refusal.until)
        if position.released_by != refusal.key:
            self._release_lane(position.released_by, position.lane)

    def ask_again(self, claim: Claim) -> None:
        """The pod of a BLOCKED claim changed since it was refused: move the claim back into its lane."""
        position = self._position(claim, Phase.BLOCKED, Phase.READY)
        self._enter(claim, Phase.READY)
        self._line_up(claim, replace(position, blocked_by="", released_by=""))

    def release(self, key: str) -> None:
        """What blocks claims under ``key`` may admit one: the first of each lane returns to it."""
        for lane in list(self._blocked.get(key, ())):
            self._release_lane(key, lane)

    def release_due(self, now: MonotonicTime) -> None:
        """Release the claims whose refusals have ended."""
        while (key := self._releases.pop_due(now)) is not None:
            self.release(key)

    def _release_lane(self, key: str, lane: Lane) -> None:
        line = self._blocked.get(key, {}).get(lane)
        head = None if line is None else line.head()
        if line is not None and head is not None:
            claim = line.first_of(head)
            position = self._positions[claim.key]
            self._enter(claim, Phase.READY)
            self._line_up(claim, replace(position, blocked_by="", released_by=key))

    def _position(self, claim: Claim, leaves: Phase, enters: Phase) -> _Position:
        """The position of a claim that moves from one line to another."""
        if claim.phase is not leaves:
            raise IllegalTransition(claim, enters)
        return self._positions[claim.key]

    def _enter(self, claim: Claim, phase: Phase, *, release_next: bool = True) -> None:
        if phase not in TRANSITIONS[claim.phase]:
            raise IllegalTransition(claim, phase)
        before, claim.phase = claim.phase, phase
        if before is _WAITING:
            self._deadlines.cancel(claim.key)
        elif before is _READY:
            self._leave_lane(claim, release_next=release_next)
        elif before is _BLOCKED:
            self._leave_line(claim)
        elif before in _ON_A_DELAY:
            self._delays.cancel(claim.key)

    def _leave_lane(self, claim: Claim, *, release_next: bool) -> None:
        position = self._positions.pop(claim.key)
        self._ready.take(position.pod.namespace)
        line = self._lanes[position.lane]
        if line.remove(claim.key):
            del self._lanes[position.lane]
        if release_next and position.released_by:
            self._release_lane(position.released_by, position.lane)

    def _leave_line(self, claim: Claim) -> None:
        position = self._positions.pop(claim.key)
        lines = self._blocked[position.blocked_by]
        if lines[position.lane].remove(claim.key):
            del lines[position.lane]
        if not lines:
            del self._blocked[position.blocked_by]
            self._releases.cancel(position.blocked_by)

    def _line_up(self, claim: Claim, position: _Position) -> None:
        self._positions[claim.key] = position
        self._ready[position.pod.namespace] += 1
        line = self._lanes.get(position.lane)
        if line is None:
            line = self._lanes[position.lane] = _Line(self._spread)
        line.add(claim, position)

    # -- what is next ---------------------------------------------------------------------------------------------

    def pop_due(self, now: Instant) -> str | None:
        """The key of a claim whose deadline has passed or whose delay is over. It is in no queue until it is moved."""
        return self._delays.pop_due(now.monotonic) or self._deadlines.pop_due(now.wall)

    def next_in(self, now: Instant) -> float | None:
        """Seconds until the next deadline or end of a delay."""
        deadline, delay = self._deadlines.next_at(), self._delays.next_at()
        waits = [] if deadline is None else [deadline - now.wall]
        waits += [] if delay is None else [delay - now.monotonic]
        return min(waits, default=None)

    def next_release_in(self, now: Instant) -> float | None:
        """Seconds until the next refusal that blocks claims ends."""
        release = self._releases.next_at()
        return None if release is None else release - now.monotonic

    def first_ready(self, besides: Container[Lane] = ()) -> Claim | None:
        """The next claim, among the lanes not named in ``besides``."""
        best: tuple[bool, Entry, _Line] | None = None
        for lane, line in self._lanes.items():
            if lane in besides or (head := line.head()) is None:
                continue
            if best is None or (lane.soft, head) < best[:2]:
                best = (lane.soft, head, line)
        return None if best is None else best[2].first_of(best[1])

    def others_wait(self, namespace: str) -> bool:
        """Whether there are READY claims of other namespaces."""
        return len(self._ready) > (namespace in self._ready)

    def lane_of(self, claim: Claim) -> Lane:
        """The lane of a READY or BLOCKED claim."""
        return self._positions[claim.key].lane

    def ready_lanes(self) -> list[Lane]:
        """The lanes that contain READY claims."""
        return list(self._lanes)


_Key = tuple[OrderKey, WorkloadKey, tuple[str, ...], tuple[SpreadConstraint, ...]]


class _Line:
    """Claims that wait for the same condition. The first in order is next, by spread within a workload revision."""

    def __init__(self, spread: Spread) -> None:
        self._spread = spread
        self._order: DeadlineQueue[WallTime] = DeadlineQueue()
        self._claims: dict[str, tuple[Claim, Pod, _Key | None]] = {}
        self._groups: dict[_Key, Group] = {}
        self._by_uid: dict[str, str] = {}
        """Keys of the claims on pods that are in a group."""

    def add(self, claim: Claim, position: _Position) -> None:
        """Add a claim."""
        pod, place = position.pod, position.place
        key: _Key | None = None
        spreads = pod.shared.spread and OrderBy.TOPOLOGY_SPREAD in claim.policy.eviction.order
        if spreads and (workload := pod.shared.workload) is not None:
            revision = tuple(pod.shared.labels.get(label, "") for label in REVISION_LABELS)
            key = (place, workload, revision, pod.shared.spread)
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = self._spread.group()
            group.add(pod)
            self._by_uid[pod.uid] = claim.key
        self._claims[claim.key] = (claim, pod, key)
        self._order.schedule(claim.key, WallTime(place.urgency), place.rank)

    def remove(self, claim_key: str) -> bool:
        """Remove a claim. Returns whether the line is empty."""
        _, pod, key = self._claims.pop(claim_key)
        self._order.cancel(claim_key)
        if key is not None:
            del self._by_uid[pod.uid]
            group = self._groups[key]
            group.remove(pod)
            if not len(group):
                del self._groups[key]
        return not self._claims

    def head(self) -> Entry | None:
        """The place of the next claim, comparable with those of other lines."""
        return self._order.head()

    def first_of(self, head: Entry) -> Claim:
        """The next claim: the one at the head, or another one of its workload revision."""
        claim, _, key = self._claims[head.key]
        if key is None:
            return claim
        return self._claims[self._by_uid[self._groups[key].first().uid]][0]
