"""Which of some objects count, where only so much of them may: the oldest ones, in the order of their age."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator

Age = tuple[str, str]
"""When an object was created, and its key: the order of those of one second."""


class Oldest:
    """The first of some objects whose sizes add up to a limit at most. No younger one counts, however small it is.

    A change costs what changes because of it, and a look-up among the others: their number does not matter.

    Args:
        limit: of the sizes together.
        size_of: the size of the object with this key, at least 1; asked once it may count.

    """

    def __init__(self, limit: int, size_of: Callable[[str], int]) -> None:
        self._limit = limit
        self._size_of = size_of
        self._order: list[Age] = []
        self._sizes: dict[str, int] = {}
        """Of those that count: the first ones of the order."""
        self._used = 0

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, key: str) -> bool:
        """Whether it counts."""
        return key in self._sizes

    def add(self, age: Age) -> None:
        """One more. Whether it counts, the next :meth:`settle` says."""
        insort(self._order, age)
        if bisect_left(self._order, age) < len(self._sizes):
            self._enter(age[1])

    def changed(self, key: str) -> None:
        """It may have another size."""
        if key in self._sizes:
            self._leave(key)
            self._enter(key)

    def remove(self, age: Age) -> None:
        """It is gone."""
        del self._order[bisect_left(self._order, age)]
        if age[1] in self._sizes:
            self._leave(age[1])

    def settle(self) -> Iterator[str]:
        """Compare with the limit. Yields those that count now, or do not any more."""
        while self._used > self._limit:
            _, key = self._order[len(self._sizes) - 1]
            self._leave(key)
            yield key
        while (waiting := self.first_waiting) is not None:
            size = self._size_of(waiting)
            if self._used + size > self._limit:
                return
            self._enter(waiting, size)
            yield waiting

    def youngest_first(self) -> Iterator[str]:
        """Those that do not count, from the last one on."""
        for at in range(len(self._order) - 1, len(self._sizes) - 1, -1):
            yield self._order[at][1]

    @property
    def first_waiting(self) -> str | None:
        """The oldest that does not count."""
        at = len(self._sizes)
        return self._order[at][1] if at < len(self._order) else None

    def _enter(self, key: str, size: int | None = None) -> None:
        self._sizes[key] = found = self._size_of(key) if size is None else size
        self._used += found

    def _leave(self, key: str) -> None:
        self._used -= self._sizes.pop(key)
