"""Eviction windows: a policy that has windows evicts only while one of them is open.

A window opens at the times that Debian's cron would run a job:

* A schedule whose minute and hour both name times (``30 2 * * *``) opens once for each of them. A time that the clock
  skips in spring opens right after the skip; a time that occurs twice in autumn opens at its first occurrence.
* A schedule with a star at the start of minute or hour (``*/15 2 * * *``) opens whenever the local time matches: never
  at skipped times, twice at times that occur twice. Where clocks change at midnight, or by other than an hour, the
  library may be wrong by that change on that day.

It stays open for a duration of real time, regardless of changes of the local time.
"""

import math
from collections.abc import Iterable
from datetime import datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim

from taintwarden.engine.limits.protocol import EvictionRequest, Limit
from taintwarden.engine.limits.refusal import WINDOW, Refusal
from taintwarden.engine.model import Instant, later
from taintwarden.engine.policy import Policy, Window


class EvictionWindows(Limit):
    """The windows of all policies that have any."""

    def __init__(self) -> None:
        self._windows: dict[str, Windows] = {}

    def configure(self, policies: Iterable[Policy], now: Instant) -> None:
        """Apply changed windows at once."""
        del now
        self._windows = {policy.name: Windows(policy.windows) for policy in policies if policy.windows}

    def concerns(self, policy: Policy) -> bool:
        """Return True if the policy has windows."""
        return policy.name in self._windows

    def admit(self, request: EvictionRequest) -> Refusal | None:
        """Refuse a pod until a window of its policy opens."""
        windows = None if request.is_hard else self._windows.get(request.policy.name)
        opens_at = None if windows is None else windows.closed_until(request.now.wall)
        if opens_at is None:
            return None
        return Refusal(WINDOW, later(request.now.monotonic, opens_at - request.now.wall))


class Windows:
    """The windows of one policy, which evicts while any of them is open.

    Every admission needs the next opening, so it is cached for as long as it holds.

    Args:
        windows: at least one, and valid: see :mod:`taintwarden.api.window_schedules`.

    """

    def __init__(self, windows: tuple[Window, ...]) -> None:
        self._windows = tuple((_Schedule(spec.schedule, spec.time_zone), spec.duration_seconds) for spec in windows)
        # Result of closed_until, and the half-open interval in which it holds.
        self._opens_at: float | None = None
        self._since = self._until = math.inf

    def closed_until(self, now: float) -> float | None:
        """Return when the next window opens; None while one is open, infinity if none opens within 50 years.

        Args:
            now: seconds since the epoch. It may step back.

        """
        if not self._since <= now < self._until:
            self._recompute(math.floor(now))
        return self._opens_at

    def _recompute(self, now: int) -> None:
        # A window that opened at most its duration ago is open. Otherwise, its next opening is in the future.
        openings = ((schedule.after(now - duration), duration) for schedule, duration in self._windows)
        times = [(opens, opens + duration) for opens, duration in openings]
        open_now = [(opens, closes) for opens, closes in times if opens <= now]
        if open_now:
            self._opens_at = None
            self._since, self._until = open_now[0]  # another window may be open when this one closes
        else:
            self._opens_at = self._until = min(opens for opens, _ in times)
            self._since = now


class _Schedule:
    """The times that a cron expression names in a time zone, in whole seconds since the epoch."""

    def __init__(self, expression: str, time_zone: str) -> None:
        self._expression = expression
        self._zone = ZoneInfo(time_zone)

    def after(self, moment: int) -> float:
        """Return the first time later than ``moment``; infinity if there is none within 50 years."""
        for opens in CronSim(self._expression, datetime.fromtimestamp(moment, self._zone)):
            # In the second occurrence of a repeated hour, the library returns times of the first.
            if opens.timestamp() > moment:
                return opens.timestamp()
        return math.inf
