"""Whatever happens, when nothing happens any more the labels of nodes say what their taints say."""

from random import Random
from typing import Any

import pytest

from simulated import Simulation, policy
from simulated.histories import FIRST_SEED, RUNS
from taintwarden.engine.machine import events

SEEDS = range(FIRST_SEED, FIRST_SEED + RUNS)
KEYS = ("sla", "example.com/cni")
LABELS = {"sla": "value.taintwarden.io/sla", "example.com/cni": "example.com.value.taintwarden.io/cni"}
VALUES = ("x", "y", "high")
"""No versions: one label says it all, and nothing of the engine is needed to tell what it has to be."""


def draw_policies(chance: Random) -> list[Any]:
    chosen = [{"key": key, "placement": chance.random() < 0.7} for key in KEYS]
    selector = chance.choice([{}, {"matchLabels": {"zone": "a"}}])
    return [policy(taints=chosen, nodeSelector=selector, mode=chance.choice(["Enforce", "Enforce", "DryRun"]))]


def expected(sim: Simulation, node: dict[str, Any]) -> dict[str, str]:
    (only,) = sim.policies
    if only.mode == "DryRun":
        return {}
    values = {taint["key"]: taint["value"] for taint in node["spec"]["taints"]}
    placed = [selector.key for selector in only.taints if selector.placement]
    return {
        **{LABELS[key]: values[key] for key in placed if key in values},
        **{LABELS[key].replace("value.", "effect."): "None" for key in placed if key not in values},
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_labels_say_what_taints_say_in_the_end(seed):
    chance = Random(seed)
    sim = Simulation(draw_policies(chance), slice_size=chance.choice([2, 2_000]))
    for number in range(4):
        sim.create_node(f"n{number}", labels={"zone": chance.choice("ab")})
    sim.start()
    for _ in range(60):
        name, act = f"n{chance.randrange(4)}", chance.random()
        sim.node_lag = chance.choice([0.0, 0.0, 3.0])
        if act < 0.6:
            taints = [
                {"key": key, "value": chance.choice(VALUES), "effect": "NoExecute"}
                for key in KEYS
                if chance.random() < 0.7
            ]
            sim.set_taints(name, taints)
        elif act < 0.7:
            sim.set_labels(name, {"zone": chance.choice("ab")} | ({LABELS["sla"]: "stray"} if act < 0.65 else {}))
        elif act < 0.8:
            sim.change_policies(draw_policies(chance))
        elif act < 0.9:
            sim.restart(chance.choice([0.0, 5.0]))
        else:
            sim.feed(events.LeadershipChanged(leading=False))
            sim.run(sim.at + 1)
            sim.feed(events.LeadershipChanged(leading=True))
        sim.run(sim.at + chance.choice([0.01, 0.1, 2.0]))
    sim.run(sim.at + 10)
    for name, node in sim.nodes.items():
        labels = node["metadata"]["labels"]
        mirrored = {label: value for label, value in labels.items() if "taintwarden.io/" in label}
        assert mirrored == expected(sim, node), (seed, name)
