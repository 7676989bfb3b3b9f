"""Choice of the pod of a workload revision to evict next, so that the others are spread evenly.

The first pod is the one whose domains, over all constraints that the pods declare, have the greatest sum of cubed
counts. Its eviction lowers the sum of the fourth powers of all counts most, which the fullest domains dominate. In
generated cases, cubes leave less skew than plain counts, which lower the sum of squares, and at most a percent more
than a trial of every candidate.

Candidates of one node have equal sums, so a choice costs a comparison for each node with candidates after a count has
changed, and next to nothing otherwise.
"""

from bisect import insort
from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heappop, heappush
from weakref import ReferenceType, WeakValueDictionary, ref

from taintwarden.engine.model import Pod, PodClass, SpreadConstraint


class DomainTally:
    """Number of pods that one constraint counts in each domain: by the value of its topology key on the nodes.

    A node without the label is in no domain.
    """

    __slots__ = ("__weakref__", "_constraint", "_counts", "_domains", "_labels_of", "_nodes", "changes")

    def __init__(self, constraint: SpreadConstraint, labels_of: Callable[[str], Mapping[str, str]]) -> None:
        self._constraint = constraint
        self._labels_of = labels_of
        self._nodes: dict[str, int] = {}
        self._domains: dict[str, str | None] = {}
        """Node -> domain in which its pods are counted, from which they are subtracted when labels change."""
        self._counts: dict[str | None, int] = {}
        self.changes = 0
        """Number of changes of the counts."""

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Return True if pods with these labels are counted."""
        return self._constraint.selector.selects(labels)

    def weight(self, node: str) -> int:
        """Return the cubed number of pods in the domain of a node; 0 if it is in no domain."""
        return self._counts.get(self._domain_of(node), 0) ** 3

    def _domain_of(self, node: str) -> str | None:
        try:
            return self._domains[node]
        except KeyError:
            found = self._domains[node] = self._labels_of(node).get(self._constraint.topology_key)
            return found

    def change(self, node: str, by: int) -> None:
        """Add ``by`` pods on a node; a negative number removes pods."""
        pods = self._nodes.get(node, 0) + by
        self._change_domain(self._domain_of(node), by)
        if pods:
            self._nodes[node] = pods
        else:  # any number of nodes come and go, and a pod may name one that does not exist
            self._nodes.pop(node, None)
            self._forget_domain(node)

    def relabel(self, node: str) -> None:
        """Count the pods of a node, whose labels changed, in its new domain."""
        if node not in self._domains:
            return
        before = self._domains.pop(node)
        after = self._domain_of(node)
        if before != after:
            pods = self._nodes.get(node, 0)
            self._change_domain(before, -pods)
            self._change_domain(after, pods)
        if node not in self._nodes:
            self._forget_domain(node)

    def _forget_domain(self, node: str) -> None:
        """Drop the domain of a node without pods. It counts as a change, so that groups ask for its weight again."""
        del self._domains[node]
        self.changes += 1

    def _change_domain(self, domain: str | None, by: int) -> None:
        if domain is not None:
            self._counts[domain] = self._counts.get(domain, 0) + by
            self.changes += 1
            if not self._counts[domain]:
                del self._counts[domain]


class Group:
    """Candidates of one workload revision, which all have equal constraints.

    ``Spread.group`` creates groups.
    """

    def __init__(self, tallies_of: Callable[[PodClass], Iterable[DomainTally]]) -> None:
        self._tallies_of = tallies_of
        self._pods: dict[str, Pod] = {}
        self._nodes: dict[str, list[str]] = {}
        """Node -> UIDs of its candidates, in order."""
        self._tallies: tuple[DomainTally, ...] | None = None
        """Tallies of the constraints; None until a choice needs them."""
        self._seen = -1
        """Number of changes of the counts when the nodes were ordered."""
        self._order: list[tuple[int, str, str]] = []
        """Heap of the negated sum of a node, its lowest UID, and the node. Some entries may be outdated."""

    def __len__(self) -> int:
        return len(self._pods)

    def add(self, pod: Pod) -> None:
        """Add a candidate, which is not one yet."""
        self._pods[pod.uid] = pod
        insort(self._nodes.setdefault(pod.node, []), pod.uid)
        self._push(pod.node)

    def remove(self, pod: Pod) -> None:
        """Remove a candidate, given as it was added."""
        del self._pods[pod.uid]
        uids = self._nodes[pod.node]
        uids.remove(pod.uid)
        if not uids:
            del self._nodes[pod.node]

    def first(self) -> Pod:
        """Return the candidate whose eviction leaves the most even spread; of equal ones, the one with the lowest UID.

        The group must not be empty.
        """
        if len(self._pods) == 1:
            return next(iter(self._pods.values()))
        if self._tallies is None:
            self._tallies = tuple(self._tallies_of(next(iter(self._pods.values())).shared))
        changes = sum(tally.changes for tally in self._tallies)
        if changes != self._seen or len(self._order) > 2 * len(self._nodes):
            self._seen = changes
            self._order = list(map(self._entry, self._nodes))
            heapify(self._order)
        while True:
            _, uid, node = self._order[0]
            if self._nodes.get(node, [""])[0] == uid:
                return self._pods[uid]
            heappop(self._order)
            self._push(node)

    def _push(self, node: str) -> None:
        if self._tallies is not None and node in self._nodes:
            heappush(self._order, self._entry(node))

    def _entry(self, node: str) -> tuple[int, str, str]:
        return -sum([tally.weight(node) for tally in self._tallies or ()]), self._nodes[node][0], node


class _ClassCount:
    """Numbers of pods of one class by node, and references to the tallies that count them, which may be gone."""

    __slots__ = ("nodes", "tallies")

    def __init__(self, tallies: tuple[ReferenceType[DomainTally], ...]) -> None:
        self.nodes: dict[str, int] = {}
        self.tallies = tallies


class Spread:
    """Number of pods by node, without those that are being evicted.

    Pods are counted by class, so that a selector is evaluated once for each class. A tally of domains is created when
    the first group needs it, and exists as long as the groups that use it.

    Args:
        labels_of: returns the labels of a node by its name; empty if the node is unknown.

    """

    def __init__(self, labels_of: Callable[[str], Mapping[str, str]]) -> None:
        self._labels_of = labels_of
        self._leaving: dict[str, str] = {}
        """UID -> node of pods that are not counted, since they are being evicted."""
        self._classes: dict[str, dict[PodClass, _ClassCount]] = {}
        self._tallies: WeakValueDictionary[tuple[str, SpreadConstraint], DomainTally] = WeakValueDictionary()

    def pod_added(self, pod: Pod) -> None:
        """Count a pod that was not known."""
        self._change(pod, 1)

    def changed(self, before: Pod, pod: Pod) -> None:
        """Count a pod as one of its new class."""
        if pod.uid not in self._leaving:
            self._change(before, -1)
            self._change(pod, 1)

    def gone(self, pod: Pod) -> None:
        """Stop counting a known pod that is gone or terminating."""
        if self._leaving.get(pod.uid) == pod.node:
            del self._leaving[pod.uid]
        else:
            self._change(pod, -1)

    def leave(self, pod: Pod) -> None:
        """Stop counting a known pod that is being evicted, unless that was noted before."""
        if pod.uid not in self._leaving:
            self._leaving[pod.uid] = pod.node
            self._change(pod, -1)

    def stay(self, pod: Pod) -> None:
        """Count a known pod again if it is not being evicted any more."""
        if self._leaving.pop(pod.uid, None) is not None:
            self._change(pod, 1)

    def relabel(self, node: str) -> None:
        """Update the domains of a node that was added, changed or deleted, once ``labels_of`` has its new labels."""
        for tally in self._tallies.values():
            tally.relabel(node)

    def group(self) -> Group:
        """Return a new, empty set of candidates."""
        return Group(self._tallies_of)

    def _change(self, pod: Pod, by: int) -> None:
        pod_class, node = pod.shared, pod.node
        try:
            count = self._classes[pod_class.namespace][pod_class]
        except KeyError:
            count = self._add_class(pod_class)
        nodes = count.nodes
        pods = nodes.get(node, 0) + by
        if pods:
            nodes[node] = pods
        else:
            del nodes[node]
            if not nodes:
                self._drop_class(pod_class)
        for reference in count.tallies:
            tally = reference()
            if tally is not None:
                tally.change(node, by)

    def _add_class(self, pod_class: PodClass) -> _ClassCount:
        selecting = tuple(
            ref(tally)
            for (namespace, _), tally in self._tallies.items()
            if namespace == pod_class.namespace and tally.selects(pod_class.labels)
        )
        count = self._classes.setdefault(pod_class.namespace, {})[pod_class] = _ClassCount(selecting)
        return count

    def _drop_class(self, pod_class: PodClass) -> None:
        """Drop a class without pods, so that no reference keeps it in memory."""
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
        for pod_class, count in self._classes.get(namespace, {}).items():
            if tally.selects(pod_class.labels):
                alive = (reference for reference in count.tallies if reference() is not None)
                count.tallies = (*alive, ref(tally))
                for node, pods in count.nodes.items():
                    tally.change(node, pods)
        return tally
