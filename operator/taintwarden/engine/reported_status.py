"""What the status of a policy says of it: made by the machine, written as it is, and read by every command.

Conditions and the guard are added where the whole status is described, in ``taintwarden.api.status``.
"""

from enum import StrEnum

import msgspec

from taintwarden.engine.limits.zones import ZoneState
from taintwarden.engine.model import Int64
from taintwarden.engine.rfc3339 import read_time

MAX_BLOCKED_BUDGETS = 20
MAX_INVALID_TAINTS = 10
MAX_ZONES = 50
MAX_STUCK = 10
MAX_STAYING = 12
NEXT_PODS = 10
"""How many of the next pods are listed."""
MAX_MESSAGE_CHARACTERS = 512
"""Of what an API server or a limit says about one pod."""
ZONE_STATES = {state: number for number, state in enumerate(ZoneState)}
"""The states of a zone as numbers that grow with the trouble."""


class PodState(StrEnum):
    """What a pod in ``nextPods`` waits for: its deadline, a limit, or a budget."""

    SCHEDULED = "Scheduled"
    WAITING = "Waiting"
    BLOCKED = "Blocked"


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """Base of what is written into ``status``. Times are RFC 3339 text in UTC."""


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
    """What it says of one of them."""

    @property
    def since_at(self) -> float | None:
        """``since`` in seconds since the epoch, if it can be read."""
        return read_time(self.since)


class BlockedBudget(Status, frozen=True):
    """A PodDisruptionBudget, and how many due pods it holds."""

    namespace: str
    name: str
    pods: Int64

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class InvalidTaint(Status, frozen=True):
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


class StuckPod(Status, frozen=True):
    """A pod that terminates longer than its grace period lets it, and when that ended."""

    namespace: str
    name: str
    node: str
    since: str


class StayingPods(Status, frozen=True):
    """Why pods stay on nodes with a taint that the policy names, in a few words, and how many they are."""

    reason: str
    pods: Int64


class ReportedStatus(Status, frozen=True):
    """The counts and the near future of one policy.

    A field that is None is written as null, which removes what stood there.
    """

    selected_nodes: Int64 = 0
    evicting_nodes: Int64 = 0
    pending: Int64 = 0
    """Pods that it evicts, now or later; of a paused policy, those that it would."""
    blocked: Int64 = 0
    """Of these, due pods that PodDisruptionBudgets block."""
    evicted: Int64 = 0
    past_budgets: Int64 = 0
    """Of these, pods that were deleted in spite of a PodDisruptionBudget."""
    leaving: Int64 = 0
    """Pods that had to leave and terminate: their nodes are not empty."""
    stuck: tuple[StuckPod, ...] = ()
    """Of these, those that should have ended, the longest first."""
    retained: Int64 = 0
    """Pairs of a pod and a taint whose value cannot be compared, and does not evict the pod for that."""
    invalid_taints: tuple[InvalidTaint, ...] = ()
    """The most pods first."""
    staying: tuple[StayingPods, ...] = ()
    """The most pods first."""
    next_deadline: str | None = None
    limited_by: str | None = None
    """The limit that refuses the most pods."""
    limits: tuple[LimitStatus, ...] = ()
    """The limits that refuse due pods, the most pods first."""
    blocked_budgets: tuple[BlockedBudget, ...] = ()
    """The most pods first."""
    zones: tuple[ZoneStatus, ...] = ()
    """By name; of too many, the worst. Empty if the policy has no zoneHealth."""
    next_pods: tuple[NextPod, ...] = ()
