"""The decisions on nodes: each is made once for all nodes that are alike and all pods that demand alike."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from taintwarden.engine.model import Gates, Taint
from taintwarden.engine.scheduling import Demand, Preferences, Refusal, preferences, refusal

MAX_DEMANDS = 1_000
"""The demands whose decisions are stored: a tenant can make any number of different ones."""
MAX_DECISIONS = 10_000
"""Of one demand: values of nodes change."""


class Taints(msgspec.Struct, frozen=True, cache_hash=True):
    """The taints of a node, one object for all nodes that have the same."""

    entries: tuple[Taint, ...]


class NodeFacts(msgspec.Struct, frozen=True):
    """What is known of a node."""

    taints: Taints
    labels: dict[str, str]


class Decided(msgspec.Struct, frozen=True):
    """Whether a node will do, and how well."""

    refusal: Refusal | None
    preferences: Preferences


Key = tuple[Taints, tuple[str | None, ...]]
K = TypeVar("K")
V = TypeVar("V")


class Decisions:
    """Decides for one process.

    Args:
        gates: which operators may match at all.

    """

    def __init__(self, gates: Gates) -> None:
        self._gates = gates
        self._known: OrderedDict[Demand, dict[Key, Decided]] = OrderedDict()

    def of(self, demand: Demand) -> "Decider":
        """What decides on nodes for pods that demand this."""
        known = self._known.get(demand)
        if known is None:
            known = self._known[demand] = {}
            if len(self._known) > MAX_DEMANDS:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(demand)
        return Decider(demand, known, self._gates)


class Decider:
    """Decides on nodes for pods that demand the same."""

    def __init__(self, demand: Demand, known: dict[Key, Decided], gates: Gates) -> None:
        self._demand = demand
        self._keys = demand.keys
        self._known = known
        self._gates = gates

    def __call__(self, node: NodeFacts) -> Decided:
        """Whether the node will do, and how well."""
        labels = node.labels
        key = (node.taints, tuple([labels.get(name) for name in self._keys]))
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MAX_DECISIONS:
                self._known.clear()
            found = self._known[key] = self._decide(node.taints.entries, labels)
        return found

    def _decide(self, taints: tuple[Taint, ...], labels: Mapping[str, str]) -> Decided:
        refused = refusal(self._demand, taints, labels, self._gates)
        return Decided(refused, preferences(self._demand, taints, labels, self._gates))
