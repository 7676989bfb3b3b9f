"""Facts that were observed in the cluster. Times are seconds since the start of the scenario."""

from typing import Any

import msgspec


class Departure(msgspec.Struct, frozen=True):
    """A deleted pod. ``evicted``: True if the Eviction API deleted it."""

    pod: str
    uid: str
    workload: str
    node: str
    at: float
    evicted: bool = True


class SeenEvent(msgspec.Struct, frozen=True):
    """A Kubernetes Event about the pod ``name`` on ``node``, or about a node."""

    reason: str
    name: str
    uid: str
    node: str
    at: float
    note: str = ""


class Facts(msgspec.Struct):
    """All facts of a run, the input of the checks."""

    changed_at: dict[tuple[str, str], float] = {}
    """Node and value -> time at which the node's taint got the value."""
    departures: list[Departure] = []
    events: list[SeenEvent] = []
    fewest_ready: dict[str, int] = {}
    """Workload -> smallest number of Ready pods that did not terminate."""
    policy_status: dict[str, Any] = {}

    def events_of(self, reason: str, node: str | None = None) -> list[SeenEvent]:
        """Return the Events with this reason, of one node or of all (None)."""
        return [event for event in self.events if event.reason == reason and node in (None, event.node)]
