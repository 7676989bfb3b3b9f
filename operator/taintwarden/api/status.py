"""The ``status`` of policies and profiles. A leader reads only ``guard``, ``places`` and times of conditions again."""

from enum import StrEnum
from typing import Annotated

import msgspec

from taintwarden.engine.model import Int64
from taintwarden.engine.reported_status import ReportedStatus, Status

MAX_PAST = 64
MAX_NAMESPACES = 64
MAX_RESERVED = 512
MAX_CAUSE_LENGTH = 1_024
"""Maximum numbers of past evictions, namespaces and reserved pods in the record of a guard, and length of its cause."""


class ConditionStatus(StrEnum):
    """Status of a condition, as in ``metav1.Condition``."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(Status, frozen=True):
    """A condition as in ``metav1.Condition``, so that ``kubectl wait`` works."""

    type: str
    status: ConditionStatus
    reason: str
    message: str
    last_transition_time: str
    observed_generation: Int64 | None = None


Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class NamespacePods(Status, frozen=True):
    """Number of pods of a namespace. Those of many small namespaces are counted together, under the empty name."""

    namespace: str
    pods: Count


class PastEvictions(Status, frozen=True):
    """Evictions that happened before ``until``. They count for one window from then."""

    until: str
    namespaces: tuple[NamespacePods, ...]


class ReservedEviction(Status, frozen=True):
    """A pod that is evicted next, or whose eviction was requested."""

    uid: str
    namespace: str


class GuardStatus(Status, frozen=True):
    """The record of a guard, written before the evictions that it reserves. Its times have microseconds.

    As in :class:`ReportedStatus`, None removes a value. ``engine.records.GuardRecord`` says what the fields mean.
    """

    tripped_at: str | None = None
    cause: str | None = None
    counted: tuple[NamespacePods, ...] = ()
    evicted: tuple[PastEvictions, ...] = ()
    reserved: tuple[ReservedEviction, ...] = ()
    term: Int64 = 0
    population: Count = 0


class PlaceStatus(Status, frozen=True):
    """A node from which pods may leave, and the time since which they may."""

    node: str
    since: str


class PlacesStatus(Status, frozen=True):
    """The nodes from which pods may leave (``concurrentNodes``); written before they do."""

    nodes: tuple[PlaceStatus, ...] = ()
    term: Int64 = 0


class PolicyStatus(ReportedStatus, frozen=True):
    """The whole status of a policy, as it is read.

    ``guard`` and ``places`` are written separately: a report of the machine is seconds old, and would undo them.
    """

    observed_generation: Int64 | None = None
    observed_at: str | None = None
    """Time of the last report. A status that is older than a minute belongs to an operator that does not run."""
    conditions: tuple[Condition, ...] = ()
    guard: GuardStatus | None = None
    places: PlacesStatus | None = None

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of this type; None if there is none."""
        return next((condition for condition in self.conditions if condition.type == kind), None)

    def message_if(self, kind: str, value: str) -> str:
        """Return the message of a condition if its status or reason is ``value``; else an empty text."""
        found = self.condition(kind)
        return found.message if found is not None and value in (found.status, found.reason) else ""


class ProfileStatus(Status, frozen=True):
    """The status of a TolerationProfile."""

    observed_generation: Int64 | None = None
    conditions: tuple[Condition, ...] = ()
    matched_pods: Int64 = 0
