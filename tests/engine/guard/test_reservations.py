"""Each eviction is reserved in the stored record before its call."""

import msgspec
import pytest

from engine.guard.bench import BEGAN, SLOT, WINDOW, Bench, pods, wave
from taintwarden.engine.guard.guard import TIDY_SECONDS
from taintwarden.engine.guard.latch import NARROW_SECONDS
from taintwarden.engine.guard.ledger import MAX_RESERVED, UNSURE_SECONDS
from taintwarden.engine.limit_settings import GuardAction


def test_an_eviction_is_reserved_when_its_record_is_stored():
    bench = Bench()
    assert bench.guard.want("a", "shop")
    assert not bench.may_call("a")
    assert bench.store().reserved == (("a", "shop"),)
    assert bench.may_call("a")
    assert not bench.may_call("b")
    assert len(bench.guard.ledger.rows) == 1
    assert not bench.guard.has_to_save


def test_a_called_pod_is_stored_as_reserved_until_it_is_seen_to_leave():
    """A leader that takes over looks whether the pod is gone."""
    bench = Bench()
    bench.reserve("a")
    bench.call("a")
    bench.guard.settle("a", stays=False)
    record = bench.guard.record(bench.now)
    assert (record.reserved, record.evicted) == ((("a", "shop"),), ())
    bench.see_gone("a")
    record = bench.guard.record(bench.now)
    assert (record.reserved, [pods for _, pods in record.evicted]) == ((), [(("shop", 1),)])


@pytest.mark.parametrize(("seconds", "has_to_save"), [(TIDY_SECONDS - 1, False), (TIDY_SECONDS, True)])
def test_the_record_is_written_again_soon_after_a_reserved_pod_has_left(seconds, has_to_save):
    """A leader that takes over later would count it as evicted when it begins."""
    bench = Bench()
    bench.reserve("a")
    bench.call("a")
    bench.see_gone("a")
    bench.check_guard()
    assert bench.guard.next_check_in(bench.now) == TIDY_SECONDS
    bench.advance(seconds)
    assert bench.guard.has_to_save is has_to_save
    assert bench.guard.next_check_in(bench.now) != 0, "also while another write is in progress"


def test_a_reservation_ends_one_window_after_the_first_call_and_the_pod_waits_for_another():
    bench = Bench()
    bench.reserve("a")
    bench.fail("a")
    bench.advance(WINDOW - 1)
    assert bench.may_call("a")
    bench.fail("a")
    bench.advance(1)
    assert (bench.may_call("a"), bench.guard.ledger.used) == (False, 0)
    bench.reserve("a")
    assert bench.may_call("a")
    bench.see_gone("a")
    assert bench.guard.evicted() == 1


def test_the_next_end_is_that_of_a_reservation_or_an_eviction():
    bench = Bench()
    bench.evict("a")
    assert bench.guard.ledger.next_end(WINDOW) == BEGAN + SLOT + WINDOW
    bench.fail("b")
    bench.check_guard()
    assert bench.guard.ledger.next_end(WINDOW) == BEGAN + WINDOW


def test_a_reservation_does_not_end_during_a_call():
    bench = Bench()
    bench.fail("a")
    bench.advance(WINDOW - 1)
    bench.call("a")
    bench.advance(1)
    assert bench.guard.ledger.used == 1


def test_a_namespace_whose_failed_calls_are_over_may_reserve_others():
    bench = Bench()
    bench.fail(*pods(5))
    assert bench.want("other") == 0
    bench.advance(WINDOW)
    assert bench.want("other") == 1


def test_pods_whose_calls_failed_do_not_keep_each_other_from_another_reservation():
    bench = Bench()
    for seconds in (1, WINDOW - 1):
        bench.fail(*pods(5))
        bench.advance(seconds)
    bench.reserve(*pods(5))
    bench.fail("other", namespace="bank")
    assert all(map(bench.may_call, pods(5)))


def test_a_pod_whose_earlier_call_may_evict_it_counts_though_a_budget_refuses_the_next():
    bench = Bench()
    for seconds in (WINDOW - 1, 1):
        bench.fail("a")
        bench.advance(seconds)
    bench.reserve("a")
    bench.fail("b")
    bench.check_guard()
    bench.call("a")
    bench.guard.settle("a", stays=True)
    bench.see_gone("a")
    assert bench.guard.evicted() == 1


@pytest.mark.parametrize("call_at", [0, 100])
def test_the_reservation_of_a_called_pod_that_may_stay_ends_a_minute_after_its_last_call(call_at):
    bench = Bench()
    bench.fail("a")
    bench.advance(call_at)
    bench.fail("a")
    bench.forget("a")
    bench.advance(UNSURE_SECONDS - 1)
    assert bench.guard.ledger.used == 1
    bench.advance(1)
    assert bench.guard.ledger.used == 0
    bench.see_gone("a")
    assert bench.guard.evicted() == 1, "though nobody expected it any more"


