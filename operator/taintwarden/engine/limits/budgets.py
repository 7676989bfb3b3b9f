"""PodDisruptionBudgets. Checking them saves requests; the API server decides on every eviction."""

import sys
from collections.abc import Callable
from itertools import islice, takewhile
from weakref import WeakKeyDictionary

from taintwarden.engine.guard import BudgetKey
from taintwarden.engine.limits.protocol import EvictionRequest, FreedKeys, Limit, Settlement
from taintwarden.engine.limits.refusal import BUDGET, Refusal, RefusalScope
from taintwarden.engine.model import Budget, Instant, MonotonicTime, Pod, PodClass, later, several_budgets

UNSEEN_SECONDS = 10.0
"""Seconds for which an accepted eviction counts while the budget's status lacks it. Some never appear there."""
MAX_BUDGETS = 3
"""Maximum budgets per pod that are read. The API server refuses a pod with two, and a tenant may create thousands."""


class _Account:
    """Evictions that count against one budget, and the time since which the budget allows none."""

    __slots__ = ("known_since", "refuses_since", "refuses_unready_since", "under_way", "unseen", "updates")

    def __init__(self, now: MonotonicTime) -> None:
        self.known_since = now
        """When the budget began to select these pods."""
        self.updates = 0
        self.under_way = 0
        self.unseen: list[MonotonicTime] = []
        """For each accepted eviction that the budget's status may not include yet, until when it counts."""
        self.refuses_since: MonotonicTime | None = None
        self.refuses_unready_since: MonotonicTime | None = None
        """When it began to refuse pods that are not Ready, which it may admit although it allows no disruption."""

    def left(self, budget: Budget) -> int:
        """Number of evictions that the budget allows, less those that its status does not include yet."""
        return (budget.allowed if budget.observed else 0) - self.under_way - len(self.unseen)


