"""Pods on their way out: one queue until due, then a line per policy, and one per limit that some of them met."""

from collections.abc import Container

from taintwarden.engine.deadlines import DeadlineQueue, Entry
from taintwarden.engine.limits import Refusal
from taintwarden.engine.machine.lines import Line
from taintwarden.engine.machine.pending import Lane, Pending, Phase
from taintwarden.engine.model import Instant
from taintwarden.engine.spread import Spread


class Queues:
    """Where WAITING, LEAVING, READY and HELD pods are kept. Every order here is total, so that two runs agree.

    A limit that some pods meet and others do not (a workload, a node, a budget) holds those apart, so that they stand
    in nobody's way. When it may admit again, the first of them goes back into its policy's line, and each that leaves
    that line lets the next one back: so nothing is looked at in vain, however many are held.
    """

    def __init__(self, spread: Spread) -> None:
        self._spread = spread
        self._waiting = DeadlineQueue()
        self._lanes: dict[Lane, Line] = {}
        self._held: dict[str, dict[Lane, Line]] = {}
        self._releases = DeadlineQueue()
        """Keys of refusals by when they are over, on the monotonic clock."""

    def wait(self, pending: Pending) -> None:
        """Until its deadline and its next try."""
        pending.phase = Phase.WAITING
        self._waiting.schedule(pending.pod.uid, max(pending.due_at, pending.retry_at))

    def expect_gone(self, pending: Pending, by: float) -> None:
        """Until the watch says that it left, or ``by`` then."""
        pending.phase = Phase.LEAVING
        self._waiting.schedule(pending.pod.uid, by)

    def make_ready(self, pending: Pending, now: Instant) -> None:
        """It is due: let it stand in its policy's line."""
        pending.ready_since, pending.ready_at = now.monotonic, now.wall
        pending.refusal, pending.waited_for = None, ""
        self._line_up(pending)

    def hold(self, pending: Pending, refusal: Refusal) -> None:
        """Set a READY pod apart until what ``refusal`` names may admit it."""
        came_from, pending.released_by = pending.released_by, ""
        self.remove(pending)
        pending.phase, pending.held_by = Phase.HELD, refusal.key
        lines = self._held.setdefault(refusal.key, {})
        lines.setdefault(pending.lane, Line(self._spread)).add(pending)
        if refusal.until is not None:
            self._releases.schedule(refusal.key, refusal.until)
        if came_from != refusal.key:
            self._release_lane(came_from, pending.lane)

    def release(self, key: str) -> None:
        """What holds pods back under ``key`` may admit one: let the first of each lane back into its line."""
        for lane in list(self._held.get(key, ())):
            self._release_lane(key, lane)

    def _release_lane(self, key: str, lane: Lane) -> None:
        line = self._held.get(key, {}).get(lane)
        pending = line.first() if line else None
        if pending is not None:
            self._forget_held(pending)
            pending.released_by = key
            self._line_up(pending)

    def ask_again(self, pending: Pending) -> None:
        """A held pod is not what it was when it was refused: let it back into its line."""
        self._forget_held(pending)
        self._line_up(pending)

    def release_due(self, now: Instant) -> None:
        """Release what time alone releases."""
        while (key := self._releases.pop_due(now.monotonic)) is not None:
            self.release(key)

    def next_release(self) -> float | None:
        """When the next of them is, on the monotonic clock."""
        return self._releases.next_at()

    def remove(self, pending: Pending) -> None:
        """Take a pod out, wherever it stands."""
        uid = pending.pod.uid
        self._waiting.cancel(uid)
        if pending.phase is Phase.HELD:
            self._forget_held(pending)
        elif pending.phase is Phase.READY:
            line = self._lanes[pending.lane]
            line.remove(uid)
            if not len(line):
                del self._lanes[pending.lane]
            released_by, pending.released_by = pending.released_by, ""
            self._release_lane(released_by, pending.lane)

    def pop_due(self, now: float) -> str | None:
        """Take the first pod whose time has come."""
        return self._waiting.pop_due(now)

    def next_at(self) -> float | None:
        """When the next pod's time comes."""
        return self._waiting.next_at()

    def first_ready(self, besides: Container[Lane] = ()) -> Pending | None:
        """The pod whose turn it is, among the lanes not named in ``besides``."""
        best: tuple[bool, Entry] | None = None
        best_line: Line | None = None
        for lane, line in self._lanes.items():
            if lane in besides or (head := line.head()) is None:
                continue
            if best is None or (lane.soft, head) < best:
                best, best_line = (lane.soft, head), line
        return best_line.first() if best_line else None

    def ready_lanes(self) -> list[Lane]:
        """The lanes that have pods standing ready."""
        return list(self._lanes)

    def _line_up(self, pending: Pending) -> None:
        pending.phase = Phase.READY
        pending.lane = Lane(pending.policy.reclaim is None, pending.policy.name)
        pending.place = pending.compute_place()
        line = self._lanes.get(pending.lane)
        if line is None:
            line = self._lanes[pending.lane] = Line(self._spread)
        line.add(pending)

    def _forget_held(self, pending: Pending) -> None:
        key, pending.held_by = pending.held_by, ""
        lines = self._held[key]
        line = lines[pending.lane]
        line.remove(pending.pod.uid)
        if not len(line):
            del lines[pending.lane]
        if not lines:
            del self._held[key]
            self._releases.cancel(key)
