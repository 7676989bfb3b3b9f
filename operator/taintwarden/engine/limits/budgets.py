"""PodDisruptionBudgets as far as they spare requests: the API server stays the judge of every eviction."""

from collections.abc import Callable
from weakref import WeakKeyDictionary

from taintwarden.engine.limits.refusal import BUDGET, BUDGET_UNREADABLE, SEVERAL_BUDGETS, Refusal
from taintwarden.engine.model import Budget, Pod, PodClass


class _Ledger:
    """What is on its way against one budget."""

    __slots__ = ("under_way", "unseen", "updates")

    def __init__(self) -> None:
        self.updates = 0
        self.under_way = 0
        self.unseen = 0
        """Accepted evictions that the budget's status may not know of yet."""


class Budgets:
    """Which budgets select a pod, and what they allow beyond the evictions that are on their way.

    Args:
        release: told the key of a budget that may allow more than before.

    """

    def __init__(self, release: Callable[[str], None]) -> None:
        self._release = release
        self._budgets: dict[str, dict[str, Budget]] = {}
        self._selecting: WeakKeyDictionary[PodClass, tuple[str, ...]] = WeakKeyDictionary()
        """Names of the budgets that select a class."""
        self._ledgers: dict[str, _Ledger] = {}
        self._asked: dict[str, tuple[_Ledger, str, int, bool]] = {}
        """UID -> its budget, how often that had been seen when the API server was asked, and whether the pod counts."""

    def set(self, budget: Budget) -> None:
        """A budget is like this now."""
        budgets = self._budgets.setdefault(budget.namespace, {})
        before = budgets.get(budget.name)
        budgets[budget.name] = budget
        ledger = self._ledgers.setdefault(str(budget), _Ledger())
        ledger.updates += 1
        ledger.unseen = 0
        if before is None or before.selector != budget.selector:
            self._select_again(budget.namespace)
        self._release_budget(str(budget))

    def drop(self, namespace: str, name: str) -> None:
        """A budget is gone."""
        budgets = self._budgets.get(namespace, {})
        if budgets.pop(name, None) is None:
            return
        if not budgets:
            del self._budgets[namespace]
        del self._ledgers[f"{namespace}/{name}"]
        self._select_again(namespace)
        self._release_budget(f"{namespace}/{name}")

    def _select_again(self, namespace: str) -> None:
        for pod_class in [one for one in self._selecting if one.namespace == namespace]:
            del self._selecting[pod_class]
        self._release(_shared_key(namespace))

    def _release_budget(self, name: str) -> None:
        for ready in (True, False):
            self._release(_key(name, ready=ready))

    def of(self, pod_class: PodClass) -> tuple[Budget, ...]:
        """The budgets that select pods of a class, by name."""
        budgets = self._budgets.get(pod_class.namespace)
        if not budgets:
            return ()
        names = self._selecting.get(pod_class)
        if names is None:
            names = self._selecting[pod_class] = tuple(
                name
                for name, one in sorted(budgets.items())
                if one.selector is None or one.selector.selects(pod_class.labels)
            )
        return tuple(budgets[name] for name in names)

    def refuse(self, pod: Pod) -> Refusal | None:
        """Whether asking the API server would be in vain."""
        budgets = self.of(pod.shared) if pod.running else ()
        if not budgets:
            return None
        for budget in budgets:
            if budget.selector is None:
                return Refusal(
                    BUDGET_UNREADABLE,
                    None,
                    _key(str(budget), ready=pod.ready),
                    f"PodDisruptionBudget {budget} is unreadable",
                )
        if len(budgets) > 1:
            names = ", ".join(str(budget) for budget in budgets)
            reason = f"the API server refuses a pod with more than one PodDisruptionBudget ({names})"
            return Refusal(SEVERAL_BUDGETS, None, _shared_key(pod.namespace), reason)
        budget = budgets[0]
        if not pod.ready and budget.healthy_enough:
            return None
        name, ledger = str(budget), self._ledgers[str(budget)]
        if budget.observed and budget.allowed - ledger.under_way - ledger.unseen > 0:
            return None
        why = "allows no disruption now" if budget.observed else "was not looked at by its controller yet"
        return Refusal(BUDGET, None, _key(name, ready=pod.ready), f"PodDisruptionBudget {name} {why}")

    def leave(self, pod: Pod) -> None:
        """The API server is asked to evict this pod."""
        budgets = self.of(pod.shared) if pod.running else ()
        if budgets:
            name = str(budgets[0])
            ledger = self._ledgers[name]
            ledger.under_way += 1
            self._asked[pod.uid] = (ledger, name, ledger.updates, pod.ready)

    def settle(self, uid: str, *, evicted: bool) -> None:
        """It has answered."""
        if uid not in self._asked:
            return
        ledger, name, updates, counts = self._asked.pop(uid)
        ledger.under_way -= 1
        if evicted and counts and ledger.updates == updates:
            ledger.unseen += 1
        else:
            self._release_budget(name)


def _key(name: str, *, ready: bool) -> str:
    """Who shares a refusal: pods that are not Ready may go when others may not."""
    return f"budget/{name}" if ready else f"budget/{name}/not-ready"


def _shared_key(namespace: str) -> str:
    return f"budgets/{namespace}"
