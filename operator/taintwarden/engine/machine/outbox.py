"""All writes of the machine to nodes and policies: the content, whether a write is in progress, and the next retry.

One rule for all of them. An entry has the content that should be stored. While a write of it is in progress, no other
write starts under its key; when that ends, the content wanted by then is written. A write that failed is retried soon,
one that was refused much later, since rights and admission policies change; one to an object that is gone is forgotten.
A loss of leadership removes all entries: answers to writes in progress are ignored, and the next leader writes its own.
"""

from taintwarden.engine.deadlines import DeadlineQueue
from taintwarden.engine.machine.claims import retry_delay
from taintwarden.engine.machine.commands import ClearGuardReset, SaveGuard, SaveHistory, SaveLabels, Write
from taintwarden.engine.machine.events import WriteOutcome, Written
from taintwarden.engine.machine.stepping import Step
from taintwarden.engine.machine.timings import Timings
from taintwarden.engine.model import MonotonicTime, later


class _Entry:
    """One write. ``wanted`` None: nothing has to follow the write in progress."""

    __slots__ = ("attempts", "retry_at", "under_way", "wanted")

    def __init__(self) -> None:
        self.wanted: Write | None = None
        self.under_way: Write | None = None
        self.attempts = 0
        self.retry_at: MonotonicTime | None = None


class Outbox:
    """The writes of a leader, by key.

    Args:
        step: the current step.
        timings: how long to wait after a write that did not succeed.

    """

    def __init__(self, step: Step, timings: Timings) -> None:
        self._step = step
        self._timings = timings
        self._entries: dict[str, _Entry] = {}
        self._retries: DeadlineQueue[MonotonicTime] = DeadlineQueue()

    def put(self, order: Write) -> None:
        """Write this, instead of what was wanted before under the same key. Only leaders write."""
        if not self._step.leading:
            return
        key = key_of(order)
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry()
        if order == entry.under_way:
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

    def under_way(self, key: str) -> Write | None:
        """The write in progress; its content may be stored already."""
        entry = self._entries.get(key)
        return None if entry is None else entry.under_way

    def is_waiting(self, key: str) -> bool:
        """Whether a write is in progress or will be retried."""
        entry = self._entries.get(key)
        return entry is not None and (entry.under_way is not None or entry.retry_at is not None)

    def answered(self, event: Written) -> bool:
        """A write ended. Returns False if its entry no longer exists."""
        key = key_of(event.order)
        entry = self._entries.get(key)
        if entry is None or entry.under_way is not event.order:
            return False
        entry.under_way = None
        match event.outcome:
            case WriteOutcome.DONE:
                entry.attempts = 0
                self._begin(key, entry)
            case WriteOutcome.GONE if not isinstance(event.order, SaveGuard):
                self.forget(key)
            case WriteOutcome.FAILED | WriteOutcome.GONE:
                self._retry(key, entry, event.order, self._timings.write_failed)
            case WriteOutcome.REFUSED:
                self._retry(key, entry, event.order, self._timings.write_refused)
        return True

    def retry_due(self) -> None:
        """Retry the writes that are due."""
        while (key := self._retries.pop_due(self._step.now.monotonic)) is not None:
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
        self._step.command(entry.under_way)

    def _retry(self, key: str, entry: _Entry, order: Write, bounds: tuple[float, float]) -> None:
        entry.attempts += 1
        if entry.wanted is None and not isinstance(order, SaveGuard):  # a guard makes a new record by then
            entry.wanted = order
        entry.retry_at = later(self._step.now.monotonic, retry_delay(bounds, entry.attempts, key))
        self._retries.schedule(key, entry.retry_at)

    def _settle(self, key: str, entry: _Entry) -> None:
        if entry.under_way is None:
            self.forget(key)


def history_key(node: str) -> str:
    """The key of a node's taint-history annotation."""
    return f"history/{node}"


def labels_key(node: str) -> str:
    """The key of the labels that repeat a node's taints."""
    return f"labels/{node}"


def guard_key(policy: str) -> str:
    """The key of the record of a policy's guard."""
    return f"guard/{policy}"


def key_of(order: Write) -> str:
    """The key of a write: there is at most one write at a time for each."""
    match order:
        case SaveHistory():
            return history_key(order.node)
        case SaveLabels():
            return labels_key(order.node)
        case SaveGuard():
            return guard_key(order.policy.name)
        case ClearGuardReset():
            return f"guard-reset/{order.policy.name}"
