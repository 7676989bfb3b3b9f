"""A limit on log lines that clients can cause as often as they like."""

import time
from collections.abc import Callable

LOG_SECONDS = 60.0
"""Minimum seconds between two lines about the same subject."""


class LogLimiter:
    """Decides whether to log.

    Args:
        now: a monotonic clock.

    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._next: dict[object, float] = {}

    def __call__(self, about: object) -> bool:
        """Return True if a line about this may be logged now. ``about`` is hashable, with few different values."""
        now = self._now()
        if now < self._next.get(about, now):
            return False
        self._next[about] = now + LOG_SECONDS
        return True
