"""Both clocks in one reading, injected everywhere."""

import time
from collections.abc import Callable

from taintwarden.engine.model import Instant, MonotonicTime, WallTime

Clock = Callable[[], Instant]


def system_clock() -> Instant:
    """The machine's own clocks."""
    return Instant(WallTime(time.time()), MonotonicTime(time.monotonic()))
