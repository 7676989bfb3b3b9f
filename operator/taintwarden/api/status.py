"""The ``status`` of our kinds, written by the leader. Of all of it only ``guard`` is read again."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

import msgspec

from taintwarden.engine.limits.zones import ZoneState
from taintwarden.engine.model import Int64

MAX_LIMITS = 16
MAX_BLOCKED_BUDGETS = 20
MAX_INVALID_TAINTS = 10
MAX_ZONES = 50
MAX_RECLAIMS = 10
MAX_PAST = 64
MAX_NAMESPACES = 64
MAX_RESERVED = 512
MAX_CAUSE_LENGTH = 1_024


class ConditionStatus(StrEnum):
    """As in ``metav1.Condition``."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class PodState(StrEnum):
    """What a pod in ``nextPods`` waits for: its deadline, a limit, or a budget."""

    SCHEDULED = "Scheduled"
    WAITING = "Waiting"
    BLOCKED = "Blocked"


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """Base of what is written into ``status``. Times are RFC 3339 text in UTC."""


def read_time(text: str | None) -> float | None:
    """An RFC 3339 time in seconds since the epoch."""
    try:
        return None if text is None else datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return None


class Condition(Status, frozen=True):
    """As ``metav1.Condition``, so that ``kubectl wait`` works."""

    type: str
    status: ConditionStatus
    reason: str
    message: str
    last_transition_time: str
    observed_generation: Int64 | None = None


class NextPod(Status, frozen=True, omit_defaults=True):
    """One of the pods that leave next, and what refuses it: a limit, or the outcome of its last eviction call."""

    namespace: str
    name: str
    node: str
    taint: str
    deadline: str
    state: PodState
    limit: str = ""
    message: str = ""
    attempts: Int64 = 0
    """Calls with that outcome in a row."""
    until: str | None = None

    @property
    def until_at(self) -> float | None:
        """``until`` in seconds since the epoch, if it can be read."""
        return read_time(self.until)


class LimitStatus(Status, frozen=True, omit_defaults=True):
    """A limit that holds due pods: how many, since when, when it may admit the next one if that is known, and why."""

    limit: str
    pods: Int64
    since: str
    until: str | None = None
    message: str = ""

    @property
    def since_at(self) -> float | None:
        """``since`` in seconds since the epoch, if it can be read."""
        return read_time(self.since)


class BlockedBudget(Status, frozen=True):
    """A PodDisruptionBudget, and how many due pods it holds."""

    namespace: str
    name: str
    pods: Int64


class InvalidTaintStatus(Status, frozen=True):
    """A taint whose value cannot be compared, and how many pods this affects."""

    node: str
    taint: str
    pods: Int64


class ZoneStatus(Status, frozen=True):
    """How a zone fares under the policy, by the nodes that it counts."""

    zone: str
    state: ZoneState
    nodes: Int64
    unhealthy_nodes: Int64


class ReclaimStatus(Status, frozen=True):
    """The end of a node: when it counts as gone, and the pods on it.

    ``pods`` have to leave it or are left on it. Of these, ``at_risk`` will not have left. ``missed`` were still on it
    when it was gone.
    """

    node: str
    gone_at: str
    pods: Int64
    at_risk: Int64
    missed: Int64


class NamespacePods(Status, frozen=True):
    """So many pods of a namespace. Those of many small ones together have the empty name."""

    namespace: str
    pods: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class PastEvictions(Status, frozen=True):
    """Evictions that happened before ``until``. They count for one window from then on."""

    until: str
    namespaces: tuple[NamespacePods, ...]


class ReservedEviction(Status, frozen=True):
    """A pod that is evicted next."""

    uid: str
    namespace: str


class GuardStatus(Status, frozen=True):
    """What a guard must remember; written before the evictions that it reserves. Its times have microseconds.

    As in :class:`PolicyStatus`, None removes what stood there.
    """

    tripped_at: str | None = None
    cause: str | None = None
    counted: tuple[NamespacePods, ...] = ()
    evicted: tuple[PastEvictions, ...] = ()
    reserved: tuple[ReservedEviction, ...] = ()
    released: Int64 | None = None
    released_at: str | None = None
    reset_granted: str | None = None
    term: Int64 = 0


class PolicyStatus(Status, frozen=True):
    """All of the status but ``guard``, which has a writer of its own: this one, seconds old, would undo its work.

    A field that is None is written as null, which removes what stood there.
    """

    observed_generation: Int64 | None = None
    observed_at: str | None = None
    """When the operator reported last: a status that is older than a minute is of an operator that does not run."""
    conditions: tuple[Condition, ...] = ()
    selected_nodes: Int64 = 0
    evicting_nodes: Int64 = 0
    pending: Int64 = 0
    blocked: Int64 = 0
    evicted: Int64 = 0
    retained: Int64 = 0
    invalid_taints: tuple[InvalidTaintStatus, ...] = ()
    next_deadline: str | None = None
    limited_by: str | None = None
    limits: tuple[LimitStatus, ...] = ()
    blocked_budgets: tuple[BlockedBudget, ...] = ()
    zones: tuple[ZoneStatus, ...] = ()
    reclaims: tuple[ReclaimStatus, ...] = ()
    next_pods: tuple[NextPod, ...] = ()


class ProfileStatus(Status, frozen=True):
    """The status of a TolerationProfile."""

    observed_generation: Int64 | None = None
    conditions: tuple[Condition, ...] = ()
    matched_pods: Int64 = 0
