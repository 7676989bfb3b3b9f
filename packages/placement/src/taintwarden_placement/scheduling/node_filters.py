"""Facts about nodes, and a cache of node filters by demand."""

from collections.abc import Iterable

import msgspec

from taintwarden.controller.decoding.node_values import values_of
from taintwarden.engine.derived import Derivations, derivations, derived_taints
from taintwarden.engine.evaluate import selects_node
from taintwarden.engine.model import Gates, Taint
from taintwarden.engine.policy import Mode, Policy, TaintSelector
from taintwarden.engine.selectors import LabelSelector
from taintwarden.kube.wire.kinds import NodeObject
from taintwarden_placement.scheduling.feasibility import Demand, NodeFilter

MAX_DEMANDS = 200
"""Maximum number of demands with cached comparisons. A tenant can create any number of different demands."""
MAX_COMPARISONS = 50_000
"""Maximum number of cached comparisons. Beyond it, garbage collection takes longer than comparing again."""
MAX_TAINTS = 10_000
"""Maximum number of taints shared between nodes. Values change, so the cache is cleared when it is full."""


class NodeFacts(msgspec.Struct, frozen=True):
    """Facts about a node that decide if it suits a pod."""

    taints: tuple[Taint, ...]
    labels: dict[str, str]


class NodeReader:
    """Extracts the facts about nodes. Equal taints share one object.

    Attributes:
        derived: the taints that enforced policies derive. Policies in DryRun and paused ones restrict no pod.

    """

    def __init__(self) -> None:
        self.derived: Derivations = {}
        self._policies: tuple[Policy, ...] = ()
        self._known: dict[Taint, Taint] = {}

    def set_policies(self, policies: Iterable[Policy]) -> bool:
        """Set the policies in force. Returns True if nodes have to be read again."""
        before = self._policies
        self._policies = tuple(policy for policy in policies if policy.mode is Mode.ENFORCE and derivations((policy,)))
        self.derived = derivations(self._policies)
        return _deriving_parts(before) != _deriving_parts(self._policies)

    def __call__(self, node: NodeObject) -> NodeFacts:
        """Return the facts about a node."""
        if len(self._known) >= MAX_TAINTS:
            self._known.clear()
        taints = [Taint(taint.key, taint.value, taint.effect) for taint in node.spec.taints]
        if derived := derivations(policy for policy in self._policies if selects_node(policy, node.metadata.labels)):
            values = values_of(node, [derivation.source for derivation in derived.values()])
            taints += [taint for taint, _ in derived_taints(taints, values, derived)]
        return NodeFacts(tuple(self._known.setdefault(taint, taint) for taint in taints), node.metadata.labels)


def _deriving_parts(policies: Iterable[Policy]) -> list[tuple[tuple[TaintSelector, ...], LabelSelector]]:
    """Return the parts of policies that decide which taints a node gets."""
    return [(policy.taints, policy.node_selector) for policy in policies]


class NodeFilters:
    """A cache of ``NodeFilter`` objects, one for each demand.

    Args:
        gates: which operators are switched on.
        max_demands: maximum number of demands. Beyond it the cache is cleared.
        max_comparisons: total of cached comparisons above which another demand clears the cache.

    """

    def __init__(self, gates: Gates, *, max_demands: int = MAX_DEMANDS, max_comparisons: int = MAX_COMPARISONS) -> None:
        self._gates = gates
        self._max_demands = max_demands
        self._max_comparisons = max_comparisons
        self._filters: dict[Demand, NodeFilter] = {}

    def __len__(self) -> int:
        """Return the number of cached demands."""
        return len(self._filters)

    @property
    def comparisons(self) -> int:
        """The number of cached comparisons."""
        return sum(map(len, self._filters.values()))

    def for_demand(self, demand: Demand) -> NodeFilter:
        """Return the filter for a demand."""
        found = self._filters.get(demand)
        if found is None:
            if len(self) >= self._max_demands or self.comparisons > self._max_comparisons:
                self._filters.clear()
            found = self._filters[demand] = NodeFilter(demand, self._gates)
        return found
