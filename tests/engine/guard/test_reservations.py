"""Each eviction is reserved in the stored record before its call."""

import pytest

from engine.guard.bench import BEGAN, SLOT, WINDOW, Bench, pods, wave
from taintwarden.engine.guard import MAX_RESERVED, NARROW_SECONDS
from taintwarden.engine.model import GuardAction


def test_an_eviction_is_reserved_when_its_record_is_stored():
    bench = Bench()
    assert bench.guard.want("a", "shop")
    assert not bench.guard.may_take("a")
    assert bench.store().reserved == (("a", "shop"),)
    assert bench.guard.may_take("a")
    assert not bench.guard.may_take("b")
    assert len(bench.guard._reserved) == 1
    assert not bench.guard.has_to_save


def test_an_eviction_that_is_made_is_stored_as_reserved_until_it_is_answered():
    """A leader that takes over looks whether the pod is gone."""
    bench = Bench()
    bench.reserve("a")
    bench.call("a")
    assert len(bench.guard._reserved) == 0
    assert bench.guard.record(bench.now).reserved == (("a", "shop"),)
    assert bench.guard.record(bench.now).evicted == ()
    bench.guard.settle("a", stays=False)
    assert bench.guard.record(bench.now).reserved == ()
    assert [pods for _, pods in bench.guard.record(bench.now).evicted] == [(("shop", 1),)]


@pytest.mark.parametrize("end", ["forget", "unreserve"])
def test_a_pod_that_is_gone_or_held_is_reserved_no_more(end):
    bench = Bench()
    bench.reserve("a")
    bench.want("b")
    for uid in "ab":
        getattr(bench.guard, end)(uid)
    assert bench.guard.record(bench.now).reserved == ()
    assert not bench.guard.may_take("a")


@pytest.mark.parametrize("end", ["forget", "unreserve", "call"])
def test_a_pod_that_is_gone_while_the_record_is_written_is_not_reserved_by_it(end):
    bench = Bench()
    bench.reserve("a")
    bench.want("b")
    record = bench.guard.to_save(bench.now, 1)
    for uid in "ab":
        bench.call(uid) if end == "call" else getattr(bench.guard, end)(uid)
    if end == "call":
        bench.guard.unreserve("b")
    bench.guard.saved(record, succeeded=True)
    assert len(bench.guard._reserved) == 0


def test_a_namespace_that_fails_keeps_no_reservation():
    bench = Bench()
    bench.reserve("a", "b")
    bench.reserve("c", namespace="bank")
    bench.want("d")
    bench.guard.unreserve_all("shop")
    assert bench.guard.record(bench.now).reserved == (("c", "bank"),)


@pytest.mark.parametrize(("due", "at_once"), [(0, 10), (100, 10), (119, 11), (250, 25)])
def test_as_many_are_reserved_at_once_as_a_tenth_of_those_due(due, at_once):
    bench = Bench(population=10_000)
    bench.expect(*pods(due))
    assert bench.want(*pods(300)) == at_once


def test_a_record_has_a_bounded_size():
    bench = Bench(population=1_000_000)
    bench.expect(*pods(10_000))
    for number in range(3):
        wanted = bench.want(*pods(10_000, f"{number}-"))
        assert wanted == (MAX_RESERVED if number == 0 else 0)
        if wanted:
            bench.store()
    assert len(bench.guard._reserved) == MAX_RESERVED


def test_no_more_are_reserved_than_may_be_evicted_in_the_window():
    bench = Bench()
    bench.evict(*pods(4, "gone-"))
    bench.reserve(*pods(3))
    assert bench.want(*pods(10, "more-")) == 3
    bench.store()
    assert bench.want("one-more") == 0


def test_where_it_holds_one_namespace_half_as_many_more_may_go():
    bench = Bench()
    wave(bench, 20, 1)
    bench.advance(NARROW_SECONDS)
    bench.evict(*pods(4, "gone-"), namespace="bank")
    assert bench.want(*pods(30, "more-"), namespace="bank") == 10
    bench.store()
    assert bench.want(*pods(30, "others-"), namespace="bank") == 1


def test_one_that_only_reports_reserves_more_than_it_allows():
    bench = Bench(action=GuardAction.REPORT)
    bench.evict(*pods(10, "gone-"))
    assert bench.want(*pods(10)) == 10
    assert bench.guard.used_up_until() is None


def test_when_all_that_may_go_are_gone_it_names_when_the_next_may():
    bench = Bench()
    assert bench.guard.used_up_until() is None
    bench.evict(*pods(9))
    bench.seconds += SLOT
    assert bench.guard.used_up_until() is None
    bench.evict("last")
    until = bench.guard.used_up_until()
    assert until == BEGAN + WINDOW + SLOT
    bench.advance(until - bench.now.monotonic)
    assert bench.want(*pods(10, "next-")) == 9