class Budgets(Limit):
    """The budgets of all namespaces, and the evictions that count against them.

    Args:
        freed: receives the key of a budget that may allow more than before.

    """

    def __init__(self, freed: FreedKeys) -> None:
        self._freed = freed
        self.changed: Callable[[BudgetKey], None] = lambda _: None
        """Called with a key as from :meth:`key_of` when its budget may allow another number of pods."""
        self._budgets: dict[str, dict[str, Budget]] = {}
        self._selecting: WeakKeyDictionary[PodClass, tuple[int, tuple[str, ...]]] = WeakKeyDictionary()
        """Class -> value of ``_changes`` when its budgets were computed, and their names."""
        self._selectors: dict[str, dict[str, int]] = {}
        """Namespace -> budget -> value of ``_changes`` when its selector last changed, the latest last."""
        self._changes = 0
        self._accounts: dict[tuple[str, str], _Account] = {}
        """Accounts by namespace and name."""
        self._asked: dict[str, tuple[_Account, tuple[str, str], int, bool]] = {}
        """UID -> account and key of its budget, ``updates`` when the call was made, and True if the pod is Ready."""

    def set_budget(self, budget: Budget, now: MonotonicTime) -> bool:
        """Store a budget that was added or updated. Returns True if its selector has changed."""
        budgets = self._budgets.setdefault(budget.namespace, {})
        before = budgets.get(budget.name)
        budgets[budget.name] = budget
        key = budget.namespace, budget.name
        account = self._accounts.get(key)
        if account is None:
            account = self._accounts[key] = _Account(now)
        account.updates += 1
        account.unseen = []
        allows = budget.observed and budget.allowed > 0
        account.refuses_since = _since(account.refuses_since, now, holds=not allows)
        refuses_unready = not (allows or budget.healthy_enough)
        account.refuses_unready_since = _since(account.refuses_unready_since, now, holds=refuses_unready)
        is_other = before is None or before.selector != budget.selector
        if is_other:
            account.known_since = now
            self._changes += 1
            selectors = self._selectors.setdefault(budget.namespace, {})
            selectors.pop(budget.name, None)
            selectors[budget.name] = self._changes
            self._freed.add(shared_key(budget.namespace))
        self._retry_budget(key)
        return is_other

    def drop_budget(self, namespace: str, name: str) -> None:
        """Drop a deleted budget."""
        budgets = self._budgets.get(namespace, {})
        if budgets.pop(name, None) is None:
            return
        del self._accounts[namespace, name]
        del self._selectors[namespace][name]
        if not budgets:
            del self._budgets[namespace], self._selectors[namespace]
        self._freed.add(shared_key(namespace))
        self._retry_budget((namespace, name))

    def refused(self, pod: Pod, now: MonotonicTime) -> None:
        """Note that the API server refused an eviction because of a budget, whatever the budget's status is."""
        for budget in self.of(pod.shared):
            account = self._accounts[budget.namespace, budget.name]
            if account.refuses_since is None:
                account.refuses_since = now

    def refuses_since(self, pod: Pod) -> MonotonicTime | None:
        """Return when the budgets of a pod began to allow no eviction; None if they allow one, or do not apply."""
        budgets = self.of(pod.shared) if pod.running else ()
        if not budgets:
            return None
        accounts = [self._accounts[budget.namespace, budget.name] for budget in budgets]
        known_since = max(account.known_since for account in accounts)
        if len(budgets) > 1 or budgets[0].selector is None:  # refused whatever the status, even if the pod is not Ready
            return known_since
        since = accounts[0].refuses_since if pod.ready else accounts[0].refuses_unready_since
        return None if since is None else max(since, known_since)

    def retry_namespace(self, namespace: str) -> None:
        """Retry the pods of a namespace that budgets block: a Deployment may replace them by now."""
        for name in self._budgets.get(namespace, ()):
            self._retry_budget((namespace, name))

    def _retry_budget(self, key: tuple[str, str]) -> None:
        for ready in (True, False):
            self._freed.add(_key("/".join(key), ready=ready))
        self._report_change(key)

    def _report_change(self, key: tuple[str, str]) -> None:
        namespace, name = key
        for ready in (True, False):
            self.changed(BudgetKey(namespace, (name,), ready))

    def of(self, pod_class: PodClass) -> tuple[Budget, ...]:
        """Return the first ``MAX_BUDGETS`` budgets that select pods of a class, sorted by name."""
        budgets = self._budgets.get(pod_class.namespace)
        if not budgets:
            return ()
        seen, names = self._selecting.get(pod_class, (0, ()))
        if seen < self._changes:
            # Only changed selectors are evaluated, since a namespace may have thousands of others.
            numbers = self._selectors[pod_class.namespace]
            changed = takewhile(lambda name: numbers[name] > seen, reversed(numbers))
            came = [name for name in changed if _selects(budgets[name], pod_class)]
            kept = [name for name in names if numbers.get(name, self._changes) <= seen]
            names = tuple(sorted(kept + came)) if came or len(kept) < len(names) else names
            self._selecting[pod_class] = self._changes, names
        return tuple(islice((budgets[name] for name in names if name in budgets), MAX_BUDGETS)) if names else ()

    def key_of(self, pod: Pod) -> BudgetKey | None:
        """Return the key of the budgets that select a pod; None if none does."""
        budgets = self.of(pod.shared) if pod.running else ()
        return BudgetKey(pod.namespace, tuple(budget.name for budget in budgets), pod.ready) if budgets else None

    def allowed(self, key: BudgetKey) -> int:
        """Number of pods that these budgets allow. Several budgets, or one that cannot be read, allow none."""
        budget = self._budgets.get(key.namespace, {}).get(key.names[0]) if len(key.names) == 1 else None
        if budget is None or budget.selector is None:
            return 0
        unready = not key.ready and budget.healthy_enough
        return sys.maxsize if unready else self._accounts[budget.namespace, budget.name].left(budget)

    def admit(self, request: EvictionRequest) -> Refusal | None:
        """Refuse a pod whose budgets allow no eviction, unless it is deleted or its Deployment replaces it first."""
        return None if request.deletes or request.replacement else self.refuse(request.pod, request.now.monotonic)

    def violated(self, request: EvictionRequest) -> tuple[str, ...]:
        """Return the budgets that the deletion of a pod violates; empty if the pod is evicted."""
        pod = request.pod
        if not request.deletes or (self.refuses_since(pod) is None and self.refuse(pod, request.now.monotonic) is None):
            return ()
        return tuple(map(str, self.of(pod.shared)))

    def reserve(self, request: EvictionRequest) -> None:
        """Count the request against the budget until its status includes it."""
        if request.replacement is None:
            self.leave(request.pod)

    def evaluate(self, pod: Pod, now: MonotonicTime) -> list[tuple[Budget, Refusal | None]]:
        """Return the budgets that the API server checks for a pod, sorted by name, each with its refusal."""
        budgets = self.of(pod.shared) if pod.running else ()
        return [(budget, self._refuse(budget, pod, now)) for budget in budgets]

    def refuse(self, pod: Pod, now: MonotonicTime) -> Refusal | None:
        """Return why the API server would refuse the eviction; None if it may accept it."""
        budgets = self.of(pod.shared) if pod.running else ()
        if not budgets:
            return None
        if len(budgets) > 1 and all(budget.selector is not None for budget in budgets):
            reason = several_budgets(map(str, budgets))
            return Refusal(BUDGET, None, RefusalScope.PODS, shared_key(pod.namespace), reason)
        unreadable_first = sorted(budgets, key=lambda budget: budget.selector is not None)
        return self._refuse(unreadable_first[0], pod, now)

    def _refuse(self, budget: Budget, pod: Pod, now: MonotonicTime) -> Refusal | None:
        name, until = str(budget), None
        if budget.selector is not None:
            account = self._accounts[budget.namespace, budget.name]
            if account.unseen and account.unseen[0] <= now:
                account.unseen = [until for until in account.unseen if until > now]
                self._report_change((budget.namespace, budget.name))
            if (not pod.ready and budget.healthy_enough) or account.left(budget) > 0:
                return None
            until = min(account.unseen, default=None)
        detail = f"PodDisruptionBudget {name} {budget.why_no_disruption}"
        return Refusal(BUDGET, until, RefusalScope.PODS, _key(name, ready=pod.ready), detail)

    def leave(self, pod: Pod) -> None:
        """Count an eviction call for this pod."""
        budgets = self.of(pod.shared) if pod.running else ()
        if budgets:
            key = budgets[0].namespace, budgets[0].name
            account = self._accounts[key]
            account.under_way += 1
            self._asked[pod.uid] = (account, key, account.updates, pod.ready)
            self._report_change(key)

    def settle(self, uid: str, settlement: Settlement, now: Instant) -> None:
        """End a call. An accepted eviction counts until the budget's status includes it."""
        if uid not in self._asked:
            return
        account, key, updates, counts = self._asked.pop(uid)
        account.under_way -= 1
        if settlement is Settlement.ACCEPTED and counts and account.updates == updates:
            account.unseen.append(later(now.monotonic, UNSEEN_SECONDS))
        self._retry_budget(key)  # a retry may be refused again until the eviction no longer counts


def _selects(budget: Budget, pod_class: PodClass) -> bool:
    """Return True if the budget may select the pods. A budget that cannot be read may select any pod."""
    return budget.selector is None or budget.selector.selects(pod_class.labels)


def _key(name: str, *, ready: bool) -> str:
    """Return the key of a refusal. Pods that are not Ready may be evicted when others may not."""
    return f"budget/{name}" if ready else f"unready/{name}"


def shared_key(namespace: str) -> str:
    """Return the key of refusals that depend on which budgets select the pods of a namespace."""
    return f"budgets/{namespace}"


def _since(before: MonotonicTime | None, now: MonotonicTime, *, holds: bool) -> MonotonicTime | None:
    """Return when a condition began to hold; None if it does not hold."""
    if not holds:
        return None
    return now if before is None else before
