"""How many of the pods that a spread constraint selects stand in each domain, kept up to date as pods come and go."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Generic, TypeVar

from taintwarden.engine.model import SpreadConstraint

Thing = TypeVar("Thing", bound=Hashable)


class Changes(Generic[Thing]):
    """What changed, each thing once, the latest last: readers ask what they have not seen, and nobody knows of them.

    >>> changes = Changes()
    >>> changes.note("a"); changes.note("b"); seen = changes.number
    >>> changes.note("a"); list(changes.since(seen))
    ['a']
    """

    __slots__ = ("_at", "number")

    def __init__(self) -> None:
        self._at: dict[Thing, int] = {}
        self.number = 0
        """How many changes there were."""

    def note(self, thing: Thing) -> None:
        """``thing`` changed, perhaps again."""
        self.number += 1
        self._at.pop(thing, None)
        self._at[thing] = self.number

    def since(self, number: int) -> Iterator[Thing]:
        """What changed since there were ``number`` changes, the latest first."""
        if number < self.number:
            for thing, at in reversed(self._at.items()):
                if at <= number:
                    return
                yield thing


class Tally:
    """The pods that one constraint counts, by domain: by what the nodes' label of its topology key says.

    A node without the label is in no domain.
    """

    __slots__ = ("__weakref__", "_constraint", "_counts", "_domains", "_labels_of", "_nodes", "changed", "moved")

    def __init__(self, constraint: SpreadConstraint, labels_of: Callable[[str], Mapping[str, str]]) -> None:
        self._constraint = constraint
        self._labels_of = labels_of
        self._nodes: dict[str, int] = {}
        self._domains: dict[str, str | None] = {}
        """Of the nodes asked for: when labels change, the pods have to leave the domain where they were counted."""
        self._counts: dict[str, int] = {}
        self.changed: Changes[str] = Changes()
        """Domains with another count."""
        self.moved: Changes[str] = Changes()
        """Nodes in another domain."""

    @property
    def domains(self) -> int:
        """How many domains have had pods."""
        return len(self._counts)

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether pods with these labels are counted."""
        return self._constraint.selector.selects(labels)

    def count(self, domain: str | None) -> int:
        """How many pods stand in a domain; 0 for None, which is no domain."""
        return 0 if domain is None else self._counts.get(domain, 0)

    def domain_of(self, node: str) -> str | None:
        """The domain of a node."""
        if node not in self._domains:
            self._domains[node] = self._labels_of(node).get(self._constraint.topology_key)
        return self._domains[node]

    def change(self, node: str, by: int) -> None:
        """So many pods more stand on a node."""
        pods = self._nodes.get(node, 0) + by
        if pods:
            self._nodes[node] = pods
        else:
            self._nodes.pop(node, None)
        self._change_domain(self.domain_of(node), by)

    def relabel(self, node: str) -> None:
        """The node's labels may say another domain now."""
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
