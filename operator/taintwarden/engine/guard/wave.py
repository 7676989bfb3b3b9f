"""The pods of one policy that have to leave: who of them counts."""

from collections import Counter
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from taintwarden.engine.deadlines import Entries, Entry
from taintwarden.engine.model import WallTime
from taintwarden.engine.tally import Tally


class BudgetKey(NamedTuple):
    """The PodDisruptionBudgets of a namespace that select a pod, and whether it is Ready: others may be evicted."""

    namespace: str
    names: tuple[str, ...]
    ready: bool = True


GroupKey = tuple[str, BudgetKey | None]
"""Namespace and budgets."""


class Due(msgspec.Struct, frozen=True, gc=False):
    """A pod that has to leave: when, from where, and what budgets it has. None: none, or they do not matter."""

    uid: str
    at: WallTime
    namespace: str
    node: str
    budget: BudgetKey | None = None


class Wave:
    """Counts the pods that are due within the window, as far as their budgets allow them, except those released.

    Pods are counted as they come and go, so a check costs what has changed since the last one.

    Args:
        recounted: called with a group and by how much more of it counts than before.

    """

    def __init__(self, recounted: Callable[[GroupKey, int], None]) -> None:
        self._recounted = recounted
        self.allowed: Callable[[BudgetKey], int] = lambda _: 0
        """How many pods these budgets allow now."""
        self.near: dict[str, Due] = {}
        """The pods due within the window, by UID."""
        self.nodes: Tally[str] = Tally()
        """How many of them each node has."""
        self._later: dict[str, Due] = {}
        """Those due later."""
        self._far = Entries()
        """The same in order."""
        self.groups: Tally[GroupKey] = Tally()
        """How many pods near there are that no person released."""
        self.counting: Tally[GroupKey] = Tally()
        """How many of them count: as many as their budgets allow."""
        self.by_namespace: Tally[str] = Tally()
        """The same by namespace."""
        self.total = 0
        self.released: dict[str, None] = {}
        """UIDs of pods that a person released and that still have to leave. A restart forgets them."""

    def expect(self, due: Due, until: WallTime) -> None:
        """A pod will have to leave, unless something changes. The window ends ``until`` then."""
        is_near = due.at <= until
        if (self.near if is_near else self._later).get(due.uid) == due:
            return
        self.remove(due.uid)
        if is_near:
            self._come_near(due)
        else:
            self._later[due.uid] = due
            self._far.add(Entry(due.at, (), due.uid))

    def ignore_budget(self, uid: str) -> None:
        """A pod is called: it counts, whatever its budgets allow."""
        due = self.near.get(uid)
        if due is not None and due.budget is not None:
            self.remove(uid)
            self._come_near(replace(due, budget=None))

    def forget(self, uid: str) -> None:
        """A pod no longer has to leave, or is gone."""
        self.remove(uid)
        self.released.pop(uid, None)

    def remove(self, uid: str) -> None:
        """Count a pod no longer."""
        due = self.near.pop(uid, None)
        if due is None:
            if (due := self._later.pop(uid, None)) is not None:
                self._far.remove(Entry(due.at, (), uid))
            return
        self.nodes.take(due.node)
        if uid not in self.released:
            self._group(due, -1)

    def _come_near(self, due: Due) -> None:
        self.near[due.uid] = due
        self.nodes[due.node] += 1
        if due.uid not in self.released:
            self._group(due, 1)

    def _group(self, due: Due, by: int) -> None:
        key = due.namespace, due.budget
        self.groups.change(key, by)
        self.recount(key)

    def recount(self, key: GroupKey) -> None:
        """The pods of a group changed, or what their budgets allow."""
        namespace, budget = key
        pods = self.groups[key]
        counts = pods if budget is None else min(pods, max(0, self.allowed(budget)))
        more = counts - self.counting[key]
        if more:
            self.counting.change(key, more)
            self.by_namespace.change(namespace, more)
            self.total += more
        self._recounted(key, more)

    def let_time_pass(self, until: WallTime, most: int) -> None:
        """The window ends ``until`` then: at most ``most`` pods come near."""
        for _ in range(most):
            head = self._far.head()
            if head is None or head.at > until:
                return
            self._far.remove(head)
            self._come_near(self._later.pop(head.key))

    def next_at(self) -> float | None:
        """When the first is due of those that are not near."""
        head = self._far.head()
        return None if head is None else head.at

    def forget_some(self, most: int) -> bool:
        """Forget up to ``most`` pods, since the guard is gone. Returns True when none remain."""
        for uid in list(islice(self.near or self._later, most)):
            self.remove(uid)
        return not (self.near or self._later)

    # -- what a person releases -----------------------------------------------------------------------------------

    def held(self, namespace: str, *, also_blocked: bool) -> list[str]:
        """UIDs of the pods that count, of a namespace or (empty) all; with ``also_blocked`` those that do not, too."""
        found, left = [], Counter(self.counting)
        for due in self.near.values():
            if due.uid not in self.released and namespace in ("", due.namespace):
                left[due.namespace, due.budget] -= 1
                if also_blocked or left[due.namespace, due.budget] >= 0:
                    found.append(due.uid)
        return found

    def release(self, uid: str) -> None:
        """A person released a pod: it counts no more."""
        due = self.near.get(uid)
        if due is not None:
            self.remove(uid)
            self.released[uid] = None
            self._come_near(due)

    def release_none(self) -> None:
        """Another process leads than the one that released pods: they count again."""
        released, self.released = self.released, {}
        for due in (self.near[uid] for uid in released if uid in self.near):
            self._group(due, 1)
