"""The keys by which pods were once placed: their labels stay on nodes after that has ended.

A pod that runs keeps the node affinity with which it was created, and a kubelet that restarts checks it again. So the
labels that this affinity names must not go with the policy. What was placed is read from the nodes themselves: a key
whose labels nodes carry has been placed.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from taintwarden.engine.placement.labels import REMOVED, Domain, mirrored
from taintwarden.engine.tally import Tally

MAX_SPREAD = 64
"""Keys that are written to nodes which do not carry them: a kubelet may write any number of labels on its own node."""
ENOUGH = 2
"""Nodes that have to carry a key before it is written to others, unless they are half of all: one may be mistaken."""


class Kept(NamedTuple):
    """A key that labels of placement are about: of a taint, or of another label."""

    key: str
    of_label: bool = False


class Carried(NamedTuple):
    """The keys that labels of one node are about."""

    kept: frozenset[Kept]
    removed: frozenset[Kept]
    """Those whose labels are being removed from it."""


class Retained:
    """Counts which keys the labels of nodes are about. A key whose labels are being removed spreads no more."""

    def __init__(self) -> None:
        self._nodes: dict[str, Carried] = {}
        self._kept: Tally[Kept] = Tally()
        self._removed: Tally[Kept] = Tally()
        self.spread: frozenset[Kept] = frozenset()
        """Those that belong on every node."""

    def put(self, node: str, labels: Mapping[str, str]) -> bool:
        """A node has these labels. Returns whether other nodes may need other labels now."""
        carried, known = carried_by(labels), self._nodes.get(node)
        if carried == known:
            return False
        self._nodes[node] = carried
        return self._count(known, carried)

    def drop(self, node: str) -> bool:
        """A node is gone. Returns whether others may need other labels now."""
        known = self._nodes.pop(node, None)
        return known is not None and self._count(known, None)

    def _count(self, before: Carried | None, after: Carried | None) -> bool:
        if after is not None:
            self._kept.update(after.kept)
            self._removed.update(after.removed)
        if before is not None:
            self._kept.take(*before.kept)
            self._removed.take(*before.removed)
        spread = frozenset(self._spread())
        changed, self.spread = spread != self.spread, spread
        return changed

    def _spread(self) -> Iterator[Kept]:
        enough = [kept for kept, nodes in self._kept.items() if self._is_enough(nodes)]
        found = [kept for kept in enough if not self._is_enough(self._removed[kept])]
        found.sort(key=lambda kept: (-self._kept[kept], kept))
        yield from found[:MAX_SPREAD]

    def _is_enough(self, nodes: int) -> bool:
        return nodes >= ENOUGH or 0 < len(self._nodes) <= 2 * nodes


def keys_of(labels: Iterable[str]) -> list[Kept]:
    """The keys that labels are about, each once. Labels that are none of ours are about no key."""
    abouts = (mirrored(label) for label in labels)
    return list(dict.fromkeys(Kept(one.key, one.of_label) for one in abouts if one is not None))


def carried_by(labels: Mapping[str, str]) -> Carried:
    """The keys that labels of a node are about."""
    found, removed = set[Kept](), set[Kept]()
    for label, value in labels.items():
        if (about := mirrored(label)) is None:
            continue
        kept = Kept(about.key, about.of_label)
        found.add(kept)
        if value == REMOVED and about.domain in (Domain.EFFECT, Domain.LABEL_VERSION):
            removed.add(kept)
    return Carried(frozenset(found - removed), frozenset(removed))
