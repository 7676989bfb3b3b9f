"""Eviction calls: how many are in progress, whose they are, and how gently a server is treated that rejects them.

Calls without an answer for a second are *slow*. They have slots of their own, so that a webhook that hangs for some
namespaces delays no others by more than that. A namespace with slow calls makes few further ones.
"""

from collections.abc import Iterator

from taintwarden.engine.limits.protocol import EVERY_POLICY, EvictionRequest, Freed, Limit, Settlement
from taintwarden.engine.limits.refusal import CALLS, THROTTLED, Refusal
from taintwarden.engine.model import Instant, MonotonicTime, later
from taintwarden.engine.tally import Tally

SLOW_SECONDS = 1.0
"""An eviction takes about 0.1 s on an idle API server."""
SLOW_FACTOR = 3
"""Slots for slow calls, as a multiple of the others."""
NAMESPACE_PART = 2
"""A namespace has this part of the slots, while calls of it are answered."""
SLOW_NAMESPACE_PART = 8
"""The same while calls of it are slow."""
MAX_FAILING = 10_000
"""How many namespaces are remembered."""
MANY_FAILURES = 5
"""So many failed calls in a row, of whatever namespaces: the cause is common to all."""


class Calls(Limit):
    """The calls in progress.

    Args:
        slots: how many may be in progress at once, besides slow ones.
        freed: receives the keys of refusals whose calls may be made.

    """

    def __init__(self, slots: int, freed: Freed) -> None:
        self.slots = slots
        self._freed = freed
        self._fast: dict[str, tuple[str, MonotonicTime]] = {}
        """UID -> namespace, and since when; the oldest first."""
        self._slow: dict[str, str] = {}
        """UID -> namespace."""
        self._number: Tally[str] = Tally()
        """Calls in progress by namespace."""
        self._number_slow: Tally[str] = Tally()
        self._failing: dict[str, None] = {}
        """Namespaces whose last call failed."""
        self._failures = 0
        """Failed calls in a row."""
        self._paused_until = MonotonicTime(0.0)

    @property
    def in_flight(self) -> int:
        """Calls in progress."""
        return len(self._fast) + len(self._slow)

    @property
    def is_busy(self) -> bool:
        """Whether calls in progress fill half the slots."""
        return len(self._fast) * 2 >= self.slots

    @property
    def _is_full(self) -> bool:
        return len(self._fast) >= self.slots or len(self._slow) >= SLOW_FACTOR * self.slots

    def is_doubtful(self, namespace: str) -> bool:
        """Whether a call in this namespace is likely to fail, since the last one did."""
        return namespace in self._failing or self._failures >= MANY_FAILURES

    def pause(self, until: MonotonicTime) -> None:
        """The API server requests a pause."""
        self._paused_until = max(self._paused_until, until)

    def note(self, namespace: str, *, failed: bool) -> None:
        """A call was answered: whether it failed for a reason that other calls may share."""
        if failed:
            if len(self._failing) >= MAX_FAILING:
                self._failing.clear()
            self._failing[namespace] = None
            self._failures += 1
        else:
            self._failing.pop(namespace, None)
            self._failures = 0

    def let_time_pass(self, now: MonotonicTime) -> None:
        """Calls become slow."""
        for uid in list(self._due(now)):
            namespace, _ = self._fast.pop(uid)
            self._slow[uid] = namespace
            self._number_slow[namespace] += 1
            self._freed.add(EVERY_POLICY)

    def _due(self, now: MonotonicTime) -> Iterator[str]:
        for uid, (_, since) in self._fast.items():
            if now < since + SLOW_SECONDS:
                return
            yield uid

    def next_slow_at(self) -> MonotonicTime | None:
        """When the next call becomes slow."""
        oldest = next(iter(self._fast.values()), None)
        return None if oldest is None else later(oldest[1], SLOW_SECONDS)

    def admit(self, request: EvictionRequest) -> Refusal | None:
        """Whether there is a slot, for any pod and for one of this namespace. A rehearsal makes no call."""
        if request.is_rehearsal:
            return None
        if request.now.monotonic < self._paused_until:
            return Refusal(THROTTLED, self._paused_until)
        if self._is_full:
            return Refusal(CALLS)
        namespace = request.pod.namespace
        number, slow = self._number[namespace], self._number_slow[namespace]
        if number < max(1, self.slots // (SLOW_NAMESPACE_PART if slow else NAMESPACE_PART)):
            return None
        detail = f"{number} calls of namespace {namespace} are in progress"
        return Refusal(CALLS, None, _key(namespace), f"{detail}, {slow} of them without an answer" if slow else detail)

    def reserve(self, request: EvictionRequest) -> None:
        """A call begins."""
        namespace = request.pod.namespace
        self._fast[request.pod.uid] = namespace, request.now.monotonic
        self._number[namespace] += 1

    def settle(self, uid: str, settlement: Settlement, now: Instant) -> None:
        """A call ended, however."""
        del settlement, now
        was_full = self._is_full
        if (fast := self._fast.pop(uid, None)) is not None:
            namespace = fast[0]
        else:
            namespace = self._slow.pop(uid)
            self._number_slow.take(namespace)
        self._number.take(namespace)
        self._freed.add(_key(namespace))
        if was_full:
            self._freed.add(EVERY_POLICY)

    def forget_failures(self) -> None:
        """Another process led until now."""
        self._failing, self._failures = {}, 0


def _key(namespace: str) -> str:
    return f"calls/{namespace}"
