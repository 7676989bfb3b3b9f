"""All limits together: one history has one trace, and a policy that changes is followed at once.

What each limit promises is tested in ``test_*_simulated.py`` beside this. How to play more histories, or one again, is
told in ``simulated/histories.py``.
"""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from simulated import Simulation, policy
from simulated.drawing import NO_LIMITS
from simulated.histories import BAD, FIRST_SEED, TOLERATION
from taintwarden.engine.machine import events
from taintwarden.engine.model import GuardSettings, Limits, Mode, Share, Window, ZoneHealth

SCRIPT = """
import sys
from simulated.histories import play
from taintwarden.engine.machine import commands
for seed in map(int, sys.argv[1:]):
    for moment in play(seed).trace:
        if isinstance(moment.what, commands.Command):
            print(round(moment.at, 6), str(moment.what).replace("\\n", " "))
"""


def trace(hash_seed: str) -> list[str]:
    tests = Path(__file__).parent.parent
    paths = os.pathsep.join([str(tests), os.environ.get("PYTHONPATH", "")])
    environment = dict(os.environ) | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": paths}
    seeds = [str(FIRST_SEED + number) for number in range(3)]
    command = [sys.executable, "-c", SCRIPT, *seeds]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=110)
    return said.stdout.splitlines()


def test_one_history_has_one_trace_whatever_the_hash_seed():
    first, second = trace("1"), trace("2")
    assert len(first) > 50
    assert [one for one in zip(first, second, strict=False) if one[0] != one[1]][:1] == []
    assert len(first) == len(second)


# -- a policy changes while a queue waits ---------------------------------------------------------------------------

HELD = {
    "rate": msgspec.structs.replace(NO_LIMITS, evictions_per_second=0.001, burst=1),
    "namespace": msgspec.structs.replace(NO_LIMITS, namespace_evictions_per_second=0.001),
    "zone rate": msgspec.structs.replace(NO_LIMITS, zone_evictions_per_second=0.001),
    "per node": msgspec.structs.replace(NO_LIMITS, node_max_concurrent=1),
    "max unavailable": msgspec.structs.replace(NO_LIMITS, max_unavailable=Share(number=1)),
    "all zones full": msgspec.structs.replace(NO_LIMITS, zone_health=ZoneHealth()),
    "guard": msgspec.structs.replace(NO_LIMITS, guard=GuardSettings(max_percent=1, min_pods=1)),
    "all": Limits(
        evictions_per_second=0.001,
        burst=1,
        node_max_concurrent=1,
        namespace_evictions_per_second=0.001,
        zone_evictions_per_second=0.001,
        max_unavailable=Share(number=1),
        zone_health=ZoneHealth(),
        guard=GuardSettings(min_pods=1),
    ),
}


def waiting(limits: Limits, **more: object) -> Simulation:
    """Twenty due pods of one workload that nobody replaces, under limits that let next to nobody go."""
    slow = msgspec.structs.replace(policy(taints=[{"key": "sla"}]), limits=limits, **more)
    sim = Simulation([slow])
    sim.kubelet = lambda pod: (1_000.0, 1_000.0)
    owner = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}]
    for number in range(4):
        sim.create_node(f"n{number}", [BAD])
    for number in range(20):
        ready = [{"type": "Ready", "status": "True"}]
        sim.create_pod(f"p{number}", f"n{number % 4}", [TOLERATION], owners=owner, conditions=ready)
    sim.start()
    sim.feed(events.WorkloadSeen(("default", "web"), 20))
    sim.run(60)
    return sim


def change(sim: Simulation, **changes: object) -> None:
    before = sim.policies[0]
    sim.change_policies([msgspec.structs.replace(before, generation=before.generation + 1, **changes)])


@pytest.mark.parametrize("name", HELD)
def test_a_limit_that_is_taken_away_lets_everybody_go_at_once(name):
    sim = waiting(HELD[name])
    assert len(sim.evicted) <= 4
    change(sim, limits=NO_LIMITS)
    sim.run(sim.at + 1)
    assert len(sim.evicted) == 20


@pytest.mark.parametrize("name", HELD)
def test_a_limit_that_is_set_while_others_wait_loses_nobody(name):
    sim = waiting(HELD["guard"])
    change(sim, limits=HELD[name])
    sim.run(sim.at + 60)
    assert len(sim.evicted) <= 4
    change(sim, limits=NO_LIMITS)
    sim.run(sim.at + 1)
    assert len(sim.evicted) == 20


def test_a_window_that_is_taken_away_lets_everybody_go_at_once():
    sim = waiting(NO_LIMITS, windows=(Window("0 0 29 2 *", 60),))
    assert sim.calls == []
    change(sim, windows=())
    sim.run(sim.at + 1)
    assert len(sim.evicted) == 20


def test_a_policy_that_pauses_and_goes_on_loses_nobody():
    sim = waiting(HELD["rate"])
    for mode in (Mode.PAUSED, Mode.DRY_RUN, Mode.ENFORCE):
        gone = len(sim.evicted)
        change(sim, mode=mode)
        sim.run(sim.at + 5)
        assert len(sim.evicted) == gone
    change(sim, limits=NO_LIMITS)
    sim.run(sim.at + 1)
    assert len(sim.evicted) == 20


def test_another_policy_that_takes_over_lets_everybody_go_at_once():
    sim = waiting(HELD["all"])
    other = msgspec.structs.replace(policy("other", taints=[{"key": "sla"}]), limits=NO_LIMITS)
    sim.change_policies([other])
    sim.run(sim.at + 1)
    assert len(sim.evicted) == 20
