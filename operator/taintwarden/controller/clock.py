"""Clocks that read wall time and monotonic time together. Callers inject them, so that tests can replace them."""

import math
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Final

import structlog

from taintwarden.engine.model import Instant, MonotonicTime, WallTime

Clock = Callable[[], Instant]
STEP_SECONDS: Final = 1.0
"""Maximum seconds by which two times may differ and still agree: NTP slews a clock, and ``Date`` has whole seconds."""
SKEW_SECONDS: Final = 10.0
"""Maximum difference in seconds between the clocks of this machine and the API server that is not a fault."""
DOUBT_SECONDS: Final = 60.0
"""Seconds without an answer that agrees, after which the API server's clock replaces that of this machine.

A single answer is not enough, except the first of all, because one of several API servers may be wrong.
"""

log = structlog.get_logger(__name__)


def system_clock() -> Instant:
    """Read the clocks of this machine."""
    return Instant(WallTime(time.time()), MonotonicTime(_monotonic()))


def _monotonic() -> float:
    """Return a monotonic time that includes suspension, so that a lease renewed before it has expired after it."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)  # Linux only
    return time.monotonic() if boot is None else time.clock_gettime(boot)


class CheckedClock:
    """The clocks of a machine, with the wall clock checked against that of the API server.

    Times in objects come from the clocks of the API server, the scheduler and other clients. If the clock of this
    machine alone were ahead by an hour, each grace would be over. Deadlines computed before the clock is set back would
    be an hour late.

    * A step away from the API server's clock is ignored. A step towards it is a correction and takes effect at once.
    * A clock that is wrong from the start, or becomes wrong slowly, is replaced by the API server's clock, continued
      with the monotonic clock: at the first answer, and later when no answer has agreed for a minute.

    Args:
        clock: reads the clocks to check.

    """

    def __init__(self, clock: Clock = system_clock) -> None:
        self._clock = clock
        self._offset: float | None = None
        """Wall time minus monotonic time that is in use."""
        self._server_offset: float | None = None
        """Wall time of the API server's last answer minus the monotonic time of its arrival."""
        self._date = ""
        self._agreed_at = MonotonicTime(-math.inf)
        """Time of the last answer of the API server that agreed with the offset in use."""
        self._ignored_offset: float | None = None
        """Offset whose step was last logged as ignored."""

    def __call__(self) -> Instant:
        """Return the current time."""
        now = self._clock()
        offset = now.wall - now.monotonic
        used = offset if self._offset is None else self._offset
        server = offset if self._server_offset is None else self._server_offset
        if abs(offset - used) <= STEP_SECONDS or abs(offset - server) <= abs(used - server):
            self._offset, self._ignored_offset = offset, None
            return now
        if self._ignored_offset is None or abs(offset - self._ignored_offset) > STEP_SECONDS:
            self._ignored_offset = offset
            log.warning(
                "clock-step-ignored",
                seconds=round(offset - used, 1),
                reason="it leads away from the clock of the API server",
                remedy="check NTP on the node",
            )
        return Instant(WallTime(now.monotonic + used), now.monotonic)

    def synchronize(self, date: str) -> None:
        """Compare the clock with a time of the API server, from the HTTP header ``Date`` of an answer."""
        if date == self._date:  # another answer within the same second adds nothing
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
                reason="it differs from the clock of the API server, which is used from now on",
                remedy="check NTP on the node",
            )
            # Date lacks fractions of a second. Add one: a clock that is behind makes graces begin too early, and they
            # would end early once it is corrected.
            self._offset, self._agreed_at = self._server_offset + STEP_SECONDS, now.monotonic
            self._ignored_offset = now.wall - now.monotonic
