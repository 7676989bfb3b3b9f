"""Placement over its life, in any order: no pod that runs stops matching its node because of it, and none is stuck.

Every pod that stays Pending has a sentence that says what to do, and doing it helps.
"""

import pytest

from simulated.life import Life
from simulated.life.simulated import SimulatedTown
from simulated.world.playing import FIRST_SEED, RUNS

SEEDS = range(FIRST_SEED, FIRST_SEED + 3 * RUNS)
ACTS = 25


@pytest.mark.parametrize("seed", SEEDS)
def test_no_pod_stops_matching_its_node_and_each_that_waits_has_a_reason(seed):
    life = Life(SimulatedTown(), seed)
    life.begin()
    for _ in range(ACTS):
        act = life.chance.random()
        if act < 0.06:
            life.log.append("operator")
            life.town.set_operator(on=life.chance.random() < 0.6)
        elif act < 0.12:
            life.log.append("webhook")
            life.town.set_webhook(on=life.chance.random() < 0.6)
        else:
            life.act()
        life.town.settle()
        life.check()
    life.end()
