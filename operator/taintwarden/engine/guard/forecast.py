"""Future evictions, counted by slots of a twentieth of the window, as if they happened at the beginning of their slot.

A pod whose own namespace causes its eviction counts for that namespace only: the pod came to its node, or got other
tolerations, after the value, the taint and the policy that evict it were in force. Otherwise one tenant could stop the
evictions of all others. Everything else (values, taints, policies, modes, graces) counts for all.
"""

from collections import Counter
from collections.abc import Iterable

import msgspec

from taintwarden.engine.deadlines import DeadlineQueue
from taintwarden.engine.guard.spent import FOR_ALL, SLOTS, Share
from taintwarden.engine.model import Instant, WallTime

ROUNDING_SECONDS = 1.0
"""Times in objects have whole seconds, and are taken as the end of that second."""


class Due(msgspec.Struct, frozen=True, gc=False):
    """A pod that has to leave: when, since when it is on its node, and since when the taint evicts it.

    ``is_own``: its own namespace causes that.
    """

    uid: str
    at: WallTime
    bound_at: float
    since: float
    namespace: str = ""
    node: str = ""
    is_own: bool = False

    @property
    def share(self) -> Share:
        """For whom it counts."""
        return (self.namespace, self.node) if self.is_own else FOR_ALL


class Forecast:
    """The pods that have to leave. Those due within one window are *near* and count, unless a person released them.

    Args:
        window_seconds: the length of the window.

    """

    def __init__(self, window_seconds: float) -> None:
        self.near: dict[str, Due] = {}
        self.released: dict[str, None] = {}
        """UIDs of pods that a person released and that still have to leave."""
        self.causes: dict[str, None] = {}
        """The near pods that count for all, and were on their node when the guard tripped."""
        self.by_namespace: Counter[str] = Counter()
        """Of the near pods that count for all."""
        self.by_node: Counter[str] = Counter()
        self.peaks: dict[str, Counter[str]] = {}
        """By ``namespace`` and ``node``: the most pods that counted for each of them since the guard tripped, without
        those that were evicted.
        """
        self.grew = self.grew_for_all = False
        """More pods count than when the guard looked last; and for all, more than ever since it tripped."""
        self._window_seconds = window_seconds
        self._tripped_at: WallTime | None = None
        self._far: DeadlineQueue[WallTime] = DeadlineQueue()
        self._later: dict[str, Due] = {}
        """The pods of ``_far``."""
        self._for_all: Counter[int] = Counter()
        """Slot -> the number of near pods that are due in it and count for all."""
        self._own: dict[str, dict[str, Counter[int]]] = {}
        """Namespace -> node -> the same of those that count for the namespace only."""

    # -- pods ---------------------------------------------------------------------------------------------------

    def put(self, due: Due, now: Instant) -> None:
        """A pod will have to leave, unless something changes."""
        self.remove(due.uid)
        if due.at > now.wall + self._window_seconds:
            self._later[due.uid] = due
            self._far.schedule(due.uid, due.at)
        else:
            self._come_near(due)

    def remove(self, uid: str) -> None:
        """A pod no longer has to leave, or is evicted now."""
        due = self.near.pop(uid, None)
        if due is not None:
            self._discount(due)
        elif self._later.pop(uid, None) is not None:
            self._far.cancel(uid)

    def evict(self, uid: str) -> None:
        """A pod is evicted now: it counts among the past evictions from now on."""
        due = self.near.get(uid)
        self.remove(uid)
        if due is not None and self._tripped_at is not None and not due.is_own and uid not in self.released:
            self.peaks["namespace"][due.namespace] -= 1
            self.peaks["node"][due.node] -= 1

    def release(self, uid: str) -> None:
        """A person released a pod: it does not count any more."""
        due = self.near.get(uid)
        if due is not None:
            self._discount(due)
        self.released[uid] = None

    def known(self) -> list[Due]:
        """All pods, near or not."""
        return [*self.near.values(), *self._later.values()]

    def let_time_pass(self, now: Instant) -> None:
        """Pods come near."""
        while (head := self._far.head()) is not None and head.at <= now.wall + self._window_seconds:
            self._far.cancel(head.key)
            self._come_near(self._later.pop(head.key))

    def next_near_at(self) -> WallTime | None:
        """When the next pod comes near."""
        at = self._far.next_at()
        return None if at is None else WallTime(at - self._window_seconds)

    def resize(self, window_seconds: float, now: Instant) -> None:
        """The window has another length."""
        known = self.known()
        for due in known:
            self.remove(due.uid)
        self._window_seconds = window_seconds
        for due in known:
            self.put(due, now)

    def _come_near(self, due: Due) -> None:
        self.near[due.uid] = due
        if due.uid in self.released:
            return
        self.grew = True
        if due.is_own:
            self._own.setdefault(due.namespace, {}).setdefault(due.node, Counter())[self._slot_of(due)] += 1
        else:
            self._for_all[self._slot_of(due)] += 1
            self.by_namespace[due.namespace] += 1
            self.by_node[due.node] += 1
            self._mark_cause(due)
            self._note_peak("namespace", due.namespace, self.by_namespace)
            self._note_peak("node", due.node, self.by_node)

    def _discount(self, due: Due) -> None:
        if due.uid in self.released:
            return
        self.causes.pop(due.uid, None)
        if due.is_own:
            self._discount_own(due)
            return
        _take(self._for_all, self._slot_of(due))
        _take(self.by_namespace, due.namespace)
        _take(self.by_node, due.node)

    def _discount_own(self, due: Due) -> None:
        nodes = self._own[due.namespace]
        _take(nodes[due.node], self._slot_of(due))
        if not nodes[due.node]:
            del nodes[due.node]
        if not nodes:
            del self._own[due.namespace]

    # -- counts -------------------------------------------------------------------------------------------------

    @property
    def total(self) -> int:
        """How many near pods count for all."""
        return self._for_all.total()

    def namespaces(self) -> list[str]:
        """The namespaces with pods that count for them only."""
        return list(self._own)

    def own(self, namespace: str) -> Counter[str]:
        """By node, how many near pods count for this namespace only."""
        return Counter({node: own.total() for node, own in self._own.get(namespace, {}).items()})

    def begins(self, namespace: str = "", besides: str = "") -> list[tuple[WallTime, int]]:
        """The beginning of each slot, and how many pods due in it count for all, and for this namespace; by time.

        ``besides``: those of the namespace on this node do not count.
        """
        counts = self._for_all.copy()
        for node, own in self._own.get(namespace, {}).items():
            if node != besides:
                counts.update(own)
        return [(WallTime(slot * self._length), counts[slot]) for slot in sorted(counts)]

    @property
    def _length(self) -> float:
        return self._window_seconds / SLOTS

    def _slot_of(self, due: Due) -> int:
        return int(due.at // self._length)

    # -- causes -------------------------------------------------------------------------------------------------

    def trip(self, at: WallTime | None, *, is_now: bool = False) -> None:
        """The guard tripped ``at``; None: it is armed. If that is now, all that count are the cause."""
        self._tripped_at = at
        self.peaks = {"namespace": self.by_namespace.copy(), "node": self.by_node.copy()}
        counting = self.near.values() if is_now else ()
        self.causes = {due.uid: None for due in counting if due.uid not in self.released and not due.is_own}

    def _note_peak(self, kind: str, name: str, counts: Counter[str]) -> None:
        """Only more pods than ever are a wave that grows: a value that jitters repeats the same number."""
        if self._tripped_at is not None and counts[name] > self.peaks[kind][name]:
            self.peaks[kind][name] = counts[name]
            self.grew_for_all = True

    def _mark_cause(self, due: Due) -> None:
        if self._tripped_at is not None and due.bound_at <= self._tripped_at + ROUNDING_SECONDS:
            self.causes[due.uid] = None

    def held(self) -> Iterable[str]:
        """UIDs of the near pods that were not released."""
        return [uid for uid in self.near if uid not in self.released]


def _take(counts: Counter, key: object) -> None:  # type: ignore[type-arg] # by slot, and by name
    counts[key] -= 1
    if not counts[key]:
        del counts[key]
