"""Histories by chance, by theme: the judge has nothing to say, and every row of the law holds some pod in one of them.

See ``simulated/world/playing.py`` for other seeds, or many.
"""

import pytest

from simulated.world.playing import demand_none, play, seeds_of
from simulated.world.themes import THEMES

HELD = {
    ("lanes", 0): ("calls", "failing"),
    ("lanes", 2): ("node",),
    ("lanes", 3): ("window", "workload"),
    ("zones", 0): ("zone",),
    ("terms", 1): ("guard", "view"),
    ("bounces", 1): ("bounce",),
    ("budgets", 0): ("budget",),
    ("places", 0): ("place",),
}
"""Histories of which rows hold pods."""


@pytest.mark.parametrize("theme", THEMES)
def test_no_rule_is_broken(theme):
    demand_none(play(theme, seed) for seed in seeds_of(theme))


@pytest.mark.parametrize("seed", [700254, 700273, 700433, 700473, 700632, 3004288, 3004308, 4000481, 6200419, 6202141])
def test_settings_that_change_a_tripped_guard_are_judged_by_what_they_change(seed):
    demand_none([play("edits", seed)])


@pytest.mark.parametrize("seed", [3000459, 3006064])
def test_what_a_leader_may_not_have_seen_in_this_order_is_no_breach(seed):
    """A node was selected while there was no leader; a pod was seen before its node changed."""
    demand_none([play("edits", seed)])


@pytest.mark.parametrize(("history", "rows"), HELD.items(), ids=lambda one: " ".join(map(str, one)))
def test_every_row_holds_a_pod(history, rows):
    assert [row for row in rows if not play(*history).reached.get(row)] == []
