"""Deadlines in order: keys with the time at which each is due.

150,000 deadlines are 150,000 small objects instead of tasks; the event loop sleeps until the first is due. They are in
sorted parts of at most 1,000 entries, so that adding or removing one moves only the rest of its part. A heap with lazy
deletion is a little faster on average, but blocks the event loop for 0.1 s when it drops stale entries.
"""

from bisect import bisect_left, insort
from typing import Generic

import msgspec

from taintwarden.engine.model import Time

LARGEST_PART = 1_000


class Entry(msgspec.Struct, frozen=True, order=True, gc=False):
    """A key that is due ``at`` a time. Entries are ordered by time, rank and key: the order is equal in every run."""

    at: float
    rank: tuple[float, ...]
    key: str


class Entries:
    """Entries in order. ``largest_part``: maximum number of entries that are moved to add or remove one."""

    def __init__(self, largest_part: int = LARGEST_PART) -> None:
        self._largest_part = largest_part
        self._parts: list[list[Entry]] = []
        """All entries in order. No part is empty."""
        self._lasts: list[Entry] = []
        """Last entry of each part."""

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def add(self, entry: Entry) -> None:
        """Add an entry that is not among the entries yet."""
        number = min(bisect_left(self._lasts, entry), len(self._lasts) - 1)
        if number < 0:
            number, self._parts, self._lasts = 0, [[]], [entry]
        part = self._parts[number]
        insort(part, entry)
        self._lasts[number] = part[-1]
        if len(part) > self._largest_part:
            half = len(part) // 2
            self._parts[number : number + 1] = part[:half], part[half:]
            self._lasts.insert(number, part[half - 1])

    def remove(self, entry: Entry) -> None:
        """Remove the entry that is equal to this one."""
        number = bisect_left(self._lasts, entry)
        part = self._parts[number]
        del part[bisect_left(part, entry)]
        if part:
            self._lasts[number] = part[-1]
        else:
            del self._parts[number], self._lasts[number]

    def head(self) -> Entry | None:
        """Return the first entry without removing it; None if there is none."""
        return self._parts[0][0] if self._parts else None


class DeadlineQueue(Entries, Generic[Time]):
    """Keys with the time at which each is due, all on one clock. Scheduling a key again replaces its entry.

    >>> queue = DeadlineQueue()
    >>> queue.schedule("pod", 20.0)
    >>> queue.schedule("pod", 10.0)
    >>> queue.pop_due(15.0), queue.pop_due(25.0)
    ('pod', None)
    """

    def __init__(self, largest_part: int = LARGEST_PART) -> None:
        super().__init__(largest_part)
        self._current: dict[str, Entry] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._current

    def schedule(self, key: str, at: Time) -> None:
        """Make ``key`` due ``at`` that time, instead of the time that it had before."""
        known = self._current.get(key)
        if known is not None:
            if known.at == at:
                return
            self.cancel(key)
        entry = self._current[key] = Entry(at, (), key)
        self.add(entry)

    def cancel(self, key: str) -> None:
        """Remove ``key``, if it is scheduled."""
        entry = self._current.pop(key, None)
        if entry is not None:
            self.remove(entry)

    def next_at(self) -> Time | None:
        """Return when the earliest key is due; None if there is none."""
        return self._parts[0][0].at if self._parts else None  # type: ignore[return-value] # what was scheduled

    def pop_due(self, now: Time) -> str | None:
        """Remove and return the earliest key that is due at ``now``, if any."""
        head = self.head()
        if head is None or head.at > now:
            return None
        self.cancel(head.key)
        return head.key
