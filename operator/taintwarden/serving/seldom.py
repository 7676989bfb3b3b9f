"""What clients can cause is logged once in a while: they choose how often they cause it."""

import time
from collections.abc import Callable

LOG_SECONDS = 60.0
"""From one line to the next about the same."""


class Seldom:
    """Says whether to log something.

    Args:
        now: a clock that does not jump.

    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._next: dict[object, float] = {}

    def __call__(self, about: object) -> bool:
        """Whether to log this; ``about`` can be hashed, and is one of few."""
        now = self._now()
        if now < self._next.get(about, now):
            return False
        self._next[about] = now + LOG_SECONDS
        return True
