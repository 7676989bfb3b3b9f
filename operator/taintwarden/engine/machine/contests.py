"""Labels that another client keeps changing: each is written again later than the time before."""

from collections.abc import Mapping

from taintwarden.engine.deadlines import DeadlineQueue
from taintwarden.engine.machine.claims import retry_delay
from taintwarden.engine.machine.timings import Timings
from taintwarden.engine.model import MonotonicTime, later

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


class Contests:
    """When labels may be written that were written before.

    Args:
        timings: how long to wait, and how long labels have to stay until the waits begin again.

    """

    def __init__(self, timings: Timings) -> None:
        self._timings = timings
        self._written: dict[str, _Written] = {}
        self._waiting: DeadlineQueue[MonotonicTime] = DeadlineQueue()

    def clear(self) -> None:
        """Leadership begins."""
        self._written, self._waiting = {}, DeadlineQueue()

    def forget(self, node: str) -> None:
        """The node is gone."""
        self._written.pop(node, None)
        self._waiting.cancel(node)

    def stored(self, node: str) -> None:
        """The node has the labels that it should have."""
        if (known := self._written.get(node)) is not None:
            known.stored = True
            self._waiting.cancel(node)

    def write(self, node: str, labels: Mapping[str, str], now: MonotonicTime) -> int:
        """These labels are to be written. Returns how often another client has changed them, if they have to wait."""
        digest, known = hash(frozenset(labels.items())), self._written.get(node)
        if known is None or known.digest != digest or now > later(known.at, self._timings.labels_calm):
            self._written[node] = _Written(digest, now)
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
