"""Counters that drop a key whose count is 0."""

from collections import Counter
from typing import TypeVar

K = TypeVar("K")


class Tally(Counter[K]):
    """Number of objects by key. A key whose number is 0 is dropped, so memory grows with the current objects only."""

    def change(self, key: K, by: int) -> None:
        """Add ``by``, which may be negative, to the number of a key."""
        self[key] += by
        if not self[key]:
            del self[key]

    def take(self, *keys: K) -> None:
        """Subtract 1 from the number of each key."""
        for key in keys:
            self.change(key, -1)
