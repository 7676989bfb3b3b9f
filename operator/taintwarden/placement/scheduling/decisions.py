"""What is known of nodes, and who judges them for which pods."""

from collections import OrderedDict

import msgspec

from taintwarden.controller.node_values import values_of
from taintwarden.engine.derived import Derivations, derived_taints
from taintwarden.engine.model import Effect, Gates, Taint
from taintwarden.engine.scheduling import REPELLING, Demand, Judge
from taintwarden.kube.wire.kinds import NodeObject

MAX_DEMANDS = 200
"""The demands whose comparisons are stored: a tenant can make any number of different ones."""
MAX_COMPARISONS = 50_000
"""Of all demands. More would cost the garbage collector more time than comparing again costs."""
MAX_TAINTS = 10_000
"""Taints that nodes share: values change, and old ones are dropped."""


class NodeFacts(msgspec.Struct, frozen=True):
    """What is known of a node."""

    repelling: tuple[Taint, ...]
    """``NoSchedule`` and ``NoExecute``."""
    disliked: tuple[Taint, ...]
    """``PreferNoSchedule``."""
    labels: dict[str, str]


class NodeReader:
    """Reads nodes. Equal taints become one object.

    Attributes:
        derived: the taints that policies derive.

    """

    def __init__(self) -> None:
        self.derived: Derivations = {}
        self._known: dict[Taint, Taint] = {}

    def __call__(self, node: NodeObject) -> NodeFacts:
        """What is needed of the node."""
        if len(self._known) >= MAX_TAINTS:
            self._known.clear()
        taints = [Taint(one.key, one.value, one.effect) for one in node.spec.taints]
        if self.derived:
            values = values_of(node, [one.source for one in self.derived.values()])
            taints += [taint for taint, _ in derived_taints(taints, values, self.derived)]
        shared = [self._known.setdefault(taint, taint) for taint in taints]
        return NodeFacts(
            tuple(taint for taint in shared if taint.effect in REPELLING),
            tuple(taint for taint in shared if taint.effect == Effect.PREFER_NO_SCHEDULE),
            node.metadata.labels,
        )


class Decisions:
    """Decides for one process.

    Args:
        gates: which operators may match at all.

    """

    def __init__(self, gates: Gates) -> None:
        self._gates = gates
        self._judges: OrderedDict[Demand, Judge] = OrderedDict()

    def of(self, demand: Demand) -> Judge:
        """Who judges nodes for pods that demand this."""
        found = self._judges.get(demand)
        if found is None:
            while len(self._judges) >= MAX_DEMANDS or sum(map(len, self._judges.values())) > MAX_COMPARISONS:
                self._judges.popitem(last=False)
            found = self._judges[demand] = Judge(demand, self._gates)
        self._judges.move_to_end(demand)
        return found
