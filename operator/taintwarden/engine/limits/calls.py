"""Eviction calls in progress, and the lanes whose calls fail.

* A call without an answer for a second is *slow*. The first four slow calls of a lane give their slots back. A lane
  with a slow call counts as failing; with four (or one, once a hundred calls are slow) it makes no other call.
* A lane has at most half of the slots while pods of other lanes could be evicted.
* A lane whose calls fail waits 1 s, 2 s, 4 s and up to 30 s (2 s before a hard deadline), and makes one call per try,
  until one succeeds. Failures of calls that were in progress at the first failure count once. Other lanes continue.
* All lanes wait only for a slot, or while the API server requests a pause or does not renew the Lease, which no tenant
  can cause. A failed eviction affects its own lane only, since one oversized pod can make it answer with 500.
"""

from collections.abc import Iterator

from taintwarden.engine.limits.protocol import (
    EVERY_POLICY,
    EvictionRequest,
    FreedKeys,
    LaneKey,
    Limit,
    Settlement,
    lane_key,
)
from taintwarden.engine.limits.refusal import CALLS, FAILING, Refusal, RefusalScope
from taintwarden.engine.model import Instant, MonotonicTime, later
from taintwarden.engine.outcomes import CallAnswer

SLOW_SECONDS = 1.0
"""Seconds until a call is slow. An eviction takes about 0.1 s on an idle API server."""
MAX_SLOW = 200
"""Maximum slow calls that give their slots back, since each has a connection."""
MANY_SLOW = 100
"""Number of slow calls from which a lane may have one only. Otherwise 50 hanging webhooks would use up ``MAX_SLOW``."""
LANE_SLOW = 4
"""Maximum slow calls of one lane. With this number, the lane makes no other call."""
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS, LONGEST_HARD_WAIT_SECONDS = 1.0, 30.0, 2.0
"""Seconds that a lane waits after its first failure; at most; and at most before a hard deadline."""
MAX_LANES = 10_000
"""Maximum lanes tracked. Beyond it, failures of lanes without calls in progress are dropped."""
MAX_PAUSE_SECONDS = 30.0
"""Maximum length of a pause that the API server requests. After it, the next call shows if a pause is still needed."""
NOT_RENEWED = "the API server fails: it does not renew the Lease"


class _Lane:
    __slots__ = ("detail", "failed_at", "failures", "fast", "slow", "waits_until")

    def __init__(self) -> None:
        self.fast = self.slow = 0
        """Calls in progress that are not slow, and slow calls."""
        self.failures = 0
        """Number of failures in a row."""
        self.failed_at = self.waits_until = MonotonicTime(0.0)
        self.detail = ""


class _Call:
    __slots__ = ("is_hard", "is_slow", "lane", "since")

    def __init__(self, lane: LaneKey, since: MonotonicTime, *, is_hard: bool) -> None:
        self.lane, self.since, self.is_hard, self.is_slow = lane, since, is_hard, False


