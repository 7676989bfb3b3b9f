"""The state of a guard: tripped or armed, its scope, and the highest counts since it tripped."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from taintwarden.engine.guard.wave import GroupKey
from taintwarden.engine.model import Instant, MonotonicTime, WallTime, later

NARROW_SECONDS = 60.0
"""Seconds without growth of the other namespaces until only the largest is held."""
RECHECK_SECONDS = 2.0
"""Seconds until narrowing is checked again, since the allowance may have grown meanwhile."""
ALL = OTHERS = ""
"""``ALL`` is the scope of a guard that holds all pods; ``OTHERS`` stands for namespaces that the record omits."""


class Latch:
    """State of a guard: tripped or armed.

    The highest count of each namespace is kept, since values are repaired node by node. Counts are stored before the
    scope narrows; the scope widens at once.
    """

    def __init__(self) -> None:
        self.tripped_at: WallTime | None = None
        self.cause = ""
        self.scope = ALL
        """Namespace whose pods are held while the guard is tripped, or ``ALL``."""
        self.held: dict[GroupKey, None] = {}
        """Groups with pods that have counted since the guard tripped and still have to leave."""
        self.is_reported = False
        self.settled_at = MonotonicTime(0.0)
        """When the wave counts as complete."""
        self._grew_at = self._narrows_at = MonotonicTime(0.0)
        """Last growth of a namespace other than the largest, and the next check for narrowing."""
        self._counted: Counter[str] = Counter()
        """Highest number of pods by namespace that counted at once since the guard tripped, or was restored."""
        self._before: Counter[str] = Counter()
        """Counts that the previous leader stored."""
        self._grown: dict[str, None] = {}
        """Namespaces that have grown since the last check."""
        self._version = self._sent_version = self._stored_version = 0
        """Number of growths of the counts: now, in the record that is being written, and in the stored record."""

    @property
    def is_tripped(self) -> bool:
        """True if the guard has tripped, since too many pods would be evicted."""
        return self.tripped_at is not None

    @property
    def is_stored(self) -> bool:
        """True if the stored record has the current counts."""
        return self._stored_version == self._version

    def trip(self, now: Instant, counted: Counter[str], groups: Iterable[GroupKey], settle_seconds: float) -> None:
        """Hold all pods from now on."""
        self.tripped_at, self.is_reported = now.wall, False
        self._counted, self.held = counted, dict.fromkeys(groups)
        self._version += 1
        self.settled_at = later(now.monotonic, settle_seconds)
        self._restart_wait(now.monotonic)

    def arm(self) -> bool:
        """Hold nothing. Returns True if the trip was reported."""
        self.tripped_at, self.cause, self.scope, self.held = None, "", ALL, {}
        self._counted, self._before, self._grown = Counter(), Counter(), {}
        self._stored_version = self._version
        return self.is_reported

    def restore(self, tripped_at: WallTime | None, cause: str, counted: Mapping[str, int], now: Instant) -> None:
        """Continue with the state that the previous leader stored."""
        self.arm()
        self.tripped_at, self.cause, self.is_reported = tripped_at, cause, bool(cause)
        self._before = Counter(counted)
        self._restart_wait(now.monotonic)

    def count(self, key: GroupKey, pods: int) -> None:
        """Hold a group, and count its namespace. ``pods``: those of the namespace that count or were evicted."""
        namespace, _ = key
        self.held[key] = None
        if pods > self._counted[namespace]:
            self._counted[namespace] = pods
            if pods > self._before[namespace]:
                self._grown[namespace] = None
                self._version += 1

    def counted(self) -> Counter[str]:
        """Highest counts by namespace; ``OTHERS`` stands for namespaces that the restored record does not name."""
        named = sum(pods for namespace, pods in self._counted.items() if namespace not in self._before)
        return +((self._counted | self._before) - Counter({OTHERS: min(named, self._before[OTHERS])}))

    def scope_at(
        self, now: MonotonicTime, current: Counter[str], is_small: Callable[[int], bool], due: Mapping[str, int]
    ) -> str:
        """Return the scope that the guard should have.

        Args:
            now: current time.
            current: pods by namespace that count or were evicted.
            is_small: returns True if this number of pods outside of the scope may be evicted.
            due: pods by namespace that count; empty if they are not all known.

        """
        self._check_growth(now)
        if self.is_stored and now >= self.settled_at and len(due) == 1:
            return next(iter(due))
        if self.scope != ALL:
            return self.scope if is_small(current.total() - current[self.scope]) else ALL
        if not self.is_stored or now < self._narrows_at:
            return ALL
        self._narrows_at, counted = later(now, RECHECK_SECONDS), self.counted()
        scope = _largest(counted) if counted else ALL  # the record of a guard that only reports has no counts
        return scope if is_small(counted.total() - counted[scope]) else ALL

    def _check_growth(self, now: MonotonicTime) -> None:
        """Wait another minute if a namespace other than the largest has grown."""
        if self._grown:
            scope = _largest(self.counted())
            if any(namespace != scope for namespace in self._grown):
                self._restart_wait(now)
            self._grown = {}

    def _restart_wait(self, now: MonotonicTime) -> None:
        self._grew_at = now
        self.schedule_narrowing()

    def schedule_narrowing(self) -> None:
        """Check for narrowing a minute after the last growth: changed settings may allow what did not fit."""
        self._narrows_at = later(self._grew_at, NARROW_SECONDS)

    def waits(self, now: MonotonicTime) -> list[float]:
        """Seconds until the next checks of the latch."""
        if not self.is_tripped:
            return []
        is_complete = self.is_reported and now >= self.settled_at
        waits = [] if is_complete else [self.settled_at - now]
        return waits + ([self._narrows_at - now] if self.scope == ALL and self.is_stored else [])

    # -- its record -----------------------------------------------------------------------------------------------

    def note_sent(self) -> None:
        """Note that the current counts are being stored."""
        self._sent_version = self._version

    def note_stored(self) -> None:
        """Note that the counts of the last :meth:`note_sent` are stored."""
        self._stored_version = self._sent_version


def _largest(counted: Counter[str]) -> str:
    """Return the namespace with the most pods."""
    [(namespace, _)] = counted.most_common(1)
    return namespace
