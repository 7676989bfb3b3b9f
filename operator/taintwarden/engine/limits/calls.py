"""Eviction calls: how many are in progress, and which lanes answer them with failures.

* A call without an answer for a second gives its slot back, of a lane the first four; its lane fails meanwhile, and
  with four such, or one when a hundred have no answer, it makes no other.
* While others could go, a lane has at most half of the slots.
* A lane whose calls fail waits, alone: 1 s, 2 s, 4 s, to 30 s (2 s before a hard deadline), and makes one call a try,
  until one succeeds. Calls that were in the air count once.
* All lanes wait only while the API server requests a pause, or does not renew the Lease: no tenant can shape either. A
  failed eviction says nothing of other lanes, since one oversized pod is enough to make the server answer with 500.
"""

from collections.abc import Iterator

from taintwarden.engine.limits.protocol import (
    EVERY_POLICY,
    EvictionRequest,
    Freed,
    LaneKey,
    Limit,
    Settlement,
    lane_key,
)
from taintwarden.engine.limits.refusal import CALLS, FAILING, Refusal, Whom
from taintwarden.engine.model import Instant, MonotonicTime, later
from taintwarden.engine.outcomes import CallAnswer

SLOW_SECONDS = 1.0
"""An eviction takes about 0.1 s on an idle API server."""
MAX_SLOW = 200
"""So many calls without an answer give their slots back: each has a connection."""
MANY_SLOW = 100
"""From so many on, a lane has one of them: else fifty webhooks that hang had all."""
LANE_SLOW = 4
"""Of one lane; with so many it makes no other call."""
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS, LONGEST_HARD_WAIT_SECONDS = 1.0, 30.0, 2.0
"""Of a lane whose calls fail."""
MAX_LANES = 10_000
"""With more lanes than these the failures of those without calls in progress are forgotten."""
MAX_PAUSE_SECONDS = 30.0
"""Maximum length of a pause that the API server requests. Beyond it, a call finds out whether it still wants one."""
NOT_RENEWED = "the API server fails: it does not renew the Lease"


class _Lane:
    __slots__ = ("detail", "failed_at", "failures", "fast", "slow", "waits_until")

    def __init__(self) -> None:
        self.fast = self.slow = 0
        """Calls in progress."""
        self.failures = 0
        """In a row."""
        self.failed_at = self.waits_until = MonotonicTime(0.0)
        self.detail = ""


class _Call:
    __slots__ = ("is_hard", "is_slow", "lane", "since")

    def __init__(self, lane: LaneKey, since: MonotonicTime, *, is_hard: bool) -> None:
        self.lane, self.since, self.is_hard, self.is_slow = lane, since, is_hard, False


