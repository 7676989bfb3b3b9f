"""The histories that are played by default reach what makes them hard. One that is never reached proves nothing."""

from collections import Counter

from simulated.world.judges.sometimes import STATES
from simulated.world.playing import play
from simulated.world.themes import THEMES

SEEDS = 14
EXPENSIVE = {"tenants": 1, "zones": 5, "histories": 4, "budgets": 4, "webhooks": 6, "spot": 5, "records": 10}


def test_every_named_state_is_reached():
    reached = Counter()
    for theme in THEMES:
        for seed in range(EXPENSIVE.get(theme, SEEDS)):
            reached.update(play(theme, seed).reached)
    assert [state for state in STATES if not reached[state]] == []
