"""What was observed in the cluster. Times are seconds since the start of the scenario."""

from typing import Any

import msgspec


class Departure(msgspec.Struct, frozen=True):
    """A pod that was deleted; ``evicted``: whether by the Eviction API."""

    pod: str
    uid: str
    workload: str
    node: str
    at: float
    evicted: bool = True


class SeenEvent(msgspec.Struct, frozen=True):
    """A Kubernetes Event about ``name`` on ``node`` (for a node: the node itself)."""

    reason: str
    name: str
    uid: str
    node: str
    at: float
    note: str = ""


class Facts(msgspec.Struct):
    """The input of the check."""

    changed_at: dict[tuple[str, str], float] = {}
    """The time at which a node's taint got a value, by node and value."""
    departures: list[Departure] = []
    events: list[SeenEvent] = []
    fewest_ready: dict[str, int] = {}
    """The smallest number of Ready pods that do not terminate, by workload."""
    policy_status: dict[str, Any] = {}

    def events_of(self, reason: str, node: str | None = None) -> list[SeenEvent]:
        """Events with this reason, of one node if given."""
        return [one for one in self.events if one.reason == reason and node in (None, one.node)]
