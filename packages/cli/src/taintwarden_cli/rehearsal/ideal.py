"""An ideal cluster: evictions succeed, pods stop and are replaced in time, budgets start from their status."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from taintwarden.controller.decoding import decoding
from taintwarden.engine.limits import FreedKeys
from taintwarden.engine.limits.budgets import Budgets
from taintwarden.engine.machine import View
from taintwarden.engine.model import Budget, MonotonicTime, Pod, PodClass
from taintwarden.engine.outcomes import Outcome
from taintwarden.kube.wire.kinds import BudgetObject
from taintwarden_cli.rehearsal.node_candidates import UnscheduledPods
from taintwarden_cli.rehearsal.node_requirements import FullPod
from taintwarden_cli.rehearsal.returning import ReturnFinder
from taintwarden_placement.scheduling.feasibility import Preferences


class Assumptions(msgspec.Struct, frozen=True, rename="camel"):
    """Assumed durations in seconds. A pod takes no longer to stop than its own grace period."""

    replacement_seconds: float = 30.0
    stop_seconds: float = 5.0
    call_seconds: float = 0.1


class ReplacementScheduler:
    """Chooses the node of a replacement: the one that it prefers, then the emptiest, then the first by name.

    A node fits if taints and labels allow the pod, as the scheduler and extended tolerations require, and if no policy
    would evict the pod from it again.
    """

    def __init__(self, view: View, unscheduled: UnscheduledPods, finder: ReturnFinder, pods: Iterable[FullPod]) -> None:
        self._view = view
        self._return_finder = finder
        self._unscheduled_pods = unscheduled
        self._objects = {pod.metadata.uid: pod for pod in pods}
        self._pods = Counter({name: len(view.pods(name)) for name in view.nodes})
        self._fitting: dict[PodClass, dict[str, Preferences]] = {}
        """The nodes that fit pods of a class, by name. The first pod of a class represents its replacements."""
        self._returns: dict[PodClass, list[str]] = {}

    def fitting_nodes(self, pod: Pod) -> Mapping[str, Preferences]:
        """The nodes that fit the pod, by name, and how well they suit it."""
        found = self._fitting.get(pod.shared)
        if found is None:
            found = self._fitting[pod.shared] = dict(self._find(pod))
        return found

    def returns_to(self, pod: Pod) -> str | None:
        """A node that the pod has to leave and that the scheduler may choose again, preferably its present one."""
        if pod.shared not in self._returns:
            requirements = self._objects[pod.uid].spec.node_requirements
            self._returns[pod.shared] = [*self._return_finder.nodes(pod.shared, requirements)]
        found = self._returns[pod.shared]
        return pod.node if pod.node in found else next(iter(found), None)

    def _find(self, pod: Pod) -> Iterator[tuple[str, Preferences]]:
        unscheduled = self._unscheduled_pods.of(self._objects[pod.uid])
        for name in sorted(self._view.nodes):
            view = self._view.node(name)
            if view is None or not unscheduled.fits(view.node):
                continue
            if not any(one.evicts and one.taint.origin is None for one in self._view.verdicts(name, pod.shared)):
                yield name, unscheduled.preferences(view.node)

    def assign_node(self, pod: Pod) -> str | None:
        """Choose a node for a replacement of this pod; None if no node fits."""
        fitting = self.fitting_nodes(pod)
        rank = {name: (one.taints, -one.weight, self._pods[name], name) for name, one in fitting.items()}
        node = min(rank, key=rank.__getitem__, default=None)
        if node is not None:
            self._pods[node] += 1
        return node

    def count_departure(self, node: str) -> None:
        """Count one pod fewer on the node."""
        self._pods[node] -= 1


_AT_ONCE = MonotonicTime(0.0)
"""Time of every call and status, so that each status is up to date."""


class IdealBudgets:
    """PodDisruptionBudgets: an evicted Ready pod uses a disruption of their status, a Ready replacement adds one."""

    def __init__(self, objects: Iterable[BudgetObject]) -> None:
        self._budgets = Budgets(FreedKeys())
        self._allowed: dict[str, int] = {}
        """Disruptions that each budget allows; if negative, the number of Ready pods that it lacks to be healthy."""
        for obj in objects:
            budget, status = decoding.budget(obj), obj.status
            if budget is not None:
                shortage = min(0, status.current_healthy - status.desired_healthy) if status else 0
                self._allowed[str(budget)] = budget.allowed or shortage
                self._budgets.set_budget(budget, _AT_ONCE)

    def answer_eviction(self, pod: Pod) -> tuple[Outcome, str]:
        """Answer an eviction of this pod as the API server would."""
        refusal = self._budgets.refuse(pod, _AT_ONCE)
        if refusal is None:
            return Outcome.ACCEPTED, ""
        is_one = len(self._budgets.of(pod.shared)) == 1
        return Outcome.BLOCKED if is_one else Outcome.MISCONFIGURED, refusal.detail

    def add_ready(self, pod_class: PodClass, by: int) -> list[Budget]:
        """Add ``by``, which may be negative, to the Ready pods of a class. Returns the changed budgets."""
        changed = []
        for budget in self._budgets.of(pod_class):
            self._allowed[str(budget)] += by
            changed.append(msgspec.structs.replace(budget, allowed=max(0, self._allowed[str(budget)])))
            self._budgets.set_budget(changed[-1], _AT_ONCE)
        return changed
