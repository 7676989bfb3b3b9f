"""The eviction scenarios, replayed in simulated time: what Kubernetes' own tests ask, and what its users reported."""

import json
from pathlib import Path
from typing import Any

import pytest

from simulated import Simulation, policy
from taintwarden.engine import events
from taintwarden.engine.outcomes import Outcome

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "scenarios.json").read_text())
SCENARIOS = [scenario for scenario in VECTORS["scenarios"] if scenario.get("kind") != "zone_state"]


def create_pod(sim: Simulation, pod: dict[str, Any]) -> None:
    fields = {name: pod[name] for name in ("namespace", "labels", "annotations", "priority", "phase") if name in pod}
    sim.create_pod(pod["name"], pod.get("nodeName", ""), pod.get("tolerations", ()), **fields)


def deny_deletes(sim: Simulation, seconds: float) -> None:
    until = sim.at + seconds

    def refuse(pod: dict[str, Any], _: bool) -> events.Settled | None:
        return events.Settled(pod["metadata"]["uid"], Outcome.FAILED, "refused") if sim.at < until else None

    sim.judge = refuse


def block(sim: Simulation, selector: dict[str, str]) -> None:
    def refuse(pod: dict[str, Any], delete: bool) -> events.Settled | None:
        covered = selector.items() <= pod["metadata"]["labels"].items() and not delete
        return events.Settled(pod["metadata"]["uid"], Outcome.BLOCKED, "the budget needs 1") if covered else None

    sim.judge = refuse


def lag(sim: Simulation, seconds: float) -> None:
    sim.node_lag = seconds
    sim.later(seconds, lambda: setattr(sim, "node_lag", 0.0))


def replace_pod(sim: Simulation, step: dict[str, Any]) -> None:
    sim.delete_pod(step["pod"])
    create_pod(sim, step["new"])


OPERATIONS = {
    "set_taints": lambda sim, step: sim.set_taints(step["node"], step["taints"]),
    "create_pod": lambda sim, step: create_pod(sim, step["pod"]),
    "bind_pod": lambda sim, step: sim.bind_pod(step["pod"], step["node"]),
    "set_tolerations": lambda sim, step: sim.set_tolerations(step["pod"], step["tolerations"]),
    "create_node": lambda sim, step: sim.create_node(step["node"]["name"], step["node"]["taints"]),
    "delete_node": lambda sim, step: sim.delete_node(step["node"]),
    "touch_node": lambda sim, step: sim.touch_node(step["node"]),
    "touch_pod": lambda sim, step: sim.touch_pod(step["pod"]),
    "stop_controller": lambda sim, step: sim.kill(),
    "restart_controller": lambda sim, step: sim.restart(step["downtime"]),
    "replace_pod": replace_pod,
    "deny_pod_delete": lambda sim, step: deny_deletes(sim, step["seconds"]),
    "delay_node_watch": lambda sim, step: lag(sim, step["seconds"]),
    "create_pdb": lambda sim, step: block(sim, step["selector"]),
}


def replay(scenario: dict[str, Any]) -> Simulation:
    sim = Simulation([policy(**VECTORS["policy_for_replay"])])
    for node in scenario["initial"]["nodes"]:
        sim.create_node(node["name"], node["taints"])
    for pod in scenario["initial"]["pods"]:
        create_pod(sim, pod)
    sim.start()
    for step in scenario["steps"]:
        sim.run(step["at"])
        OPERATIONS[step["op"]](sim, step)
    sim.run(max(expected.get("until", expected.get("not_after", 0)) for expected in scenario["expect"]) + 1)
    return sim


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["id"])
def test_scenario(scenario):
    sim = replay(scenario)
    for expected in scenario["expect"]:
        uid = sim.pods[expected["pod"]]["metadata"]["uid"]
        evicted_at = sim.evicted.get(uid)
        if expected["evicted"]:
            assert expected["not_before"] <= evicted_at <= expected["not_after"]
        else:
            assert evicted_at is None or evicted_at > expected["until"]
    if "expect_delete_calls" in scenario:
        assert len(sim.calls) == scenario["expect_delete_calls"]
