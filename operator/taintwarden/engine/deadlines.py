"""A heap of deadlines with lazy deletion: for each key only the entry scheduled last counts.

150,000 deadlines are 150,000 small objects instead of tasks; the loop sleeps until the head is due.
"""

from heapq import heapify, heappop, heappush
from typing import Generic

import msgspec

from taintwarden.engine.model import Time

CHEAPER_AT_ONCE = 16
"""To make a heap of as many entries takes as long as to pop one: 75,000 pops would block the event loop for 0.2 s."""


class Entry(msgspec.Struct, frozen=True, order=True, gc=False):
    """A key due ``at`` a time. Entries order by time, then rank, then key: a total order, the same in every run."""

    at: float
    rank: tuple[float, ...]
    key: str


class DeadlineQueue(Generic[Time]):
    """Keys with the time at which each is due, all on one clock. Scheduling a key again replaces its entry.

    >>> queue = DeadlineQueue()
    >>> queue.schedule("pod", 20.0)
    >>> queue.schedule("pod", 10.0)
    >>> queue.pop_due(15.0), queue.pop_due(25.0)
    ('pod', None)
    """

    def __init__(self) -> None:
        self._heap: list[Entry] = []
        self._current: dict[str, Entry] = {}

    def __len__(self) -> int:
        return len(self._current)

    def schedule(self, key: str, at: Time, rank: tuple[float, ...] = ()) -> None:
        """Make ``key`` due ``at`` that time, instead of any other time it had."""
        known = self._current.get(key)
        if known is not None and known.at == at and known.rank == rank:
            return
        entry = self._current[key] = Entry(at, rank, key)
        heappush(self._heap, entry)
        if known is not None:
            self._bound()

    def cancel(self, key: str) -> None:
        """Remove ``key``, if it is scheduled."""
        if self._current.pop(key, None) is not None:
            self._bound()

    def at(self, key: str) -> Time | None:
        """When ``key`` is due, None if it is not scheduled."""
        entry = self._current.get(key)
        return entry.at if entry else None  # type: ignore[return-value] # an entry holds what was scheduled

    def next_at(self) -> Time | None:
        """When the earliest key is due."""
        head = self.head()
        return head.at if head else None  # type: ignore[return-value]

    def head(self) -> Entry | None:
        """The earliest entry, which is not removed."""
        self._drop_stale()
        return self._heap[0] if self._heap else None

    def pop_due(self, now: Time) -> str | None:
        """Remove and return the earliest key that is due at ``now``, if any."""
        self._drop_stale()
        if not self._heap or self._heap[0].at > now:
            return None
        entry = heappop(self._heap)
        del self._current[entry.key]
        return entry.key

    def _bound(self) -> None:
        """At most as many stale entries as current ones, plus a thousand."""
        if len(self._heap) > 2 * len(self._current) + 1000:
            self._compact()

    def _drop_stale(self) -> None:
        heap, current = self._heap, self._current
        while heap and current.get(heap[0].key) is not heap[0]:
            if len(heap) - len(current) > len(current) / CHEAPER_AT_ONCE + 1000:
                self._compact()
                return
            heappop(heap)

    def _compact(self) -> None:
        """Drop all stale entries."""
        self._heap = list(self._current.values())
        heapify(self._heap)
