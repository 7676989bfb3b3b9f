"""What paused policies would do: a machine keeps no claims for them, so they are counted here, now and then."""

import math
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from taintwarden.engine.evaluate import Evaluator, TaintVerdict, claims
from taintwarden.engine.machine import NodeView, View
from taintwarden.engine.model import Gates, Instant, Mode, PodClass, Policy

PAUSED_SECONDS = 10.0
"""How long a count stands. It looks at every pod on nodes with a taint of a paused policy."""


class PausedReport(msgspec.Struct):
    """What would follow if a paused policy were resumed."""

    due: int = 0
    """Pods whose deadline has passed."""
    pending: int = 0
    """Pods with a deadline, due or not."""
    nodes: int = 0
    next_deadline: float | None = None


class PausedPolicies:
    """Counts for the paused policies of a view, with ``gates`` for what may match at all."""

    def __init__(self, view: View, gates: Gates) -> None:
        self._view = view
        self._evaluator = Evaluator(gates)
        self._counted: tuple[float, tuple[Policy, ...]] = (-math.inf, ())
        self._reports: dict[str, PausedReport] = {}

    def report(self, now: Instant) -> Mapping[str, PausedReport]:
        """One report for each paused policy, by name; at most :data:`PAUSED_SECONDS` old."""
        counted_at, counted = self._counted
        policies = self._view.policies
        if now.monotonic - counted_at >= PAUSED_SECONDS or counted != policies:
            self._counted = (now.monotonic, policies)
            self._reports = {one.name: PausedReport() for one in policies if one.mode is Mode.PAUSED}
            if self._reports and self._view.is_synced:
                self._count(now.wall)
        return self._reports

    def _count(self, now: float) -> None:
        for name in self._view.nodes:
            node = self._view.node(name)
            if node is not None and self._has_paused_taint(node):
                self._count_node(name, node, now)

    def _has_paused_taint(self, node: NodeView) -> bool:
        paused = [policy for policy in node.policies if policy.name in self._reports]
        return any(policy.selector_for(taint) for policy in paused for taint, _ in node.taints)

    def _count_node(self, name: str, node: NodeView, now: float) -> None:
        verdicts, touched = dict[PodClass, tuple[TaintVerdict, ...]](), set[str]()
        for pod in self._view.pods(name):
            found = verdicts.get(pod.shared)
            if found is None:
                found = verdicts[pod.shared] = self._verdicts(pod.shared, node)
            for due_at, verdict in claims(found, pod.bound_at):
                report = self._reports.get(verdict.policy.name)
                if report is None:
                    continue
                touched.add(verdict.policy.name)
                report.pending += 1
                report.due += due_at <= now
                report.next_deadline = min(report.next_deadline or math.inf, due_at)
        for policy in touched:
            self._reports[policy].nodes += 1

    def _verdicts(self, pod_class: PodClass, node: NodeView) -> tuple[TaintVerdict, ...]:
        acting = tuple(_resumed(policy) for policy in self._view.policies_for(pod_class) if policy in node.policies)
        return self._evaluator.verdicts(pod_class, self._view.tolerations_of(pod_class), node.taints, acting)


@lru_cache(maxsize=256)  # the evaluator recognizes the same object
def _resumed(policy: Policy) -> Policy:
    """The policy as it would be, for verdicts: whether it then enforces or rehearses makes no difference to them."""
    return msgspec.structs.replace(policy, mode=Mode.DRY_RUN) if policy.mode is Mode.PAUSED else policy
