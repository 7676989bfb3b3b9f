"""Which pod of a workload revision should be evicted next, so that the others are spread evenly.

The first is the one whose domains, over all constraints that the pods declare, have the greatest sum of cubed counts.
That lowers the sum of fourth powers most, which the fullest domains dominate. In generated cases it leaves less skew
than the sum of counts, which lowers the sum of squares, and is within a percent of a trial of the skew of every
candidate.

Candidates of one node have equal sums, so a choice costs a comparison for each node with candidates after a count has
changed, and next to nothing otherwise.
"""

from bisect import insort
from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heappop, heappush
from weakref import ReferenceType, WeakValueDictionary, ref

from taintwarden.engine.model import Pod, PodClass, SpreadConstraint


class DomainTally:
    """How many pods one constraint counts in each domain: by the value of its topology key on the nodes.

    A node without the label is in no domain.
    """

    __slots__ = ("__weakref__", "_constraint", "_counts", "_domains", "_labels_of", "_nodes", "changes")

    def __init__(self, constraint: SpreadConstraint, labels_of: Callable[[str], Mapping[str, str]]) -> None:
        self._constraint = constraint
        self._labels_of = labels_of
        self._nodes: dict[str, int] = {}
        self._domains: dict[str, str | None] = {}
        """Node -> domain, as counted: when labels change, the pods are subtracted from this domain."""
        self._counts: dict[str, int] = {}
        self.changes = 0
        """How often a count has changed."""

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether pods with these labels are counted."""
        return self._constraint.selector.selects(labels)

    def weight(self, node: str) -> int:
        """The cubed number of pods in the domain of a node."""
        domain = self._domain_of(node)
        return 0 if domain is None else self._counts.get(domain, 0) ** 3

    def _domain_of(self, node: str) -> str | None:
        try:
            return self._domains[node]
        except KeyError:
            found = self._domains[node] = self._labels_of(node).get(self._constraint.topology_key)
            return found

    def change(self, node: str, by: int) -> None:
        """Add ``by`` pods on a node; negative: remove them."""
        pods = self._nodes.get(node, 0) + by
        if pods:
            self._nodes[node] = pods
        else:
            self._nodes.pop(node, None)
        self._change_domain(self._domain_of(node), by)

    def relabel(self, node: str) -> None:
        """The node's labels changed, and with them perhaps its domain."""
        if node not in self._domains:
            return
        before = self._domains.pop(node)
        after = self._domain_of(node)
        if before != after:
            pods = self._nodes.get(node, 0)
            self._change_domain(before, -pods)
            self._change_domain(after, pods)
            self.changes += 1

    def _change_domain(self, domain: str | None, by: int) -> None:
        if domain is not None and by:
            self._counts[domain] = self._counts.get(domain, 0) + by
            self.changes += 1


class Group:
    """Candidates of one workload revision, which all have equal constraints.

    Made by ``Spread.group``.
    """

    def __init__(self, tallies_of: Callable[[PodClass], Iterable[DomainTally]]) -> None:
        self._tallies_of = tallies_of
        self._pods: dict[str, Pod] = {}
        self._nodes: dict[str, list[str]] = {}
        """Node -> the UIDs of the candidates there, in order."""
        self._tallies: tuple[DomainTally, ...] | None = None
        """None until they are needed, or while there is no candidate."""
        self._seen = -1
        """How often the counts had changed when the nodes were ordered."""
        self._order: list[tuple[int, str, str]] = []
        """Minus the sum of a node, the lowest UID there, and the node: a heap, with entries that hold no longer."""

    def __len__(self) -> int:
        return len(self._pods)

    def add(self, pod: Pod) -> None:
        """Add a candidate. It replaces the one with its UID."""
        known = self._pods.get(pod.uid)
        self._pods[pod.uid] = pod
        if known is not None and known.node == pod.node:
            return
        if known is not None:
            self._leave(known)
        insort(self._nodes.setdefault(pod.node, []), pod.uid)
        self._line_up(pod.node)

    def remove(self, pod: Pod) -> None:
        """Remove a pod that is no candidate any more; no error if it is not in the group."""
        known = self._pods.pop(pod.uid, None)
        if known is not None:
            self._leave(known)
        if not self._pods:
            self._tallies, self._order, self._seen = None, [], -1

    def _leave(self, pod: Pod) -> None:
        uids = self._nodes[pod.node]
        uids.remove(pod.uid)
        if not uids:
            del self._nodes[pod.node]

    def first(self) -> Pod:
        """The candidate whose eviction results in the most even spread; of equals the one with the lowest UID.

        Raises:
            LookupError: there is none.

        """
        if not self._pods:
            raise LookupError("no candidates")
        if len(self._pods) == 1:
            return next(iter(self._pods.values()))
        if self._tallies is None:
            self._tallies = tuple(self._tallies_of(next(iter(self._pods.values())).shared))
        changes = sum(tally.changes for tally in self._tallies)
        if changes != self._seen or len(self._order) > 2 * len(self._nodes):
            self._seen = changes
            self._order = list(map(self._place, self._nodes))
            heapify(self._order)
        while True:
            _, uid, node = self._order[0]
            if self._nodes.get(node, [""])[0] == uid:
                return self._pods[uid]
            heappop(self._order)
            self._line_up(node)

    def _line_up(self, node: str) -> None:
        if self._tallies is not None and node in self._nodes:
            heappush(self._order, self._place(node))

    def _place(self, node: str) -> tuple[int, str, str]:
        return -sum([tally.weight(node) for tally in self._tallies or ()]), self._nodes[node][0], node


