"""Zone health: evictions slow down in an unhealthy zone, and stop while all zones appear unhealthy.

States are determined by nodes, as in the node-lifecycle controller; rates are in pods per second.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from taintwarden.engine.limits.protocol import EvictionRequest, Freed, Limit, policy_key
from taintwarden.engine.limits.refusal import ALL_ZONES_FULL, ZONE_DEGRADED, ZONE_FULL, ZONE_HALTED, Refusal
from taintwarden.engine.model import Instant, Policy, ZoneHealth

ZONE_LABEL = "topology.kubernetes.io/zone"
REGION_LABEL = "topology.kubernetes.io/region"
EXCLUDE_LABEL = "node.kubernetes.io/exclude-disruption"
"""Nodes with this label, with any value, are not counted."""
ENOUGH_NODES = 2
"""A zone with at most this many drained nodes is not Degraded, whatever their share."""


class ZoneState(StrEnum):
    """The health of a zone under one policy."""

    NORMAL = "Normal"
    DEGRADED = "Degraded"
    FULL = "Full"


def zone_of(labels: Mapping[str, str]) -> str:
    """The name of a node's zone, with its region. Nodes without a zone form one, named "none"."""
    zone, region = labels.get(ZONE_LABEL, ""), labels.get(REGION_LABEL, "")
    return f"{region}/{zone}" if region and zone else region or zone or "none"


def classify(nodes: int, degraded: int, health: ZoneHealth) -> ZoneState:
    """The state of a zone in which ``degraded`` of ``nodes`` nodes are drained.

    A zone of any size is Full if all its nodes are drained; a small one is never Degraded.
    """
    if degraded == nodes > 0:
        return ZoneState.FULL
    if nodes >= health.min_nodes and degraded > ENOUGH_NODES and degraded / nodes >= health.threshold:
        return ZoneState.DEGRADED
    return ZoneState.NORMAL


class _Zone:
    __slots__ = ("degraded", "is_small", "nodes", "state")

    def __init__(self) -> None:
        self.nodes = 0
        self.degraded = 0
        self.state: ZoneState | None = None
        self.is_small = False


class Zones(Limit):
    """The zones of all policies with ``zoneHealth``, counted as nodes are added, updated and deleted.

    Args:
        freed: receives the keys of a zone, and of its policy, when the zone's state changes.

    """

    def __init__(self, freed: Freed) -> None:
        self._freed = freed
        self._health: dict[str, ZoneHealth] = {}
        self._zones: dict[str, dict[str, _Zone]] = {}
        self._nodes: dict[str, tuple[tuple[str, str, bool], ...]] = {}

    def configure(self, policies: Iterable[Policy], now: Instant) -> None:
        """Apply changed settings at once; nodes are counted again when they are evaluated."""
        del now
        self._health = {policy.name: health for policy in policies if (health := policy.limits.zone_health)}
        for policy in [policy for policy in self._zones if policy not in self._health]:
            del self._zones[policy]
            left = {node: tuple(one for one in counted if one[0] != policy) for node, counted in self._nodes.items()}
            self._nodes = {node: counted for node, counted in left.items() if counted}
        for policy, zones in self._zones.items():
            for name, zone in zones.items():
                self._classify(policy, name, zone)

    def concerns(self, policy: Policy) -> bool:
        """Whether it has ``zoneHealth``."""
        return policy.limits.zone_health is not None

    def admit(self, request: EvictionRequest) -> Refusal | None:
        """While every zone is Full, only pods that a person released are evicted."""
        if request.is_hard or request.released or not self.all_full(request.policy.name):
            return None
        return Refusal(ALL_ZONES_FULL)

    def count(self, node: str, labels: Mapping[str, str], drained: Mapping[str, bool]) -> None:
        """Count a node for the policies in ``drained``; True: a taint that the policy acts on drains it."""
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
        were_full = {policy: self.all_full(policy) for policy, _, _ in before + counted}
        for policy, name, bad in before:
            self._add(policy, name, -1, -bad)
        for policy, name, bad in counted:
            self._add(policy, name, 1, int(bad))
        for policy, name in dict.fromkeys((policy, name) for policy, name, _ in before + counted):
            self._settle(policy, name)
        for policy, was_full in were_full.items():
            if was_full and not self.all_full(policy):  # also if too few nodes remain, and no zone changed
                self._freed.add(policy_key(policy))

    def forget(self, node: str) -> None:
        """A node is gone."""
        self.count(node, {}, {})

    def _add(self, policy: str, name: str, nodes: int, degraded: int) -> None:
        zone = self._zones.setdefault(policy, {}).setdefault(name, _Zone())
        zone.nodes += nodes
        zone.degraded += degraded

    def _settle(self, policy: str, name: str) -> None:
        zone = self._zones[policy][name]
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

    def _changed(self, policy: str, zone: str) -> None:
        key = key_of(policy, zone)
        for freed in (key, f"{key}/{ZONE_DEGRADED}", f"{key}/{ZONE_FULL}", policy_key(policy)):
            self._freed.add(freed)

    def table(self, policy: str) -> list[tuple[str, ZoneState, int, int]]:
        """Name, state, nodes and degraded nodes of a policy's zones, by name.

        A zone with few nodes is not slowed down, and is Full only together with all others.
        """
        zones, health, all_full = self._zones.get(policy, {}), self._health.get(policy), self.all_full(policy)
        few = 0 if health is None or all_full else health.min_nodes
        return [
            (name, zone.state if zone.state and zone.nodes >= few else ZoneState.NORMAL, zone.nodes, zone.degraded)
            for name, zone in sorted(zones.items())
        ]

    def all_full(self, policy: str) -> bool:
        """Whether every zone is Full: that indicates a fault of the monitoring, not of the nodes.

        Fewer than ``minNodes`` nodes in all indicate nothing.
        """
        zones, health = self._zones.get(policy, {}), self._health.get(policy)
        if health is None or not zones or sum(zone.nodes for zone in zones.values()) < health.min_nodes:
            return False
        return all(zone.state is ZoneState.FULL for zone in zones.values())

    def pace(self, policy: str, name: str) -> tuple[str, float] | None:
        """The limit that a zone's state sets, and its rate in pods per second; 0: halted. None: no limit."""
        zone = self._zones.get(policy, {}).get(name)
        if zone is None or zone.state in (None, ZoneState.NORMAL):
            return None
        health = self._health[policy]
        if zone.nodes < health.min_nodes:
            return None
        if zone.state is ZoneState.FULL:
            return ZONE_FULL, health.full_evictions_per_second
        if health.halt_small_zones and zone.is_small:
            return ZONE_HALTED, 0.0
        return ZONE_DEGRADED, health.degraded_evictions_per_second

    def halted(self, policy: str, name: str) -> Refusal | None:
        """The refusal of a pod in a small zone that is Degraded, if such zones are halted."""
        pace = self.pace(policy, name)
        if pace is None or pace[1]:
            return None
        return Refusal(ZONE_HALTED, None, key_of(policy, name), f"zone {name} is small and degraded")


def key_of(policy: str, zone: str) -> str:
    """The key of a refusal, shared by all pods in the zone."""
    return f"zone/{policy}/{zone}"
