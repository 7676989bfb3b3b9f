"""Queues of claims, and the only code that changes their phase. Every order is total, so that replays agree.

Due pods wait in lanes, one for each policy and namespace, which take turns. The next turn goes to the least recently
served lane that is not parked. Lanes with hard deadlines come first. A lane that a limit refuses is parked until the
limit may admit it. Pods that a limit of a workload, node or budget refuses wait in separate lines, so that they delay
no others. When that limit may admit again, the first pod of each line returns to its lane, and each pod that leaves
that lane releases the next one. No pod is checked while its limit cannot admit it.

A lane orders its pods by number of failed calls (fewest first, since their calls may succeed), then by the minute of
the deadline, then by ``eviction.order`` of the policy, then by UID. Exact deadlines would leave no effect to
``eviction.order``, since the taints of two nodes are never written in the same millisecond.
"""

from collections import OrderedDict
from collections.abc import Callable, Container, Iterator
from functools import lru_cache
from heapq import nsmallest

import msgspec
from msgspec.structs import replace

from taintwarden.engine.deadlines import DeadlineQueue, Entries, Entry
from taintwarden.engine.limits import Refusal
from taintwarden.engine.limits.protocol import LaneKey
from taintwarden.engine.machine.claims import TRANSITIONS, Claim, Phase
from taintwarden.engine.machine.refusals import Lane, LaneGroup, Refusals
from taintwarden.engine.model import (
    Instant,
    MonotonicTime,
    Pod,
    PodClass,
    SpreadConstraint,
    WallTime,
    WorkloadKey,
    later,
)
from taintwarden.engine.policy import OrderBy, Policy
from taintwarden.engine.spread import Group, Spread

REVISION_LABELS = ("pod-template-hash", "controller-revision-hash")
"""Labels with the revision of a pod: of a Deployment's ReplicaSet, and of a StatefulSet or DaemonSet."""

# Looking up a member on its enum costs more than the rest of a transition.
_WAITING, _READY, _BLOCKED = Phase.WAITING, Phase.READY, Phase.BLOCKED
_ON_A_DELAY = (Phase.SETTLING, Phase.RETRYING, Phase.ACCEPTED)
_Head = tuple[bool, float, LaneGroup, str]
"""First lane of a group: True if its deadlines are soft, the number of its last turn, the group, and the namespace."""

SAME_URGENCY_SECONDS = 60.0
"""Length of an interval in seconds. Deadlines within the same interval are equally urgent."""
MAX_TURNS = 10_000
"""Maximum number of lanes whose last turn is known. Beyond it, the least recently served are dropped."""
LANES_AT_ONCE = 16
"""Maximum number of lanes that retry when there may be a token. Of a thousand, all but one would be refused."""
OTHERS_AFTER_SECONDS = 1.0
"""Seconds until the next ``LANES_AT_ONCE`` lanes retry, unless a new refusal of their key sets another time."""
OTHERS_PER_FAILING = 3
"""Turns of healthy lanes for each turn of a failing one. Hard deadlines come first, even those of a failing lane."""


def rank_of(pod: PodClass, policy: Policy, due_at: float, hard_at: float | None) -> tuple[float, ...]:
    """Rank of a pod that is due at ``due_at``, among pods with equally many failed calls.

    ``hard_at``: time at which its node is removed; None if none is announced.
    """
    minute = (due_at if hard_at is None else hard_at) // SAME_URGENCY_SECONDS
    # TopologySpread is not a rank: it compares pods of one workload revision with each other, see ``_Line``.
    by_priority = OrderBy.PRIORITY in policy.eviction.order
    return _interned((minute, float(pod.priority)) if by_priority else (minute,))


@lru_cache
def _interned(rank: tuple[float, ...]) -> tuple[float, ...]:
    """Return one object for equal ranks: a wave may have 150,000 pods of the same rank."""
    return rank


class _Position(msgspec.Struct, frozen=True, gc=False):
    """Position of a due claim in a lane or line."""

    claim: Claim
    lane: Lane
    pod: Pod
    """Pod as it was when the claim was queued. To remove the claim, the line needs the same object."""
    entry: Entry
    """Order within the line."""
    blocked_by: str = ""
    """Key of the refusal in whose line it waits; empty if it waits in its lane."""
    released_by: str = ""
    """Key of the refusal that released it. When it leaves the lane, the next claim of that line is released."""


class IllegalTransition(RuntimeError):  # noqa: N818 - reads as what it says
    """A claim cannot change from its phase to another one. Nothing was changed."""

    def __init__(self, claim: Claim, phase: Phase) -> None:
        super().__init__(f"claim {claim.key} cannot go from {claim.phase.name} to {phase.name}")


