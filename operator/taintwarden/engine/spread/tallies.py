"""How many of the pods that a spread constraint selects are in each domain, updated as pods are added and removed."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Generic, TypeVar

from taintwarden.engine.model import SpreadConstraint

Thing = TypeVar("Thing", bound=Hashable)


class Changes(Generic[Thing]):
    """Changed things, each once, the latest last: readers fetch what is new to them and need no registration.

    >>> changes = Changes()
    >>> changes.note("a"); changes.note("b"); seen = changes.number
    >>> changes.note("a"); list(changes.since(seen))
    ['a']
    """

    __slots__ = ("_at", "number")

    def __init__(self) -> None:
        self._at: dict[Thing, int] = {}
        self.number = 0
        """The number of changes."""

    def note(self, thing: Thing) -> None:
        """``thing`` changed, perhaps again."""
        self.number += 1
        self._at.pop(thing, None)
        self._at[thing] = self.number

    def since(self, number: int) -> Iterator[Thing]:
        """The things that changed after the change ``number``, the latest first."""
        if number < self.number:
            for thing, at in reversed(self._at.items()):
                if at <= number:
                    return
                yield thing


class DomainTally:
    """The pods that one constraint counts, by domain: by the value of its topology key on the nodes.

    A node without the label is in no domain.
    """

    __slots__ = ("__weakref__", "_constraint", "_counts", "_domains", "_labels_of", "_nodes", "changed", "moved")

    def __init__(self, constraint: SpreadConstraint, labels_of: Callable[[str], Mapping[str, str]]) -> None:
        self._constraint = constraint
        self._labels_of = labels_of
        self._nodes: dict[str, int] = {}
        self._domains: dict[str, str | None] = {}
        """Node -> domain, as counted: when labels change, the pods are subtracted from this domain."""
        self._counts: dict[str, int] = {}
        self.changed: Changes[str] = Changes()
        """Domains whose count changed."""
        self.moved: Changes[str] = Changes()
        """Nodes whose domain changed."""

    @property
    def domains(self) -> int:
        """How many domains have had pods."""
        return len(self._counts)

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether pods with these labels are counted."""
        return self._constraint.selector.selects(labels)

    def count(self, domain: str | None) -> int:
        """The number of pods in a domain; 0 for None, which is no domain."""
        return 0 if domain is None else self._counts.get(domain, 0)

    def domain_of(self, node: str) -> str | None:
        """The domain of a node."""
        if node not in self._domains:
            self._domains[node] = self._labels_of(node).get(self._constraint.topology_key)
        return self._domains[node]

    def change(self, node: str, by: int) -> None:
        """Add ``by`` pods on a node; negative: remove them."""
        pods = self._nodes.get(node, 0) + by
        if pods:
            self._nodes[node] = pods
        else:
            self._nodes.pop(node, None)
        self._change_domain(self.domain_of(node), by)

    def relabel(self, node: str) -> None:
        """The node's labels changed, and with them perhaps its domain."""
        if node not in self._domains:
            return
        before = self._domains.pop(node)
        after = self.domain_of(node)
        if before != after:
            pods = self._nodes.get(node, 0)
            self._change_domain(before, -pods)
            self._change_domain(after, pods)
            self.moved.note(node)

    def _change_domain(self, domain: str | None, by: int) -> None:
        if domain is not None and by:
            self._counts[domain] = self._counts.get(domain, 0) + by
            self.changed.note(domain)
