"""Eviction windows as users write them: a cron schedule, a duration, a time zone.

The schedule has the five fields of Debian's cron, and extensions of the library: ``L`` and ``LW`` (last day, last
weekday) as the day of the month, ``5L`` and ``MON#1`` (last Friday, first Monday) as the day of the week.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from importlib import resources
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
_EXAMPLE = "write for example 0 2 * * MON-FRI, which is 02:00 from Monday to Friday"

# Schedules are checked from a fixed date, so that the result does not depend on the day.
_START = datetime(2024, 1, 1)  # noqa: DTZ001 - a local time without a zone


class WindowFields(Protocol):
    """The fields of ``api.types.WindowSpec``. A protocol, because that module imports this one."""

    @property
    def schedule(self) -> str: ...  # noqa: D102
    @property
    def duration(self) -> str: ...  # noqa: D102
    @property
    def time_zone(self) -> str: ...  # noqa: D102


def parse_duration(text: str) -> int | None:
    """Return the seconds of ``4h``, ``1h30m`` or ``45s``; None for another format, 0, or more than 31 days."""
    match = re.fullmatch(DURATION, text)
    if match is None:
        return None
    hours, minutes, seconds = (int(part[:-1]) if part else 0 for part in match.groups())
    total = hours * 3600 + minutes * 60 + seconds
    return total if 0 < total <= MAX_DURATION_SECONDS else None


def check_windows(windows: Sequence[WindowFields]) -> Iterator[FieldError]:
    """Yield the faults of each window."""
    for index, window in enumerate(windows):
        yield from (error.below(f"[{index}]") for error in _check_window(window))


def _check_window(window: WindowFields) -> Iterator[FieldError]:
    yield from _check_schedule(window.schedule)
    if parse_duration(window.duration) is None:
        yield _duration_error(window.duration)
    yield from _check_zone(window.time_zone)


# -- schedules --------------------------------------------------------------------------------------------------------


def _check_schedule(text: str) -> Iterator[FieldError]:
    fields = text.split()
    if len(fields) != len(_FIELDS):
        reason = f"must have five fields, not {len(fields)}: {', '.join(_FIELDS)}"
        yield FieldError("schedule", text, reason, _EXAMPLE)
        return
    faulty = [(name, field) for name, field in zip(_FIELDS, fields, strict=True) if not _is_valid(name, field)]
    for name, field in faulty:
        yield FieldError("schedule", text, f"must not have {field} as the {name}", _field_remedy(name, field))
    if not faulty and not _ever_opens(text):
        yield FieldError(
            "schedule",
            text,
            "must match a date that exists, or the window never opens",
            "check the day against the month",
        )


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
        return next(CronSim(schedule, _START), None) is not None
    except CronSimError:  # it recognises some dates that do not exist, such as 30 February
        return False


# -- durations and zones ----------------------------------------------------------------------------------------------


def _duration_error(text: str) -> FieldError:
    if days := re.fullmatch(r"([12]?[0-9]|3[01])d", text):
        return FieldError("duration", text, "must be in hours, minutes and seconds", f"write {int(days[1]) * 24}h")
    if re.fullmatch(DURATION, text) and text:
        return FieldError("duration", text, f"must be between 1s and {MAX_DURATION_SECONDS // 3600}h, inclusive")
    return FieldError("duration", text, "must be a duration in whole hours, minutes and seconds", "write 4h or 1h30m")


@cache
def _zones() -> frozenset[str]:
    """Return the names of all zones, from a package, so that the host does not decide whether a policy is valid."""
    return frozenset(resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split())


def _check_zone(name: str) -> Iterator[FieldError]:
    if name not in _zones():
        yield FieldError("timeZone", name, "must be a time zone of the IANA database", _zone_remedy(name))


def _zone_remedy(name: str) -> str:
    by_lower = {zone.lower(): zone for zone in sorted(_zones())}
    if exact := by_lower.get(name.lower()):
        return f"did you mean {exact}?"
    # A city is written without its region, or something is misspelt.
    cities = {zone.rsplit("/", 1)[-1]: zone for zone in sorted(_zones())}
    city = nearest(name.replace(" ", "_"), cities) if "/" not in name else None
    meant = cities[city] if city else nearest(name, by_lower.values())
    return f"did you mean {meant}?" if meant else "write for example Europe/Berlin or UTC"
