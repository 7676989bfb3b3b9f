"""Which pod of a group is evicted first: the candidate from the fullest domains.

The first is the one whose domains, over all constraints that the pods declare, have the greatest sum of cubed counts.
That lowers the sum of fourth powers most, which the fullest domains dominate. In generated cases it leaves less skew
than the sum of counts, which lowers the sum of squares, and is within a percent of a trial of the skew of every
candidate.

Candidates of one node have equal sums, so a choice costs a comparison for each node with candidates after a count has
changed, and next to nothing otherwise.
"""

from bisect import insort
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush

from taintwarden.engine.model import Pod, PodClass
from taintwarden.engine.spread.tallies import DomainTally


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
