"""Times in Kubernetes objects are truncated to whole seconds, which must not cause an early eviction."""

from collections.abc import Callable
from datetime import datetime


def moment(timestamp: str) -> float:
    """An RFC 3339 ``timestamp`` in seconds since the epoch.

    Raises:
        ValueError: it is no timestamp.

    """
    found = datetime.fromisoformat(timestamp)
    if found.tzinfo is None:
        msg = f"{timestamp!r} has no time zone"
        raise ValueError(msg)
    return found.timestamp()


def latest_moment(timestamp: str) -> float:
    """The latest moment that an RFC 3339 ``timestamp`` can mean, by the clock that wrote it.

    ``10:00:07Z`` was written at some time before ``10:00:08``.

    Raises:
        ValueError: it is no timestamp.

    """
    seconds = moment(timestamp)
    return seconds if seconds % 1 else seconds + 1.0


def readable(timestamp: str | None, read: Callable[[str], float] = latest_moment) -> float | None:
    """The time that a ``timestamp`` of others gives; None where there is none, or what is there is no time."""
    try:
        return None if timestamp is None else read(timestamp)
    except ValueError:
        return None
