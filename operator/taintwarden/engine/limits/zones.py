"""Health of zones, by the taints of their nodes. The policy lists the taints by which a node is unhealthy.

A zone with at least three nodes is Degraded from the threshold on, and Full if all its nodes are unhealthy. Both
have the rate of ``zoneHealth``. If all selected nodes, at least three, are unhealthy, only released pods are evicted.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from taintwarden.engine.limit_settings import ZoneHealth
from taintwarden.engine.limits.protocol import EvictionRequest, FreedKeys, Limit, policy_key
from taintwarden.engine.limits.refusal import ZONE, Refusal
from taintwarden.engine.model import Instant
from taintwarden.engine.policy import Policy

ZONE_LABEL = "topology.kubernetes.io/zone"
REGION_LABEL = "topology.kubernetes.io/region"
MIN_NODES = 3
"""Minimum nodes for a share to be meaningful. A zone with fewer is Normal."""


class ZoneState(StrEnum):
    """The health of a zone under one policy."""

    NORMAL = "Normal"
    DEGRADED = "Degraded"
    FULL = "Full"


def zone_of(labels: Mapping[str, str]) -> str:
    """Return the name of a node's zone, with its region; "none" for nodes without either."""
    zone, region = labels.get(ZONE_LABEL, ""), labels.get(REGION_LABEL, "")
    return f"{region}/{zone}" if region and zone else region or zone or "none"


def classify(nodes: int, unhealthy: int, health: ZoneHealth) -> ZoneState:
    """Return the state of a zone in which ``unhealthy`` of ``nodes`` nodes are unhealthy."""
    if nodes < MIN_NODES:
        return ZoneState.NORMAL
    if unhealthy == nodes:
        return ZoneState.FULL
    return ZoneState.DEGRADED if unhealthy / nodes >= health.threshold else ZoneState.NORMAL


class _Zone:
    __slots__ = ("nodes", "state", "unhealthy")

    def __init__(self) -> None:
        self.nodes = self.unhealthy = 0
        self.state = ZoneState.NORMAL


class Zones(Limit):
    """The zones of all policies with ``zoneHealth``, counted as nodes are added, updated and deleted.

    Args:
        freed: receives the key of a zone when its state changes, and of a policy whose nodes are not all unhealthy now.

    """

    def __init__(self, freed: FreedKeys) -> None:
        self._freed = freed
        self._health: dict[str, ZoneHealth] = {}
        self._zones: dict[str, dict[str, _Zone]] = {}
        self._nodes: dict[str, tuple[tuple[str, str, bool], ...]] = {}
        """Node -> for each policy that counts it: policy, zone, and True if the node is unhealthy."""

    def configure(self, policies: Iterable[Policy], now: Instant) -> None:
        """Apply changed settings at once. Nodes are counted again when they are evaluated."""
        del now
        self._health = {
            policy.name: policy.limits.zone_health
            for policy in policies
            if policy.limits.zone_health is not None and self.concerns(policy)
        }
        for node, counted in list(self._nodes.items()):
            self._count(node, tuple(one for one in counted if one[0] in self._health))
        for policy, zones in self._zones.items():
            for name in zones:
                self._classify(policy, name)

    def concerns(self, policy: Policy) -> bool:
        """Return True if the policy has ``zoneHealth``, and no hard deadlines."""
        return policy.limits.zone_health is not None and policy.reclaim is None

    def admit(self, request: EvictionRequest) -> Refusal | None:
        """Refuse all pods except released ones while all nodes that the policy selects are unhealthy."""
        if request.released or not self.all_unhealthy(request.policy.name):
            return None
        return Refusal(ZONE, detail="all nodes are unhealthy, which looks like a fault of the monitoring")

    def count_node(self, node: str, labels: Mapping[str, str], unhealthy: Mapping[str, bool]) -> None:
        """Count a node for the policies that select it. ``unhealthy``: policy -> True if the node is unhealthy."""
        zone = zone_of(labels)
        self._count(node, tuple((policy, zone, bad) for policy, bad in unhealthy.items() if policy in self._health))

    def forget_node(self, node: str) -> None:
        """Stop counting a node that is gone."""
        self._count(node, ())

    def _count(self, node: str, counted: tuple[tuple[str, str, bool], ...]) -> None:
        before = self._nodes.pop(node, ())
        if counted:
            self._nodes[node] = counted
        if counted == before:
            return
        held = [policy for policy in dict.fromkeys(one[0] for one in before + counted) if self.all_unhealthy(policy)]
        for policy, name, bad in before:
            self._add(policy, name, -1, -bad)
        for policy, name, bad in counted:
            self._add(policy, name, 1, int(bad))
        for policy, name in dict.fromkeys((policy, name) for policy, name, _ in before + counted):
            self._classify(policy, name)
        for policy in held:
            if not self.all_unhealthy(policy):
                self._freed.add(policy_key(policy))

    def _add(self, policy: str, name: str, nodes: int, unhealthy: int) -> None:
        zone = self._zones.setdefault(policy, {}).setdefault(name, _Zone())
        zone.nodes += nodes
        zone.unhealthy += unhealthy

    def _classify(self, policy: str, name: str) -> None:
        zone, health = self._zones[policy][name], self._health.get(policy)
        before = zone.state
        zone.state = ZoneState.NORMAL if health is None else classify(zone.nodes, zone.unhealthy, health)
        if not zone.nodes:
            del self._zones[policy][name]
        if zone.state is not before:
            self._freed.add(key_of(policy, name))
        if not self._zones[policy]:
            del self._zones[policy]

    def table(self, policy: str) -> list[tuple[str, ZoneState, int, int]]:
        """Return name, state, nodes and unhealthy nodes of a policy's zones, sorted by name."""
        zones = self._zones.get(policy, {})
        return [(name, zone.state, zone.nodes, zone.unhealthy) for name, zone in sorted(zones.items())]

    def all_unhealthy(self, policy: str) -> bool:
        """Return True if all nodes of a policy, at least three, are unhealthy: perhaps the monitoring has a fault."""
        zones = self._zones.get(policy, {}).values()
        nodes = sum(zone.nodes for zone in zones)
        return nodes >= MIN_NODES and nodes == sum(zone.unhealthy for zone in zones)

    def is_slowed(self, policy: str, name: str) -> bool:
        """Return True if a zone is Degraded or Full."""
        zone = self._zones.get(policy, {}).get(name)
        return zone is not None and zone.state is not ZoneState.NORMAL

    def describe(self, policy: str, name: str) -> str:
        """Return the state of a zone in words."""
        zone = self._zones[policy][name]
        be = "is" if zone.unhealthy == 1 else "are"
        return f"zone {name} is {zone.state}: {zone.unhealthy} of {zone.nodes} nodes {be} unhealthy"


def key_of(policy: str, zone: str) -> str:
    """Return the key of a refusal, shared by all pods in the zone."""
    return f"zone/{policy}/{zone}"
