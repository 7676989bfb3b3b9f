"""The output of a plan. ``-o json`` prints these structs; times are RFC 3339 in UTC."""

from collections import Counter
from enum import StrEnum

import msgspec

from taintwarden_cli.rehearsal.ideal import Assumptions


class PlannedFate(StrEnum):
    """The fate of a pod within the horizon."""

    LEAVES = "Leaves"
    HELD = "Held"
    """The pod is due, and a limit still delays it at the end of the horizon."""
    LATER = "Later"
    """Its deadline is beyond the horizon."""
    ENDS = "EndsWithNode"
    """The pod is still there when its node is removed (``reclaim``)."""
    WOULD_LEAVE = "WouldLeave"
    """A policy in mode DryRun would evict it."""


class Replacement(StrEnum):
    """The replacement of a pod that leaves."""

    PLACED = "Placed"
    NOWHERE = "Nowhere"
    """Taints, nodeSelector or node affinity keep it off every node."""
    NONE = "None"
    """No controller makes a replacement on another node."""


class PlannedPod(msgspec.Struct, rename="camel", kw_only=True):
    """One pod that has to leave."""

    namespace: str
    name: str
    node: str
    policy: str
    taint: str
    fate: PlannedFate
    deadline: str
    already: bool
    """True if it had to leave before the change."""
    order: int | None = None
    """Its position in the order of evictions, from 1."""
    at: str | None = None
    after_seconds: float | None = None
    """Seconds from the change until its eviction is accepted, or would be made in DryRun, or its node is removed."""
    deleted: bool = False
    waited_seconds: float | None = None
    limit: str = ""
    """The last limit that delayed it, or still does."""
    reason: str = ""
    budgets: list[str] = []
    """The PodDisruptionBudgets that block it, or that its deletion disregards."""
    replacement: Replacement = Replacement.NONE
    replaced_on: str | None = None
    returns_to: str | None = None
    """A node from which it is evicted, but to which the scheduler may bind its replacement."""
    late: str = ""
    """Why it misses the hard deadline; empty if it does not."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class PlannedGuard(msgspec.Struct, rename="camel", kw_only=True):
    """A guard that trips within the horizon, or was tripped before."""

    policy: str
    pods: int
    evicted: int
    """Number of evictions in its last window."""
    window_seconds: float
    limit: int
    cause: str
    halts: bool
    pace: str = ""
    """The pace of evictions with ``action: Pace``; empty for other actions."""
    tripped_after_seconds: float
    armed_after_seconds: float | None = None


class Plan(msgspec.Struct, rename="camel", kw_only=True):
    """The effects of the changes."""

    at: str
    changes: list[str]
    changed_nodes: int
    horizon_seconds: float
    ended_after_seconds: float
    """Seconds until no event remained, at most the horizon."""
    assumptions: Assumptions
    leaving: int = 0
    missed: int = 0
    """Number of pods that end with their node."""
    cut: int = 0
    """Number of evicted pods with less time to stop than their grace period."""
    held: int = 0
    later: int = 0
    would_leave: int = 0
    past_budgets: int = 0
    """Number of pods that are deleted in spite of a PodDisruptionBudget."""
    nowhere: int = 0
    returning: int = 0
    """Number of pods whose replacement the scheduler may bind to a node that evicts it again."""
    pods: list[PlannedPod] = []
    """Evicted pods, in order; then the others."""
    cancelled: list[str] = []
    """Pods that had to leave before the change, and need not leave after it."""
    guards: list[PlannedGuard] = []
    invalid: list[str] = []
    """Changed values that cannot be compared, and the consequence for pods."""
    notes: list[str] = []
    """Reasons why this plan is uncertain."""

    def __post_init__(self) -> None:
        fates = Counter(pod.fate for pod in self.pods)
        leaving = [pod for pod in self.pods if pod.fate is PlannedFate.LEAVES]
        self.leaving, self.missed, self.held = len(leaving), fates[PlannedFate.ENDS], fates[PlannedFate.HELD]
        self.later, self.would_leave = fates[PlannedFate.LATER], fates[PlannedFate.WOULD_LEAVE]
        self.cut, self.past_budgets = sum(bool(pod.late) for pod in leaving), sum(bool(pod.budgets) for pod in leaving)
        self.nowhere = sum(pod.replacement is Replacement.NOWHERE for pod in self.pods)
        self.returning = sum(pod.returns_to is not None for pod in self.pods)

    @property
    def needs_action(self) -> bool:
        """True if you should review the plan before you make the change."""
        risks = self.missed, self.cut, self.held, self.past_budgets, self.nowhere, self.returning
        return any(risks) or bool(self.guards or self.invalid)
