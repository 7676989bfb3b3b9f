"""Whatever happens, when nothing happens any more the labels of nodes say what their taints say.

Or, where placement has ended, that there is no taint.
"""

from random import Random
from typing import Any

import pytest

from simulated import Simulation, policy
from simulated.world.playing import FIRST_SEED, RUNS
from taintwarden.engine.machine import events

SEEDS = range(FIRST_SEED, FIRST_SEED + RUNS)
KEYS = ("sla", "example.com/cni")
HIGHEST = str(2**63 - 1)
VALUES = ("x", "y", "high")
"""No versions and no numbers: nothing of the engine is needed to tell what labels have to be."""


def label(domain: str, key: str) -> str:
    prefix, _, name = key.rpartition("/")
    return f"{prefix}.{domain}.taintwarden.io/{name}".removeprefix(".")


def says(key: str, value: str | None) -> dict[str, str]:
    """The labels of a node with this value, or without the taint."""
    if value is not None:
        return {label("value", key): value, label("value-or-max", key): value}
    high, low = ("value-or-max", "version"), ("value-or-min", "version-or-min")
    return {
        label("effect", key): "None",
        **{label(one, key): HIGHEST for one in high},
        **{label(one, key): "0" for one in low},
    }


def draw_policies(chance: Random) -> list[Any]:
    chosen = [{"key": key, "placement": chance.random() < 0.7} for key in KEYS]
    selector = chance.choice([{}, {"matchLabels": {"zone": "a"}}])
    drawn = policy(taints=chosen, nodeSelector=selector, mode=chance.choice(["Enforce", "Enforce", "DryRun"]))
    return [drawn] if chance.random() < 0.9 else []


def placed(sim: Simulation) -> set[str]:
    enforced = (one for one in sim.policies if one.mode != "DryRun")
    return {selector.key for one in enforced for selector in one.taints if selector.placement}


def value(node: dict[str, Any], key: str) -> str | None:
    return next((one["value"] for one in node["spec"]["taints"] if one["key"] == key), None)


def about(node: dict[str, Any], key: str) -> dict[str, str]:
    """The labels of a node about a key."""
    known = {*says(key, None), *says(key, "x")}
    return {name: text for name, text in node["metadata"]["labels"].items() if name in known}


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
            sim.set_labels(
                name, {"zone": chance.choice("ab")} | ({label("value", "sla"): "stray"} if act < 0.65 else {})
            )
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
    for key in KEYS:
        found = {name: about(node, key) for name, node in sim.nodes.items()}
        if key in placed(sim):
            values = {
                name: {one["key"]: one["value"] for one in node["spec"]["taints"]} for name, node in sim.nodes.items()
            }
            assert found == {name: says(key, values[name].get(key)) for name in sim.nodes}, seed
        else:
            carrying = [labels for labels in found.values() if labels]
            assert all(labels == says(key, None) for labels in carrying), seed
            assert len(carrying) in (0, 1, len(sim.nodes)), seed
