"""The ``status`` of a TaintEvictionPolicy, written by the leader. Nothing that decides is read from it."""

from enum import StrEnum

import msgspec

MAX_NEXT_PODS = 10


class ConditionStatus(StrEnum):
    """As in ``metav1.Condition``."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class PodState(StrEnum):
    """What a pod in ``nextPods`` waits for: its deadline, a limit, or the API server's leave to evict it."""

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


class PolicyStatus(Status, frozen=True):
    """The whole status. A field that is None is written as null, which removes what stood there."""

    observed_generation: int | None = None
    conditions: tuple[Condition, ...] = ()
    selected_nodes: int = 0
    degraded_nodes: int = 0
    pending: int = 0
    blocked: int = 0
    evicted: int = 0
    held_invalid: int = 0
    next_deadline: str | None = None
    limited_by: str | None = None
    next_pods: tuple[NextPod, ...] = ()
