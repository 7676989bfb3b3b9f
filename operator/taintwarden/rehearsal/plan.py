"""A plan as it is told. The structs are what ``-o json`` and ``-o yaml`` print; times are RFC 3339 in UTC."""

from enum import StrEnum

import msgspec

from taintwarden.rehearsal.ideal import Assumptions


class Fate(StrEnum):
    """What becomes of a pod within the horizon."""

    LEAVES = "Leaves"
    HELD = "Held"
    """It is due, and something still holds it at the end."""
    LATER = "Later"
    """Its deadline is beyond the horizon."""
    WOULD_LEAVE = "WouldLeave"
    """A policy in mode DryRun would evict it."""


class Replacement(StrEnum):
    """What takes its place."""

    PLACED = "Placed"
    NOWHERE = "Nowhere"
    """No node has only taints that the pod tolerates."""
    NONE = "None"
    """No controller replaces it on another node."""


class PlannedPod(msgspec.Struct, rename="camel", kw_only=True):
    """One pod that has to leave."""

    namespace: str
    name: str
    node: str
    policy: str
    taint: str
    fate: Fate
    deadline: str
    already: bool
    """It had to leave before the change."""
    order: int | None = None
    """Its place among those that leave, from 1."""
    at: str | None = None
    after_seconds: float | None = None
    """Seconds from the change until the API server accepts its eviction."""
    deleted: bool = False
    waited_seconds: float | None = None
    limit: str = ""
    """The last limit that made it wait, or that holds it."""
    reason: str = ""
    budgets: list[str] = []
    """The PodDisruptionBudgets that hold it."""
    replacement: Replacement = Replacement.NONE
    replaced_on: str | None = None
    late: str = ""
    """Why it misses the time at which its node will be gone, if it does."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class PlannedGuard(msgspec.Struct, rename="camel", kw_only=True):
    """A guard that trips, or had tripped."""

    policy: str
    pods: int
    limit: int
    population: int | None
    """Pods that the policy may evict; None where the guard had tripped before."""
    cause: str
    halts: bool
    opened_after_seconds: float
    closed_after_seconds: float | None = None


class Plan(msgspec.Struct, rename="camel", kw_only=True):
    """What follows from the changes."""

    at: str
    changes: list[str]
    changed_nodes: int
    horizon_seconds: float
    ended_after_seconds: float
    """When nothing was left to happen, or the horizon."""
    assumptions: Assumptions
    leaving: int = 0
    held: int = 0
    later: int = 0
    would_leave: int = 0
    nowhere: int = 0
    pods: list[PlannedPod] = []
    """Those that leave, in order; then the others."""
    spared: list[str] = []
    """Pods that had to leave before the change, and have not any more."""
    guards: list[PlannedGuard] = []
    notes: list[str] = []
    """What makes this plan less sure than it looks."""

    def narrowed(self, namespace: str) -> "Plan":
        """The same with the pods of one namespace only. Guards count the pods of all."""
        pods = [one for one in self.pods if one.namespace == namespace]
        fates = [one.fate for one in pods]
        return msgspec.structs.replace(
            self,
            pods=pods,
            leaving=fates.count(Fate.LEAVES),
            held=fates.count(Fate.HELD),
            later=fates.count(Fate.LATER),
            would_leave=fates.count(Fate.WOULD_LEAVE),
            nowhere=sum(one.replacement is Replacement.NOWHERE for one in pods),
            spared=[one for one in self.spared if one.startswith(f"{namespace}/")],
        )

    @property
    def needs_a_person(self) -> bool:
        """Whether somebody should look before the change is made."""
        return bool(self.held or self.nowhere or self.guards)
