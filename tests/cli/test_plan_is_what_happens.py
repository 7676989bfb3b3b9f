"""A plan foretells what the operator does: the same pods, in the same order, at the same time, in an ideal cluster."""

import pytest

from cli.ideal import SETTLED_SECONDS, IdealCluster
from simulated.cluster import CALL_SECONDS
from taintwarden.cli.planning import play
from taintwarden.cli.planning.answer import Fate
from taintwarden.cli.planning.changes import Change, Where
from taintwarden.cli.planning.play import Play
from taintwarden.cli.planning.world import Assumptions
from taintwarden.engine.model import Gates, Taint

CLUSTERS = 50
HORIZON = 600.0
CLOSE_SECONDS = 0.01
"""The clocks of both add up the same times in another order."""


@pytest.mark.parametrize("seed", range(CLUSTERS))
def test_plan_is_what_happens(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = IdealCluster(seed, stop=[0.5, 4.0][seed % 2], replacement=[3.0, 30.0][seed % 3 == 0])
    sim = cluster.sim
    nodes = cluster.chance.sample(sorted(sim.nodes), cluster.chance.randint(1, len(sim.nodes)))
    monkeypatch.setattr(play, "MONOTONIC", sim.instant.monotonic)  # a guard cuts its time into slots of this clock
    assumptions = Assumptions(cluster.replacement, cluster.stop, CALL_SECONDS)
    change = Change(Where(nodes=tuple(nodes)), (Taint("sla", "900"),))
    made = Play(cluster.before, sim.instant.wall, assumptions, Gates(), overall_rate=cluster.overall_rate)
    plan = made.run([change], HORIZON)

    names = {pod["metadata"]["uid"]: key for key, pod in sim.pods.items()}
    cluster.degrade(*nodes)
    sim.run(SETTLED_SECONDS + HORIZON)
    happened = [(names[uid], at - SETTLED_SECONDS) for uid, at in sim.evicted.items()]
    planned = [(str(one), one.after_seconds) for one in plan.pods if one.fate is Fate.LEAVES]
    assert [name for name, _ in planned] == [name for name, _ in happened]
    assert [at for _, at in planned] == pytest.approx([at for _, at in happened], abs=CLOSE_SECONDS)
