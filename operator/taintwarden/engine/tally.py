"""Counts of what comes and goes."""

from collections import Counter
from typing import TypeVar

K = TypeVar("K")


class Tally(Counter[K]):
    """How many there are of each key. A key of which none is left is forgotten, so it grows with what there is only."""

    def change(self, key: K, by: int) -> None:
        """There are so many more; negative: fewer."""
        self[key] += by
        if not self[key]:
            del self[key]

    def take(self, *keys: K) -> None:
        """There is one less of each."""
        for key in keys:
            self.change(key, -1)
