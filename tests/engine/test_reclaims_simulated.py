"""Nodes that will be gone: soft limits step aside, the overall cap does not, and who will be late is told before."""

from functools import cache
from random import Random

import msgspec
import pytest

from simulated import Simulation, policy
from taintwarden.engine.machine import commands
from taintwarden.engine.model import GuardSettings, Limits, Policy, Reclaim, Share, Window, ZoneHealth

HOSTILE = Limits(
    evictions_per_second=0.001,
    burst=1,
    node_max_concurrent=1,
    namespace_evictions_per_second=0.001,
    zone_evictions_per_second=0.001,
    max_unavailable=Share(number=1),
    zone_health=ZoneHealth(),
    guard=GuardSettings(max_percent=1, min_pods=1),
)
"""Limits that let next to nobody go."""
BAD = {"key": "sla", "value": "940", "effect": "NoExecute"}
TOLERATION = {"key": "sla", "operator": "Gt", "value": "950"}
NEVER = (Window("0 0 29 2 *", 60),)
DEADLINE = 120


def reclaiming(**changes: object) -> Policy:
    hard = policy(taints=[{"key": "sla"}])
    return msgspec.structs.replace(hard, limits=HOSTILE, windows=NEVER, reclaim=Reclaim(DEADLINE), **changes)


class Reclaimed:
    """Pods with all kinds of graces on some nodes, and every node will be gone."""

    def __init__(self, seed: int, rate: float | None, nodes: int = 4, **changes: object) -> None:
        self.rate = rate
        chance = self.chance = Random(seed)
        self.sim = Simulation([reclaiming(**changes)], overall_rate=rate)
        for number in range(nodes):
            self.sim.create_node(f"n{number}")
        self.sim.kubelet = lambda pod: (float(pod["spec"]["terminationGracePeriodSeconds"]), 1.0)
        for number in range(6):
            grace, priority = chance.choice([1, 10, 30, 60, 118]), chance.choice([0, 0, 5])
            template = {"tolerations": [TOLERATION], "grace": grace, "priority": priority}
            for index in range(chance.randint(1, 10)):
                self.sim.create_pod(f"w{number}-{index}", f"n{chance.randrange(nodes)}", **template)
        self.sim.start()
        self.sim.run(20)
        self.hit_at = self.sim.at
        self.hit = dict(self.sim.pods)
        for name in self.sim.nodes:
            self.sim.set_taints(name, [BAD])
        self.sim.run(self.hit_at + 2 * DEADLINE)

    def calls(self) -> list[tuple[float, commands.Evict]]:
        return self.sim.orders

    def is_late(self, call: commands.Evict, at: float) -> bool:
        """Whether a call leaves a pod less time than it asks for, by more than the seconds that are rounded."""
        stops_at = at + call.pod.shared.grace_seconds
        return call.pod.uid in self.sim.evicted and stops_at > self.hit_at + DEADLINE + 2

    def told(self, kind: type) -> dict[str, float]:
        return {notice.pod.uid: at for at, notice in self.sim.notices if isinstance(notice, kind)}


@cache
def play(seed: int, rate: float | None) -> Reclaimed:
    return Reclaimed(seed, rate)


seeds = pytest.mark.parametrize("seed", range(4))
rates = pytest.mark.parametrize("rate", [None, 5.0, 0.3])


@seeds
def test_every_pod_goes_before_its_node_whatever_soft_limits_say(seed):
    reclaimed = play(seed, 5.0)
    uids = {pod["metadata"]["uid"] for pod in reclaimed.hit.values()}
    assert set(reclaimed.sim.evicted) == uids
    assert max(reclaimed.sim.evicted.values()) < reclaimed.hit_at + DEADLINE


@seeds
def test_the_overall_cap_holds(seed):
    times = [at for at, _ in play(seed, 0.3).calls()]
    for first, begin in enumerate(times):
        for count, end in enumerate(times[first:], 1):
            assert count <= 1 + 0.3 * (end - begin) + 1e-6


@seeds
@rates
def test_nobody_is_given_more_time_to_stop_than_its_node_has(seed, rate):
    reclaimed = play(seed, rate)
    gone_at = reclaimed.hit_at + DEADLINE
    for at, call in reclaimed.calls():
        asked = call.pod.shared.grace_seconds
        given = asked if call.grace_period_seconds is None else call.grace_period_seconds
        assert given <= asked
        assert given <= max(1, gone_at - at + 1)
        assert given >= min(asked, int(gone_at - at))


@seeds
@rates
def test_who_is_late_is_told_before_and_counted_after(seed, rate):
    reclaimed = play(seed, rate)
    cut = {call.pod.uid: at for at, call in reclaimed.calls() if reclaimed.is_late(call, at)}
    foretold, missed = reclaimed.told(commands.DeadlineAtRisk), reclaimed.told(commands.DeadlineMissed)
    for uid, at in cut.items():
        assert foretold[uid] <= at
        assert uid in missed


@seeds
def test_nobody_is_told_to_be_late_who_is_in_time(seed):
    reclaimed = play(seed, 5.0)
    graces = {pod["metadata"]["uid"]: pod["spec"]["terminationGracePeriodSeconds"] for pod in reclaimed.hit.values()}
    for uid in reclaimed.told(commands.DeadlineMissed):
        assert reclaimed.sim.evicted[uid] + graces[uid] > reclaimed.hit_at + DEADLINE
