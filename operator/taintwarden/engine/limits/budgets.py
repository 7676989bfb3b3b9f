"""PodDisruptionBudgets, checked to save requests: the API server decides on every eviction."""

from weakref import WeakKeyDictionary

from taintwarden.engine.limits.protocol import Freed, Request, Settlement
from taintwarden.engine.limits.refusal import BUDGET, BUDGET_UNREADABLE, SEVERAL_BUDGETS, Refusal
from taintwarden.engine.model import Budget, Pod, PodClass, Policy


class _Account:
    """The evictions that count against one budget."""

    __slots__ = ("under_way", "unseen", "updates")

    def __init__(self) -> None:
        self.updates = 0
        self.under_way = 0
        self.unseen = 0
        """Accepted evictions that the budget's status may not include yet."""


class Budgets:
    """Which budgets select a pod, and what they allow beyond the evictions in progress.

    Args:
        freed: receives the key of a budget that may allow more than before.

    """

    def __init__(self, freed: Freed) -> None:
        self._freed = freed
        self._budgets: dict[str, dict[str, Budget]] = {}
        self._selecting: WeakKeyDictionary[PodClass, tuple[str, ...]] = WeakKeyDictionary()
        """Names of the budgets that select a class."""
        self._accounts: dict[str, _Account] = {}
        self._asked: dict[str, tuple[_Account, str, int, bool]] = {}
        """UID -> account and name of its budget, its updates when the call was made, and whether the pod counts."""

    def set(self, budget: Budget) -> None:
        """A budget was added or updated."""
        budgets = self._budgets.setdefault(budget.namespace, {})
        before = budgets.get(budget.name)
        budgets[budget.name] = budget
        account = self._accounts.setdefault(str(budget), _Account())
        account.updates += 1
        account.unseen = 0
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
        del self._accounts[f"{namespace}/{name}"]
        self._select_again(namespace)
        self._release_budget(f"{namespace}/{name}")

    def _select_again(self, namespace: str) -> None:
        for pod_class in [one for one in self._selecting if one.namespace == namespace]:
            del self._selecting[pod_class]
        self._freed.add(_shared_key(namespace))

    def _release_budget(self, name: str) -> None:
        for ready in (True, False):
            self._freed.add(_key(name, ready=ready))

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
        return tuple([budgets[name] for name in names]) if names else ()

    def concerns(self, _: Policy) -> bool:
        """Always: a pod may be evicted or deleted, and that may change."""
        return True

    def admit(self, request: Request) -> Refusal | None:
        """Check the status of the budgets. They do not apply to a pod that is deleted."""
        return None if request.deletes else self.refuse(request.pod)

    def reserve(self, request: Request) -> None:
        """Count the request against the budget until its status includes it."""
        if not request.deletes:
            self.leave(request.pod)

    def evaluate(self, pod: Pod) -> list[tuple[Budget, Refusal | None]]:
        """The budgets that the API server checks for a pod, by name, each with its own refusal."""
        budgets = self.of(pod.shared) if pod.running else ()
        return [(budget, self._refuse(budget, pod)) for budget in budgets]

    def refuse(self, pod: Pod) -> Refusal | None:
        """Why the API server would refuse the eviction; None if it may accept it."""
        budgets = self.of(pod.shared) if pod.running else ()
        if not budgets:
            return None
        if len(budgets) > 1 and all(budget.selector is not None for budget in budgets):
            names = ", ".join(str(budget) for budget in budgets)
            reason = f"the API server refuses a pod with more than one PodDisruptionBudget ({names})"
            return Refusal(SEVERAL_BUDGETS, None, _shared_key(pod.namespace), reason)
        unreadable_first = sorted(budgets, key=lambda budget: budget.selector is not None)
        return self._refuse(unreadable_first[0], pod)

    def _refuse(self, budget: Budget, pod: Pod) -> Refusal | None:
        name = str(budget)
        if budget.selector is None:
            limit, why = BUDGET_UNREADABLE, "is unreadable"
        elif not pod.ready and budget.healthy_enough:
            return None
        else:
            account = self._accounts[name]
            if budget.observed and budget.allowed - account.under_way - account.unseen > 0:
                return None
            limit = BUDGET
            why = "allows no disruption now" if budget.observed else "was not looked at by its controller yet"
        return Refusal(limit, None, _key(name, ready=pod.ready), f"PodDisruptionBudget {name} {why}")

    def leave(self, pod: Pod) -> None:
        """An eviction call for this pod is made."""
        budgets = self.of(pod.shared) if pod.running else ()
        if budgets:
            name = str(budgets[0])
            account = self._accounts[name]
            account.under_way += 1
            self._asked[pod.uid] = (account, name, account.updates, pod.ready)

    def settle(self, uid: str, settlement: Settlement) -> None:
        """An eviction that was accepted counts until the status includes it."""
        if uid not in self._asked:
            return
        account, name, updates, counts = self._asked.pop(uid)
        account.under_way -= 1
        if settlement is Settlement.EVICTED and counts and account.updates == updates:
            account.unseen += 1
        else:
            self._release_budget(name)


def _key(name: str, *, ready: bool) -> str:
    """The key of a refusal: pods that are not Ready may be evicted when others may not."""
    return f"budget/{name}" if ready else f"budget/{name}/not-ready"


def _shared_key(namespace: str) -> str:
    return f"budgets/{namespace}"