@pytest.mark.parametrize(("population", "failing"), [(30, 1), (100, 5), (10_000, 64)])
def test_after_calls_that_failed_one_namespace_reserves_half_of_the_allowance_or_64_pods(population, failing):
    bench = Bench(population=population)
    bench.fail(*pods(failing - 1))
    bench.reserve("one-more", "another")
    bench.fail("one-more")
    assert not bench.may_call("another"), "it was not called yet"
    assert (bench.want("another"), bench.want("other", namespace="bank")) == (0, 1)
    assert bench.guard.used_up("shop")[0].endswith("pods of the namespace that were called and did not leave")
    assert bench.may_call("one-more")
    bench.see_gone("one-more")
    assert bench.want("another") == 1


def test_pods_that_are_called_are_none_whose_calls_failed():
    bench = Bench()
    bench.call(*pods(8))
    assert bench.want("another") == 1


def test_a_shorter_window_ends_reservations_earlier():
    bench = Bench(window_seconds=3600)
    bench.fail("a")
    bench.advance(1)
    bench.guard.change(msgspec.structs.replace(bench.guard.settings, window_seconds=60))
    bench.advance(60)
    assert bench.guard.ledger.rows == {}


def test_the_guard_is_checked_at_once_when_a_reservation_may_end_earlier():
    bench = Bench()
    bench.fail("a")
    bench.check_guard()
    bench.forget("a")
    assert bench.guard.next_check_in(bench.now) == 0.0


@pytest.mark.parametrize("end", ["forget", "unreserve"])
def test_a_pod_that_is_gone_or_held_is_reserved_no_more(end):
    bench = Bench()
    bench.reserve("a")
    bench.want("b")
    for uid in "ab":
        getattr(bench.guard, end)(uid)
    assert bench.guard.record(bench.now).reserved == ()
    assert not bench.may_call("a")


@pytest.mark.parametrize("end", ["forget", "unreserve"])
def test_a_pod_that_is_gone_while_the_record_is_written_is_not_reserved_by_it(end):
    bench = Bench()
    bench.reserve("a")
    bench.want("b")
    record = bench.guard.to_save(bench.now, 1)
    for uid in "ab":
        getattr(bench.guard, end)(uid)
    bench.guard.saved(record, error="")
    assert len(bench.guard.ledger.rows) == 0


def test_a_namespace_that_fails_keeps_the_reservation_of_the_pod_that_goes_next():
    bench = Bench()
    bench.reserve("a", "b")
    bench.reserve("c", namespace="bank")
    bench.want("d")
    bench.guard.unreserve_all("shop")
    assert bench.guard.record(bench.now).reserved == (("a", "shop"), ("c", "bank"))


@pytest.mark.parametrize(("due", "at_once"), [(0, 10), (100, 10), (119, 11), (250, 25)])
def test_a_tenth_of_the_due_pods_and_at_least_ten_are_reserved_at_once(due, at_once):
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
    assert len(bench.guard.ledger.rows) == MAX_RESERVED


def test_no_more_are_reserved_than_may_be_evicted_in_the_window():
    bench = Bench()
    bench.evict(*pods(4, "gone-"))
    bench.reserve(*pods(3))
    assert bench.want(*pods(10, "more-")) == 3
    bench.store()
    assert bench.want("one-more") == 0


def test_a_guard_that_holds_one_namespace_reserves_half_as_many_more():
    bench = Bench()
    wave(bench, 20, 1)
    bench.advance(NARROW_SECONDS)
    bench.evict(*pods(4, "gone-"), namespace="bank")
    assert bench.want(*pods(30, "more-"), namespace="bank") == 10
    bench.store()
    assert bench.want(*pods(30, "others-"), namespace="bank") == 1


def test_a_guard_that_only_reports_reserves_more_than_it_allows():
    bench = Bench(action=GuardAction.REPORT)
    bench.evict(*pods(10, "gone-"))
    assert bench.want(*pods(10)) == 10
    assert bench.guard.used_up("shop")[1] is None


def test_a_guard_without_allowance_names_when_the_next_pod_may_leave():
    bench = Bench(population=91)
    bench.evict(*pods(9))
    bench.seconds += SLOT
    assert bench.guard.used_up("shop")[1] is None
    bench.evict("last")
    until = bench.guard.used_up("shop")[1]
    assert until == BEGAN + WINDOW + SLOT
    bench.advance(until - bench.now.monotonic)
    assert bench.want(*pods(10, "next-")) == 8
