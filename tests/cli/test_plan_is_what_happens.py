"""A plan foretells what the operator does: the same pods, in the same order, at the same time, in an ideal cluster."""

import msgspec
import pytest

from cli.ideal import SETTLED_SECONDS, IdealCluster, sla
from cli.world import Json
from limits_off import LIMITS_OFF
from simulated import Simulation
from simulated.cluster import CALL_SECONDS
from taintwarden.api.policies import parse_policy
from taintwarden.engine import events
from taintwarden.engine.model import Gates, Taint
from taintwarden.kube.wire.kinds import NodeObject, WorkloadObject
from taintwarden_cli.rehearsal.changes import Change, NodeSelection
from taintwarden_cli.rehearsal.ideal import Assumptions
from taintwarden_cli.rehearsal.node_requirements import FullPod
from taintwarden_cli.rehearsal.plan import PlannedFate
from taintwarden_cli.rehearsal.simulation import PlanSimulation
from taintwarden_cli.rehearsal.snapshot import Snapshot

CLUSTERS = 30
HORIZON = 600.0
CLOSE_SECONDS = 0.01
"""The clocks of both add up the same times in another order."""


@pytest.mark.parametrize("seed", range(CLUSTERS))
def test_plan_is_what_happens(seed: int) -> None:
    cluster = IdealCluster(seed, stop=[0.5, 4.0][seed % 2], replacement=[3.0, 30.0][seed % 3 == 0])
    sim = cluster.sim
    nodes = cluster.chance.sample(sorted(sim.nodes), cluster.chance.randint(1, len(sim.nodes)))
    assumptions = Assumptions(cluster.replacement, cluster.stop, CALL_SECONDS)
    change = Change(NodeSelection(nodes=tuple(nodes)), (Taint("sla", "900"),))
    made = PlanSimulation(
        cluster.before,
        sim.instant.wall,
        assumptions,
        Gates(),
        monotonic=sim.instant.monotonic,  # a guard cuts its time into slots of this clock
        overall_rate=cluster.overall_rate,
    )
    plan = made.run([change], HORIZON)

    names = {pod["metadata"]["uid"]: key for key, pod in sim.pods.items()}
    cluster.degrade(*nodes)
    sim.run(SETTLED_SECONDS + HORIZON)
    happened = [(names[uid], at - SETTLED_SECONDS) for uid, at in sim.evicted.items()]
    planned = [(str(one), one.after_seconds) for one in plan.pods if one.fate is PlannedFate.LEAVES]
    assert [name for name, _ in planned] == [name for name, _ in happened]
    assert [at for _, at in planned] == pytest.approx([at for _, at in happened], abs=CLOSE_SECONDS)


PODS, NODES = 25, 3


@pytest.mark.parametrize(
    "limits",
    [{}, {**LIMITS_OFF, "guard": {}}, {**LIMITS_OFF, "guard": {"action": "Report"}}],
    ids=["default", "guard-alone", "guard-reports"],
)
def test_every_value_falls_to_nothing(limits: Json) -> None:
    """A script that wrote 0 on every node: what the guard and the zones hold then is what was foretold."""
    spec = {"taints": [{"key": "sla"}], "limits": limits}
    stored: Json = {
        "apiVersion": "taintwarden.io/v1alpha1",
        "kind": "TaintEvictionPolicy",
        "metadata": {"name": "one", "uid": "uid-one", "generation": 1},
        "spec": spec,
    }
    sim = Simulation([parse_policy(stored)])
    sim.kubelet = lambda pod: (30.0, 4.0)
    replicas = [events.WorkloadSeen(("default", "rs-web"), PODS)]
    sim.listers.append(lambda: replicas)
    for node in range(NODES):
        sim.create_node(f"n{node}", sla("980"))
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs-web", "controller": True}
    strict = {"key": "sla", "operator": "Gt", "value": "950"}
    ready = [{"type": "Ready", "status": "True"}]
    for pod in range(PODS):
        sim.create_pod(f"web-{pod}", f"n{pod % NODES}", [strict], owners=[owner], conditions=ready)
    sim.start()
    sim.run(SETTLED_SECONDS)

    before = Snapshot(
        policies=[stored],
        nodes=msgspec.convert(list(sim.nodes.values()), list[NodeObject]),
        pods=msgspec.convert(list(sim.pods.values()), list[FullPod]),
        workloads={
            "replicasets": [
                msgspec.convert(
                    {"metadata": {"namespace": "default", "uid": "rs-web"}, "spec": {"replicas": PODS}}, WorkloadObject
                )
            ]
        },
        budgets=[],
    )
    assumptions = Assumptions(30.0, 4.0, CALL_SECONDS)
    made = PlanSimulation(before, sim.instant.wall, assumptions, Gates(), monotonic=sim.instant.monotonic)
    plan = made.run([Change(NodeSelection(nodes=tuple(sim.nodes)), (Taint("sla", "0"),))], HORIZON)

    for node in list(sim.nodes):
        sim.set_taints(node, sla("0"))
    sim.run(SETTLED_SECONDS + HORIZON)
    assert plan.leaving == len(sim.evicted)
    assert plan.leaving + plan.held == PODS
    assert plan.held == (0 if limits.get("guard") == {"action": "Report"} else PODS)
