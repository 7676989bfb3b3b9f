"""Times in Kubernetes objects are truncated to whole seconds, which must not cause an early eviction."""

from collections.abc import Callable
from datetime import datetime

from taintwarden.kube.wire.kinds import Timestamp


def moment(timestamp: Timestamp) -> float:
    """A ``timestamp`` in seconds since the epoch.

    Raises:
        ValueError: it is no timestamp.

    """
    if isinstance(timestamp, int):
        return float(timestamp)
    found = datetime.fromisoformat(timestamp)
    if found.tzinfo is None:
        msg = f"{timestamp!r} has no time zone"
        raise ValueError(msg)
    return found.timestamp()


def latest_moment(timestamp: Timestamp) -> float:
    """The latest moment that a ``timestamp`` can mean, by the clock that wrote it.

    ``10:00:07Z`` was written at some time before ``10:00:08``.

    Raises:
        ValueError: it is no timestamp.

    """
    seconds = moment(timestamp)
    return seconds if seconds % 1 else seconds + 1.0


def readable(timestamp: Timestamp | None, read: Callable[[Timestamp], float] = latest_moment) -> float | None:
    """The time that a ``timestamp`` of others gives; None where there is none, or what is there is no time."""
    try:
        return None if timestamp is None else read(timestamp)
    except ValueError:
        return None
