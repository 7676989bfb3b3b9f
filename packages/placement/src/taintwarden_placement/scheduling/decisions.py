"""What is known of nodes, and who judges them for which pods."""

from collections.abc import Iterable

import msgspec

from taintwarden.controller.decoding.node_values import values_of
from taintwarden.engine.derived import Derivations, derivations, derived_taints
from taintwarden.engine.evaluate import selects_node
from taintwarden.engine.model import Gates, Mode, Policy, Taint, TaintSelector
from taintwarden.engine.selectors import LabelSelector
from taintwarden.kube.wire.kinds import NodeObject
from taintwarden_placement.scheduling.feasibility import Demand, Judge

MAX_DEMANDS = 200
"""A tenant can make any number of different ones."""
MAX_COMPARISONS = 50_000
"""More would cost the garbage collector more time than comparing again costs."""
MAX_TAINTS = 10_000
"""Taints that nodes share: values change, and old ones are dropped."""


class NodeFacts(msgspec.Struct, frozen=True):
    """What is known of a node."""

    taints: tuple[Taint, ...]
    labels: dict[str, str]


class NodeReader:
    """Reads nodes. Equal taints become one object.

    Attributes:
        derived: the taints that policies derive on any node. Those in DryRun or paused restrict no pod.

    """

    def __init__(self) -> None:
        self.derived: Derivations = {}
        self._policies: tuple[Policy, ...] = ()
        self._known: dict[Taint, Taint] = {}

    def follow(self, policies: Iterable[Policy]) -> bool:
        """These policies are in force. Returns whether nodes have to be read again."""
        before = self._policies
        self._policies = tuple(one for one in policies if one.mode is Mode.ENFORCE and derivations((one,)))
        self.derived = derivations(self._policies)
        return _derive(before) != _derive(self._policies)

    def __call__(self, node: NodeObject) -> NodeFacts:
        """What is needed of the node."""
        if len(self._known) >= MAX_TAINTS:
            self._known.clear()
        taints = [Taint(one.key, one.value, one.effect) for one in node.spec.taints]
        if derived := derivations(one for one in self._policies if selects_node(one, node.metadata.labels)):
            values = values_of(node, [one.source for one in derived.values()])
            taints += [taint for taint, _ in derived_taints(taints, values, derived)]
        return NodeFacts(tuple(self._known.setdefault(taint, taint) for taint in taints), node.metadata.labels)


def _derive(policies: Iterable[Policy]) -> list[tuple[tuple[TaintSelector, ...], LabelSelector]]:
    """What of them decides which taints a node gets."""
    return [(one.taints, one.node_selector) for one in policies]


class Decisions:
    """Decides for one process.

    Args:
        gates: which operators may match at all.
        max_demands: the demands whose comparisons are stored.
        max_comparisons: of all demands, before the comparisons of another demand are stored.

    """

    def __init__(self, gates: Gates, *, max_demands: int = MAX_DEMANDS, max_comparisons: int = MAX_COMPARISONS) -> None:
        self._gates = gates
        self._max_demands = max_demands
        self._max_comparisons = max_comparisons
        self._judges: dict[Demand, Judge] = {}

    def __len__(self) -> int:
        """The number of demands whose comparisons are stored."""
        return len(self._judges)

    @property
    def comparisons(self) -> int:
        """The number of comparisons that are stored."""
        return sum(map(len, self._judges.values()))

    def of(self, demand: Demand) -> Judge:
        """Who judges nodes for pods that demand this."""
        found = self._judges.get(demand)
        if found is None:
            if len(self) >= self._max_demands or self.comparisons > self._max_comparisons:
                self._judges.clear()
            found = self._judges[demand] = Judge(demand, self._gates)
        return found
