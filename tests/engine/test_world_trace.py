"""One seed has one history, whatever the hash seed of the process; and a history without one happening is another."""

import os
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from simulated.world.themes import THEMES, draw
from simulated.world.world import World

SCRIPT = """
from hashlib import sha256
from engine.spreading import an_order
from simulated.world.themes import draw
from simulated.world.world import World

for theme, seed in (("mixed", 3), ("terms", 0)):
    lines = World(draw(seed, theme)).play().record.about()
    print(theme, len(lines), sha256("\\n".join(lines).encode()).hexdigest())
print("spread", 0, an_order())
"""


def trace(seed: str) -> str:
    environment = dict(os.environ) | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parent.parent)}
    run = [sys.executable, "-c", SCRIPT]
    return subprocess.run(run, env=environment, capture_output=True, text=True, check=True, timeout=240).stdout


def digest(plan) -> str:
    return sha256("\n".join(World(plan).play().record.about()).encode()).hexdigest()


def test_two_hash_seeds_have_one_history():
    first, second = trace("1"), trace("2")
    assert first == second
    assert sum(int(line.split()[1]) for line in first.splitlines()) > 100


def test_a_plan_is_drawn_before_anything_is_played():
    for theme in THEMES:
        assert str(draw(7, theme)) == str(draw(7, theme))
        assert str(draw(7, theme)) != str(draw(8, theme))


def test_what_does_not_matter_changes_nothing_else():
    """Chance is asked by name: without a happening that concerns no object the history is the same."""
    plan = draw(4, "silence")
    idle = replace(plan.happenings[-1], what="profile_gone", given={"namespace": "nowhere", "name": "x"})
    assert digest(plan) == digest(replace(plan, happenings=(*plan.happenings, idle)))
