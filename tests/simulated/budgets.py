"""PodDisruptionBudgets as the API server judges them, and the controller that keeps their status, a little late."""

from simulated.cluster import Json, Simulation
from simulated.workloads import Workloads, is_ready
from taintwarden.engine.machine import Outcome, events
from taintwarden.engine.model import Budget
from taintwarden.engine.selectors import LabelSelector, Requirement, SelectorOperator

CONTROLLER_SECONDS = 0.3
"""How late the status of a budget follows its pods."""
WATCH_SECONDS = 0.02
"""How late the status is told."""


class PodDisruptionBudget:
    """One of them: at most ``max_unavailable`` of the pods that its label names may be missing."""

    def __init__(self, name: str, namespace: str, app: str, max_unavailable: int, *, always_allow: bool) -> None:
        self.name = name
        self.namespace = namespace
        self.app = app
        self.max_unavailable = max_unavailable
        self.always_allow = always_allow
        self.healthy = 0
        self.desired = 0
        self.allowed = 0

    def selects(self, pod: Json) -> bool:
        """Whether it is about this pod."""
        meta = pod["metadata"]
        return meta["namespace"] == self.namespace and meta["labels"].get("app") == self.app

    def seen(self) -> events.BudgetSeen:
        """As its status says now."""
        selector = LabelSelector((Requirement("app", SelectorOperator.IN, (self.app,)),))
        healthy_enough = self.always_allow or self.healthy >= self.desired > 0
        allowed = max(0, self.allowed)
        return events.BudgetSeen(
            Budget(self.namespace, self.name, selector, allowed, observed=True, healthy_enough=healthy_enough)
        )


class Budgets:
    """All budgets of a simulation."""

    def __init__(self, sim: Simulation, workloads: Workloads) -> None:
        self.sim = sim
        self.all: dict[str, PodDisruptionBudget] = {}
        self.refusals = 0
        """How often the API server was asked in vain."""
        self._workloads = workloads
        sim.observers.append(self._observe)
        self._gone: dict[str, str] = {}
        sim.listers.append(self._list)

    def create(self, name: str, namespace: str, app: str, max_unavailable: int, *, always_allow: bool = False) -> None:
        """A budget for the pods with the label ``app``."""
        budget = PodDisruptionBudget(name, namespace, app, max_unavailable, always_allow=always_allow)
        self.all[name] = budget
        self._compute(budget)

    def delete(self, name: str) -> None:
        """A budget goes."""
        budget = self.all.pop(name)
        self._gone[name] = budget.namespace
        self.sim.deliver(lambda: self.sim.feed(events.BudgetGone(budget.namespace, name)))

    def _list(self) -> list[events.Event]:
        """What is there; and what is not, since a list tells that, too."""
        gone = [events.BudgetGone(namespace, name) for name, namespace in self._gone.items()]
        return [*gone, *(one.seen() for one in self.all.values())]

    def judge(self, pod: Json, delete: bool) -> events.Settled | None:
        """As the eviction subresource does: it counts the eviction at once, before the controller sees it."""
        budgets = [one for one in self.all.values() if one.selects(pod)]
        if delete or not budgets:
            return None
        uid = pod["metadata"]["uid"]
        if len(budgets) > 1:
            self.refusals += 1
            return events.Settled(uid, Outcome.MISCONFIGURED, "more than one PodDisruptionBudget")
        budget = budgets[0]
        if not is_ready(pod) and (budget.always_allow or budget.healthy >= budget.desired > 0):
            return None
        if budget.allowed <= 0:
            self.refusals += 1
            return events.Settled(uid, Outcome.BLOCKED, f"the budget {budget.name} needs {budget.desired}")
        budget.allowed -= 1
        self._tell(budget)
        return None

    def _observe(self, _: str, pod: Json) -> None:
        for budget in self.all.values():
            if budget.selects(pod):
                self.sim.later(CONTROLLER_SECONDS, lambda budget=budget: self._compute(budget))

    def _compute(self, budget: PodDisruptionBudget) -> None:
        if self.all.get(budget.name) is not budget:
            return
        before = (budget.healthy, budget.desired, budget.allowed)
        pods = [
            pod for pod in self.sim.pods.values() if budget.selects(pod) and "deletionTimestamp" not in pod["metadata"]
        ]
        wanted = [
            one.replicas
            for one in self._workloads.all.values()
            if one.template.get("namespace") == budget.namespace
            and one.template.get("labels", {}).get("app") == budget.app
        ]
        budget.healthy = sum(map(is_ready, pods))
        budget.desired = max(0, sum(wanted) - budget.max_unavailable)
        budget.allowed = max(0, budget.healthy - budget.desired)
        if before != (budget.healthy, budget.desired, budget.allowed) or not before[1]:
            self._tell(budget)

    def _tell(self, budget: PodDisruptionBudget) -> None:
        event = budget.seen()
        self.sim.deliver(lambda: self.sim.feed(event), WATCH_SECONDS)
