"""The labels of a node that repeat what the scheduler has to compare, and the writes that they need.

Only keys that policies name count. ``taintwarden placement remove`` removes the labels of other keys, and checks first
which pods need them.
"""

from collections.abc import Container, Mapping

from msgspec.structs import replace

from taintwarden.engine.deadlines import DeadlineQueue
from taintwarden.engine.machine import commands
from taintwarden.engine.machine.claims import retry_delay
from taintwarden.engine.machine.cluster import NodeState
from taintwarden.engine.machine.outbox import Outbox, labels_key
from taintwarden.engine.machine.world import Timings, World
from taintwarden.engine.model import MonotonicTime, Node, Taint, later
from taintwarden.engine.placement import Label, NodeLabels, wanted_labels

MAX_AT_ONCE = 3
"""How often labels are corrected without delay: a person, or a kubelet that starts, changes them once."""


class _Written:
    """The labels that were written to a node. ``stored``: the node had them since."""

    __slots__ = ("at", "digest", "number", "stored")

    def __init__(self, digest: int, at: MonotonicTime) -> None:
        self.digest = digest
        self.at = at
        self.number = 0
        self.stored = False


class _Contests:
    """Labels that another client keeps changing: each is written again later than the time before.

    Args:
        timings: how long to wait, and how long labels have to stay until the waits begin again.

    """

    def __init__(self, timings: Timings) -> None:
        self._timings = timings
        self.written: dict[str, _Written] = {}
        """By node."""
        self._waiting: DeadlineQueue[MonotonicTime] = DeadlineQueue()

    def clear(self) -> None:
        """Leadership begins."""
        self.written.clear()
        self._waiting = DeadlineQueue()

    def forget(self, node: str) -> None:
        """The node is gone."""
        self.written.pop(node, None)
        self._waiting.cancel(node)

    def stored(self, node: str) -> None:
        """The node has the labels that it should have."""
        if (known := self.written.get(node)) is not None:
            known.stored = True
            self._waiting.cancel(node)

    def write(self, node: str, labels: Mapping[str, str], now: MonotonicTime) -> int:
        """These labels are to be written. Returns how often another client has changed them, if they have to wait."""
        digest, known = hash(frozenset(labels.items())), self.written.get(node)
        if known is None or known.digest != digest or now > later(known.at, self._timings.labels_calm):
            self.written[node] = _Written(digest, now)
            self._waiting.cancel(node)
            return 0
        if not known.stored:  # the same write again, or one that failed: the outbox delays these
            return 0
        known.number, known.at, known.stored = known.number + 1, now, False
        if known.number <= MAX_AT_ONCE:
            return 0
        delay = retry_delay(self._timings.labels_contested, known.number - MAX_AT_ONCE, node)
        self._waiting.schedule(node, later(now, delay))
        return known.number

    def again_at(self, node: str) -> MonotonicTime | None:
        """When the labels of a node may be written; None: now."""
        return self._waiting.at(node)

    def next_at(self) -> MonotonicTime | None:
        """When the first labels may be written that wait."""
        return self._waiting.next_at()

    def pop_due(self, now: MonotonicTime) -> str | None:
        """The next node whose labels may be written."""
        return self._waiting.pop_due(now)


class Mirroring:
    """Compares the labels of nodes with those they should have.

    It writes at once, even during a wave: the scheduler places the replacements of evicted pods by these labels.

    Args:
        world: the state.
        outbox: writes the labels.

    """

    def __init__(self, world: World, outbox: Outbox) -> None:
        self._world = world
        self._outbox = outbox
        self._contests = _Contests(world.timings)
        self.written: Container[str] = self._contests.written
        """The nodes whose labels were written: the stream may not show it yet."""
        self._reported: dict[str, tuple[tuple[Taint | Label, str], ...]] = {}

    def restart(self) -> None:
        """Leadership begins: what other leaders reported and wrote does not count."""
        self._reported = {}
        self._contests.clear()

    def stored(self, node: str) -> None:
        """The labels of a node were written. Another client may change them before the stream delivers that."""
        self._contests.stored(node)

    def forget(self, node: str) -> None:
        """The node is gone, or another one has its name."""
        self._reported.pop(node, None)
        self._contests.forget(node)
        self._outbox.forget(labels_key(node))

    def next_at(self) -> MonotonicTime | None:
        """When the first labels are written again that another client changed."""
        return self._contests.next_at()

    def write_due(self) -> None:
        """Write labels again whose wait is over."""
        while (due := self._contests.pop_due(self._world.now.monotonic)) is not None:
            if (state := self._world.cluster.nodes.get(due)) is not None:
                self.mirror(state)

    def wanted(self, node: Node) -> NodeLabels:
        """The Taintwarden labels that a node should have."""
        return wanted_labels(node, self._world.verdicts.policies)

    def mirror(self, state: NodeState) -> None:
        """Write the labels that the node lacks."""
        node = state.node
        if node is None or not self._world.leading:
            return
        # A write may be stored already although the stream has not delivered it yet. Pods may have been placed by it.
        believed = self._outbox.believed(labels_key(node.name), node.resource_version)
        if isinstance(believed, commands.SaveLabels):
            after = {**node.labels, **believed.labels}
            node = replace(node, labels={label: value for label, value in after.items() if value is not None})
        wanted = self.wanted(node)
        present = {label: node.labels[label] for label in wanted.owned if label in node.labels}
        labels, faults = wanted.labels, wanted.faults
        if self._reported.get(node.name, ()) != faults:
            self._reported[node.name] = faults
            self._world.report(*(commands.NotMirrored(node.name, node.uid, *fault) for fault in faults))
        if labels == present and believed is None:
            self._contests.stored(node.name)
            self._outbox.withdraw(labels_key(node.name))
            return
        if believed is None and self._has_to_wait(node, labels, present):
            return
        known: dict[str, str | None] = dict(present)
        if isinstance(believed, commands.SaveLabels):
            known |= {label: value for label, value in believed.labels.items() if label in wanted.owned}
        gone: dict[str, str | None] = {label: None for label in known if label not in labels}
        self._outbox.put(commands.SaveLabels(node.name, node.uid, {**gone, **labels}))

    def _has_to_wait(self, node: Node, labels: Mapping[str, str], present: Mapping[str, str]) -> bool:
        """Whether another client changes the labels of a node back whenever they are written."""
        now = self._world.now.monotonic
        number = self._contests.write(node.name, labels, now)
        again_at = self._contests.again_at(node.name)
        if again_at is None:
            return False
        if number:
            differing = tuple(sorted(name for name, _ in labels.items() ^ present.items()))
            unique = tuple(dict.fromkeys(differing))
            self._world.report(commands.LabelsContested(node.name, node.uid, unique, number, again_at - now))
        return True
