"""The sorted parts against a plain dictionary."""

import math
import pickle

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple

from taintwarden.engine.deadlines import DeadlineQueue

keys = st.sampled_from([f"k{number}" for number in range(8)])
times = st.sampled_from([0.0, 1.0, 1.5, 2.0, 7.0])
operations = st.lists(
    st.one_of(
        st.tuples(st.just("schedule"), keys, times),
        st.tuples(st.just("cancel"), keys),
        st.tuples(st.just("pop"), times),
    ),
    max_size=60,
)


SMALL = 2**17
"""Bytes of some thousand entries."""


class Naive:
    """A slow implementation of the queue."""

    def __init__(self) -> None:
        self.entries: dict[str, tuple[float, tuple[float, ...], str]] = {}

    def head(self) -> tuple[float, tuple[float, ...], str] | None:
        return min(self.entries.values(), default=None)

    def pop_due(self, now: float) -> str | None:
        head = self.head()
        if head is None or head[0] > now:
            return None
        del self.entries[head[2]]
        return head[2]


@given(operations)
@settings(max_examples=60)
def test_it_behaves_as_a_dictionary_with_a_minimum(steps):
    queue, naive = DeadlineQueue(), Naive()
    for name, *args in steps:
        if name == "schedule":
            key, at = args
            queue.schedule(key, at)
            naive.entries[key] = (at, (), key)
        elif name == "cancel":
            queue.cancel(*args)
            naive.entries.pop(args[0], None)
        else:
            assert queue.pop_due(*args) == naive.pop_due(*args)
        head = queue.head()
        assert (None if head is None else astuple(head)) == naive.head()
        assert queue.next_at() == (naive.head() or [None])[0]
        assert len(queue) == len(naive.entries)


def test_nothing_is_kept_however_often_a_deadline_moves():
    queue = DeadlineQueue()
    queue.schedule("first", 0.0)
    for number in range(100_000):
        queue.schedule("moving", 10.0 + number)
    assert len(queue) == 2
    assert len(pickle.dumps(queue)) < SMALL


def test_nothing_is_kept_however_many_are_cancelled():
    queue = DeadlineQueue()
    for number in range(20_000):
        queue.schedule(str(number), float(number + 1))
    for number in range(1, 20_000):
        queue.cancel(str(number))
    assert len(queue) == 1
    assert len(pickle.dumps(queue)) < SMALL
    assert queue.pop_due(1.0) == "0"


def test_scheduling_the_same_again_costs_nothing():
    queue = DeadlineQueue()
    queue.schedule("a", 5.0)
    before = len(pickle.dumps(queue))
    for _ in range(1_000):
        queue.schedule("a", 5.0)
    assert len(pickle.dumps(queue)) == before


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.integers(0, 30)), max_size=200))
def test_parts_that_are_split_and_emptied_stay_in_order(steps):
    queue, wanted = DeadlineQueue(largest_part=4), {}
    for number, stays, at in steps:
        if stays:
            queue.schedule(str(number), float(at))
            wanted[str(number)] = float(at), str(number)
        else:
            queue.cancel(str(number))
            wanted.pop(str(number), None)
        assert [part[-1] for part in queue._parts] == queue._lasts
    assert all(len(part) in range(1, 5) for part in queue._parts)
    drained = [queue.pop_due(math.inf) for _ in wanted]
    assert drained == [key for _, key in sorted(wanted.values())]


def test_the_last_of_all_that_splits_its_part_can_be_cancelled():
    queue = DeadlineQueue(largest_part=4)
    for at in range(5):
        queue.schedule(str(at), float(at))
    queue.cancel("4")
    assert [queue.pop_due(9.0) for _ in range(5)] == ["0", "1", "2", "3", None]


def test_a_part_that_is_split_between_others_loses_none_of_them():
    queue = DeadlineQueue(largest_part=4)
    for at in (*range(0, 100, 10), *range(1, 100, 2)):
        queue.schedule(str(at), float(at))
    wanted = sorted({*range(0, 100, 10), *range(1, 100, 2)})
    assert [queue.pop_due(math.inf) for _ in wanted] == list(map(str, wanted))


def test_to_add_or_remove_one_of_many_compares_it_with_few():
    compared = 0

    class Counted(float):
        def __lt__(self, other):
            nonlocal compared
            compared += 1
            return float(self) < other

        def __eq__(self, other):
            nonlocal compared
            compared += 1
            return float(self) == other

        __hash__ = float.__hash__

    queue = DeadlineQueue()
    for number in range(20_000):
        queue.schedule(str(number), float(number))
    for number in range(0, 20_000, 100):
        compared = 0
        queue.schedule("one", Counted(number))
        queue.cancel("one")
        assert compared < 200
