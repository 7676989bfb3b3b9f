"""All running pods, counted by class and node, so that a constraint's domains can be counted when needed."""

from collections.abc import Callable, Mapping
from weakref import ReferenceType, WeakValueDictionary, ref

from taintwarden.engine.model import Pod, PodClass, SpreadConstraint
from taintwarden.engine.spread.candidates import Group
from taintwarden.engine.spread.tallies import DomainTally


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
