"""Histories by chance, by theme: no judge has anything to say, and the states that make them hard are reached.

See ``simulated/world/playing.py`` for other seeds, or many.
"""

import pytest

from simulated.world import differential, isolation
from simulated.world.playing import FIRST_SEED, RUNS, demand_none, play, seeds_of
from simulated.world.themes import THEMES

FEW = range(FIRST_SEED, FIRST_SEED + max(1, RUNS // 6))


@pytest.mark.parametrize("theme", THEMES)
def test_no_rule_is_broken(theme):
    demand_none(play(theme, seed) for seed in seeds_of(theme))


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + 5 * RUNS))
def test_only_the_last_edit_counts(seed):
    assert differential.compare(seed) == []


@pytest.mark.parametrize("seed", FEW)
@pytest.mark.parametrize("adversary", [isolation.tenant, isolation.node])
def test_nobody_fares_worse_for_another(seed, adversary):
    assert isolation.compare(seed, adversary) == []
