"""Taints beside those of nodes, such as those of devices: what a source of them offers, and what it may ask for.

The machine calls a source only while a policy selects its taints. Everything that is true of a node's taints is true of
them: verdicts, histories, guards, limits and reports know no other path.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from taintwarden.engine.history import TaintHistory
from taintwarden.engine.machine.cluster import NodeState
from taintwarden.engine.machine.events import SourceEvent
from taintwarden.engine.model import Instant, Pod, WallTime

NOT_LISTED = "devices were not listed yet"


class TaintSource(Protocol):
    """Which pods have taints beside those of their node, and how these change."""

    @property
    def problem(self) -> str:
        """Why its taints are not known; empty: they are."""

    @property
    def blind(self) -> Mapping[str, WallTime]:
        """Its streams that are cut off, and since when: no pod is evicted because of its taints."""

    def take(self, event: SourceEvent) -> None:
        """What its streams delivered."""

    # -- pods and nodes -------------------------------------------------------------------------------------------

    def equip(self, pod: Pod) -> Pod:
        """A pod with what it has now, whatever it had."""

    def exchanged(self, state: NodeState, before: Pod | None, after: Pod | None) -> bool:
        """A pod of this node was like this, and is like that (None: it was not there, or is gone).

        Returns whether the taints of the node's pods changed.
        """

    def restore(self, state: NodeState, stored: Mapping[str, TaintHistory], seen_until: float, *, is_new: bool) -> None:
        """Read what the node's annotation has. ``seen_until``: when what was known was certainly true last."""

    def refresh(self, state: NodeState) -> bool:
        """Bring the newest taints of its pods to a node. Returns whether they changed."""

    def look_again(self) -> None:
        """All pods and nodes may differ from what it was asked about."""

    # -- what waits to be evaluated -------------------------------------------------------------------------------

    def is_pending(self, node: str) -> bool:
        """Whether pods of a node wait to be evaluated, since their taints may have changed."""

    @property
    def is_busy(self) -> bool:
        """Whether any do."""

    def catch_up(self, node: str) -> bool:
        """A node is evaluated, or would be if it were not gone. Returns whether the taints of its pods changed."""

    def advance(self, budget: int) -> int:
        """Have about so many pods evaluated that wait. Returns how much of the budget is left."""


class SourceHost(Protocol):
    """What a source may read of the machine, and ask of it."""

    @property
    def nodes(self) -> Mapping[str, NodeState]:
        """All nodes, by name."""

    @property
    def now(self) -> Instant:
        """The time of the step."""

    @property
    def is_synced(self) -> bool:
        """Whether all pods are known."""

    def put(self, pod: Pod) -> None:
        """Store a pod again, as the source equips it now."""

    def see_pod(self, pod: Pod) -> None:
        """The same, and evaluate it."""

    def judge(self, state: NodeState) -> None:
        """Evaluate the pods of a node at once."""

    def judge_later(self, names: Iterable[str]) -> None:
        """Evaluate the pods of these nodes before any pod is evicted."""

    def release(self, key: str) -> None:
        """Retry the pods that were refused by this key."""


def pending_key(node: str) -> str:
    """The key of a refusal, shared by the pods of a node that wait to be evaluated because of a source."""
    return f"devices/{node}"


BLIND_KEY = "devices"
"""The key of a refusal, shared by all pods that leave because of a source that is blind."""