class _Standing:
    """The numbers of pods of one class by node, and the tallies that count them (which may no longer exist)."""

    __slots__ = ("nodes", "tallies")

    def __init__(self, tallies: tuple[ReferenceType[DomainTally], ...]) -> None:
        self.nodes: dict[str, int] = {}
        self.tallies = tallies


class Spread:
    """All running pods but those that are being evicted, counted by node.

    Pods are counted by class, so that a selector is evaluated once for each class. A tally of domains is created when
    the first group needs it, and exists as long as the groups that use it.

    Args:
        labels_of: the labels of a node by its name; none if it is unknown.

    """

    def __init__(self, labels_of: Callable[[str], Mapping[str, str]]) -> None:
        self._labels_of = labels_of
        self._leaving: dict[str, str] = {}
        """UID -> node of pods that are not counted, since they are being evicted."""
        self._classes: dict[str, dict[PodClass, _Standing]] = {}
        self._tallies: WeakValueDictionary[tuple[str, SpreadConstraint], DomainTally] = WeakValueDictionary()

    def came(self, pod: Pod) -> None:
        """Count a pod that was not known."""
        self._change(pod, 1)

    def changed(self, before: Pod, pod: Pod) -> None:
        """Count a pod as one of its new class."""
        if pod.uid not in self._leaving:
            self._change(before, -1)
            self._change(pod, 1)

    def gone(self, pod: Pod) -> None:
        """A known pod is gone or terminates: count it no more."""
        if self._leaving.get(pod.uid) == pod.node:
            del self._leaving[pod.uid]
        else:
            self._change(pod, -1)

    def leave(self, pod: Pod) -> None:
        """A known pod is being evicted: count it no more, once."""
        if pod.uid not in self._leaving:
            self._leaving[pod.uid] = pod.node
            self._change(pod, -1)

    def stay(self, pod: Pod) -> None:
        """A known pod is not being evicted: count it again, if it left."""
        if self._leaving.pop(pod.uid, None) is not None:
            self._change(pod, 1)

    def relabel(self, node: str) -> None:
        """The node was added or deleted, or its labels changed: ``labels_of`` already returns the new labels."""
        for tally in self._tallies.values():
            tally.relabel(node)

    def group(self) -> Group:
        """A new, empty set of candidates."""
        return Group(self._tallies_of)

    def _change(self, pod: Pod, by: int) -> None:
        pod_class, node = pod.shared, pod.node
        try:
            standing = self._classes[pod_class.namespace][pod_class]
        except KeyError:
            standing = self._meet(pod_class)
        nodes = standing.nodes
        pods = nodes.get(node, 0) + by
        if pods:
            nodes[node] = pods
        else:
            del nodes[node]
            if not nodes:
                self._forget(pod_class)
        for reference in standing.tallies:
            tally = reference()
            if tally is not None:
                tally.change(node, by)

    def _meet(self, pod_class: PodClass) -> _Standing:
        selecting = tuple(
            ref(tally)
            for (namespace, _), tally in self._tallies.items()
            if namespace == pod_class.namespace and tally.selects(pod_class.labels)
        )
        standing = self._classes.setdefault(pod_class.namespace, {})[pod_class] = _Standing(selecting)
        return standing

    def _forget(self, pod_class: PodClass) -> None:
        """Classes are dropped with their last pod, so no reference may remain here."""
        classes = self._classes[pod_class.namespace]
        del classes[pod_class]
        if not classes:
            del self._classes[pod_class.namespace]

    def _tallies_of(self, pod_class: PodClass) -> tuple[DomainTally, ...]:
        return tuple(self._tally(pod_class.namespace, constraint) for constraint in pod_class.spread)

    def _tally(self, namespace: str, constraint: SpreadConstraint) -> DomainTally:
        found = self._tallies.get((namespace, constraint))
        if found is not None:
            return found
        tally = self._tallies[namespace, constraint] = DomainTally(constraint, self._labels_of)
        for pod_class, standing in self._classes.get(namespace, {}).items():
            if tally.selects(pod_class.labels):
                alive = (reference for reference in standing.tallies if reference() is not None)
                standing.tallies = (*alive, ref(tally))
                for node, pods in standing.nodes.items():
                    tally.change(node, pods)
        return tally
