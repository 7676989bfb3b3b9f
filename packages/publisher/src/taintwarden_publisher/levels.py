"""From a measured value to the number that a taint has: steps, and what keeps a value that jitters from flapping."""

import math
from bisect import bisect_right

from taintwarden_publisher.spec import PublisherSpec

Interval = tuple[float, float]
"""From its first number, inclusive, to its second, exclusive."""


def level(spec: PublisherSpec, value: float) -> int:
    """The largest step that is not above ``value``; or the nearest multiple of ``round``, the higher of two."""
    if spec.steps:
        return spec.steps[bisect_right(spec.steps, value) - 1]
    assert spec.round is not None  # noqa: S101 - checked with the spec
    return math.floor(value / spec.round + 0.5) * spec.round


def values_of(spec: PublisherSpec, number: int) -> Interval | None:
    """The values whose level is ``number``; None if no value has it."""
    if spec.steps:
        if number not in spec.steps:
            return None
        index = spec.steps.index(number)
        return number, spec.steps[index + 1] if index + 1 < len(spec.steps) else math.inf
    assert spec.round is not None  # noqa: S101 - checked with the spec
    return None if number % spec.round else (number - spec.round / 2, number + spec.round / 2)


def keeping(spec: PublisherSpec, number: int) -> Interval | None:
    """The values for which a taint that has ``number`` keeps it: those of the level, and ``hysteresis`` around them."""
    values = values_of(spec, number)
    return None if values is None else (values[0] - spec.hysteresis, values[1] + spec.hysteresis)


def next_level(spec: PublisherSpec, current: int | None, value: float) -> int:
    """What the taint of a node should have, whose taint has ``current``.

    A value returns to the level that it left only after it has moved by twice ``hysteresis``.
    """
    kept = None if current is None else keeping(spec, current)
    if current is not None and kept is not None and kept[0] <= value < kept[1]:
        return current
    return level(spec, value)
