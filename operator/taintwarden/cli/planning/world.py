"""An idealised cluster: evictions succeed, pods stop and are replaced in time, budgets count as their status says."""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from taintwarden.controller import cache
from taintwarden.engine.evaluate import earliest
from taintwarden.engine.machine import Machine
from taintwarden.engine.machine.events import Outcome
from taintwarden.engine.matching.tolerations import Match, match
from taintwarden.engine.model import Budget, Effect, Gates, Pod, PodClass, Taint
from taintwarden.kube.objects import BudgetObject


class Assumptions(msgspec.Struct, frozen=True, rename="camel"):
    """How long things take, in seconds. A pod takes no longer to stop than its own grace period."""

    replacement_seconds: float = 30.0
    stop_seconds: float = 5.0
    call_seconds: float = 0.1


class Places:
    """Where a replacement goes: the emptiest node that it fits, the first by name. Only taints are looked at.

    A node fits if the scheduler would accept its taints, which it judges by native tolerations, and if no policy would
    make the pod leave it again.
    """

    def __init__(self, machine: Machine, gates: Gates, now: float) -> None:
        self._machine = machine
        self._gates = gates
        self._now = now
        self._pods = Counter({name: len(state.pods) for name, state in machine.nodes.items()})
        self._fitting: dict[PodClass, list[str]] = {}

    def fitting(self, pod_class: PodClass) -> list[str]:
        """The nodes that pods of a class fit, by name."""
        found = self._fitting.get(pod_class)
        if found is None:
            states = sorted(self._machine.nodes.items())
            found = self._fitting[pod_class] = [
                name
                for name, state in states
                if state.node is not None
                and all(self._schedules(pod_class, taint) for taint, _ in state.node.taints)
                and earliest(self._machine.verdicts_for(state, pod_class), self._now) is None
            ]
        return found

    def take(self, pod_class: PodClass) -> str | None:
        """The node that the next one goes to; None: there is none."""
        fitting = self.fitting(pod_class)
        node = min(fitting, key=lambda name: (self._pods[name], name)) if fitting else None
        if node is not None:
            self._pods[node] += 1
        return node

    def leave(self, node: str) -> None:
        """A pod of this node is on its way out."""
        self._pods[node] -= 1

    def _schedules(self, pod_class: PodClass, taint: Taint) -> bool:
        if taint.effect == Effect.PREFER_NO_SCHEDULE:
            return True
        return any(match(one, taint, self._gates) is Match.HOLDS for one in pod_class.tolerations.native)


class _Ledger:
    """What one budget allows; below zero, so many pods have to become Ready before it allows one."""

    def __init__(self, budget: Budget, allowed: int) -> None:
        self.budget = budget
        self.allowed = allowed

    def seen(self) -> Budget:
        return msgspec.structs.replace(self.budget, allowed=max(0, self.allowed))


class Allowances:
    """PodDisruptionBudgets, from what their status allows: a Ready pod that goes takes one, a replacement gives one."""

    def __init__(self, objects: Iterable[BudgetObject]) -> None:
        self._ledgers: list[_Ledger] = []
        for obj in objects:
            budget, status = cache.budget(obj), obj.status
            if budget is not None:
                short = min(0, status.current_healthy - status.desired_healthy) if status else 0
                self._ledgers.append(_Ledger(budget, budget.allowed or short))

    def judge(self, pod: Pod) -> tuple[Outcome, str]:
        """How the API server answers an eviction of this pod."""
        covering = list(self._covering(pod.shared))
        if len(covering) > 1:
            return Outcome.MISCONFIGURED, "more than one PodDisruptionBudget"
        for ledger in covering:
            spared = not pod.ready and ledger.budget.healthy_enough
            if not spared and (ledger.allowed <= 0 or not ledger.budget.observed):
                return Outcome.BLOCKED, f"PodDisruptionBudget {ledger.budget}"
        return Outcome.EVICTED, ""

    def left(self, pod: Pod) -> list[Budget]:
        """A pod goes: the budgets as they are then."""
        return self._move(pod.shared, -1 if pod.ready else 0)

    def replaced(self, pod: Pod) -> list[Budget]:
        """Its replacement is Ready."""
        return self._move(pod.shared, 1)

    def _move(self, pod_class: PodClass, number: int) -> list[Budget]:
        covering = list(self._covering(pod_class))
        for ledger in covering:
            ledger.allowed += number
        return [ledger.seen() for ledger in covering]

    def _covering(self, pod_class: PodClass) -> Iterator[_Ledger]:
        for ledger in self._ledgers:
            selector = ledger.budget.selector
            same = ledger.budget.namespace == pod_class.namespace
            if same and selector is not None and selector.selects(pod_class.labels):
                yield ledger
