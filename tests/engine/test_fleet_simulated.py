"""Two operators on one API server, to which everything happens that ever went wrong: see ``simulated/fleet``."""

from collections import Counter

import pytest

from simulated.fleet import play
from simulated.fleet.turmoil import FIRST_SEED, RUNS

TRIED = ("Evict", "CheckNode", "SaveHistory", "SaveLabels", "SaveGuard", "GuardTripped", "GuardArmed", "Hindered")


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + RUNS))
def test_nothing_is_lost_wrong_early_or_doubled(seed):
    play(seed)


def test_the_histories_try_everything():
    seen = Counter()
    for seed in range(60):
        seen.update(play(seed))
    assert [name for name in TRIED if not seen[name]] == []
