"""The pods of one policy that have to leave, and the number of them that count."""

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
    """Names of the PodDisruptionBudgets that select a pod. Some allow evictions only of pods that are not Ready."""

    namespace: str
    names: tuple[str, ...]
    ready: bool = True


GroupKey = tuple[str, BudgetKey | None]
"""Namespace and budgets of pods that are counted together."""


class Due(msgspec.Struct, frozen=True, gc=False):
    """A pod that has to leave ``at`` a time. ``budget`` None: no budget has to allow its eviction."""

    uid: str
    at: WallTime
    namespace: str
    node: str
    budget: BudgetKey | None = None


class Wave:
    """Counts the pods that are due within the window, as far as their budgets allow them, except for released pods.

    Counts are updated with each pod, so a check is cheap whatever the number of pods.

    Args:
        recounted: called with a group, and the change of the number of its pods that count.

    """

    def __init__(self, recounted: Callable[[GroupKey, int], None]) -> None:
        self._recounted = recounted
        self.allowed: Callable[[BudgetKey], int] = lambda _: 0
        """Returns the number of pods that these budgets allow now."""
        self.near: dict[str, Due] = {}
        """The pods due within the window, by UID."""
        self.nodes: Tally[str] = Tally()
        """Number of pods due within the window, by node."""
        self._later: dict[str, Due] = {}
        """The pods due after the window, by UID."""
        self._far = Entries()
        """The pods due after the window, in the order of their deadlines."""
        self.groups: Tally[GroupKey] = Tally()
        """Number of pods due within the window that no person released, by group."""
        self.counting: Tally[GroupKey] = Tally()
        """Number of pods that count, by group: as many as their budgets allow."""
        self.by_namespace: Tally[str] = Tally()
        """Number of pods that count, by namespace."""
        self.total = 0
        self.released: dict[str, None] = {}
        """UIDs of pods that a person released and that still have to leave. A restart loses them."""

    def expect(self, due: Due, until: WallTime) -> None:
        """Count a pod that has to leave. ``until``: end of the window."""
        is_near = due.at <= until
        if (self.near if is_near else self._later).get(due.uid) == due:
            return
        self.remove(due.uid)
        if is_near:
            self._enter_window(due)
        else:
            self._later[due.uid] = due
            self._far.add(Entry(due.at, (), due.uid))

    def ignore_budget(self, uid: str) -> None:
        """Count a pod whose eviction is called, whatever its budgets allow."""
        due = self.near.get(uid)
        if due is not None and due.budget is not None:
            self.remove(uid)
            self._enter_window(replace(due, budget=None))

    def forget(self, uid: str) -> None:
        """Drop a pod that no longer has to leave, or is gone, and its release."""
        self.remove(uid)
        self.released.pop(uid, None)

    def remove(self, uid: str) -> None:
        """Stop counting a pod."""
        due = self.near.pop(uid, None)
        if due is None:
            if (due := self._later.pop(uid, None)) is not None:
                self._far.remove(Entry(due.at, (), uid))
            return
        self.nodes.take(due.node)
        if uid not in self.released:
            self._group(due, -1)

    def _enter_window(self, due: Due) -> None:
        self.near[due.uid] = due
        self.nodes[due.node] += 1
        if due.uid not in self.released:
            self._group(due, 1)

    def _group(self, due: Due, by: int) -> None:
        key = due.namespace, due.budget
        self.groups.change(key, by)
        self.recount(key)

    def recount(self, key: GroupKey) -> None:
        """Count a group again, since its pods changed, or the number that budgets allow."""
        namespace, budget = key
        pods = self.groups[key]
        counts = pods if budget is None else min(pods, max(0, self.allowed(budget)))
        more = counts - self.counting[key]
        if more:
            self.counting.change(key, more)
            self.by_namespace.change(namespace, more)
            self.total += more
        self._recounted(key, more)

    def process_time(self, until: WallTime, most: int) -> None:
        """Move up to ``most`` pods into the window, which ends at ``until``."""
        for _ in range(most):
            head = self._far.head()
            if head is None or head.at > until:
                return
            self._far.remove(head)
            self._enter_window(self._later.pop(head.key))

    def next_at(self) -> float | None:
        """Return the first deadline after the window; None if there is none."""
        head = self._far.head()
        return None if head is None else head.at

    def drop_some(self, most: int) -> bool:
        """Drop up to ``most`` pods, since the guard was removed. Returns True when none remain."""
        for uid in list(islice(self.near or self._later, most)):
            self.remove(uid)
        return not (self.near or self._later)

    # -- released pods --------------------------------------------------------------------------------------------

    def held(self, namespace: str, *, also_blocked: bool) -> list[str]:
        """Return UIDs of held pods of a namespace (empty: of all). ``also_blocked``: include pods that do not count."""
        found, left = [], Counter(self.counting)
        for due in self.near.values():
            if due.uid not in self.released and namespace in ("", due.namespace):
                left[due.namespace, due.budget] -= 1
                if also_blocked or left[due.namespace, due.budget] >= 0:
                    found.append(due.uid)
        return found

    def release(self, uid: str) -> None:
        """Stop counting a pod that a person released."""
        due = self.near.get(uid)
        if due is not None:
            self.remove(uid)
            self.released[uid] = None
            self._enter_window(due)

    def revoke_releases(self) -> None:
        """Count released pods again, since another process led after their release."""
        released, self.released = self.released, {}
        for due in (self.near[uid] for uid in released if uid in self.near):
            self._group(due, 1)
