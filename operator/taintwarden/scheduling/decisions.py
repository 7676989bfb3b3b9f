"""The decisions on nodes: each is made once for all nodes that are alike and all pods that demand alike."""

from collections import OrderedDict

import msgspec

from taintwarden.engine.model import Effect, Gates, Taint
from taintwarden.engine.scheduling import REPELLING, Demand, Judge, Preferences, Refusal
from taintwarden.kube.objects import NodeObject

MAX_DEMANDS = 1_000
"""The demands whose decisions are stored: a tenant can make any number of different ones."""
MAX_DECISIONS = 100_000
"""Of all demands: some 150 bytes each."""
MAX_TAINTS = 10_000
"""Sets of taints that nodes share: values change, and old ones are dropped."""


class Taints(msgspec.Struct, frozen=True, cache_hash=True):
    """Some taints of a node, one object for all nodes that have the same."""

    entries: tuple[Taint, ...]


class NodeFacts(msgspec.Struct, frozen=True):
    """What is known of a node."""

    repelling: Taints
    """``NoSchedule`` and ``NoExecute``."""
    disliked: Taints
    """``PreferNoSchedule``."""
    labels: dict[str, str]


class NodeReader:
    """Reads nodes. Equal sets of taints become one object, so that decisions are found by identity."""

    def __init__(self) -> None:
        self._known: dict[tuple[Taint, ...], Taints] = {}

    def __call__(self, node: NodeObject) -> NodeFacts:
        """What is needed of the node."""
        taints = [Taint(one.key, one.value, one.effect) for one in node.spec.taints]
        repelling = tuple(one for one in taints if one.effect in REPELLING)
        disliked = tuple(one for one in taints if one.effect == Effect.PREFER_NO_SCHEDULE)
        return NodeFacts(self._shared(repelling), self._shared(disliked), node.metadata.labels)

    def _shared(self, taints: tuple[Taint, ...]) -> Taints:
        if len(self._known) >= MAX_TAINTS:
            self._known.clear()
        return self._known.setdefault(taints, Taints(taints))


Key = tuple[Taints, tuple[str | None, ...]]


class Decisions:
    """Decides for one process.

    Args:
        gates: which operators may match at all.

    """

    def __init__(self, gates: Gates) -> None:
        self._gates = gates
        self._known: OrderedDict[Demand, Decider] = OrderedDict()

    def of(self, demand: Demand) -> "Decider":
        """What decides on nodes for pods that demand this."""
        found = self._known.get(demand)
        if found is None:
            while len(self._known) >= MAX_DEMANDS or sum(map(len, self._known.values())) > MAX_DECISIONS:
                self._known.popitem(last=False)
            found = self._known[demand] = Decider(demand, self._gates)
        self._known.move_to_end(demand)
        return found


class Decider:
    """Decides on nodes for pods that demand the same."""

    def __init__(self, demand: Demand, gates: Gates) -> None:
        self._keys = demand.keys
        self._judge = Judge(demand, gates)
        self._refusals: dict[Key, Refusal | None] = {}
        self._preferences: dict[Key, Preferences] = {}

    def __len__(self) -> int:
        return len(self._refusals) + len(self._preferences)

    def refusal(self, node: NodeFacts) -> Refusal | None:
        """Why the node will not do; None if it will."""
        labels = node.labels
        key = (node.repelling, tuple([labels.get(name) for name in self._keys]))
        try:
            return self._refusals[key]
        except KeyError:
            self._make_room()
            found = self._refusals[key] = self._judge.refusal(node.repelling.entries, labels)
            return found

    def preferences(self, node: NodeFacts) -> Preferences:
        """How well it will do."""
        labels = node.labels
        key = (node.disliked, tuple([labels.get(name) for name in self._keys]))
        try:
            return self._preferences[key]
        except KeyError:
            self._make_room()
            found = self._preferences[key] = self._judge.preferences(node.disliked.entries, labels)
            return found

    def _make_room(self) -> None:
        if len(self) >= MAX_DECISIONS:
            self._refusals.clear()
            self._preferences.clear()
