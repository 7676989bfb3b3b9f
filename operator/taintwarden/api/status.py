"""The ``status`` of our kinds, written by the leader. Of all of it only ``guard`` is read again."""

from enum import StrEnum
from typing import Annotated

import msgspec

from taintwarden.engine.limits.zones import ZoneState

MAX_NEXT_PODS = 10
MAX_LIMITS = 16
MAX_BLOCKED_BUDGETS = 20
MAX_INVALID_TAINTS = 10
MAX_ZONES = 50
MAX_SPENT = 64
MAX_CAUSE_LENGTH = 1_024


class ConditionStatus(StrEnum):
    """As in ``metav1.Condition``."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class PodState(StrEnum):
    """What a pod in ``nextPods`` waits for: its deadline, a limit, or the leave of a budget or the API server."""

    SCHEDULED = "Scheduled"
    WAITING = "Waiting"
    BLOCKED = "Blocked"


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """Base of what is written into ``status``. Times are RFC 3339 text in UTC."""


class Condition(Status, frozen=True):
    """As ``metav1.Condition``, so that ``kubectl wait`` works."""

    type: str
    status: ConditionStatus
    reason: str
    message: str
    last_transition_time: str
    observed_generation: int | None = None


class NextPod(Status, frozen=True):
    """One of the pods that leave next."""

    namespace: str
    name: str
    node: str
    taint: str
    deadline: str
    state: PodState


class LimitStatus(Status, frozen=True, omit_defaults=True):
    """A limit that holds due pods: how many, since when, and when it may let the next one go, if that is known."""

    limit: str
    pods: int
    since: str
    until: str | None = None


class BlockedBudget(Status, frozen=True):
    """A PodDisruptionBudget, and how many due pods it holds."""

    namespace: str
    name: str
    pods: int


class InvalidTaintStatus(Status, frozen=True):
    """A taint whose value cannot be compared, and how many pods this affects."""

    node: str
    taint: str
    pods: int


class ZoneStatus(Status, frozen=True):
    """How a zone fares under the policy, by the nodes that it counts."""

    zone: str
    state: ZoneState
    nodes: int
    degraded_nodes: int


class SpentEvictions(Status, frozen=True):
    """Evictions that happened before ``until``. They count for one window from then on."""

    until: str
    pods: Annotated[int, msgspec.Meta(ge=0)]


class GuardStatus(Status, frozen=True):
    """What a guard must remember; written before the evictions that it reserves. Its times have microseconds.

    As in :class:`PolicyStatus`, None removes what stood there.
    """

    open: bool
    since: str | None = None
    cause: str | None = None
    would_evict: int | None = None
    accepted: int | None = None
    released_at: str | None = None
    reset_granted: str | None = None
    spent: tuple[SpentEvictions, ...] = ()


class PolicyStatus(Status, frozen=True):
    """All of the status but ``guard``, which has a writer of its own: this one, seconds old, would undo its work.

    A field that is None is written as null, which removes what stood there.
    """

    observed_generation: int | None = None
    observed_at: str | None = None
    """When the operator reported last: a status that is older than a minute is of an operator that does not run."""
    conditions: tuple[Condition, ...] = ()
    selected_nodes: int = 0
    degraded_nodes: int = 0
    pending: int = 0
    blocked: int = 0
    evicted: int = 0
    held_invalid: int = 0
    invalid_taints: tuple[InvalidTaintStatus, ...] = ()
    next_deadline: str | None = None
    limited_by: str | None = None
    limits: tuple[LimitStatus, ...] = ()
    blocked_budgets: tuple[BlockedBudget, ...] = ()
    zones: tuple[ZoneStatus, ...] = ()
    next_pods: tuple[NextPod, ...] = ()


class ProfileStatus(Status, frozen=True):
    """The status of a TolerationProfile."""

    observed_generation: int | None = None
    conditions: tuple[Condition, ...] = ()
    matched_pods: int = 0
