"""How many of the pods that a spread constraint selects are in each domain, updated as pods are added and removed."""

from collections.abc import Callable, Mapping

from taintwarden.engine.model import SpreadConstraint


class DomainTally:
    """The pods that one constraint counts, by domain: by the value of its topology key on the nodes.

    A node without the label is in no domain.
    """

    __slots__ = ("__weakref__", "_constraint", "_counts", "_domains", "_labels_of", "_nodes", "_weights", "changes")

    def __init__(self, constraint: SpreadConstraint, labels_of: Callable[[str], Mapping[str, str]]) -> None:
        self._constraint = constraint
        self._labels_of = labels_of
        self._nodes: dict[str, int] = {}
        self._domains: dict[str, str | None] = {}
        """Node -> domain, as counted: when labels change, the pods are subtracted from this domain."""
        self._counts: dict[str, int] = {}
        self._weights: dict[str | None, int] = {}
        """The cubes of the same; None, which is no domain, has none."""
        self.changes = 0
        """How often a weight has changed."""

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether pods with these labels are counted."""
        return self._constraint.selector.selects(labels)

    def weight(self, node: str) -> int:
        """The cubed number of pods in the domain of a node."""
        return self._weights.get(self._domain_of(node), 0)

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
            self._counts[domain] = pods = self._counts.get(domain, 0) + by
            self._weights[domain] = pods**3
            self.changes += 1
