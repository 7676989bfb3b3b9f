"""Writes of the machine to nodes and policies: the wanted content, the write in progress, and the next retry.

Each key has an entry with the content to store. Only one write per key is in progress; when it ends, the newest wanted
content is written. A failed write is retried soon, after a conflict (409) sooner. A refused write is retried much
later, since rights and admission policies may change. A write to a deleted object is dropped, but a guard record is
retried until the policy is dropped. A loss of leadership removes all entries: answers to writes in progress are
ignored, and the next leader writes its own content.

A history is written with its node's resourceVersion as precondition, and counts as stored once the stream delivers it.
"""

from msgspec.structs import replace

from taintwarden.engine.commands import ClearGuardReset, SaveCondition, SaveGuard, SaveHistory, SavePlaces, Write
from taintwarden.engine.deadlines import DeadlineQueue
from taintwarden.engine.events import WriteOutcome, Written
from taintwarden.engine.machine.claims import retry_delay
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import MonotonicTime, Node, later


class _Entry:
    """Writes under one key. ``wanted`` is None if no other write has to follow the one in progress."""

    __slots__ = ("attempts", "in_progress", "retry_at", "sent", "wanted", "written", "written_version")

    def __init__(self) -> None:
        self.wanted: Write | None = None
        self.in_progress: Write | None = None
        self.sent: Write | None = None
        """The command issued for ``in_progress``: a copy, with the version of the node if it writes a history."""
        self.written: Write | None = None
        """Last completed write, until the stream has delivered it."""
        self.written_version = -1
        self.attempts = 0
        self.retry_at: MonotonicTime | None = None


class Outbox:
    """Writes of a leader, by key."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._entries: dict[str, _Entry] = {}
        self._retries: DeadlineQueue[MonotonicTime] = DeadlineQueue()

    def put(self, order: Write) -> None:
        """Replace the wanted content of a key, and write it when no write is in progress. Only leaders write."""
        if not self._world.leading:
            return
        key = key_of(order)
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry()
        if order == (entry.in_progress or entry.written):
            entry.wanted = None
            return
        if order == entry.wanted:
            return
        entry.wanted = order
        if entry.in_progress is None and entry.retry_at is None:
            self._begin(key, entry)

    def withdraw(self, key: str) -> None:
        """Drop the wanted content of a key, since the stored content is correct. A write in progress continues."""
        entry = self._entries.get(key)
        if entry is not None:
            entry.wanted = None
            self._drop_if_idle(key, entry)

    def assumed_stored(self, key: str, version: int) -> Write | None:
        """The write that may be stored although the stream has only delivered ``version``; None if there is none."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.written_version <= version:
            entry.written = None
        return entry.in_progress or entry.written

    def is_overwritten(self, node: Node) -> bool:
        """True if this version of a node follows the last write but lacks its content. Each write is checked once."""
        key = history_key(node.name)
        entry = self._entries.get(key)
        if entry is None or entry.written is None or entry.written_version > node.resource_version:
            return False
        done, entry.written = entry.written, None
        self._drop_if_idle(key, entry)
        return isinstance(done, SaveHistory) and done.text != node.history

    def wrote_history(self, node: str, text: str) -> bool:
        """True if this text is the last written history of a node, or is being written."""
        entry = self._entries.get(history_key(node))
        written = None if entry is None else entry.in_progress or entry.written
        return isinstance(written, SaveHistory) and written.text == text

    def is_waiting(self, key: str) -> bool:
        """True if a write is in progress or will be retried."""
        entry = self._entries.get(key)
        return entry is not None and (entry.in_progress is not None or entry.retry_at is not None)

    def is_still_valid(self, order: Write) -> bool:
        """True if a write that was issued is still the one in progress, even if newer content has to follow it."""
        entry = self._entries.get(key_of(order))
        return entry is not None and entry.sent is order

    def write_ended(self, event: Written) -> bool:
        """Process the end of a write. Returns False if its entry no longer exists."""
        key = key_of(event.order)
        entry = self._entries.get(key)
        if entry is None or entry.sent is not event.order:
            return False
        written, timings = entry.in_progress, self._world.timings
        entry.in_progress = entry.sent = None
        match event.outcome:
            case WriteOutcome.DONE:
                entry.attempts = 0
                if event.version >= 0:
                    entry.written, entry.written_version = written, event.version
                self._begin(key, entry)
            case WriteOutcome.GONE if isinstance(event.order, SaveHistory):
                self.forget(key)
            case WriteOutcome.GONE if not isinstance(event.order, SaveGuard):  # newer content may be wanted
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
            if entry.wanted is not None:  # otherwise a guard puts a new record soon, so its attempts are kept
                self._begin(key, entry)

    def next_at(self) -> MonotonicTime | None:
        """Time of the next retry."""
        return self._retries.next_at()

    def clear(self) -> None:
        """Drop all writes, since the leadership has changed."""
        self._entries = {}
        self._retries = DeadlineQueue()

    def forget(self, key: str) -> None:
        """Drop the writes to an object that was deleted, or replaced by a new one with the same name."""
        if self._entries.pop(key, None) is not None:
            self._retries.cancel(key)

    def _begin(self, key: str, entry: _Entry) -> None:
        if entry.wanted is None:
            self._drop_if_idle(key, entry)
            return
        entry.in_progress, entry.wanted = entry.wanted, None
        entry.sent = self._stamped(entry.in_progress)
        self._world.issue(entry.sent)

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

    def _drop_if_idle(self, key: str, entry: _Entry) -> None:
        if entry.wanted is entry.in_progress is entry.written is None:
            self.forget(key)


def history_key(node: str) -> str:
    """Key of the taint-history annotation of a node."""
    return f"history/{node}"


def guard_key(policy: str) -> str:
    """Key of the record of a policy's guard."""
    return f"guard/{policy}"


def reset_key(policy: str) -> str:
    """Key of the request for a reset of a policy's guard."""
    return f"guard-reset/{policy}"


def key_of(order: Write) -> str:
    """Key of a write. At most one write is in progress for each key."""
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
