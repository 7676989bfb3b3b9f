"""Series that jitter, as averages of availability do, and the taints that a publisher derives from them.

Each has one value every 30 seconds for six hours. All are computed from a seed: no run differs from another.
"""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from publisher.scene import NOW, OLD, after, node, view
from taintwarden_publisher.deciding import DecisionInput, decide
from taintwarden_publisher.records import read_record
from taintwarden_publisher.spec import PublisherSpec

SECONDS = 30
COUNT = 6 * 3600 // SECONDS
FLAP = timedelta(minutes=10)
"""Time within which a taint that gets a lost value back has flapped."""

FAILED = [random.Random(index).random() < 0.05 for index in range(COUNT + 120)]
Shape = Callable[[random.Random, int], float]
SHAPES: dict[str, Shape] = {
    "noise of 1 around a step": lambda chance, _: chance.gauss(940, 0.5),
    "noise of 5 around a step": lambda chance, _: chance.gauss(940, 2.5),
    "a slow fall through three steps, with noise of 2": lambda chance, index: (
        985 - 60 * index / COUNT + chance.uniform(-1, 1)
    ),
    "a slow wave over two steps, with noise of 2": lambda chance, index: (
        950 + 15 * math.sin(index / 60) + chance.uniform(-1, 1)
    ),
    "a failed probe now and then, an hour's average": lambda chance, index: (
        1000 - 1000 * sum(FAILED[index : index + 120]) / 120
    ),
    "outages of a minute, at once": lambda chance, index: 0.0 if index % 97 in (0, 1) else 985 + chance.uniform(-1, 1),
}


def series(shape: Shape) -> list[float]:
    """The values of a node in one series."""
    chance = random.Random(1)
    return [min(max(shape(chance, index), 0.0), 1000.0) for index in range(COUNT)]


@dataclass(frozen=True)
class Outcome:
    """Number of changes of the taint of a node, and of those that were undone soon."""

    changes: int
    flaps: int


def published(spec: PublisherSpec, values: Sequence[float]) -> Iterator[tuple[float, str]]:
    """Changes of the taint of a node, with their times, round by round as the publisher makes them."""
    has = node("a1", created=OLD)
    for index, value in enumerate(values):
        now = NOW + timedelta(seconds=index * SECONDS)
        made = view([has], {"a1": value})
        decision = decide(DecisionInput("sla", spec, made.nodes, made.values, frozenset(), now))
        for change in decision.changes:
            has = after(has, change)
            yield index * SECONDS, change.after
    assert read_record(has.metadata.annotations, "sla") is not None


def outcome(spec: PublisherSpec, values: Sequence[float]) -> Outcome:
    """The outcome of one series."""
    history = list(published(spec, values))
    flaps = sum(
        last == first and at - left < FLAP.total_seconds()
        for (_, first), (left, _), (at, last) in zip(history, history[1:], history[2:], strict=False)
    )
    return Outcome(len(history) - 1, flaps)
