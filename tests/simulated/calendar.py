"""A second opinion on when windows open: slow, looking at every minute, sharing no code with the engine.

It knows the five fields of cron without names and without what the library adds to them.
"""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)


def numbers(field: str, low: int, high: int) -> set[int]:
    """Numbers that a field of a schedule stands for."""
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = (f"{low}-{high}" if span == "*" else span).partition("-")
        end = int(last) if last else (high if step else int(first))
        found.update(range(int(first), end + 1, int(step or 1)))
    return found


class Schedule:
    def __init__(self, text: str) -> None:
        minute, hour, day, month, weekday = text.split()
        self.minutes, self.hours = numbers(minute, 0, 59), numbers(hour, 0, 23)
        self.days, self.months = numbers(day, 1, 31), numbers(month, 1, 12)
        self.weekdays = {number % 7 for number in numbers(weekday, 0, 7)}
        self.both_days = day.startswith("*") or weekday.startswith("*")
        self.names_times = not minute.startswith("*") and not hour.startswith("*")

    def matches(self, wall: datetime) -> bool:
        if wall.minute not in self.minutes or wall.hour not in self.hours or wall.month not in self.months:
            return False
        days = [wall.day in self.days, wall.isoweekday() % 7 in self.weekdays]
        return all(days) if self.both_days else any(days)


class Wall:
    """The clock on the wall of a time zone."""

    def __init__(self, zone: str) -> None:
        self.zone = ZoneInfo(zone)

    def at(self, moment: int) -> datetime:
        """Wall-clock time at a moment; ``fold`` is 1 when a clock shows that time for the second time."""
        return datetime.fromtimestamp(moment, self.zone).replace(tzinfo=None)

    def openings(self, text: str, begin: int, end: int) -> list[int]:
        """The minutes from ``begin`` to ``end`` at which Debian's cron would run."""
        schedule, previous, found = Schedule(text), self.at(begin - 60), []
        for moment in range(begin, end, 60):
            now = self.at(moment)
            if _opens(schedule, previous, now):
                found.append(moment)
            previous = now
        return found


def _opens(schedule: Schedule, previous: datetime, now: datetime) -> bool:
    """True if a window opens at minute ``now`` of the wall clock; ``previous`` is its time a minute before."""
    if not schedule.names_times:
        return schedule.matches(now)
    if now.fold:
        return False
    skipped = int((now - previous) / MINUTE) - 1
    return any(schedule.matches(now - MINUTE * back) for back in range(max(skipped, 0) + 1))