class Queues:
    """All queues in which a claim can wait.

    Args:
        refusals: refusals of lanes, which are parked meanwhile.
        spread: counts pods by topology domain.
        is_failing: returns True if the last call of a lane failed, or has had no answer for a second.

    """

    def __init__(self, refusals: Refusals, spread: Spread, is_failing: Callable[[LaneKey], bool]) -> None:
        self._refusals = refusals
        self._spread = spread
        self._is_failing = is_failing
        self._deadlines: DeadlineQueue[WallTime] = DeadlineQueue()
        self._delays: DeadlineQueue[MonotonicTime] = DeadlineQueue()
        self._lanes: dict[Lane, _Line] = {}
        self._blocked: dict[str, dict[Lane, _Line]] = {}
        """Key of a refusal -> BLOCKED claims that wait for its end, in a line for each lane."""
        self._positions: dict[str, _Position] = {}
        self._releases: DeadlineQueue[MonotonicTime] = DeadlineQueue()
        """Keys of refusals by the time at which they end."""
        self._requeues: DeadlineQueue[MonotonicTime] = DeadlineQueue()
        """BLOCKED claims by the time at which they return to their lanes: for a deletion, or for their next taint."""
        self._turns: dict[LaneGroup, _Turns] = {}
        """Lanes with READY claims that are not parked."""
        self._last_turns: OrderedDict[Lane, int] = OrderedDict()
        """Lane -> number of its last turn, the oldest first."""
        self._turn = self._turns_since_failing = 0
        """Number of the last turn, and of the turns since the last one of a failing lane."""

    # -- phases ---------------------------------------------------------------------------------------------------

    def move(self, claim: Claim, phase: Phase) -> None:
        """Remove a claim from its queue, into a phase that needs no queue.

        Raises:
            IllegalTransition: the phases have no such transition.

        """
        self._enter(claim, phase)

    def wait(self, claim: Claim) -> None:
        """Begin or restart a claim: it waits for its deadline, or while its policy is paused."""
        initial = claim.initial_phase
        if initial is not _WAITING or claim.phase is not _WAITING:
            self._enter(claim, initial)
        if initial is _WAITING:
            self._deadlines.schedule(claim.key, claim.due_at)

    def delay(self, claim: Claim) -> None:
        """Hold the claim until ``claim.not_before``, when its wave is complete."""
        self._enter(claim, Phase.SETTLING)
        self._delays.schedule(claim.key, claim.not_before)

    def back_off(self, claim: Claim) -> None:
        """Hold the claim until ``claim.not_before``, when its next call may be made."""
        self._enter(claim, Phase.RETRYING)
        self._delays.schedule(claim.key, claim.not_before)

    def expect_leaving(self, claim: Claim, check_at: MonotonicTime) -> None:
        """Wait for the pod to terminate after its eviction was accepted. If it does not, it is read at ``check_at``."""
        self._enter(claim, Phase.ACCEPTED)
        self._delays.schedule(claim.key, check_at)

    def make_ready(self, claim: Claim, pod: Pod, now: Instant, *, is_released: bool) -> None:
        """Move a claim that is due into its lane. Released pods have lanes of their own."""
        self._enter(claim, Phase.READY)
        claim.note_due(now.monotonic)
        rank = rank_of(pod.shared, claim.policy, claim.due_at, claim.grounds.hard_at)
        group = LaneGroup(claim.policy.reclaim is None, claim.policy.name, is_released)
        entry = Entry(float(claim.attempts), rank, claim.key)
        self._add_to_lane(_Position(claim, Lane(group, pod.namespace), pod, entry))

    def block(self, claim: Claim, refusal: Refusal) -> None:
        """Move a READY claim into the line of ``refusal``, until its limit may admit it."""
        position = self._position(claim, Phase.READY, Phase.BLOCKED)
        self._enter(claim, Phase.BLOCKED, release_next=False)
        lines = self._blocked.setdefault(refusal.key, {})
        blocked = self._positions[claim.key] = replace(position, blocked_by=refusal.key, released_by="")
        lines.setdefault(position.lane, _Line(self._spread)).add(blocked)
        if refusal.until is not None:
            self._releases.schedule(refusal.key, refusal.until)
        if position.released_by != refusal.key:
            self._release_lane(position.released_by, position.lane)

    def requeue(self, claim: Claim) -> None:
        """Move a BLOCKED claim back into its lane before its refusal ends, such as when its pod has changed."""
        position = self._position(claim, Phase.BLOCKED, Phase.READY)
        self._enter(claim, Phase.READY)
        self._add_to_lane(replace(position, blocked_by="", released_by=""))

    def requeue_at(self, claim: Claim, at: MonotonicTime) -> None:
        """Move a BLOCKED claim back into its lane at this time, even if its refusal has not ended by then."""
        self._requeues.schedule(claim.key, at)

    def release(self, key: str) -> None:
        """Release what waits for ``key``: parked lanes, and the first claim of each line."""
        for lane in self._refusals.free_lanes(key):
            self._add_turn(lane)
        for lane in list(self._blocked.get(key, ())):
            self._release_lane(key, lane)

    def release_due(self, now: MonotonicTime) -> None:
        """Release claims whose refusals have ended, for at most ``LANES_AT_ONCE`` lanes per refusal at a time."""
        while (claim_key := self._requeues.pop_due(now)) is not None:
            self.requeue(self._positions[claim_key].claim)
        while (key := self._releases.pop_due(now)) is not None:
            lanes = self._blocked.get(key, {})
            if len(lanes) <= LANES_AT_ONCE:
                self.release(key)
                continue
            able = [
                (one.group.soft, self._last_turns.get(one, -1), one) for one in lanes if one not in self._refusals.lanes
            ]
            for *_, lane in nsmallest(LANES_AT_ONCE, able):
                self._release_lane(key, lane)
            self._releases.schedule(key, later(now, OTHERS_AFTER_SECONDS))  # a new refusal sets another time

    def _release_lane(self, key: str, lane: Lane) -> None:
        line = self._blocked.get(key, {}).get(lane)
        if line is not None:
            position = self._positions[line.first()]
            self._enter(position.claim, Phase.READY)
            self._add_to_lane(replace(position, blocked_by="", released_by=key))

    def _position(self, claim: Claim, leaves: Phase, enters: Phase) -> _Position:
        """Position of a claim in phase ``leaves``. Raises IllegalTransition in any other phase."""
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
        lane = position.lane
        if self._lanes[lane].remove(position):
            del self._lanes[lane]
            if lane not in self._refusals.lanes:
                self._remove_turn(lane)
            elif (key := self._refusals.free_lane(lane)) is not None:
                self._releases.cancel(key)
        if release_next and position.released_by:
            self._release_lane(position.released_by, position.lane)

    def _leave_line(self, claim: Claim) -> None:
        self._requeues.cancel(claim.key)
        position = self._positions.pop(claim.key)
        lines = self._blocked[position.blocked_by]
        if lines[position.lane].remove(position):
            del lines[position.lane]
        if not lines:
            del self._blocked[position.blocked_by]
            self._releases.cancel(position.blocked_by)

    def _add_to_lane(self, position: _Position) -> None:
        self._positions[position.claim.key] = position
        line = self._lanes.get(position.lane)
        if line is None:
            line = self._lanes[position.lane] = _Line(self._spread)
            self._add_turn(position.lane)
        line.add(position)

    # -- turns ----------------------------------------------------------------------------------------------------

    def _add_turn(self, lane: Lane) -> None:
        """Let a lane take turns."""
        turns = self._turns.get(lane.group)
        if turns is None:
            turns = self._turns[lane.group] = _Turns()
        turns.of(self._is_failing(lane.key)).schedule(lane.namespace, MonotonicTime(self._last_turns.get(lane, -1)))

    def _remove_turn(self, lane: Lane) -> None:
        turns = self._turns[lane.group]
        turns.cancel(lane.namespace)
        if not len(turns):
            del self._turns[lane.group]

    def park_lane(self, lane: Lane, refusal: Refusal) -> None:
        """Park a lane: it gets no turn until the limit that refuses its pods may admit them."""
        self._remove_turn(lane)
        self._refusals.hold_lane(lane, refusal)
        if refusal.until is not None:
            self._releases.schedule(refusal.key, refusal.until)

    def note_turn(self, lane: Lane, *, failing: bool) -> None:
        """Record that all limits admitted a pod of this lane."""
        self._turn += 1
        self._turns_since_failing = 0 if failing else self._turns_since_failing + 1
        self._last_turns[lane] = self._turn
        self._last_turns.move_to_end(lane)
        if len(self._last_turns) > MAX_TURNS:
            self._last_turns.popitem(last=False)
        if lane in self._lanes:
            self._add_turn(lane)

    def update_turns(self, key: LaneKey) -> None:
        """Update the turns of a lane whose calls began or ceased to fail."""
        for group in [one for one in self._turns if one.policy == key[0]]:
            lane = Lane(group, key[1])
            if lane in self._lanes and lane not in self._refusals.lanes:
                self._remove_turn(lane)
                self._add_turn(lane)

    def number_of_lanes(self, excluded: Container[LaneGroup] = ()) -> int:
        """Number of lanes that could have a turn, except lanes of the groups in ``excluded``."""
        return sum(len(turns) for group, turns in self._turns.items() if group not in excluded)

    # -- what is next ---------------------------------------------------------------------------------------------

    def pop_due(self, now: Instant) -> str | None:
        """Remove and return the key of a claim whose deadline or delay has passed. The caller has to queue it again."""
        return self._delays.pop_due(now.monotonic) or self._deadlines.pop_due(now.wall)

    def next_in(self, now: Instant) -> float | None:
        """Seconds until the next deadline or end of a delay; None if there is none."""
        deadline, delay = self._deadlines.next_at(), self._delays.next_at()
        waits = [] if deadline is None else [deadline - now.wall]
        waits += [] if delay is None else [delay - now.monotonic]
        return min(waits, default=None)

    def next_release_in(self, now: Instant) -> float | None:
        """Seconds until a refusal ends, or a BLOCKED claim is requeued in spite of it; None if neither is due."""
        times = [at for at in (self._releases.next_at(), self._requeues.next_at()) if at is not None]
        return min(times) - now.monotonic if times else None

    def first_ready(self, excluded: Container[LaneGroup] = ()) -> Claim | None:
        """First claim of the lane that has the next turn. Lanes of the groups in ``excluded`` are skipped."""
        healthy = min(self._heads(excluded, failing=False), default=None)
        failing = min(self._heads(excluded, failing=True), default=None)
        is_healthy = failing is None or (healthy is not None and not self._is_turn_of_failing(healthy, failing))
        head = healthy if is_healthy else failing
        if head is None:
            return None
        return self._positions[self._lanes[Lane(head[2], head[3])].first()].claim

    def _heads(self, excluded: Container[LaneGroup], *, failing: bool) -> Iterator[_Head]:
        for group, turns in self._turns.items():
            if group not in excluded and (head := turns.of(failing).head()) is not None:
                yield group.soft, head.at, group, head.key

    def _is_turn_of_failing(self, healthy: _Head, failing: _Head) -> bool:
        if healthy[0] != failing[0]:
            return healthy[0]  # hard deadlines come first
        return self._turns_since_failing >= OTHERS_PER_FAILING and failing[1] < healthy[1]

    def lane_of(self, claim: Claim) -> Lane:
        """Lane of a READY or BLOCKED claim."""
        return self._positions[claim.key].lane

    def groups(self) -> list[LaneGroup]:
        """Groups with lanes that could have a turn."""
        return list(self._turns)


