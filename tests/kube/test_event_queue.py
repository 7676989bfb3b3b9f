"""Waiting Events are bounded, and leave the queue alarms first, then namespaces in turn."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from taintwarden.kube.calls.event_queue import EventQueue


@pytest.fixture
def queue() -> EventQueue[str]:
    return EventQueue()


def put(queue: EventQueue[str], namespace: str, *names: str) -> None:
    for name in names:
        queue.put(namespace, name, f"{namespace}/{name}")


def popped(queue: EventQueue[str]) -> list[str]:
    return [queue.pop() for _ in range(len(queue))]


def test_namespaces_take_turns(queue):
    put(queue, "loud", *"abc")
    put(queue, "quiet", "x")
    assert popped(queue) == ["loud/a", "quiet/x", "loud/b", "loud/c"]


def test_a_flood_of_one_namespace_drops_no_events_of_others():
    queue = EventQueue[str](max_queued=10)
    put(queue, "quiet", *"abc")
    put(queue, "loud", *map(str, range(1_000)))
    put(queue, "late", *"de")
    others = [one for one in popped(queue) if not one.startswith("loud")]
    assert others == ["quiet/a", "late/d", "quiet/b", "late/e", "quiet/c"]


# -- any sequence of steps ---------------------------------------------------------------------------------------------


class Lists(RuleBasedStateMachine):
    """A queue as lists that are searched: alarms, namespaces in turn, and the Events of each."""

    MOST = 3

    def __init__(self) -> None:
        super().__init__()
        self.queue = EventQueue[int](max_queued=self.MOST)
        self.alarms: list[tuple[str, int]] = []
        self.waiting: list[tuple[str, list[tuple[str, int]]]] = []
        self.number = self.dropped = 0

    @rule(namespace=st.sampled_from(["a", "b", "c", "d", ""]), key=st.sampled_from("wxyz"))
    def put(self, namespace: str, key: str) -> None:
        """An Event without a namespace is an alarm."""
        self.number += 1
        is_alarm = not namespace
        self.queue.put(namespace, key, self.number, is_alarm=is_alarm)
        if not is_alarm and namespace not in dict(self.waiting):
            self.waiting.append((namespace, []))
        of_all = self.alarms if is_alarm else dict(self.waiting)[namespace]
        of_all[:] = [one for one in of_all if one[0] != key] + [(key, self.number)]
        if len(self.alarms) > self.MOST or sum(len(some) for _, some in self.waiting) > self.MOST:
            has_share = not is_alarm and len(of_all) * len(self.waiting) <= self.MOST
            (max((some for _, some in self.waiting), key=len) if has_share else of_all).pop(0)
            self.waiting = [one for one in self.waiting if one[1]]
            self.dropped += 1

    @precondition(lambda self: self.queue)
    @rule()
    def pop(self) -> None:
        if self.alarms:
            assert self.queue.pop() == self.alarms.pop(0)[1]
            return
        namespace, some = self.waiting.pop(0)
        assert self.queue.pop() == some.pop(0)[1]
        self.waiting += [(namespace, some)] if some else []

    @precondition(lambda self: len(self.queue) > self.MOST + 1)
    @rule()
    def clear(self) -> None:
        self.dropped += len(self.queue)
        self.queue.clear()
        self.alarms, self.waiting = [], []

    @invariant()
    def as_many_wait(self) -> None:
        waiting = sum(len(some) for _, some in self.waiting)
        assert len(self.queue) == len(self.alarms) + waiting
        assert (self.queue.has_alarms, self.queue.dropped) == (bool(self.alarms), self.dropped)


TestAgainstLists = Lists.TestCase
TestAgainstLists.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
