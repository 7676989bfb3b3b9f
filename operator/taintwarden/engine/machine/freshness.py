"""Due pods that are newer than what is known of their node: its taint may be gone already, so it is read afresh."""

from collections.abc import Iterator, Mapping

from taintwarden.engine.machine.commands import CheckNode
from taintwarden.engine.machine.inventory import NodeState
from taintwarden.engine.machine.pending import Pending, Phase
from taintwarden.engine.machine.queues import Queues


class Freshness:
    """Knows how far the node stream has come, and parks pods while their node is read.

    Args:
        nodes: the nodes.
        pending: the pods that have to leave.
        queues: where they stand.

    """

    def __init__(self, nodes: Mapping[str, NodeState], pending: Mapping[str, Pending], queues: Queues) -> None:
        self._nodes = nodes
        self._pending = pending
        self._queues = queues
        self._reached = -1

    def reached(self, resource_version: int) -> None:
        """The node stream has delivered everything up to here."""
        self._reached = max(self._reached, resource_version)

    def is_missing(self, pending: Pending) -> bool:
        """Whether the pod is newer than anything known of its node."""
        version = pending.pod.resource_version
        return version > self._reached and version > self._nodes[pending.pod.node].checked_version

    def park(self, pending: Pending) -> Iterator[CheckNode]:
        """Let a due pod wait for a fresh read, which is asked for if it is not under way."""
        self._queues.remove(pending)
        pending.phase = Phase.PARKED
        state = self._nodes[pending.pod.node]
        state.parked.append(pending.pod.uid)
        if not state.check_wanted:
            state.check_wanted = True
            yield CheckNode(state.name)

    def unpark(self, node: str, retry_at: float) -> None:
        """The read was answered, or failed: its pods go on, not before ``retry_at``."""
        state = self._nodes.get(node)
        if state is None:
            return
        parked, state.parked, state.check_wanted = state.parked, [], False
        for uid in parked:
            pending = self._pending.get(uid)
            if pending is not None and pending.phase is Phase.PARKED:
                pending.retry_at = retry_at
                self._queues.wait(pending)
