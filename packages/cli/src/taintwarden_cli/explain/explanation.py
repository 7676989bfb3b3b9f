"""The explanation of a pod, in a structure that is stable between releases.

The structs are what ``-o json`` prints; times are RFC 3339 in UTC.
"""

from enum import StrEnum

import msgspec
from msgspec import field

from taintwarden.engine.model import Toleration


class Fate(StrEnum):
    """The fate of a pod."""

    STAYS = "Stays"
    LEAVES = "Leaves"
    """A policy in mode Enforce gives it a deadline."""
    WOULD_LEAVE = "WouldLeave"
    """Only policies that evict no pods give it a deadline: in mode DryRun or Paused, or with the flag --dry-run."""
    PENDING = "Pending"
    """The pod is not bound to a node yet."""
    TERMINATES = "Terminates"
    """The pod was deleted, and is not gone yet."""
    NOT_ACTED_ON = "NotActedOn"
    """The operator never acts on such a pod."""


class TolerationAnswer(msgspec.Struct, rename="camel"):
    """One toleration, and whether it holds for a taint."""

    toleration: Toleration
    source: str
    """``spec``, ``claim`` (of a device), ``annotation`` or ``profile NAME``."""
    holds: bool
    answer: str
    text: str


class InactivePolicy(msgspec.Struct, rename="camel"):
    """A policy that names a taint's key and does not act on the taint of this pod."""

    policy: str
    reason: str


class TaintExplanation(msgspec.Struct, rename="camel", kw_only=True):
    """One taint of the pod's node, or of a device that a claim allocates to the pod."""

    key: str
    value: str
    effect: str
    source: str = ""
    """The field of the node that it is derived from; empty for a taint in the node's spec."""
    device: str = ""
    """The device that has it, ``DRIVER/POOL/DEVICE``; empty for a taint of the node."""
    rule: str = ""
    """The DeviceTaintRule that adds it to the device; empty if the driver does."""
    verdict: str
    """``Tolerated``, ``ToleratedFor``, ``Violated``, ``Held`` or ``NotSelected`` (no policy acts on it)."""
    reason: str
    policy: str | None = None
    mode: str | None = None
    other_policies: list[InactivePolicy] = field(default_factory=list)
    tolerations: list[TolerationAnswer] = field(default_factory=list)
    judged_value: str | None = None
    """The last valid value, if it is used because the current one cannot be compared."""
    invalid_value: bool = False
    added_at: str | None = None
    since: str | None = None
    """Start of the violation, or of the time for which the taint is tolerated. The deadline counts from it."""
    clock_recorded: bool = True
    """True if the node records ``since``. Otherwise that time is taken to be now."""
    grace_seconds: int | None = None
    deadline: str | None = None
    seconds_left: int | None = None


class PolicyExplanation(msgspec.Struct, rename="camel"):
    """One policy, and whether it may act on this pod on this node at all."""

    name: str
    mode: str | None
    selects: bool
    reason: str


class ProfileExplanation(msgspec.Struct, rename="camel"):
    """A TolerationProfile of the pod's namespace. ``selects`` is None if it is invalid; ``reason`` says why."""

    name: str
    selects: bool | None
    reason: str


class BudgetExplanation(msgspec.Struct, rename="camel"):
    """A PodDisruptionBudget that selects the pod."""

    name: str
    allows: bool
    reason: str


class ClaimExplanation(msgspec.Struct, rename="camel"):
    """A claim on the pod: its policy, its deadline, and what its eviction waits for."""

    policy: str
    mode: str
    reason: str
    deadline: str
    seconds_left: int
    waits_for: str


class NodeExplanation(msgspec.Struct, rename="camel"):
    """A node, and why a pending pod may not be bound to it. Without refusals it may."""

    name: str
    refusals: list[str]


class PodReference(msgspec.Struct, rename="camel"):
    """The pod that is explained."""

    namespace: str
    name: str
    uid: str
    node: str
    bound_at: str | None = None


class PodExplanation(msgspec.Struct, rename="camel", kw_only=True):
    """The whole explanation."""

    at: str
    pod: PodReference
    fate: Fate
    reason: str
    problem: str | None = None
    """Why no operator is running; None if one is. Without one, the explanation applies once it runs."""
    remedy: str | None = None
    """The remedy for a pending pod."""
    waits_for: str | None = None
    policy: str | None = None
    deadline: str | None = None
    seconds_left: int | None = None
    node_end: str | None = None
    """Sentence that states when a policy with ``reclaim`` expects the node to be removed."""
    claims: list[ClaimExplanation] = field(default_factory=list)
    """The claims of other policies: enforced ones first, then by deadline."""
    taints: list[TaintExplanation] = field(default_factory=list)
    policies: list[PolicyExplanation] = field(default_factory=list)
    profiles: list[ProfileExplanation] = field(default_factory=list)
    budgets: list[BudgetExplanation] = field(default_factory=list)
    budgets_problem: str | None = None
    nodes: list[NodeExplanation] = field(default_factory=list)
    """All nodes, for a pending pod."""
    scheduler: str | None = None
    """Why the scheduler found no node for a pending pod."""
    invalid_tolerations: list[str] = field(default_factory=list)
    ignored_values: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
