"""What users write about eviction windows: a cron schedule, a duration, a time zone.

The schedule has the five fields of Debian's cron, and beside them what the library adds for the ends of months: ``L``
and ``LW`` as the day of the month, ``5L`` and ``MON#1`` as the day of the week.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import cache
from importlib import resources
from itertools import islice, pairwise, takewhile
from typing import Protocol

from cronsim import CronSim, CronSimError

from taintwarden.api.decode import nearest
from taintwarden.fields.field_errors import FieldError

DURATION = r"([0-9]{1,7}h)?([0-9]{1,7}m)?([0-9]{1,7}s)?"
MAX_DURATION_SECONDS = 31 * 86_400
MAX_DURATION_LENGTH = 24
MAX_SCHEDULE_LENGTH = 256
MAX_ZONE_LENGTH = 64

_FIELDS = {
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day of the month": "1 to 31, L or LW",
    "month": "1 to 12 or JAN to DEC",
    "day of the week": "0 to 7 (both ends are Sunday), SUN to SAT, 5L or MON#1",
}
_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_EXAMPLE = "write for example 0 2 * * MON-FRI, which is 02:00 from Monday to Friday"

# Schedules are judged from here on, so that a policy is as valid tomorrow. A leap year, then one that is none.
_START = datetime(2024, 1, 1)  # noqa: DTZ001 - a time on the wall, in no zone
_TWO_YEARS_OF_DAYS = 366 + 365
_BEFORE = _START - timedelta(seconds=1)


class WindowFields(Protocol):
    """A window as written."""

    @property
    def schedule(self) -> str: ...  # noqa: D102
    @property
    def duration(self) -> str: ...  # noqa: D102
    @property
    def time_zone(self) -> str: ...  # noqa: D102


def parse_duration(text: str) -> int | None:
    """Seconds of ``4h``, ``1h30m`` or ``45s``; None if it is written otherwise, 0 or more than 31 days."""
    match = re.fullmatch(DURATION, text)
    if match is None:
        return None
    hours, minutes, seconds = (int(part[:-1]) if part else 0 for part in match.groups())
    total = hours * 3600 + minutes * 60 + seconds
    return total if 0 < total <= MAX_DURATION_SECONDS else None


def check_windows(windows: Sequence[WindowFields]) -> Iterator[FieldError]:
    """What is wrong with each window, and which contradict one another."""
    for index, window in enumerate(windows):
        yield from (error.below(f"[{index}]") for error in _check_window(window))
    yield from _check_repeated(windows)


def _check_window(window: WindowFields) -> Iterator[FieldError]:
    schedule_errors = tuple(_check_schedule(window.schedule))
    yield from schedule_errors
    duration = parse_duration(window.duration)
    if duration is None:
        yield _duration_error(window.duration)
    elif not schedule_errors and not _closes(window.schedule, timedelta(seconds=duration)):
        reason = "never closes: it is still open when it opens again"
        yield FieldError("duration", window.duration, reason, "write a shorter one, or leave windows out")
    yield from _check_zone(window.time_zone)


def _check_repeated(windows: Sequence[WindowFields]) -> Iterator[FieldError]:
    seen: dict[tuple[str, str], int] = {}
    for index, window in enumerate(windows):
        first = seen.setdefault((" ".join(window.schedule.upper().split()), window.time_zone), index)
        if first == index:
            continue
        if parse_duration(window.duration) == parse_duration(windows[first].duration):
            yield FieldError(f"[{index}]", window.schedule, f"says the same as [{first}]", "remove it")
        else:
            reason = f"[{first}] opens at the same times for {windows[first].duration}"
            yield FieldError(f"[{index}].duration", window.duration, reason, "keep one of the two")


# -- schedules --------------------------------------------------------------------------------------------------------


def _check_schedule(text: str) -> Iterator[FieldError]:
    fields = text.split()
    if len(fields) != len(_FIELDS):
        yield FieldError("schedule", text, *_wrong_count(text, fields))
        return
    faulty = [(name, field) for name, field in zip(_FIELDS, fields, strict=True) if not _is_valid(name, field)]
    for name, field in faulty:
        yield FieldError("schedule", text, f"the {name} cannot be {field}", _field_remedy(name, field))
    if not faulty and not _ever_opens(text):
        yield FieldError("schedule", text, "never opens: no date is like that", "check the day against the month")


def _wrong_count(text: str, fields: list[str]) -> tuple[str, str]:
    """Reason and remedy for a schedule without five fields."""
    first = fields[0] if fields else ""
    if first.startswith("@"):
        meant = _MACROS.get(text.strip().lower())
        return "is a name, and only five fields are understood", f"write {meant}" if meant else _EXAMPLE
    if first.upper().startswith(("TZ=", "CRON_TZ=")):
        return "must not name a time zone", f"write {' '.join(fields[1:])} and set timeZone to {first.split('=')[1]}"
    if len(fields) == len(_FIELDS) + 1:
        remedy = f"write {' '.join(fields[1:])}" if first == "0" else _EXAMPLE
        return "has six fields, and cron has five: there are no seconds", remedy
    return f"must have five fields, and has {len(fields)}: {', '.join(_FIELDS)}", _EXAMPLE


def _is_valid(name: str, field: str) -> bool:
    if re.search(r"\b(\w+)-\1/", field):  # the library reads 5-5/2 as 5-59/2, unlike any cron
        return False
    alone = " ".join(field if one == name else "*" for one in _FIELDS)
    try:
        CronSim(alone, _START)
    except CronSimError:
        return False
    return True


def _field_remedy(name: str, field: str) -> str:
    low, dash, high = field.partition("-")
    if dash and _is_valid(name, f"{high}-{low}"):
        return "a range cannot run backwards: write it as two, as in 22-23,0-6"
    if field == "?":
        return "write *"
    return f"write *, or {_FIELDS[name]}, with lists (1,5), ranges (1-5) and steps (*/5)"


def _ever_opens(schedule: str) -> bool:
    try:
        return next(CronSim(schedule, _BEFORE), None) is not None
    except CronSimError:  # it recognises some dates that do not exist, such as 30 February
        return False


def _closes(schedule: str, duration: timedelta) -> bool:
    """Whether a window is closed now and then, by a calendar without changes of the clock.

    A day has the same times as any other, if it has any. So the gaps are those inside a day and those between days.
    """
    minute, hour, *days = schedule.split()
    tomorrow = _START + timedelta(days=1)
    times = list(takewhile(lambda time: time < tomorrow, CronSim(f"{minute} {hour} * * *", _BEFORE)))
    if any(later - earlier > duration for earlier, later in pairwise(times)):
        return True
    overnight = times[0] - times[-1]
    dates = islice(pairwise(CronSim(" ".join(["0 0", *days]), _BEFORE)), _TWO_YEARS_OF_DAYS)
    return any(later - earlier + overnight > duration for earlier, later in dates)


# -- durations and zones ----------------------------------------------------------------------------------------------


def _duration_error(text: str) -> FieldError:
    if days := re.fullmatch(r"([12]?[0-9]|3[01])d", text):
        return FieldError("duration", text, "has no days", f"write {int(days[1]) * 24}h")
    if re.fullmatch(DURATION, text) and text:
        return FieldError("duration", text, f"must be from 1s to {MAX_DURATION_SECONDS // 3600}h")
    return FieldError("duration", text, "is not a duration in whole hours, minutes and seconds", "write 4h or 1h30m")


@cache
def _zones() -> frozenset[str]:
    """All names. The package's list, not the machine's: a policy is valid everywhere or nowhere."""
    return frozenset(resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split())


def _check_zone(name: str) -> Iterator[FieldError]:
    if name not in _zones():
        yield FieldError("timeZone", name, "is not a time zone of the IANA database", _zone_remedy(name))


_NO_ZONES = ("local", "localtime", "system", "default")


def _zone_remedy(name: str) -> str:
    by_lower = {zone.lower(): zone for zone in sorted(_zones())}
    if exact := by_lower.get(name.lower()):
        return f"did you mean {exact}?"
    if re.fullmatch(r"[A-Z]{1,5}", name):
        return "an abbreviation does not say when clocks change: write for example Europe/Berlin"
    if re.fullmatch(r"(UTC|GMT)?[-+][0-9:]+", name):
        return "an offset does not say when clocks change: write for example Europe/Berlin or UTC"
    if name.lower() in _NO_ZONES:
        return "the zone of a machine is not known here: write for example Europe/Berlin or UTC"
    # A city is written without its region, or something is misspelt.
    cities = {zone.rsplit("/", 1)[-1]: zone for zone in sorted(_zones())}
    city = nearest(name.replace(" ", "_"), cities) if "/" not in name else None
    meant = cities[city] if city else nearest(name, by_lower.values())
    return f"did you mean {meant}?" if meant else "write for example Europe/Berlin or UTC"
