"""A tripped guard while leaders change: repairing evicts nothing, and a release lets exactly the named pods go."""

import msgspec
import pytest

from simulated.drawing import NO_LIMITS
from simulated.fleet import Turmoil, objects
from simulated.fleet.happenings import flap, kill, take_over
from simulated.fleet.turmoil import FIRST_SEED
from taintwarden.engine.machine import commands
from taintwarden.engine.model import GuardSettings, Policy, TaintSelector

GUARD = GuardSettings(max_percent=20, min_pods=3, window_seconds=600, settle_seconds=2)
NODES, PODS = 8, 24
SEEDS = range(FIRST_SEED, FIRST_SEED + 12)


class Guarded(Turmoil):
    """One policy with a guard, and pods on every node."""

    def _populate(self) -> None:
        server = self.server
        limits = msgspec.structs.replace(NO_LIMITS, guard=GUARD)
        policy = Policy(name="p", uid="uid-p", taints=(TaintSelector("sla"),), limits=limits)
        for name in objects.NAMESPACES:
            server.put("namespaces", name, {"labels": {"team": "a"}})
        server.put("policies", "p", objects.policy_object(policy, "sla"))
        for number in range(NODES):
            server.put("nodes", f"n{number}", objects.node_object(self.chance, f"node-{number}"))
        for number in range(PODS):
            pod = objects.pod_object(self.chance, f"n{number % NODES}", "web", server.wall)
            server.put("pods", f"pod-{number}", pod)

    def spoil(self, *nodes: str) -> None:
        for name in nodes:
            self.taint(name, "sla", "0")

    def disturb(self) -> None:
        """The lease changes hands, or a replica is killed, now and then."""
        happening = self.chance.choice([None, None, flap, take_over, kill])
        if happening is not None:
            happening(self)
        self.server.run(self.chance.uniform(0.0, 12.0))

    def settle(self) -> None:
        """Somebody leads."""
        for replica in self.replicas:
            if replica.machine is None:
                replica.start()
        self.give_lease(self.leader or self.replicas[0])

    def evicted(self) -> list[str]:
        return sorted(uid for _, uid in self.api.evicted)


@pytest.mark.parametrize("seed", SEEDS)
def test_repairing_node_by_node_evicts_nothing_whoever_leads(seed):
    fleet = Guarded(seed)
    nodes = sorted(fleet.server.objects["nodes"])
    fleet.spoil(*nodes)
    fleet.server.run(10.0)
    for name in fleet.chance.sample(nodes, len(nodes)):
        fleet.taint(name, "sla", "980")
        fleet.disturb()
        fleet.settle()
        fleet.server.run(5.0)
    fleet.server.run(100.0)
    assert fleet.evicted() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_release_lets_exactly_the_named_pods_go_whoever_leads(seed):
    fleet = Guarded(seed)
    nodes = sorted(fleet.server.objects["nodes"])
    bad = nodes[:5]
    named = sorted(uid for uid, pod in fleet.server.objects["pods"].items() if pod["node"] in bad)
    fleet.spoil(*bad)
    fleet.server.run(fleet.chance.uniform(3.0, 20.0))
    assert fleet.evicted() == []
    fleet.server.change("policies", "p", reset=True)
    fleet.disturb()
    fleet.settle()
    fleet.server.run(10.0)
    fleet.spoil(*nodes[5:])
    for _ in range(3):
        fleet.disturb()
        fleet.settle()
    fleet.server.run(300.0)
    others = set(fleet.evicted()) - set(named)
    assert set(fleet.evicted()) >= set(named)
    assert len(others) <= GUARD.limit(PODS)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_reset_counts_for_one_wave_although_its_annotation_stays(seed):
    """Nobody can take it off until other replicas lead, which see it and another wave."""
    fleet = Guarded(seed)
    fleet.api.is_refused = lambda order: isinstance(order, commands.ClearGuardReset)
    nodes = sorted(fleet.server.objects["nodes"])
    named = sorted(uid for uid, pod in fleet.server.objects["pods"].items() if pod["node"] in nodes[:5])
    fleet.spoil(*nodes[:5])
    fleet.server.run(20.0)
    fleet.server.change("policies", "p", reset=True)
    fleet.server.run(60.0)
    for number in range(PODS):
        pod = objects.pod_object(fleet.chance, nodes[5 + number % 3], "web", fleet.server.wall)
        fleet.server.put("pods", f"late-{number}", pod)
    fleet.server.run(1.0)
    fleet.spoil(*nodes[5:])
    for _ in range(3):
        fleet.disturb()
        fleet.settle()
    fleet.server.run(200.0)
    assert fleet.evicted() == named
