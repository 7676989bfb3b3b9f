"""A zone slows down by the share of its nodes that are drained, and nothing goes while every zone seems lost."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from simulated import Simulation, policy
from simulated.drawing import NO_LIMITS
from simulated.histories import Played, histories
from simulated.onlooker import Onlooker, is_bad, zone_of
from simulated.trace import evictions_of, is_spent
from taintwarden.engine.machine import commands
from taintwarden.engine.model import Policy, ZoneHealth

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "scenarios.json").read_text())
ZONES = [scenario for scenario in VECTORS["scenarios"] if scenario.get("kind") == "zone_state"]
WITNESSED = ("restart", "crash")
"""Who has just started cannot know whether a bad node that is empty was drained: these histories have none of it."""

Zones = dict[str, tuple[str, int]]
"""Zone -> its state and its number of nodes."""


def classify(nodes: int, bad: int, health: ZoneHealth) -> str:
    if bad == 0 or nodes < health.min_nodes:
        return "Normal"
    if bad == nodes:
        return "Full"
    return "Degraded" if bad > 2 and bad * 100 >= nodes * round(health.threshold * 100) else "Normal"


class Drained:
    """Remembers which nodes somebody has, or had, to leave."""

    def __init__(self) -> None:
        self._marks: set[tuple[str, str]] = set()

    def look(self, known: Onlooker) -> None:
        occupied = {pod.node for pod in known.pods.values()}
        marks = set()
        for node in known.nodes.values():
            for name in bad_for(node.name, known):
                if node.name in occupied or (name, node.name) in self._marks:
                    marks.add((name, node.name))
        self._marks = marks

    def zones(self, policy: Policy, known: Onlooker) -> Zones:
        nodes: Counter[str] = Counter()
        bad: Counter[str] = Counter()
        for node in known.nodes.values():
            nodes[zone_of(node)] += 1
            bad[zone_of(node)] += (policy.name, node.name) in self._marks
        health = policy.limits.zone_health
        return {zone: (classify(count, bad[zone], health), count) for zone, count in nodes.items()}


def bad_for(name: str, known: Onlooker) -> list[str]:
    """The policies that act on a taint of a node which nobody tolerates."""
    keys = {taint.key for taint, _ in known.nodes[name].taints if is_bad(taint)}
    return [one.name for one in known.policies.values() if one.mode != "Paused" and one.taints[0].key in keys]


def evictions(history: Played) -> Iterator[tuple[float, str, Policy, Zones, dict[str, int]]]:
    """When, in which zone, by whom; the states of all zones, and how often each has changed."""
    drained, carried_out = Drained(), evictions_of(history.trace)
    before: dict[str, object] = {}
    changes: dict[str, Counter[str]] = defaultdict(Counter)
    for moment, known in history.moments():
        if isinstance(moment.what, commands.Command) and not isinstance(
            moment.what, commands.Evict | commands.Rehearsed
        ):
            continue
        drained.look(known)
        for name in {*before, *known.policies}:
            one = known.policies.get(name)
            if one is None or known.limits(name).zone_health is None:
                before.pop(name, None)
                continue
            zones = drained.zones(one, known)
            now = {zone: (state, one.limits.zone_health) for zone, (state, _) in zones.items()}
            was = before.get(name, {})
            changes[name].update(zone for zone in now if now[zone] != was.get(zone))
            before[name] = now
        if is_spent(moment, carried_out):
            one = known.policies[moment.what.verdict.policy.name]
            if known.limits(one.name).zone_health is not None:
                zone = zone_of(known.nodes.get(moment.what.pod.node))
                yield moment.at, zone, one, drained.zones(one, known), dict(changes[one.name])


def test_nobody_is_evicted_while_every_zone_is_full():
    for history in histories("zone-health", WITNESSED):
        for at, _, one, zones, _ in evictions(history):
            assert any(state != "Full" for state, _ in zones.values()), (history, at, one.name)


def test_nobody_is_evicted_from_a_small_zone_that_halts():
    for history in histories("zone-health", WITNESSED):
        for at, zone, one, zones, _ in evictions(history):
            health, (state, nodes) = one.limits.zone_health, zones[zone]
            halts = health.halt_small_zones and state == "Degraded" and nodes <= health.small_zone
            assert not halts, (history, at, zone)


def test_while_a_zone_is_degraded_or_full_it_loses_no_more_than_the_rate_of_its_state():
    for history in histories("zone-health", WITNESSED):
        episodes: dict[object, list[float]] = defaultdict(list)
        for at, zone, one, zones, changes in evictions(history):
            health, state = one.limits.zone_health, zones[zone][0]
            rates = {"Degraded": health.degraded_evictions_per_second, "Full": health.full_evictions_per_second}
            if state in rates:
                episodes[one.name, zone, changes[zone], rates[state]].append(at)
        for (*_, rate), times in episodes.items():
            for first, begin in enumerate(times):
                for last, end in enumerate(times[first:], 1):
                    assert last <= max(1, int(rate)) + rate * (end - begin) + 1e-4, (history, begin, end)


@pytest.mark.parametrize("scenario", ZONES, ids=lambda scenario: scenario["id"])
def test_states_are_those_of_the_node_lifecycle_controller(scenario):
    health = ZoneHealth(scenario["params"]["unhealthy_zone_threshold"], min_nodes=0)
    sim = Simulation([msgspec.structs.replace(policy(), limits=msgspec.structs.replace(NO_LIMITS, zone_health=health))])
    for zone, counts in scenario["zones"].items():
        for kind, count in counts.items():
            labels = {"topology.kubernetes.io/zone": zone}
            if kind.startswith("excluded"):
                labels["node.kubernetes.io/exclude-disruption"] = ""
            for number in range(count):
                name = f"{zone}-{kind}-{number}"
                sim.create_node(name, [{"key": "bad", "effect": "NoExecute"}] if kind == "not_ready" else [], labels)
                sim.create_pod(name, name)
    sim.start()
    names = {"Normal": "Normal", "PartialDisruption": "Degraded", "FullDisruption": "Full"}
    states = {one.zone: one.state for one in sim.machine.view.report(sim.instant)[0].zones}
    assert states == {zone: names[state] for zone, state in scenario["expect_state"].items()}
    sim.run(60)
    assert bool(sim.calls) != scenario["expect_all_evictions_stopped"]
