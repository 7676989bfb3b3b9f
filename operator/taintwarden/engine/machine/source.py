"""Interfaces of a source of taints besides those of nodes, such as that of devices, and of the machine as its host.

A source receives its events at all times, and adds taints only while a policy selects them. Verdicts, histories,
guards, limits and reports treat these taints like those of nodes.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from taintwarden.engine.events import SourceEvent
from taintwarden.engine.history import TaintHistory
from taintwarden.engine.machine.cluster import NodeState
from taintwarden.engine.model import Instant, Pod, WallTime

NOT_LISTED = "devices have not been listed yet"


class TaintSource(Protocol):
    """Source of taints that concern pods, besides those of their node."""

    @property
    def problem(self) -> str:
        """Why its taints are not known; empty if they are."""

    @property
    def blind(self) -> Mapping[str, WallTime]:
        """Its streams that are cut off, with the time of each cut. Its taints evict no pod meanwhile."""

    def process_event(self, event: SourceEvent) -> None:
        """Process an event of its streams."""

    # -- pods and nodes -------------------------------------------------------------------------------------------

    def equip(self, pod: Pod) -> Pod:
        """Return a pod with its current data, such as devices, in place of earlier data."""

    def replace_pod(self, state: NodeState, before: Pod | None, after: Pod | None) -> bool:
        """Process a change of a pod on a node. ``before`` None: it is new; ``after`` None: it is gone.

        Returns True if the taints that concern the node's pods changed.
        """

    def restore(self, state: NodeState, stored: Mapping[str, TaintHistory], seen_until: float, *, is_new: bool) -> None:
        """Read a node's stored histories. ``seen_until``: see ``NodeState.update``. ``is_new``: a new node."""

    def refresh(self, state: NodeState) -> bool:
        """Update the taints that concern a node's pods. Returns True if they changed."""

    def recheck_all(self) -> None:
        """Note that all pods and nodes may have changed."""

    # -- what waits to be evaluated -------------------------------------------------------------------------------

    def is_pending(self, node: str) -> bool:
        """True if pods of a node wait to be evaluated because their taints may have changed."""

    @property
    def is_busy(self) -> bool:
        """True if pods of any node wait."""

    def catch_up(self, node: str) -> bool:
        """Update the taints of a node that is about to be evaluated, or is gone. Returns True if they changed."""

    def advance(self, most: int) -> int:
        """Have about ``most`` waiting pods evaluated. Returns how many are left of ``most``."""


class SourceHost(Protocol):
    """Interface of the machine for a source of taints."""

    @property
    def nodes(self) -> Mapping[str, NodeState]:
        """All nodes, by name."""

    @property
    def now(self) -> Instant:
        """The time of the step."""

    @property
    def is_synced(self) -> bool:
        """True once all lists that decisions need were delivered."""

    def store_pod(self, pod: Pod) -> None:
        """Store a pod again, with the source's newest data."""

    def update_pod(self, pod: Pod) -> None:
        """Store a pod again, and evaluate it."""

    def evaluate_node(self, state: NodeState) -> None:
        """Evaluate the pods of a node at once."""

    def evaluate_later(self, names: Iterable[str]) -> None:
        """Queue these nodes, to be evaluated before any pod is evicted."""

    def retry_refused(self, key: str) -> None:
        """Retry the pods whose refusal has this key."""


def pending_key(node: str) -> str:
    """Key of the refusal that pods of a node share while they wait to be evaluated because of a source."""
    return f"devices/{node}"


BLIND_KEY = "devices"
"""Key of the refusal of pods that have to leave only because of a source whose streams are cut off."""
