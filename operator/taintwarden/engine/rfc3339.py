"""Moments as the text of Kubernetes: RFC 3339 in UTC. Pure: no clock is asked."""

import math
from datetime import UTC, datetime
from functools import lru_cache

END_OF_TIME = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
"""The latest time of a calendar. It replaces all later times, as a huge ``tolerationSeconds`` means "very late"."""
_BEGINNING = datetime.min.replace(tzinfo=UTC).timestamp()
_END = END_OF_TIME.timestamp()


def at(moment: float) -> str:
    """A time as RFC 3339 in UTC, to the second."""
    return _written(math.floor(_within(moment)), "seconds")


def until(moment: float) -> str:
    """The same of the end of a wait: nothing happens before it. Less than a microsecond is the error of a sum."""
    return _written(min(math.ceil(_within(moment) - 1e-6), math.floor(_END)), "seconds")


def exactly(moment: float) -> str:
    """A time as Kubernetes' MicroTime, which is read back as the same time."""
    return _written(_within(moment), "microseconds")


def read_time(text: str | None) -> float | None:
    """An RFC 3339 time in seconds since the epoch; None if it cannot be read."""
    try:
        return None if text is None else datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return None


def _within(moment: float) -> float:
    """The nearest moment that a calendar has. NaN counts as never."""
    return _END if math.isnan(moment) else min(max(moment, _BEGINNING), _END)


@lru_cache(maxsize=1_000)  # the pods of a wave are due at few times
def _written(moment: float, precision: str) -> str:
    return datetime.fromtimestamp(moment, UTC).replace(tzinfo=None).isoformat(timespec=precision) + "Z"
