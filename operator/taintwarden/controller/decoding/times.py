"""Parsers of times in Kubernetes objects, which are truncated to whole seconds: that must not evict a pod early."""

from collections.abc import Callable
from datetime import datetime

from taintwarden.kube.wire.kinds import Timestamp


def moment(timestamp: Timestamp) -> float:
    """Parse a ``timestamp`` into seconds since the epoch.

    Raises:
        ValueError: the timestamp is invalid.

    """
    if isinstance(timestamp, int):
        return float(timestamp)
    found = datetime.fromisoformat(timestamp)
    if found.tzinfo is None:
        msg = f"{timestamp!r} has no time zone"
        raise ValueError(msg)
    return found.timestamp()


def latest_moment(timestamp: Timestamp) -> float:
    """Return the latest time that a ``timestamp`` can mean, by the clock that wrote it.

    ``10:00:07Z`` was written before ``10:00:08``.

    Raises:
        ValueError: the timestamp is invalid.

    """
    seconds = moment(timestamp)
    return seconds if seconds % 1 else seconds + 1.0


def time_of(timestamp: Timestamp | None, read: Callable[[Timestamp], float] = latest_moment) -> float | None:
    """Parse a ``timestamp`` that any client may have written; None if it is missing or invalid."""
    try:
        return None if timestamp is None else read(timestamp)
    except ValueError:
        return None
