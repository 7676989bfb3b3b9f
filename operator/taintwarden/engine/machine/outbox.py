"""All writes of the machine to nodes and policies: the content, whether a write is in progress, and the next retry.

One rule for all of them. An entry has the content that should be stored. While a write of it is in progress, no other
write starts under its key; when that ends, the content wanted by then is written. A write that failed is retried soon,
one to an object that has changed at once, one that was refused much later, since rights and admission policies change;
one to an object that is gone is forgotten.
A loss of leadership removes all entries: answers to writes in progress are ignored, and the next leader writes its own.

A history carries the version of the node on which it is based. What was written comes back through the stream, and
counts only then.
"""

from msgspec.structs import replace

from taintwarden.engine.deadlines import DeadlineQueue
from taintwarden.engine.machine.claims import retry_delay
from taintwarden.engine.machine.commands import (
    ClearGuardReset,
    SaveCondition,
    SaveGuard,
    SaveHistory,
    SavePlaces,
    Write,
)
from taintwarden.engine.machine.events import WriteOutcome, Written
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import MonotonicTime, Node, later


class _Entry:
    """One write. ``wanted`` None: nothing has to follow the write in progress."""

    __slots__ = ("attempts", "done", "done_version", "retry_at", "sent", "under_way", "wanted")

    def __init__(self) -> None:
        self.wanted: Write | None = None
        self.under_way: Write | None = None
        self.sent: Write | None = None
        """The same as it was issued, with the version of its object."""
        self.done: Write | None = None
        """What was written last, as long as the stream may not have delivered it."""
        self.done_version = -1
        self.attempts = 0
        self.retry_at: MonotonicTime | None = None


class Outbox:
    """The writes of a leader, by key."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._entries: dict[str, _Entry] = {}
        self._retries: DeadlineQueue[MonotonicTime] = DeadlineQueue()

    def put(self, order: Write) -> None:
        """Write this, instead of what was wanted before under the same key. Only leaders write."""
        if not self._world.leading:
            return
        key = key_of(order)
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry()
        if order == (entry.under_way or entry.done):
            entry.wanted = None
            return
        if order == entry.wanted:
            return
        entry.wanted = order
        if entry.under_way is None and entry.retry_at is None:
            self._begin(key, entry)

    def withdraw(self, key: str) -> None:
        """The stored content is correct: nothing has to follow the write in progress."""
        entry = self._entries.get(key)
        if entry is not None:
            entry.wanted = None
            self._settle(key, entry)

    def believed(self, key: str, version: int) -> Write | None:
        """The write whose content is stored, or may be, although the stream has delivered only this version."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.done_version <= version:
            entry.done = None
        return entry.under_way or entry.done

    def lost(self, node: Node) -> bool:
        """Whether this version of a node lacks what was written to an earlier one, and was not delivered yet."""
        key = history_key(node.name)
        entry = self._entries.get(key)
        if entry is None or entry.done is None or entry.done_version > node.resource_version:
            return False
        done, entry.done = entry.done, None
        self._settle(key, entry)
        return isinstance(done, SaveHistory) and done.text != node.history

    def wrote_history(self, node: str, text: str) -> bool:
        """Whether this history of a node is what was written last, or is being written."""
        entry = self._entries.get(history_key(node))
        written = None if entry is None else entry.under_way or entry.done
        return isinstance(written, SaveHistory) and written.text == text

    def is_waiting(self, key: str) -> bool:
        """Whether a write is in progress or will be retried."""
        entry = self._entries.get(key)
        return entry is not None and (entry.under_way is not None or entry.retry_at is not None)

    def stands(self, order: Write) -> bool:
        """Whether a write that was issued is still wanted."""
        entry = self._entries.get(key_of(order))
        return entry is not None and entry.sent is order

    def answered(self, event: Written) -> bool:
        """A write ended. Returns False if its entry no longer exists."""
        key = key_of(event.order)
        entry = self._entries.get(key)
        if entry is None or entry.sent is not event.order:
            return False
        written, timings = entry.under_way, self._world.timings
        entry.under_way = entry.sent = None
        match event.outcome:
            case WriteOutcome.DONE:
                entry.attempts = 0
                if event.version >= 0:
                    entry.done, entry.done_version = written, event.version
                self._begin(key, entry)
            case WriteOutcome.GONE if isinstance(event.order, SaveHistory):
                self.forget(key)
            case WriteOutcome.GONE if not isinstance(event.order, SaveGuard):  # there may be another one since
                self._begin(key, entry)
            case _ if isinstance(event.order, SaveGuard | SavePlaces):
                entry.attempts += 1
                self._retry_in(key, entry, timings.write_guard[min(entry.attempts, len(timings.write_guard)) - 1])
            case WriteOutcome.OUTDATED:
                self._retry(key, entry, written, timings.write_outdated)
            case WriteOutcome.FAILED | WriteOutcome.GONE:
                self._retry(key, entry, written, timings.write_failed)
            case WriteOutcome.REFUSED:
                self._retry(key, entry, written, timings.write_refused)
        return True

    def retry_due(self) -> None:
        """Retry the writes that are due."""
        while (key := self._retries.pop_due(self._world.now.monotonic)) is not None:
            entry = self._entries[key]
            entry.retry_at = None
            if entry.wanted is not None:  # else a guard's new record is put soon: attempts are kept for that
                self._begin(key, entry)

    def next_at(self) -> MonotonicTime | None:
        """The time of the next retry."""
        return self._retries.next_at()

    def clear(self) -> None:
        """Another process leads."""
        self._entries = {}
        self._retries = DeadlineQueue()

    def forget(self, key: str) -> None:
        """The object is gone, or another one has its name."""
        if self._entries.pop(key, None) is not None:
            self._retries.cancel(key)

    def _begin(self, key: str, entry: _Entry) -> None:
        if entry.wanted is None:
            self._settle(key, entry)
            return
        entry.under_way, entry.wanted = entry.wanted, None
        entry.sent = self._stamped(entry.under_way)
        self._world.command(entry.sent)

    def _stamped(self, order: Write) -> Write:
        if not isinstance(order, SaveHistory):
            return replace(order)
        state = self._world.cluster.nodes.get(order.node)
        return replace(order, version=-1 if state is None or state.node is None else state.node.resource_version)

    def _retry(self, key: str, entry: _Entry, order: Write | None, bounds: tuple[float, float]) -> None:
        entry.attempts += 1
        entry.wanted = entry.wanted or order
        self._retry_in(key, entry, retry_delay(bounds, entry.attempts, key))

    def _retry_in(self, key: str, entry: _Entry, seconds: float) -> None:
        entry.retry_at = later(self._world.now.monotonic, seconds)
        self._retries.schedule(key, entry.retry_at)

    def _settle(self, key: str, entry: _Entry) -> None:
        if entry.wanted is entry.under_way is entry.done is None:
            self.forget(key)


def history_key(node: str) -> str:
    """The key of a node's taint-history annotation."""
    return f"history/{node}"


def guard_key(policy: str) -> str:
    """The key of the record of a policy's guard."""
    return f"guard/{policy}"


def reset_key(policy: str) -> str:
    """The key of the request for a reset of a policy's guard."""
    return f"guard-reset/{policy}"


def key_of(order: Write) -> str:
    """The key of a write: there is at most one write at a time for each."""
    match order:
        case SaveHistory():
            return history_key(order.node)
        case SaveCondition():
            return f"condition/{order.node}"
        case SaveGuard():
            return guard_key(order.policy.name)
        case SavePlaces():
            return f"places/{order.policy.name}"
        case ClearGuardReset():
            return reset_key(order.policy.name)
