"""A bounded queue of Events: alarms first, then one Event of each namespace in turn."""

from collections import OrderedDict
from typing import Generic, TypeVar

MAX_QUEUED = 2_000
"""Maximum number of alarms, and of other Events, so that they do not fill memory in a wave."""

T = TypeVar("T")


class EventQueue(Generic[T]):
    """A queue of Events by key. A later one replaces one with the same key that waits.

    A tenant can cause any number of Events. Those of one namespace wait for each other, and are dropped before those of
    namespaces that have fewer. An alarm, such as a tripped guard, waits for none of them.

    Args:
        max_queued: maximum number of alarms, and of others.

    Attributes:
        dropped: number of Events that were dropped.

    """

    def __init__(self, max_queued: int = MAX_QUEUED) -> None:
        self.dropped = 0
        self._max_queued = max_queued
        self._alarms: OrderedDict[str, T] = OrderedDict()
        self._by_namespace: OrderedDict[str, OrderedDict[str, T]] = OrderedDict()
        """Namespace -> key -> Event. The first namespace is next."""
        self._waiting = 0

    def __len__(self) -> int:
        return len(self._alarms) + self._waiting

    @property
    def has_alarms(self) -> bool:
        """True if an alarm waits."""
        return bool(self._alarms)

    def put(self, namespace: str, key: str, one: T, *, is_alarm: bool = False) -> None:
        """Add an Event at the end, even if it replaces another: it may contradict those that wait."""
        if is_alarm:
            _put_last(self._alarms, key, one)
            if len(self._alarms) > self._max_queued:
                self._alarms.popitem(last=False)
                self.dropped += 1
            return
        waiting = self._by_namespace.setdefault(namespace, OrderedDict())
        before = len(waiting)
        _put_last(waiting, key, one)
        self._waiting += len(waiting) - before
        if self._waiting > self._max_queued:
            self._drop(namespace)

    def pop(self) -> T:
        """Remove and return the next Event. Raises KeyError if none waits."""
        if self._alarms:
            return self._alarms.popitem(last=False)[1]
        namespace, waiting = self._by_namespace.popitem(last=False)
        _, one = waiting.popitem(last=False)
        self._waiting -= 1
        if waiting:
            self._by_namespace[namespace] = waiting
        return one

    def clear(self) -> None:
        """Drop everything."""
        self.dropped += len(self)
        self._alarms.clear()
        self._by_namespace.clear()
        self._waiting = 0

    def _drop(self, namespace: str) -> None:
        """Drop the oldest Event of this namespace if it has more than its share, else of the one that has the most."""
        if len(self._by_namespace[namespace]) * len(self._by_namespace) <= self._max_queued:
            namespace = max(self._by_namespace, key=lambda one: len(self._by_namespace[one]))
        waiting = self._by_namespace[namespace]
        waiting.popitem(last=False)
        self._waiting -= 1
        self.dropped += 1
        if not waiting:
            del self._by_namespace[namespace]


def _put_last(waiting: OrderedDict[str, T], key: str, one: T) -> None:
    waiting[key] = one
    waiting.move_to_end(key)
