"""Times in the text form of Kubernetes, RFC 3339 in UTC. Forbidden here: reading a clock."""

import math
from datetime import UTC, datetime
from functools import lru_cache

END_OF_TIME = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
"""Latest time that ``datetime`` can express. It replaces all later times, as of a huge ``tolerationSeconds``."""
_BEGINNING = datetime.min.replace(tzinfo=UTC).timestamp()
_END = END_OF_TIME.timestamp()


def at(moment: float) -> str:
    """Format a time as RFC 3339 in UTC, rounded down to the second."""
    return _written(math.floor(_within(moment)), "seconds")


def until(moment: float) -> str:
    """Format the end of a wait, rounded up to the second: nothing happens earlier. An excess of 1e-6 s is ignored."""
    return _written(min(math.ceil(_within(moment) - 1e-6), math.floor(_END)), "seconds")


def exactly(moment: float) -> str:
    """Format a time as Kubernetes' MicroTime, which is read back as the same time."""
    return _written(_within(moment), "microseconds")


def read_time(text: str | None) -> float | None:
    """Parse an RFC 3339 time into seconds since the epoch; None if it cannot be parsed or has no time zone."""
    try:
        found = None if text is None else datetime.fromisoformat(text)
        return None if found is None or found.tzinfo is None else found.timestamp()
    except (ValueError, OverflowError):
        return None


def _within(moment: float) -> float:
    """Return the nearest time that ``datetime`` can express. NaN counts as never."""
    return _END if math.isnan(moment) else min(max(moment, _BEGINNING), _END)


@lru_cache(maxsize=1_000)  # the pods of a wave share a few deadlines
def _written(moment: float, precision: str) -> str:
    return datetime.fromtimestamp(moment, UTC).replace(tzinfo=None).isoformat(timespec=precision) + "Z"
