"""PodDisruptionBudgets as far as they spare requests: the API server stays the judge of every eviction."""

from collections import Counter
from collections.abc import Callable
from weakref import WeakKeyDictionary

from taintwarden.engine.limits.refusal import BUDGET, BUDGET_UNREADABLE, SEVERAL_BUDGETS, Refusal
from taintwarden.engine.model import Budget, Pod, PodClass


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
        self._under_way: Counter[str] = Counter()
        self._unseen: Counter[str] = Counter()
        """Accepted evictions that the budget's status may not know of yet."""
        self._updates: Counter[str] = Counter()
        self._asked: dict[str, tuple[str, int, bool]] = {}
        """UID -> its budget, how often that had been seen when the API server was asked, and whether the pod counts."""

    def set(self, budget: Budget) -> None:
        """A budget is like this now."""
        budgets = self._budgets.setdefault(budget.namespace, {})
        before = budgets.get(budget.name)
        budgets[budget.name] = budget
        self._updates[str(budget)] += 1
        self._unseen.pop(str(budget), None)
        if before is None or before.selector != budget.selector:
            self._select_again(budget.namespace)
        self._release(_key(str(budget)))

    def drop(self, namespace: str, name: str) -> None:
        """A budget is gone."""
        if self._budgets.get(namespace, {}).pop(name, None) is not None:
            self._unseen.pop(f"{namespace}/{name}", None)
            self._select_again(namespace)
            self._release(_key(f"{namespace}/{name}"))

    def _select_again(self, namespace: str) -> None:
        for pod_class in [one for one in self._selecting if one.namespace == namespace]:
            del self._selecting[pod_class]
        self._release(_shared_key(namespace))

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
        budgets = self.of(pod.shared)
        if not budgets:
            return None
        for budget in budgets:
            if budget.selector is None:
                return Refusal(
                    BUDGET_UNREADABLE, None, _key(str(budget)), f"PodDisruptionBudget {budget} is unreadable"
                )
        if len(budgets) > 1:
            names = ", ".join(str(budget) for budget in budgets)
            reason = f"the API server refuses a pod with more than one PodDisruptionBudget ({names})"
            return Refusal(SEVERAL_BUDGETS, None, _shared_key(pod.namespace), reason)
        budget = budgets[0]
        if not pod.ready and budget.healthy_enough:
            return None
        name = str(budget)
        if budget.observed and budget.allowed - self._under_way[name] - self._unseen[name] > 0:
            return None
        why = "allows no disruption now" if budget.observed else "was not looked at by its controller yet"
        return Refusal(BUDGET, None, _key(name), f"PodDisruptionBudget {name} {why}")

    def leave(self, pod: Pod) -> None:
        """The API server is asked to evict this pod."""
        for budget in self.of(pod.shared):
            name = str(budget)
            self._asked[pod.uid] = (name, self._updates[name], pod.ready)
            self._under_way[name] += 1
            return

    def settle(self, uid: str, *, evicted: bool) -> None:
        """It has answered."""
        if uid not in self._asked:
            return
        name, updates, counts = self._asked.pop(uid)
        self._under_way[name] -= 1
        if not evicted:
            self._release(_key(name))
        elif counts and self._updates[name] == updates:
            self._unseen[name] += 1


def _key(name: str) -> str:
    return f"budget/{name}"


def _shared_key(namespace: str) -> str:
    return f"budgets/{namespace}"
