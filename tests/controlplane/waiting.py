"""The one place where tests wait: everything else says what it waits for and for how long at most."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

FIRST_INTERVAL_SECONDS = 0.02
LONGEST_INTERVAL_SECONDS = 0.25


def wait_until(
    predicate: Callable[[], T], timeout_seconds: float, what: str, lost: Callable[[float], float] = lambda _: 0.0
) -> T:
    """Poll until the predicate is truthy and return its value.

    `what` completes the sentence "waited 5 s for ...". `lost` says how many seconds since a moment of the monotonic
    clock do not count, as `Pulse.lost` does. Exceptions of the predicate pass through: an answer that is an error is an
    answer. Raises TimeoutError with the last value seen.
    """
    began = time.monotonic()
    interval_seconds = FIRST_INTERVAL_SECONDS
    while not (value := predicate()):
        if time.monotonic() - began - lost(began) >= timeout_seconds:
            raise TimeoutError(f"waited {timeout_seconds:g} s for {what}; last seen: {value!r}")
        time.sleep(interval_seconds)
        interval_seconds = min(interval_seconds * 1.5, LONGEST_INTERVAL_SECONDS)
    return value


def sleep_until(moment: float) -> None:
    """Return at this time of the monotonic clock, at once when it has passed: for timelines, not for hoping."""
    while (left := moment - time.monotonic()) > 0:
        time.sleep(left)
