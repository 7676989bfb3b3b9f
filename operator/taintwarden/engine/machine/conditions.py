"""Writes of the condition ``taintwarden.io/Drained`` of nodes.

``True`` is written only if the machine knows what is stored: the write has the node's version as precondition, and the
pods of the node are read before it. The scheduler may bind a pod between that read and the write: the stream delivers
the pod a moment later, and the condition is withdrawn.
The condition that a node has is compared with the wanted one after each change of the node or its pods, and every few
seconds while it is not drained, since limits change without an event. A new leader compares all nodes.
"""

import math
from collections.abc import Iterable

from taintwarden.engine.commands import SaveCondition
from taintwarden.engine.deadlines import DeadlineQueue
from taintwarden.engine.events import WriteOutcome, Written
from taintwarden.engine.machine.backlog import Backlog
from taintwarden.engine.machine.cluster import NodeState
from taintwarden.engine.machine.drained import DrainedStates
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import Instant, MonotonicTime, Node, NodeCondition, StoredPod, later

MAX_COMPARED = 20
"""Maximum nodes compared in one step. A node with 100 pods takes about 0.1 ms."""
MAX_WRITES = 4
"""Maximum writes in progress at once."""
SPACING_SECONDS = 0.1
"""Seconds between two writes to any nodes, so that there are at most ten a second."""
UNSEEN_SECONDS = 10.0
"""Seconds until a write that the node stream has not delivered counts as lost."""


class DrainedConditions:
    """Writes the condition of each node whose stored one differs from the wanted one, while this process leads.

    Args:
        world: the state.
        backlog: pods that wait to be evaluated.

    """

    def __init__(self, world: World, backlog: Backlog) -> None:
        self._world = world
        self._timings = world.timings
        self._states = DrainedStates(world, backlog)
        self._first: DeadlineQueue[MonotonicTime] = DeadlineQueue()
        """Nodes with the condition ``True``, by the time of their next comparison. They come before others."""
        self._others: DeadlineQueue[MonotonicTime] = DeadlineQueue()
        self._writing: dict[str, SaveCondition] = {}
        """Node -> the write in progress."""
        self._unseen: dict[str, tuple[int, MonotonicTime]] = {}
        """Node -> its version after a write, and when the write counts as lost."""
        self._rests_until: dict[str, MonotonicTime] = {}
        """Node -> when it may be written again."""
        self._next_at = MonotonicTime(-math.inf)
        """Earliest time of the next write to any node."""

    def next_in(self, now: Instant) -> float | None:
        """Seconds until a node is compared; None if none waits, or a write has to end first."""
        if self._world.changed_nodes:
            return 0.0
        times = [at for queue in (self._first, self._others) if (at := queue.next_at()) is not None]
        if not times or len(self._writing) >= MAX_WRITES:
            return None
        return max(min(times), self._next_at) - now.monotonic

    def clear(self) -> None:
        """Forget all nodes, since the leader has changed. A new leader evaluates them, and so compares them."""
        self._first, self._others = DeadlineQueue(), DeadlineQueue()
        for known in (self._writing, self._unseen, self._rests_until):
            known.clear()

    def act(self) -> None:
        """Compare some of the nodes that are due, and write conditions that differ."""
        now = self._world.now.monotonic
        for name in self._world.take_changed_nodes():
            self._schedule(name, self._rests_until.get(name, now))
        for _ in range(MAX_COMPARED):
            if now < self._next_at or len(self._writing) >= MAX_WRITES:
                return
            due = self._first.pop_due(now) or self._others.pop_due(now)
            if due is None:
                return
            self._compare_node(due, self._world.cluster.nodes.get(due))

    def _schedule(self, name: str, at: MonotonicTime) -> None:
        """Schedule the comparison of a node."""
        state = self._world.cluster.nodes.get(name)
        is_first = state is not None and state.node is not None and state.node.is_drained
        (self._first if is_first else self._others).schedule(name, at)

    def _compare_node(self, name: str, state: NodeState | None) -> None:
        now = self._world.now.monotonic
        if name in self._writing:  # compared again when the write ends
            return
        if state is None or state.node is None:
            self._unseen.pop(name, None)
            self._rests_until.pop(name, None)
            return
        wanted, rests_until = self._states.of(state), self._rests_until.get(name, now)
        is_true = wanted is not None and wanted.is_true
        if self._is_unseen(state.node) or (is_true and not self._states.is_certain(state)):
            self._schedule(name, later(now, self._timings.condition_soon))
        elif wanted == state.node.drained:
            if wanted is not None and not is_true:
                self._schedule(name, later(now, self._timings.condition_rest))
        elif rests_until > now:
            self._schedule(name, rests_until)
        else:
            self._write(state.node, wanted)

    def _is_unseen(self, node: Node) -> bool:
        """True while the stream is expected to deliver the last write."""
        version, until = self._unseen.get(node.name, (-1, MonotonicTime(-math.inf)))
        if node.resource_version < version and self._world.now.monotonic < until:
            return True
        self._unseen.pop(node.name, None)
        return False

    def _write(self, node: Node, wanted: NodeCondition | None) -> None:
        now, before = self._world.now, node.drained
        changes_status = wanted is not None and (before is None or before.status != wanted.status)
        order = SaveCondition(node.name, node.uid, wanted, node.resource_version, now.wall, changes_status)
        self._writing[node.name] = order
        self._next_at = later(now.monotonic, SPACING_SECONDS)
        self._rests_until[node.name] = later(now.monotonic, self._timings.condition_rest)
        self._world.issue(order)

    # -- while it is written --------------------------------------------------------------------------------------

    def is_still_valid(self, order: SaveCondition) -> bool:
        """True if a write may still be sent: this process leads, its streams are live, and a ``True`` still holds."""
        if self._writing.get(order.node) is not order or not self._world.may_evict:
            return False
        if not order.says_drained:
            return True
        state = self._world.cluster.nodes.get(order.node)
        return state is not None and self._states.is_certain(state) and self._states.of(state) == order.condition

    def has_seen(self, order: SaveCondition, pods: Iterable[StoredPod]) -> bool:
        """True if the streams have delivered these pods of the order's node as read, or later, and their namespaces."""
        state = self._world.cluster.nodes.get(order.node)
        leaving = {departure.pod.uid for departure in self._world.limiter.departures.of_node(order.node)}
        for found in pods:
            pod = None if state is None else state.pods.get(found.uid)
            if found.terminates and found.uid not in leaving:
                return False
            if not found.terminates and (pod is None or pod.resource_version < found.version):
                return False
            if pod is not None and self._world.verdicts.namespace_labels(pod.namespace) is None:
                return False
        return True

    def answered(self, order: SaveCondition, event: Written) -> None:
        """Process the end of a write."""
        now = self._world.now.monotonic
        if self._writing.get(order.node) is not order:
            return
        del self._writing[order.node]
        if event.outcome is WriteOutcome.DONE:
            self._unseen[order.node] = event.version, later(now, UNSEEN_SECONDS)
        elif event.outcome is WriteOutcome.OUTDATED:
            self._rests_until[order.node] = later(now, self._timings.condition_outdated)
        elif event.outcome is WriteOutcome.REFUSED:
            self._rests_until[order.node] = later(now, self._timings.condition_refused)
        self._schedule(order.node, self._rests_until[order.node])
