"""Histories of other themes in which nodes get the condition ``taintwarden.io/Drained``, too."""

from dataclasses import replace

import pytest

from simulated.world.playing import FIRST_SEED
from simulated.world.themes import draw
from simulated.world.world import World


@pytest.mark.parametrize("theme", ["clocks", "dead_nodes", "devices", "kills", "marks", "restored", "silence", "terms"])
def test_no_node_is_drained_in_spite_of_a_pod_that_has_to_leave(theme):
    plan = draw(FIRST_SEED, theme)
    world = World(replace(plan, options={**plan.options, "drained_condition": True})).play()
    assert [*map(str, world.breaches)] == []
    assert world.record.drained.trues
