"""Whether a guard is tripped, what it holds, and the most that it counted."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from taintwarden.engine.guard.wave import GroupKey
from taintwarden.engine.model import Instant, MonotonicTime, WallTime, later

NARROW_SECONDS = 60.0
"""Seconds without growth of the other namespaces until only the largest is held."""
ALL = OTHERS = ""
"""The scope of a guard that holds all pods of its policy; and where those are counted whose namespace is not stored."""


class Latch:
    """Tripped or armed.

    The most that counted of a namespace stands, since values are repaired node by node. What counts is stored before
    the latch holds less than before; it holds more at once.
    """

    def __init__(self) -> None:
        self.tripped_at: WallTime | None = None
        self.cause = ""
        self.scope = ALL
        """What it holds while it is tripped: all pods, or those of this namespace."""
        self.held: dict[GroupKey, None] = {}
        """Groups of which pods have counted since it tripped, and still have to leave."""
        self.is_reported = False
        self.settled_at = MonotonicTime(0.0)
        """When the wave is complete."""
        self._grew_at = self._narrows_at = MonotonicTime(0.0)
        """When others than the largest namespace have grown last; and when it is checked whether it may narrow."""
        self._counted: Counter[str] = Counter()
        """The most pods by namespace that counted at a time since it tripped, or was restored."""
        self._before: Counter[str] = Counter()
        """What the leader before had counted."""
        self._grown: dict[str, None] = {}
        """Namespaces that have grown since the last check."""
        self._version = self._sent_version = self._stored_version = 0
        """How often what counts has grown: now, in the record that is written, and in the stored one."""

    @property
    def is_tripped(self) -> bool:
        """True if too many pods would be evicted."""
        return self.tripped_at is not None

    @property
    def is_stored(self) -> bool:
        """True if the stored record has what counts."""
        return self._stored_version == self._version

    def trip(self, now: Instant, counted: Counter[str], groups: Iterable[GroupKey], settle_seconds: float) -> None:
        """Hold all pods from now on."""
        self.tripped_at, self.is_reported = now.wall, False
        self._counted, self.held = counted, dict.fromkeys(groups)
        self._version += 1
        self.settled_at = later(now.monotonic, settle_seconds)
        self._grow(now.monotonic)

    def arm(self) -> bool:
        """Hold nothing. Returns True if it was reported that it had tripped."""
        was_reported = self.is_reported
        self.tripped_at, self.cause, self.scope, self.held = None, "", ALL, {}
        self._counted, self._before, self._grown = Counter(), Counter(), {}
        self._stored_version, self.is_reported = self._version, False
        return was_reported

    def restore(self, tripped_at: WallTime | None, cause: str, counted: Mapping[str, int], now: Instant) -> None:
        """Continue as the leader before, whose wave is complete when this process has counted it."""
        self.arm()
        self.tripped_at, self.cause, self.is_reported = tripped_at, cause, bool(cause)
        self._before = Counter(counted)
        self._grow(now.monotonic)

    def count(self, key: GroupKey, pods: int) -> None:
        """Pods of a group count, and so many of its namespace with those that were evicted."""
        namespace, _ = key
        self.held[key] = None
        if pods > self._counted[namespace]:
            self._counted[namespace] = pods
            if pods > self._before[namespace]:
                self._grown[namespace] = None
                self._version += 1

    def counted(self) -> Counter[str]:
        """The most pods by namespace that it counted at a time; ``""``: of namespaces that a record did not name."""
        named = sum(pods for namespace, pods in self._counted.items() if namespace not in self._before)
        return +((self._counted | self._before) - Counter({OTHERS: min(named, self._before[OTHERS])}))

    def scope_at(
        self, now: MonotonicTime, current: Counter[str], is_small: Callable[[int], bool], due: Mapping[str, int]
    ) -> str:
        """What it should hold.

        Args:
            now: the time.
            current: pods by namespace that count, and that were evicted.
            is_small: whether so many pods outside of the scope may pass it.
            due: those of them that count; empty if they are not all known.

        """
        self._let_grow(now)
        if self.is_stored and now >= self.settled_at and len(due) == 1:
            return next(iter(due))
        if self.scope != ALL:
            return self.scope if is_small(current.total() - current[self.scope]) else ALL
        if not self.is_stored or now < self._narrows_at or not (counted := self.counted()):
            return ALL
        self._narrows_at = later(now, NARROW_SECONDS)
        scope = _largest(counted)
        return scope if is_small(counted.total() - counted[scope]) else ALL

    def _let_grow(self, now: MonotonicTime) -> None:
        """Wait another minute where others than the largest namespace have grown."""
        if self._grown:
            scope = _largest(self.counted())
            if any(namespace != scope for namespace in self._grown):
                self._grow(now)
            self._grown = {}

    def _grow(self, now: MonotonicTime) -> None:
        self._grew_at = now
        self.check_scope()

    def check_scope(self) -> None:
        """Narrow as soon as the others have not grown for a minute: other settings may allow what did not fit."""
        self._narrows_at = later(self._grew_at, NARROW_SECONDS)

    def waits(self, now: MonotonicTime) -> list[float]:
        """Seconds until it has to be checked again."""
        if not self.is_tripped:
            return []
        is_complete = self.is_reported and now >= self.settled_at
        waits = [] if is_complete else [self.settled_at - now]
        return waits + ([self._narrows_at - now] if self.scope == ALL and self.is_stored else [])

    # -- its record -----------------------------------------------------------------------------------------------

    def send(self) -> None:
        """Its state is being stored."""
        self._sent_version = self._version

    def sent(self) -> None:
        """It is stored."""
        self._stored_version = self._sent_version


def _largest(counted: Counter[str]) -> str:
    """The namespace with the most pods."""
    [(namespace, _)] = counted.most_common(1)
    return namespace
