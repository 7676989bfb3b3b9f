"""True time, the actions that are due in it, and randomness that does not depend on the order of questions."""

import heapq
import itertools
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")

EPOCH = 1_700_000_000.25
"""True time 0 in seconds since 1970: not a whole second, so that truncated timestamps differ from it."""


class Agenda:
    """True time in seconds since the start of a history. Actions of the same moment run in the order of their entry."""

    def __init__(self) -> None:
        self.now = 0.0
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    @property
    def wall(self) -> float:
        """True time in seconds since 1970."""
        return round(EPOCH + self.now, 6)

    def at(self, moment: float, action: Callable[[], None]) -> None:
        """Run ``action`` at a moment; at once if that has passed."""
        heapq.heappush(self._queue, (max(moment, self.now), next(self._order), action))

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Run ``action`` after some seconds."""
        self.at(self.now + seconds, action)

    def run(self, until: float) -> None:
        """Let time pass, action by action."""
        queue = self._queue
        while queue and queue[0][0] <= until:
            self.now, _, action = heapq.heappop(queue)
            action()
        self.now = max(self.now, until)


class Noise:
    """Chance by name: the same question has the same answer whatever was asked before.

    So a history with one happening more or less differs only in what follows from that.
    """

    def __init__(self, seed: int) -> None:
        self._seed = str(seed).encode()

    def share(self, *question: object) -> float:
        """A number in [0, 1)."""
        digest = blake2b(repr(question).encode(), digest_size=8, key=self._seed).digest()
        return int.from_bytes(digest, "big") / 2**64

    def between(self, low: float, high: float, *question: object) -> float:
        """A number in [low, high), in whole milliseconds."""
        return round(low + (high - low) * self.share(*question), 3)

    def happens(self, probability: float, *question: object) -> bool:
        """Return True if something of this probability happens."""
        return probability > 0 and self.share(*question) < probability

    def pick(self, among: Sequence[T], *question: object) -> T:
        """One of several."""
        return among[int(self.share(*question) * len(among))]
