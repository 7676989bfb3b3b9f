"""Why a pod stays or leaves: what the machine says about it, as a structure that does not change between releases.

Nothing is decided here. The facts go through the same translation into the same machine as in the operator, and what
it answers is written down. The structs are what ``-o json`` and ``-o yaml`` print; times are RFC 3339 in UTC.
"""

from enum import StrEnum

import msgspec
from msgspec import field

from taintwarden.engine.model import Toleration


class Fate(StrEnum):
    """What becomes of the pod."""

    STAYS = "Stays"
    LEAVES = "Leaves"
    """A policy that enforces gives it a deadline."""
    WOULD_LEAVE = "WouldLeave"
    """Only policies that do not enforce would: in mode DryRun or Paused, or of an operator with --dry-run."""
    NOT_ACTED_ON = "NotActedOn"
    """The operator never touches such a pod."""


class Answer(msgspec.Struct, rename="camel"):
    """One toleration and how it answers to a taint."""

    toleration: Toleration
    source: str
    """``spec``, ``annotation`` or ``profile NAME``."""
    holds: bool
    answer: str
    text: str


class Passed(msgspec.Struct, rename="camel"):
    """A policy that has to do with a taint's key and does not act on it here."""

    policy: str
    reason: str


class TaintExplanation(msgspec.Struct, rename="camel", kw_only=True):
    """One taint of the pod's node."""

    key: str
    value: str
    effect: str
    verdict: str
    """``Tolerated``, ``ToleratedFor``, ``Violated``, ``Held`` or ``NotSelected`` (no policy acts on it)."""
    reason: str
    policy: str | None = None
    mode: str | None = None
    other_policies: list[Passed] = field(default_factory=list)
    tolerations: list[Answer] = field(default_factory=list)
    judged_value: str | None = None
    """The last valid value, where the current one cannot be compared and this one is used instead."""
    invalid_value: bool = False
    added_at: str | None = None
    since: str | None = None
    """When its clock for this pod started: the violation, or the addition where it is tolerated for a time."""
    clock_recorded: bool = True
    """Whether that comes from the node. Otherwise nobody wrote it down yet, and it is counted from now."""
    grace_seconds: int | None = None
    deadline: str | None = None
    seconds_left: int | None = None


class PolicyExplanation(msgspec.Struct, rename="camel"):
    """One policy and whether it may touch this pod on this node at all."""

    name: str
    mode: str | None
    selects: bool
    reason: str


class ProfileExplanation(msgspec.Struct, rename="camel"):
    """A TolerationProfile of the pod's namespace. ``selects`` None: it is not valid, see ``reason``."""

    name: str
    selects: bool | None
    reason: str


class BudgetExplanation(msgspec.Struct, rename="camel"):
    """A PodDisruptionBudget that covers the pod."""

    name: str
    allows: bool
    reason: str


class ClaimExplanation(msgspec.Struct, rename="camel"):
    """A policy that wants the pod gone, when, and what its eviction waits for."""

    policy: str
    mode: str
    reason: str
    deadline: str
    seconds_left: int
    waits_for: str


class PodReference(msgspec.Struct, rename="camel"):
    """Which pod."""

    namespace: str
    name: str
    uid: str
    node: str
    bound_at: str | None = None


class PodExplanation(msgspec.Struct, rename="camel", kw_only=True):
    """The whole answer."""

    at: str
    pod: PodReference
    fate: Fate
    reason: str
    problem: str | None = None
    """Why no operator is at work, if none is: the answer holds once one runs."""
    waits_for: str | None = None
    policy: str | None = None
    deadline: str | None = None
    seconds_left: int | None = None
    claims: list[ClaimExplanation] = field(default_factory=list)
    """Other policies that want it gone, too: what is enforced first, then the earliest."""
    taints: list[TaintExplanation] = field(default_factory=list)
    policies: list[PolicyExplanation] = field(default_factory=list)
    profiles: list[ProfileExplanation] = field(default_factory=list)
    budgets: list[BudgetExplanation] = field(default_factory=list)
    budgets_problem: str | None = None
    invalid_tolerations: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