class Calls(Limit):
    """The calls in progress.

    Args:
        slots: maximum number of calls in progress, besides slow calls that gave their slots back.
        freed: receives the keys of refusals whose calls may be made.

    """

    def __init__(self, slots: int, freed: FreedKeys) -> None:
        self.slots = slots
        self._freed = freed
        self._calls: dict[str, _Call] = {}
        """Calls by the UID of the pod, the oldest first."""
        self._slow = 0
        """Number of slow calls that give their slots back, as far as ``MAX_SLOW`` allows."""
        self._lanes: dict[LaneKey, _Lane] = {}
        """Lanes with calls in progress, or whose calls fail."""
        self._paused_until = MonotonicTime(0.0)
        self._answers = True
        """True while the API server renews the Lease."""

    @property
    def is_busy(self) -> bool:
        """True if calls in progress fill half the slots."""
        return self._used * 2 >= self.slots

    @property
    def _used(self) -> int:
        """Number of slots in use."""
        return len(self._calls) - min(self._slow, MAX_SLOW)

    def is_failing(self, lane: LaneKey) -> bool:
        """Return True if the last call of a lane failed, or one of its calls is slow."""
        known = self._lanes.get(lane)
        return known is not None and (known.failures > 0 or known.slow > 0)

    def begun(self, uid: str) -> tuple[MonotonicTime, bool]:
        """Return when the call for a pod began, and True if it is slow."""
        return self._calls[uid].since, self._calls[uid].is_slow

    def pause(self, seconds: float, now: MonotonicTime) -> None:
        """Make no call for ``seconds``: the API server requests a pause."""
        self._paused_until = max(self._paused_until, later(now, min(seconds, MAX_PAUSE_SECONDS)))

    def note_renewal(self, now: MonotonicTime, *, succeeded: bool) -> None:
        """Stop all lanes while the Lease is not renewed. Afterwards, lanes that failed are tried at once."""
        if succeeded and not self._answers:
            self._freed.add(EVERY_POLICY)
            for key, lane in self._lanes.items():
                lane.waits_until = min(lane.waits_until, now)
                self._freed.add(lane_key(key))
        self._answers = succeeded

    def process_time(self, now: MonotonicTime) -> Iterator[LaneKey]:
        """Mark calls as slow whose time has come. Yields their lanes."""
        while (call := self._oldest_quick()) is not None and now >= later(call.since, SLOW_SECONDS):
            call.is_slow = True
            lane = self._lanes[call.lane]
            lane.fast, lane.slow = lane.fast - 1, lane.slow + 1
            self._slow += lane.slow <= LANE_SLOW
            self._free(call.lane)
            yield call.lane

    def next_slow_at(self) -> MonotonicTime | None:
        """Return when the next call becomes slow; None if no call can."""
        oldest = self._oldest_quick()
        return None if oldest is None else later(oldest.since, SLOW_SECONDS)

    def _oldest_quick(self) -> _Call | None:
        """Return the oldest call that is not slow."""
        return next((call for call in self._calls.values() if not call.is_slow), None)

    def admit(self, request: EvictionRequest) -> Refusal | None:
        """Refuse a pod while no slot is free for it or its lane. A rehearsal makes no call, so it needs none."""
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
                return Refusal(FAILING, lane.waits_until, RefusalScope.LANE, key, lane.detail)
            if lane.fast + lane.slow:
                return Refusal(FAILING, None, RefusalScope.LANE, key, lane.detail)
        if lane.slow >= (LANE_SLOW if self._slow < MANY_SLOW else 1):
            detail = f"{lane.slow} calls of namespace {request.pod.namespace} have had no answer for a second"
            return Refusal(FAILING, None, RefusalScope.LANE, key, detail)
        if request.others_could_go and lane.fast >= max(1, self.slots // 2):
            detail = f"{lane.fast} calls of namespace {request.pod.namespace} are in progress, and others wait"
            return Refusal(CALLS, None, RefusalScope.LANE, key, detail)
        return None

    def reserve(self, request: EvictionRequest) -> None:
        """Note the start of a call."""
        uid = request.pod.uid
        self._calls[uid] = _Call(request.lane, request.now.monotonic, is_hard=request.is_hard)
        if len(self._lanes) >= MAX_LANES:
            self._lanes = {key: lane for key, lane in self._lanes.items() if lane.fast or lane.slow}
        self._lanes.setdefault(request.lane, _Lane()).fast += 1

    def answered(self, uid: str, answer: CallAnswer, now: MonotonicTime, detail: str = "") -> None:
        """Apply the answer to a call to its lane, before the call is settled."""
        call = self._calls[uid]
        lane = self._lanes[call.lane]
        if answer is CallAnswer.FINE:
            lane.failures = 0
        elif answer is CallAnswer.FAILS:
            self._fail(lane, call, now, detail)

    @staticmethod
    def _fail(lane: _Lane, call: _Call, now: MonotonicTime, detail: str) -> None:
        lane.detail = detail
        if lane.failures and call.since < lane.failed_at:  # was in progress at the last failure
            return
        lane.failures += 1
        lane.failed_at = now
        longest = LONGEST_HARD_WAIT_SECONDS if call.is_hard else LONGEST_WAIT_SECONDS
        lane.waits_until = later(now, min(longest, FIRST_WAIT_SECONDS * 2.0 ** min(lane.failures - 1, 16)))

    def settle(self, uid: str, settlement: Settlement, now: Instant) -> None:
        """Note the end of a call, whatever its outcome."""
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
        """Forget all failures, since another process led until now. Returns the lanes that failed."""
        failing = [key for key, lane in self._lanes.items() if lane.failures]
        for key in failing:
            self._lanes[key].failures = 0
            self._freed.add(lane_key(key))
        self._lanes = {key: lane for key, lane in self._lanes.items() if lane.fast or lane.slow}
        return failing