class _Turns:
    """Lanes of a group by their last turn: failing lanes, and the others."""

    __slots__ = ("_failing", "_healthy")

    def __init__(self) -> None:
        self._healthy: DeadlineQueue[MonotonicTime] = DeadlineQueue()
        self._failing: DeadlineQueue[MonotonicTime] = DeadlineQueue()

    def __len__(self) -> int:
        return len(self._healthy) + len(self._failing)

    def of(self, failing: bool) -> DeadlineQueue[MonotonicTime]:  # noqa: FBT001 - one of two
        """Queue of the failing lanes, or of the others: their namespaces, by number of the last turn."""
        return self._failing if failing else self._healthy

    def cancel(self, namespace: str) -> None:
        """Remove the lane of a namespace, so that it gets no turn."""
        self._healthy.cancel(namespace)
        self._failing.cancel(namespace)


_Key = tuple[float, tuple[float, ...], WorkloadKey, tuple[str, ...], tuple[SpreadConstraint, ...]]


class _Line:
    """Claims that wait for the same condition, in order. Pods of a workload revision are ordered by topology spread."""

    def __init__(self, spread: Spread) -> None:
        self._spread = spread
        self._order = Entries()
        self._groups: dict[_Key, Group] = {}
        self._grouped: dict[str, tuple[Pod, _Key]] = {}
        """Key of a claim -> its pod and group, for claims that are in a group."""

    def __len__(self) -> int:
        return len(self._order)

    def add(self, position: _Position) -> None:
        """Add a claim."""
        claim, pod, entry = position.claim, position.pod, position.entry
        spreads = pod.shared.spread and OrderBy.TOPOLOGY_SPREAD in claim.policy.eviction.order
        if spreads and (workload := pod.shared.workload) is not None:
            revision = tuple(pod.shared.labels.get(label, "") for label in REVISION_LABELS)
            key = (entry.at, entry.rank, workload, revision, pod.shared.spread)
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = self._spread.group()
            group.add(pod)
            self._grouped[claim.key] = pod, key
        self._order.add(entry)

    def remove(self, position: _Position) -> bool:
        """Remove a claim. Returns True if the line is empty."""
        self._order.remove(position.entry)
        if (grouped := self._grouped.pop(position.claim.key, None)) is not None:
            pod, key = grouped
            group = self._groups[key]
            group.remove(pod)
            if not len(group):
                del self._groups[key]
        return self._order.head() is None

    def first(self) -> str:
        """Key of the next claim: the head, or the first pod of its revision by spread. The line must not be empty."""
        head = self._order.head()
        assert head is not None  # noqa: S101
        if (grouped := self._grouped.get(head.key)) is None:
            return head.key
        _, _, policy = head.key.partition("/")
        return f"{self._groups[grouped[1]].first().uid}/{policy}"
