"""Status of a policy as far as the machine computes it. It is written unchanged, and read by every command.

``taintwarden.api.status`` describes the whole status, with the conditions and the guard.
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
"""Maximum pods in ``nextPods``."""
MAX_MESSAGE_CHARACTERS = 512
"""Maximum characters of the message of an API server or a limit about one pod."""
ZONE_STATES = {state: number for number, state in enumerate(ZoneState)}
"""States of a zone, each with a number that grows with the share of unhealthy nodes."""


class PodState(StrEnum):
    """State of a pod in ``nextPods``, which waits for its deadline, a limit, or a budget."""

    SCHEDULED = "Scheduled"
    WAITING = "Waiting"
    BLOCKED = "Blocked"


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """Base of the objects in ``status``. Times are RFC 3339 text in UTC."""


class NextPod(Status, frozen=True, omit_defaults=True):
    """One of the pods that leave next, with the limit that delays it, perhaps by the answer to its last call."""

    namespace: str
    name: str
    node: str
    taint: str
    deadline: str
    state: PodState
    limit: str = ""
    message: str = ""
    attempts: Int64 = 0
    """Number of eviction calls that did not evict the pod, whatever their outcomes; 0 if none delays it."""
    until: str | None = None

    @property
    def until_at(self) -> float | None:
        """``until`` in seconds since the epoch, if it can be read."""
        return read_time(self.until)


class LimitStatus(Status, frozen=True, omit_defaults=True):
    """A limit that holds due pods: their number, the start, the next possible admission if known, and the reason."""

    limit: str
    pods: Int64
    since: str
    until: str | None = None
    message: str = ""
    """Detail of the refusal of one of the pods."""

    @property
    def since_at(self) -> float | None:
        """``since`` in seconds since the epoch, if it can be read."""
        return read_time(self.since)


class BlockedBudget(Status, frozen=True):
    """A PodDisruptionBudget, and the number of due pods that it holds."""

    namespace: str
    name: str
    pods: Int64

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class InvalidTaint(Status, frozen=True):
    """A taint whose value cannot be compared, and the number of pods that it affects."""

    node: str
    taint: str
    pods: Int64


class ZoneStatus(Status, frozen=True):
    """State of a zone under the policy, and the numbers of nodes from which it follows."""

    zone: str
    state: ZoneState
    nodes: Int64
    unhealthy_nodes: Int64


class StuckPod(Status, frozen=True):
    """A pod that still terminates after its grace period, and when that period ended."""

    namespace: str
    name: str
    node: str
    since: str


class StayingPods(Status, frozen=True):
    """Reason why pods stay on nodes with a taint that the policy names, in a few words, and their number."""

    reason: str
    pods: Int64


class ReportedStatus(Status, frozen=True):
    """The counts and the near future of one policy.

    A field that is None is written as null, which removes its previous value.
    """

    selected_nodes: Int64 = 0
    evicting_nodes: Int64 = 0
    pending: Int64 = 0
    """Pods that the policy evicts, now or later, or would evict if it enforced and were not paused."""
    blocked: Int64 = 0
    """Due pods that PodDisruptionBudgets block. ``pending`` includes them."""
    evicted: Int64 = 0
    past_budgets: Int64 = 0
    """Pods that were deleted in spite of a PodDisruptionBudget. ``evicted`` includes them."""
    leaving: Int64 = 0
    """Terminating pods that had to leave: their nodes are not drained yet."""
    stuck: tuple[StuckPod, ...] = ()
    """Pods in ``leaving`` that should have ended, the longest overdue first."""
    retained: Int64 = 0
    """Pairs of a pod and a taint whose value cannot be compared, so that its last valid value decides, if any."""
    invalid_taints: tuple[InvalidTaint, ...] = ()
    """Taints, those with the most pods first."""
    staying: tuple[StayingPods, ...] = ()
    """Reasons, those with the most pods first."""
    next_deadline: str | None = None
    limited_by: str | None = None
    """The limit that refuses the most pods."""
    limits: tuple[LimitStatus, ...] = ()
    """Limits that refuse due pods, those with the most pods first."""
    blocked_budgets: tuple[BlockedBudget, ...] = ()
    """Budgets, those that hold the most pods first."""
    zones: tuple[ZoneStatus, ...] = ()
    """Zones by name; beyond ``MAX_ZONES``, the worst only. Empty if the policy has no ``zoneHealth``."""
    next_pods: tuple[NextPod, ...] = ()
