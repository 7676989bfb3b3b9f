"""Zone health: a zone in which much goes wrong slows down, and nothing goes while everything seems wrong.

States are classified as the node-lifecycle controller does, by nodes; the rates are pods per second.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

from taintwarden.engine.limits.refusal import ZONE_DEGRADED, ZONE_FULL, ZONE_HALTED, Refusal
from taintwarden.engine.model import Policy, ZoneHealth

ZONE_LABEL = "topology.kubernetes.io/zone"
REGION_LABEL = "topology.kubernetes.io/region"
EXCLUDE_LABEL = "node.kubernetes.io/exclude-disruption"
"""Nodes with this label, whatever its value, are not counted."""
ENOUGH_NODES = 2
"""A zone with no more than so many bad nodes is not Degraded, whatever their share."""


class ZoneState(StrEnum):
    """How a zone fares under one policy."""

    NORMAL = "Normal"
    DEGRADED = "Degraded"
    FULL = "Full"


def zone_of(labels: Mapping[str, str]) -> str:
    """The name of a node's zone, with its region. Nodes without a zone form one, named "none"."""
    zone, region = labels.get(ZONE_LABEL, ""), labels.get(REGION_LABEL, "")
    return "/".join(filter(None, (region, zone))) or "none"


def classify(nodes: int, degraded: int, health: ZoneHealth) -> ZoneState:
    """The state of a zone of which ``degraded`` out of ``nodes`` nodes are drained."""
    if not degraded or nodes < health.min_nodes:
        return ZoneState.NORMAL
    if degraded == nodes:
        return ZoneState.FULL
    if degraded > ENOUGH_NODES and degraded / nodes >= health.threshold:
        return ZoneState.DEGRADED
    return ZoneState.NORMAL


class _Zone:
    __slots__ = ("degraded", "is_small", "nodes", "state")

    def __init__(self) -> None:
        self.nodes = 0
        self.degraded = 0
        self.state: ZoneState | None = None
        self.is_small = False


class Zones:
    """The zones of every policy that has ``zoneHealth``, counted as nodes come, change and go.

    Args:
        changed: told policy and zone when the state of a zone is another one.

    """

    def __init__(self, changed: Callable[[str, str], None]) -> None:
        self._changed = changed
        self._health: dict[str, ZoneHealth] = {}
        self._zones: dict[str, dict[str, _Zone]] = {}
        self._nodes: dict[str, tuple[tuple[str, str, bool], ...]] = {}

    def configure(self, policies: Iterable[Policy]) -> None:
        """Take over changed settings at once; nodes are counted again as they are looked at."""
        self._health = {policy.name: health for policy in policies if (health := policy.limits.zone_health)}
        for policy in [policy for policy in self._zones if policy not in self._health]:
            del self._zones[policy]
            for node, counted in list(self._nodes.items()):
                self._nodes[node] = tuple(one for one in counted if one[0] != policy)
        for policy, zones in self._zones.items():
            for name, zone in zones.items():
                self._classify(policy, name, zone)

    def count(self, node: str, labels: Mapping[str, str], drained: Mapping[str, bool]) -> None:
        """A node is selected by the policies in ``drained``; True: it is drained by that policy."""
        zone = zone_of(labels)
        counted: tuple[tuple[str, str, bool], ...] = ()
        if EXCLUDE_LABEL not in labels:
            counted = tuple((policy, zone, bad) for policy, bad in drained.items() if policy in self._health)
        before = self._nodes.get(node, ())
        if counted == before:
            return
        if counted:
            self._nodes[node] = counted
        else:
            self._nodes.pop(node, None)
        for policy, name, bad in before:
            self._add(policy, name, -1, -bad)
        for policy, name, bad in counted:
            self._add(policy, name, 1, int(bad))
        for policy, name in dict.fromkeys((policy, name) for policy, name, _ in before + counted):
            self._settle(policy, name)

    def forget(self, node: str) -> None:
        """A node is gone."""
        self.count(node, {}, {})

    def _add(self, policy: str, name: str, nodes: int, degraded: int) -> None:
        if policy in self._health:
            zone = self._zones.setdefault(policy, {}).setdefault(name, _Zone())
            zone.nodes += nodes
            zone.degraded += degraded

    def _settle(self, policy: str, name: str) -> None:
        zone = self._zones.get(policy, {}).get(name)
        if zone is None:
            return
        if not zone.nodes:
            del self._zones[policy][name]
            self._changed(policy, name)
        else:
            self._classify(policy, name, zone)

    def _classify(self, policy: str, name: str, zone: _Zone) -> None:
        health = self._health[policy]
        now = (classify(zone.nodes, zone.degraded, health), zone.nodes <= health.small_zone)
        if now != (zone.state, zone.is_small):
            zone.state, zone.is_small = now
            self._changed(policy, name)

    def table(self, policy: str) -> list[tuple[str, ZoneState, int, int]]:
        """Name, state, nodes and degraded nodes of a policy's zones, by name."""
        zones = self._zones.get(policy, {})
        return [
            (name, zone.state or ZoneState.NORMAL, zone.nodes, zone.degraded) for name, zone in sorted(zones.items())
        ]

    def all_full(self, policy: str) -> bool:
        """Whether no zone is better than Full: that is a monitoring fault, not a disaster."""
        zones = self._zones.get(policy, {})
        return bool(zones) and all(zone.state is ZoneState.FULL for zone in zones.values())

    def pace(self, policy: str, name: str) -> tuple[str, float] | None:
        """The limit that a zone's state sets and its rate in pods per second; 0 is a halt. None: no limit."""
        zone = self._zones.get(policy, {}).get(name)
        if zone is None or zone.state in (None, ZoneState.NORMAL):
            return None
        health = self._health[policy]
        if zone.state is ZoneState.FULL:
            return ZONE_FULL, health.full_evictions_per_second
        if health.halt_small_zones and zone.is_small:
            return ZONE_HALTED, 0.0
        return ZONE_DEGRADED, health.degraded_evictions_per_second


def key(policy: str, zone: str) -> str:
    """Who shares a refusal."""
    return f"zone/{policy}/{zone}"


def halted(policy: str, zone: str) -> Refusal:
    """The answer to a pod in a small zone that is Degraded."""
    return Refusal(ZONE_HALTED, None, key(policy, zone), f"zone {zone} is small and degraded")
