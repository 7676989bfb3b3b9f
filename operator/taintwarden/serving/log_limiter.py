"""A limit on the rate of log lines that requests of clients cause."""

import time
from collections.abc import Callable

LOG_SECONDS = 60.0
"""Minimum seconds between two lines about one subject."""


class LogLimiter:
    """Decides if a line about a subject may be logged.

    Args:
        now: a monotonic clock.

    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._next: dict[object, float] = {}

    def __call__(self, about: object) -> bool:
        """Return True if a line about this subject may be logged now. Subjects are hashable, and few."""
        now = self._now()
        if now < self._next.get(about, now):
            return False
        self._next[about] = now + LOG_SECONDS
        return True
