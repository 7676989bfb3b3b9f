"""Both clocks in one reading, injected everywhere."""

import math
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Final

import structlog

from taintwarden.engine.model import Instant, MonotonicTime, WallTime

Clock = Callable[[], Instant]
STEP_SECONDS: Final = 1.0
"""By so much NTP may move a clock without a step. Times in answers have whole seconds."""
SKEW_SECONDS: Final = 10.0
"""By so much clocks of a cluster may differ without a fault."""
DOUBT_SECONDS: Final = 60.0
"""For so long no answer agrees before the clock of the machine is not believed any more: one of several API servers may
be wrong.
"""

log = structlog.get_logger(__name__)


def system_clock() -> Instant:
    """The machine's own clocks."""
    return Instant(WallTime(time.time()), MonotonicTime(_monotonic()))


def _monotonic() -> float:
    """Runs on while the machine sleeps: what was renewed or came just before its sleep is old after it."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)  # of Linux
    return time.monotonic() if boot is None else time.clock_gettime(boot)


class CheckedClock:
    """The clocks of a machine, with a wall clock that does not lead away from the API server's.

    Times in objects come from the clocks of the API server, the scheduler and other clients. If the clock of this
    machine alone were ahead by an hour, each grace would be over; and what was seen until it is set back would be an
    hour late.

    * A step that leads away from the API server's clock is not followed. One that leads towards it is a correction, and
      is followed at once.
    * A clock that is wrong from the beginning, or becomes wrong slowly, is replaced by the API server's, extended
      by the monotonic clock: at the first answer, later when no answer agreed for a minute.

    Args:
        clock: what to check.

    """

    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._offset: float | None = None
        """Wall time minus monotonic time, as it counts."""
        self._server_offset: float | None = None
        """The same of the API server, as of its last answer."""
        self._date = ""
        self._agreed_at = MonotonicTime(-math.inf)
        """When the API server last gave a time that agreed with what counts."""
        self._ignored_at: float | None = None
        """The offset that was reported as ignored."""

    def __call__(self) -> Instant:
        """Now."""
        now = self._clock()
        offset = now.wall - now.monotonic
        counts = offset if self._offset is None else self._offset
        server = offset if self._server_offset is None else self._server_offset
        if abs(offset - counts) <= STEP_SECONDS or abs(offset - server) <= abs(counts - server):
            self._offset, self._ignored_at = offset, None
            return now
        if self._ignored_at is None or abs(offset - self._ignored_at) > STEP_SECONDS:
            self._ignored_at = offset
            log.warning(
                "clock-step-ignored",
                seconds=round(offset - counts, 1),
                reason="it leads away from the clock of the API server",
                remedy="check NTP on the node",
            )
        return Instant(WallTime(now.monotonic + counts), now.monotonic)

    def synchronize(self, date: str) -> None:
        """The API server gave this time, as in the header ``Date`` of HTTP."""
        if date == self._date:  # an answer of the same second says nothing more
            return
        try:
            at = parsedate_to_datetime(date).timestamp()
        except (ValueError, OverflowError):
            return
        now = self._clock()
        self._date, self._server_offset = date, at - now.monotonic
        if self._offset is None:
            self._offset = now.wall - now.monotonic
        if abs(self._offset - self._server_offset) <= SKEW_SECONDS:
            self._agreed_at = now.monotonic
        elif now.monotonic - self._agreed_at >= DOUBT_SECONDS:
            log.warning(
                "clock-replaced",
                seconds=round(self._offset - self._server_offset, 1),
                reason="it is not the time of the API server, which counts from now on",
                remedy="check NTP on the node",
            )
            # Its seconds are cut off, and graces that begin by a clock that is behind end early once it is corrected.
            self._offset, self._agreed_at = self._server_offset + STEP_SECONDS, now.monotonic
            self._ignored_at = now.wall - now.monotonic
