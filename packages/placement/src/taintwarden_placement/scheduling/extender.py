"""The scheduler extender: which nodes a pod may use, how well each suits it, and where preemption would help it.

The protocol is that of ``k8s.io/kube-scheduler/extender/v1``, with ``nodeCacheCapable: true``: schedulers send only
the names of nodes, which the extender watches itself.
"""

from collections import Counter
from collections.abc import Callable, Container, Sequence
from typing import NamedTuple

import msgspec

from taintwarden_placement.scheduling.demands import Demands, UnboundPod
from taintwarden_placement.scheduling.feasibility import Demand, NodeFilter, Preferences, RefusalCause
from taintwarden_placement.scheduling.node_changes import NodeChanges
from taintwarden_placement.scheduling.node_filters import NodeFacts, NodeFilters

MAX_SCORE = 10
"""Highest score of a node, ``MaxExtenderPriority``."""
TAINTS_WEIGHT, AFFINITY_WEIGHT = 3, 2
"""The default weights of kube-scheduler's plugins TaintToleration and NodeAffinity."""
UNKNOWN = "node-unknown"
REASONS = (*(cause.value for cause in RefusalCause), UNKNOWN)
"""Reasons of refusals as metrics count them."""
WITHOUT_VALUES = {
    RefusalCause.TAINT.value: "a taint is not tolerated",
    RefusalCause.AFFINITY.value: "the node affinity does not match",
    RefusalCause.INVALID.value: "the node affinity cannot be read",
    UNKNOWN: "taintwarden does not know the node yet",
}
"""Text for each reason, for callers that are not authenticated. It contains no taint, label or threshold."""


class ExtenderArgs(msgspec.Struct, rename="pascal"):
    """``ExtenderArgs``."""

    pod: UnboundPod
    node_names: list[str]


class FilterResult(msgspec.Struct, rename="pascal", omit_defaults=True):
    """``ExtenderFilterResult``. Preemption changes no taint or label, so all failed nodes are unresolvable."""

    node_names: list[str] | None
    failed_and_unresolvable_nodes: dict[str, str] = {}


class HostPriority(msgspec.Struct, rename="pascal"):
    """Score of a node: 0 to 10, where 10 is best."""

    host: str
    score: int


class PreemptionArgs(msgspec.Struct, rename="pascal"):
    """``ExtenderPreemptionArgs``: the nodes on which pods would be preempted. These pods are not decoded."""

    pod: UnboundPod
    node_name_to_meta_victims: dict[str, msgspec.Raw]


class PreemptionResult(msgspec.Struct, rename="pascal"):
    """``ExtenderPreemptionResult``."""

    node_name_to_meta_victims: dict[str, msgspec.Raw]


class _Filtered(NamedTuple):
    node_names: list[str]
    refused: dict[str, tuple[str, str]]
    """Name of a node -> reason as metrics count it, and as text for users."""

    @property
    def is_settled(self) -> bool:
        """True if some node suits the pod, and all nodes are known."""
        return bool(self.node_names) and all(reason != UNKNOWN for reason, _ in self.refused.values())


