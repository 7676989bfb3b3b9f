"""A tenant whose pods go to a node that evicts them, again and again, does not stop the evictions of others."""

import pytest

from simulated import Simulation, policy
from simulated.cluster import Json
from simulated.histories import BAD, TOLERATION
from taintwarden.engine.machine import commands

NODES, PODS_EACH, TENANTS_PODS = 20, 5, 10
COMES_BACK_SECONDS = 2.0


class Tenant:
    """Ten pods without a controller, each bound to one node, and created again as soon as it is gone."""

    def __init__(self, sim: Simulation, node: str) -> None:
        self.sim, self.node = sim, node
        self.created = 0
        sim.observers.append(self._observe)
        for _ in range(TENANTS_PODS):
            self.create()

    def create(self) -> None:
        self.created += 1
        self.sim.create_pod(f"bare-{self.created}", self.node, [TOLERATION], namespace="tenant")

    def _observe(self, what: str, pod: Json) -> None:
        if what == "gone" and pod["metadata"]["namespace"] == "tenant":
            self.sim.later(COMES_BACK_SECONDS, self.create)


@pytest.fixture
def sim() -> Simulation:
    """A hundred pods on twenty nodes, of which at most fifty may leave in ten minutes, and the tenant on the first."""
    sim = Simulation([policy(taints=[{"key": "sla"}], limits={"base": "Default"})])
    sim.kubelet = lambda _: (1.0, 1.0)
    for number in range(NODES):
        sim.create_node(f"n{number}")
        for index in range(PODS_EACH):
            sim.create_pod(f"web-{number}-{index}", f"n{number}", [TOLERATION])
    sim.start()
    sim.set_taints("n0", [BAD])
    sim.run(30)
    Tenant(sim, "n0")
    return sim


def test_others_leave_as_if_the_tenant_was_not_there(sim: Simulation) -> None:
    sim.run(300)
    sim.set_taints("n1", [BAD])
    sim.run(330)
    assert sum(pod["spec"]["nodeName"] == "n1" for pod in sim.pods.values()) == 0
    assert not [notice for _, notice in sim.notices if isinstance(notice, commands.GuardTripped)]


def test_the_tenants_pods_leave_ever_more_slowly(sim: Simulation) -> None:
    sim.run(600)
    first = len(sim.evicted)
    sim.run(1200)
    assert len(sim.evicted) - first < first / 2  # in twice the time
