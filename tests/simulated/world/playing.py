"""Plays histories by theme and seed, and states what is wrong so that it can be repeated.

Other seeds, or many::

    SIMULATED_RUNS=400 SIMULATED_SEED=1000 pytest tests/engine -k world

A failure names theme and seed; ``python -m simulated.world shrink THEME SEED JUDGE`` prints the least that still fails.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from simulated.world.agenda import EPOCH
from simulated.world.law import Breach
from simulated.world.plan import Happening, Plan
from simulated.world.themes import draw
from simulated.world.world import World

RUNS = int(os.environ.get("SIMULATED_RUNS", "4"))
FIRST_SEED = int(os.environ.get("SIMULATED_SEED", "0"))
EXPENSIVE = {
    "budgets": 2,
    "webhooks": 2,
    "zones": 2,
    "histories": 2,
    "values": 4,
    "marks": 2,
    "dead_nodes": 2,
    "labels": 2,
    "records": 2,
}
"""Theme -> divisor of the number of its histories that are played, since each takes longer."""
LINES = 25


class BrokenRuleError(AssertionError):
    """A rule was broken in a history."""


@dataclass(frozen=True)
class Played:
    """Outcome of a history."""

    theme: str
    seed: int
    breaches: tuple[Breach, ...]
    reached: Mapping[str, int]
    evictions: int


@lru_cache(maxsize=10_000)
def play(theme: str, seed: int) -> Played:
    """One history to its end."""
    world = World(draw(seed, theme)).play()
    return Played(theme, seed, tuple(world.breaches), dict(world.record.judge.rows), world.record.evictions)


def seeds_of(theme: str) -> range:
    """The seeds that are played of a theme by default."""
    return range(FIRST_SEED, FIRST_SEED + max(1, RUNS // EXPENSIVE.get(theme, 1)))


def demand_none(played: Iterable[Played], judge: str = "") -> None:
    """There is no breach, or none that this judge found.

    Raises:
        BrokenRuleError: there is; with the seed, and what happened before.

    """
    for one in played:
        for breach in one.breaches:
            if judge in ("", breach.judge):
                raise BrokenRuleError(explained(one.theme, one.seed, breach))


def explained(theme: str, seed: int, breach: Breach) -> str:
    """A breach with its seed and the last lines of what happened to its subject."""
    world = World(draw(seed, theme)).play()
    about = [breach.whom]
    past = world.store.past["pods"].get(breach.whom)
    about += [state.node for state in past.states[:1] if state is not None] if past is not None else []
    lines = [line for line in world.record.about(*about) if float(line.split()[0]) <= breach.at - EPOCH]
    again = f"python -m simulated.world shrink {theme} {seed} {breach.judge}"
    return "\n".join([f"{theme}, seed {seed}: {breach}", *lines[-LINES:], f"PYTHONPATH=tests {again}"])


# -- the least that fails ---------------------------------------------------------------------------------------------


def shrunk(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    """The plan without the happenings that it fails without, first many at a time and then one by one."""
    size = max(1, len(plan.happenings) // 2)
    while True:
        before = len(plan.happenings)
        begin = 0
        while begin < len(plan.happenings):
            shorter = _without(plan, begin, begin + size)
            if fails(shorter):
                plan = shorter
            else:
                begin += size
        if size == 1 and len(plan.happenings) == before:
            return plan
        size = max(1, size // 2)


def _without(plan: Plan, begin: int, end: int) -> Plan:
    kept: tuple[Happening, ...] = plan.happenings[:begin] + plan.happenings[end:]
    return replace(plan, happenings=kept)


def fails_by(judge: str) -> Callable[[Plan], bool]:
    """Predicate: True if a judge finds a breach in the history of a plan."""
    return lambda plan: any(one.judge == judge for one in World(plan).play().breaches)