class SchedulerExtender:
    """The answers for the three verbs of the protocol.

    Args:
        nodes: returns the facts about a node by name; None if the node is not known.
        demands: reads the demands of pods.
        filters: compares nodes with demands.
        node_changes: waits for changes of nodes.
        count_refusals: counts refused nodes by reason.
        derived: returns the keys of taints that policies derive. Schedulers do not know these taints.
        shows_values: True if answers may quote taints, labels and tolerations, since callers are authenticated.

    """

    def __init__(
        self,
        nodes: Callable[[str], NodeFacts | None],
        demands: Demands,
        filters: NodeFilters,
        node_changes: NodeChanges,
        count_refusals: Callable[[str, int], None],
        *,
        derived: Callable[[], Container[str]] = frozenset,
        shows_values: bool,
    ) -> None:
        self._nodes = nodes
        self._demands = demands
        self._filters = filters
        self._node_changes = node_changes
        self._count_refusals = count_refusals
        self._derived = derived
        self._shows_values = shows_values

    async def filter(self, args: ExtenderArgs) -> FilterResult:
        """Return the nodes that suit the pod, and a reason for each other node.

        If no node suits it, or one is not known yet, the answer waits a moment for a change of a node.
        """
        demand = self._demands.of(args.pod)
        if self._is_known_to_scheduler(demand):
            return FilterResult(args.node_names)
        found = self._filtered(demand, args.node_names)
        if args.node_names and not found.is_settled and not demand.is_invalid:
            await self._node_changes.wait_until(lambda: self._filtered(demand, args.node_names).is_settled)
            found = self._filtered(demand, args.node_names)
        for reason, number in Counter(reason for reason, _ in found.refused.values()).items():
            self._count_refusals(reason, number)
        shown = {
            name: text if self._shows_values else WITHOUT_VALUES[reason]
            for name, (reason, text) in found.refused.items()
        }
        return FilterResult(found.node_names, shown)

    def prioritize(self, args: ExtenderArgs) -> list[HostPriority]:
        """Return the score of each node."""
        demand = self._demands.of(args.pod)
        node_filter = self._filters.for_demand(demand)
        is_known = self._is_known_to_scheduler(demand)
        found = [] if is_known else [self._preferences(node_filter, name) for name in args.node_names]
        scores = node_scores(found) or [0] * len(args.node_names)
        return [HostPriority(name, score) for name, score in zip(args.node_names, scores, strict=True)]

    def preempt(self, args: PreemptionArgs) -> PreemptionResult:
        """Return the nodes that suit the pod. On other nodes preemption would not help it."""
        demand = self._demands.of(args.pod)
        victims = args.node_name_to_meta_victims
        if not self._is_known_to_scheduler(demand):
            node_filter = self._filters.for_demand(demand)
            victims = {name: those for name, those in victims.items() if self._refusal(node_filter, name) is None}
        return PreemptionResult(victims)

    def _is_known_to_scheduler(self, demand: Demand) -> bool:
        """True if the scheduler evaluates all of the demand itself, so that the extender has nothing to add."""
        if not demand.is_native:
            return False
        derived = self._derived()
        return not any(toleration.key in derived for toleration in demand.tolerations.native)

    def _filtered(self, demand: Demand, names: Sequence[str]) -> "_Filtered":
        node_filter = self._filters.for_demand(demand)
        refused = {name: found for name in names if (found := self._refusal(node_filter, name)) is not None}
        return _Filtered([name for name in names if name not in refused], refused)

    def _refusal(self, node_filter: NodeFilter, name: str) -> tuple[str, str] | None:
        node = self._nodes(name)
        if node is None:
            return UNKNOWN, WITHOUT_VALUES[UNKNOWN]
        found = node_filter.refusal(node.taints, node.labels)
        return None if found is None else (found.cause.value, found.reason)

    def _preferences(self, node_filter: NodeFilter, name: str) -> Preferences:
        node = self._nodes(name)
        return Preferences(0, 0) if node is None else node_filter.preferences(node.taints, node.labels)


def node_scores(nodes: Sequence[Preferences]) -> list[int]:
    """Return the score of each node, 0 to 10, normalized and weighted as kube-scheduler's own plugins do."""
    most_taints = max((preferences.taints for preferences in nodes), default=0)
    most_weight = max((preferences.weight for preferences in nodes), default=0)
    whole = (TAINTS_WEIGHT if most_taints else 0) + (AFFINITY_WEIGHT if most_weight else 0)
    if not whole:
        return [0] * len(nodes)
    return [
        round(
            MAX_SCORE
            * (
                (TAINTS_WEIGHT * (1 - preferences.taints / most_taints) if most_taints else 0)
                + (AFFINITY_WEIGHT * preferences.weight / most_weight if most_weight else 0)
            )
            / whole
        )
        for preferences in nodes
    ]
