"""Conversion of a measured value to the number in a taint: steps or rounding, with hysteresis against flapping."""

import math
from bisect import bisect_right

from taintwarden_publisher.spec import PublisherSpec

Interval = tuple[float, float]
"""Lower bound, inclusive, and upper bound, exclusive."""


def level(spec: PublisherSpec, value: float) -> int:
    """Return the largest step that is not above ``value``; or the nearest multiple of ``round``, the higher of two."""
    if spec.steps:
        return spec.steps[bisect_right(spec.steps, value) - 1]
    assert spec.round is not None  # noqa: S101 - checked with the spec
    return math.floor(value / spec.round + 0.5) * spec.round


def level_interval(spec: PublisherSpec, number: int) -> Interval | None:
    """Return the interval of values whose level is ``number``; None if no value has this level."""
    if spec.steps:
        if number not in spec.steps:
            return None
        index = spec.steps.index(number)
        return number, spec.steps[index + 1] if index + 1 < len(spec.steps) else math.inf
    assert spec.round is not None  # noqa: S101 - checked with the spec
    return None if number % spec.round else (number - spec.round / 2, number + spec.round / 2)


def kept_interval(spec: PublisherSpec, number: int) -> Interval | None:
    """Return the values for which a taint keeps ``number``: its interval, extended by ``hysteresis`` on both sides."""
    values = level_interval(spec, number)
    return None if values is None else (values[0] - spec.hysteresis, values[1] + spec.hysteresis)


def next_level(spec: PublisherSpec, current: int | None, value: float) -> int:
    """Return the new number of a node's taint, which has ``current`` now (None: no taint).

    A value returns to the level that it left only after it has moved by twice ``hysteresis``.
    """
    kept = None if current is None else kept_interval(spec, current)
    if current is not None and kept is not None and kept[0] <= value < kept[1]:
        return current
    return level(spec, value)
