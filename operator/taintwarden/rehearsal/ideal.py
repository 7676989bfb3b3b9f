"""An ideal cluster: evictions succeed, pods stop and are replaced in time, budgets start from their status."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from taintwarden.controller import decoding
from taintwarden.engine.evaluate import claims
from taintwarden.engine.limits import Freed
from taintwarden.engine.limits.budgets import Budgets
from taintwarden.engine.limits.refusal import SEVERAL_BUDGETS
from taintwarden.engine.machine import Outcome, View
from taintwarden.engine.matching.tolerations import Match, match
from taintwarden.engine.model import Budget, Effect, Gates, Pod, PodClass, Taint
from taintwarden.kube.objects import BudgetObject


class Assumptions(msgspec.Struct, frozen=True, rename="camel"):
    """How long things take, in seconds. A pod takes no longer to stop than its own grace period."""

    replacement_seconds: float = 30.0
    stop_seconds: float = 5.0
    call_seconds: float = 0.1


class Places:
    """Places a replacement on the emptiest node that fits, the first by name. Only taints are considered.

    A node fits if the pod's native tolerations tolerate its taints, as the scheduler requires, and if no policy would
    evict the pod from it again.
    """

    def __init__(self, view: View, gates: Gates, now: float) -> None:
        self._view = view
        self._gates = gates
        self._now = now
        self._pods = Counter({name: len(view.pods(name)) for name in view.nodes})
        self._fitting: dict[PodClass, list[str]] = {}

    def fitting(self, pod_class: PodClass) -> list[str]:
        """The nodes that fit pods of a class, by name."""
        found = self._fitting.get(pod_class)
        if found is None:
            names = sorted(self._view.nodes)
            found = self._fitting[pod_class] = [name for name in names if self._fits(name, pod_class)]
        return found

    def _fits(self, name: str, pod_class: PodClass) -> bool:
        node = self._view.node(name)
        return (
            node is not None
            and all(self._schedules(pod_class, taint) for taint, _ in node.taints)
            and not claims(self._view.verdicts(name, pod_class), self._now)
        )

    def take(self, pod_class: PodClass) -> str | None:
        """The node for the next pod; None if no node fits."""
        fitting = self.fitting(pod_class)
        node = min(fitting, key=lambda name: (self._pods[name], name)) if fitting else None
        if node is not None:
            self._pods[node] += 1
        return node

    def leave(self, node: str) -> None:
        """A pod of this node is evicted."""
        self._pods[node] -= 1

    def _schedules(self, pod_class: PodClass, taint: Taint) -> bool:
        if taint.effect == Effect.PREFER_NO_SCHEDULE:
            return True
        return any(match(one, taint, self._gates) is Match.HOLDS for one in pod_class.tolerations.native)


class Allowances:
    """PodDisruptionBudgets, from their status: evicting a Ready pod takes a disruption, a Ready replacement adds it."""

    def __init__(self, objects: Iterable[BudgetObject]) -> None:
        self._budgets = Budgets(Freed())
        self._allowed: dict[str, int] = {}
        """If negative, the number of pods that have to become Ready before further ones allow disruptions."""
        for obj in objects:
            budget, status = decoding.budget(obj), obj.status
            if budget is not None:
                short = min(0, status.current_healthy - status.desired_healthy) if status else 0
                self._allowed[str(budget)] = budget.allowed or short
                self._budgets.set(budget)

    def judge(self, pod: Pod) -> tuple[Outcome, str]:
        """How the API server answers an eviction of this pod."""
        refusal = self._budgets.refuse(pod)
        if refusal is None:
            return Outcome.EVICTED, ""
        return Outcome.MISCONFIGURED if refusal.limit == SEVERAL_BUDGETS else Outcome.BLOCKED, refusal.detail

    def left(self, pod: Pod) -> list[Budget]:
        """A pod is evicted: the budgets after that."""
        return self._move(pod.shared, -1 if pod.ready else 0)

    def replaced(self, pod: Pod) -> list[Budget]:
        """Its replacement is Ready."""
        return self._move(pod.shared, 1)

    def _move(self, pod_class: PodClass, number: int) -> list[Budget]:
        moved = []
        for budget in self._budgets.of(pod_class):
            self._allowed[str(budget)] += number
            moved.append(msgspec.structs.replace(budget, allowed=max(0, self._allowed[str(budget)])))
            self._budgets.set(moved[-1])
        return moved
