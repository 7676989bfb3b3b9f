"""Fifty random orders of the life of placement, on the real scheduler: ten at a time, each with a key of its own.

No running pod stops matching its own node because of us, and every pod that stays Pending has a sentence that says
what to do. What the sentence says is done, and the pod is bound.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from controlplane import WorkingCluster
from e2e.real_town import Onlooker, RealTown, Servants, served
from simulated.life import Life

FIRST_SEED = int(os.environ.get("SIMULATED_SEED", "0"))
ORDERS, AT_ONCE, ROUNDS = 50, 10, 9

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def servants(own_working_cluster: WorkingCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servants]:
    with served(own_working_cluster, tmp_path_factory.mktemp("orders")) as servants:
        yield servants


@pytest.fixture(scope="module")
def onlooker(own_working_cluster: WorkingCluster) -> Iterator[Onlooker]:
    with Onlooker(own_working_cluster) as onlooker:
        yield onlooker


@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + ORDERS, AT_ONCE))
def test_orders(servants: Servants, onlooker: Onlooker, first: int) -> None:
    chance = Random(first)
    for name in servants.has:
        servants.switch(name, on=True)
    towns = [RealTown(servants, onlooker, f"k{seed}") for seed in range(first, first + AT_ONCE)]
    lives = [Life(town, seed) for town, seed in zip(towns, range(first, first + AT_ONCE), strict=True)]
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(Life.begin, lives))
            for number in range(ROUNDS):
                if number and chance.random() < 0.5:
                    name, on = chance.choice(["operator", "webhook"]), chance.random() < 0.4
                    servants.switch(name, on=on)
                    for life in lives:
                        life.log.append(f"{name} {on}")
                list(pool.map(turn, lives))
            list(pool.map(Life.end, lives))
    finally:
        for town in towns:
            town.clear()


def turn(life: Life) -> None:
    life.act()
    life.town.settle()
    life.check()
