"""Events that wait to be written: alarms first, then one of each namespace in turn. Bounded."""

from collections import OrderedDict
from typing import Generic, TypeVar

MAX_QUEUED = 2_000
"""Of alarms, and of all others: they must not fill memory in a wave."""

T = TypeVar("T")


class EventQueue(Generic[T]):
    """What waits, each under a key. Of the same key only the latest waits.

    A tenant causes any number of Events about its objects: those of its namespace wait for each other, and are dropped
    before those of namespaces that have fewer. An alarm, such as a tripped guard, waits for none of them.

    Args:
        max_queued: how many alarms wait at most, and how many others.

    Attributes:
        dropped: how many were dropped.

    """

    def __init__(self, max_queued: int = MAX_QUEUED) -> None:
        self.dropped = 0
        self._most = max_queued
        self._alarms: OrderedDict[str, T] = OrderedDict()
        self._of: OrderedDict[str, OrderedDict[str, T]] = OrderedDict()
        """Namespace -> key -> what waits. The first namespace is next."""
        self._number = 0

    def __len__(self) -> int:
        return len(self._alarms) + self._number

    @property
    def has_alarms(self) -> bool:
        """Whether an alarm waits."""
        return bool(self._alarms)

    def put(self, namespace: str, key: str, one: T, *, is_alarm: bool = False) -> None:
        """One more. It comes after what waits already, which it may contradict."""
        if is_alarm:
            _put_last(self._alarms, key, one)
            if len(self._alarms) > self._most:
                self._alarms.popitem(last=False)
                self.dropped += 1
            return
        waiting = self._of.setdefault(namespace, OrderedDict())
        before = len(waiting)
        _put_last(waiting, key, one)
        self._number += len(waiting) - before
        if self._number > self._most:
            self._drop(namespace)

    def pop(self) -> T:
        """The next. Raises KeyError if none waits."""
        if self._alarms:
            return self._alarms.popitem(last=False)[1]
        namespace, waiting = self._of.popitem(last=False)
        _, one = waiting.popitem(last=False)
        self._number -= 1
        if waiting:
            self._of[namespace] = waiting
        return one

    def clear(self) -> None:
        """Drop everything."""
        self.dropped += len(self)
        self._alarms.clear()
        self._of.clear()
        self._number = 0

    def _drop(self, namespace: str) -> None:
        """The oldest of this namespace if it has more than its share, else of the one that has the most."""
        if len(self._of[namespace]) * len(self._of) <= self._most:
            namespace = max(self._of, key=lambda one: len(self._of[one]))
        waiting = self._of[namespace]
        waiting.popitem(last=False)
        self._number -= 1
        self.dropped += 1
        if not waiting:
            del self._of[namespace]


def _put_last(waiting: OrderedDict[str, T], key: str, one: T) -> None:
    waiting[key] = one
    waiting.move_to_end(key)