class Calls(Limit):
    """The calls in progress.

    Args:
        slots: how many may be in progress at once, besides those without an answer for a second.
        freed: receives the keys of refusals whose calls may be made.

    """

    def __init__(self, slots: int, freed: Freed) -> None:
        self.slots = slots
        self._freed = freed
        self._calls: dict[str, _Call] = {}
        """By UID; the oldest first."""
        self._slow = 0
        """Calls that have given their slots back."""
        self._lanes: dict[LaneKey, _Lane] = {}
        """Those with calls in progress, or whose calls fail."""
        self._paused_until = MonotonicTime(0.0)
        self._answers = True
        """True while the API server renews the Lease."""

    @property
    def is_busy(self) -> bool:
        """Whether calls in progress fill half the slots."""
        return self._used * 2 >= self.slots

    @property
    def _used(self) -> int:
        """Slots in use."""
        return len(self._calls) - min(self._slow, MAX_SLOW)

    def is_failing(self, lane: LaneKey) -> bool:
        """Whether the last call of a lane failed, or one has no answer for a second."""
        known = self._lanes.get(lane)
        return known is not None and (known.failures > 0 or known.slow > 0)

    def begun(self, uid: str) -> tuple[MonotonicTime, bool]:
        """When the call for a pod in progress began, and whether it has no answer for a second."""
        return self._calls[uid].since, self._calls[uid].is_slow

    def pause(self, seconds: float, now: MonotonicTime) -> None:
        """Make no call for ``seconds``: the API server requests a pause."""
        self._paused_until = max(self._paused_until, later(now, min(seconds, MAX_PAUSE_SECONDS)))

    def note_renewal(self, now: MonotonicTime, *, succeeded: bool) -> None:
        """Stop all lanes while the Lease is not renewed. Afterwards lanes that failed are tried at once."""
        if succeeded and not self._answers:
            self._freed.add(EVERY_POLICY)
            for key, lane in self._lanes.items():
                lane.waits_until = min(lane.waits_until, now)
                self._freed.add(lane_key(key))
        self._answers = succeeded

    def let_time_pass(self, now: MonotonicTime) -> Iterator[LaneKey]:
        """Calls become slow. Returns their lanes."""
        while (call := self._oldest_quick()) is not None and now >= later(call.since, SLOW_SECONDS):
            call.is_slow = True
            lane = self._lanes[call.lane]
            lane.fast, lane.slow = lane.fast - 1, lane.slow + 1
            self._slow += lane.slow <= LANE_SLOW
            self._free(call.lane)
            yield call.lane

    def next_slow_at(self) -> MonotonicTime | None:
        """When the next call becomes slow."""
        oldest = self._oldest_quick()
        return None if oldest is None else later(oldest.since, SLOW_SECONDS)

    def _oldest_quick(self) -> _Call | None:
        """The oldest call that is not slow."""
        return next((call for call in self._calls.values() if not call.is_slow), None)

    def admit(self, request: EvictionRequest) -> Refusal | None:
        """Whether there is a slot, for any pod and for one of this lane. A rehearsal makes no call."""
        if request.is_rehearsal:
            return None
        now = request.now.monotonic
        if now < self._paused_until:
            return Refusal(CALLS, self._paused_until, detail="the API server requests a pause (429)")
        if not self._answers:
            return Refusal(CALLS, detail=NOT_RENEWED)
        if self._used >= self.slots:
            return Refusal(CALLS, detail=f"{len(self._calls)} calls are in progress")
        lane = self._lanes.get(request.lane)
        return None if lane is None else self._admit_lane(lane, request)

    def _admit_lane(self, lane: _Lane, request: EvictionRequest) -> Refusal | None:
        key = lane_key(request.lane)
        if lane.failures:
            if request.now.monotonic < lane.waits_until:
                return Refusal(FAILING, lane.waits_until, Whom.LANE, key, lane.detail)
            if lane.fast + lane.slow:
                return Refusal(FAILING, None, Whom.LANE, key, lane.detail)
        if lane.slow >= (LANE_SLOW if self._slow < MANY_SLOW else 1):
            detail = f"{lane.slow} calls of namespace {request.pod.namespace} have had no answer for a second"
            return Refusal(FAILING, None, Whom.LANE, key, detail)
        if request.others_could_go and lane.fast >= max(1, self.slots // 2):
            detail = f"{lane.fast} calls of namespace {request.pod.namespace} are in progress, and others wait"
            return Refusal(CALLS, None, Whom.LANE, key, detail)
        return None

    def reserve(self, request: EvictionRequest) -> None:
        """A call begins."""
        uid = request.pod.uid
        self._calls[uid] = _Call(request.lane, request.now.monotonic, is_hard=request.is_hard)
        if len(self._lanes) >= MAX_LANES:
            self._lanes = {key: lane for key, lane in self._lanes.items() if lane.fast or lane.slow}
        self._lanes.setdefault(request.lane, _Lane()).fast += 1

    def answered(self, uid: str, answer: CallAnswer, now: MonotonicTime, detail: str = "") -> None:
        """Note what the answer to a call says of its lane, before the call is settled."""
        call = self._calls[uid]
        lane = self._lanes[call.lane]
        if answer is CallAnswer.FINE:
            lane.failures = 0
        elif answer is CallAnswer.FAILS:
            self._fail(lane, call, now, detail)

    @staticmethod
    def _fail(lane: _Lane, call: _Call, now: MonotonicTime, detail: str) -> None:
        lane.detail = detail
        if lane.failures and call.since < lane.failed_at:  # it was in the air
            return
        lane.failures += 1
        lane.failed_at = now
        longest = LONGEST_HARD_WAIT_SECONDS if call.is_hard else LONGEST_WAIT_SECONDS
        lane.waits_until = later(now, min(longest, FIRST_WAIT_SECONDS * 2.0 ** min(lane.failures - 1, 16)))

    def settle(self, uid: str, settlement: Settlement, now: Instant) -> None:
        """A call ended, however."""
        del settlement, now
        call = self._calls.pop(uid)
        lane = self._lanes[call.lane]
        if call.is_slow:
            self._slow -= lane.slow <= LANE_SLOW
            lane.slow -= 1
        else:
            lane.fast -= 1
        if not (lane.fast or lane.slow or lane.failures):
            del self._lanes[call.lane]
        self._free(call.lane)

    def _free(self, lane: LaneKey) -> None:
        self._freed.add(lane_key(lane))
        if self._used == self.slots - 1:
            self._freed.add(EVERY_POLICY)

    def forget_failures(self) -> list[LaneKey]:
        """Another process led until now. Returns the lanes that failed: no failure holds them any more."""
        failing = [key for key, lane in self._lanes.items() if lane.failures]
        for key in failing:
            self._lanes[key].failures = 0
            self._freed.add(lane_key(key))
        self._lanes = {key: lane for key, lane in self._lanes.items() if lane.fast or lane.slow}
        return failing
