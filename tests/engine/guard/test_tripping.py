"""When the guard trips, and when it is armed again."""

import pytest

from engine.guard.bench import WALL, Bench, key_of, pods
from engine.kept import kept
from taintwarden.engine.guard import GuardTransition
from taintwarden.engine.limit_settings import GuardAction
from taintwarden.engine.records import GuardRecord

# -- tripped -----------------------------------------------------------------------------------------------------------


def test_the_guard_trips_when_more_pods_are_due_than_it_allows():
    bench = Bench()
    bench.expect(*pods(10))
    assert bench.check_guard() is None
    assert not bench.guard.latch.is_tripped
    bench.expect("one-more", namespace="bank", after=600)
    assert bench.check_guard() is GuardTransition.TRIPPED
    assert bench.guard.latch.tripped_at == bench.now.wall
    assert bench.guard.latch.counted() == {"shop": 10, "bank": 1}


def test_evictions_and_due_pods_trip_the_guard_together():
    bench = Bench()
    bench.evict(*pods(6))
    bench.expect(*pods(4, "due"))
    assert bench.check_guard() is None
    bench.expect("one-more", namespace="bank")
    assert bench.check_guard() is GuardTransition.TRIPPED
    assert bench.guard.latch.counted() == {"shop": 10, "bank": 1}


def test_evictions_alone_trip_nothing():
    bench = Bench()
    bench.evict(*pods(11))
    bench.population = 89
    assert bench.check_guard() is None


def test_the_guard_trips_when_a_budget_allows_more():
    bench = Bench()
    bench.expect(*pods(20), budget="b")
    assert bench.check_guard() is None
    bench.allow("b", 11)
    assert bench.check_guard() is GuardTransition.TRIPPED
    assert bench.guard.latch.counted() == {"shop": 11}


def test_a_called_pod_counts_as_due_unless_its_budget_refused_the_call():
    bench = Bench()
    bench.evict(*pods(9), of="web")
    bench.population = 91
    bench.expect("a", budget="b")
    bench.call("a")
    bench.expect("b")
    assert bench.check_guard() is GuardTransition.TRIPPED
    bench = Bench()
    bench.evict(*pods(9), of="web")
    bench.population = 91
    bench.expect("a", budget="b")
    bench.call("a")
    bench.guard.settle("a", stays=True)
    bench.expect("a", budget="b")
    bench.expect("b")
    assert bench.check_guard() is None


def test_a_wave_that_was_allowed_trips_nothing_when_other_pods_are_deleted_meanwhile():
    bench = Bench(population=14, max_percent=20, min_pods=None)
    due = pods(7)
    bench.expect(*due)
    bench.check_guard()
    bench.evict(*due[:2])
    bench.population = 5
    bench.forget(due[2])
    bench.expect(*due[3:])
    bench.expect("blocked", budget="b")
    assert bench.check_guard() is None
    bench.expect("one-more")
    assert bench.check_guard() is GuardTransition.TRIPPED


def test_a_wave_is_reported_when_it_is_complete():
    bench = Bench(settle_seconds=2)
    bench.expect(*pods(11))
    assert bench.check_guard() is None
    assert bench.guard.holds("shop"), "from the first moment on"
    assert bench.guard.record(bench.now).tripped_at == WALL
    assert bench.guard.next_check_in(bench.now) == 2
    assert bench.advance(1.75) is None
    bench.seconds += 0.25
    assert bench.guard.next_check_in(bench.now) == 0
    assert bench.check_guard() is GuardTransition.TRIPPED
    assert bench.advance(1) is None


def test_a_wave_that_is_over_before_it_is_reported_only_passes():
    bench = Bench(settle_seconds=2)
    bench.expect(*pods(11))
    bench.check_guard()
    bench.forget(*pods(11))
    assert bench.advance(1) is None
    assert not bench.guard.latch.is_tripped
    assert bench.advance(1) is None


@pytest.mark.parametrize(("action", "holds"), [(GuardAction.HALT, True), (GuardAction.REPORT, False)])
def test_a_tripped_guard_holds_all_namespaces_unless_it_only_reports(action, holds):
    bench = Bench(action=action)
    bench.trip()
    bench.expect("other", namespace="bank")
    bench.check_guard()
    assert bench.guard.latch.is_tripped
    assert (bench.guard.halts, bench.guard.holds("shop"), bench.guard.holds("play")) == (holds, holds, False)


# -- armed again -------------------------------------------------------------------------------------------------------


def test_the_guard_stays_tripped_until_no_counted_pod_has_to_leave():
    bench = Bench()
    first, *others = bench.trip()
    bench.guard.latch.cause = "a taint"
    bench.forget(*others)
    assert bench.check_guard() is None
    assert bench.guard.latch.counted() == {"shop": 11}
    bench.freed.clear()
    bench.forget(first)
    assert bench.check_guard() is GuardTransition.ARMED
    assert (bench.guard.latch.is_tripped, bench.guard.holds("shop"), bench.guard.latch.counted()) == (False, False, {})
    assert bench.guard.record(bench.now) == GuardRecord(population=100)
    assert "shop" in bench.freed


def test_pods_that_come_while_the_guard_is_tripped_are_counted():
    bench = Bench()
    first = bench.trip()
    bench.expect("later", after=500)
    bench.check_guard()
    assert bench.guard.latch.counted() == {"shop": 12}
    bench.forget(*first)
    bench.check_guard()
    assert bench.guard.latch.is_tripped
    bench.forget("later")
    assert bench.check_guard() is GuardTransition.ARMED


def test_a_pod_whose_budget_allows_none_does_not_keep_the_guard_tripped():
    bench = Bench()
    bench.expect("blocked", budget="b")
    bench.forget(*bench.trip())
    assert bench.check_guard() is GuardTransition.ARMED


def test_a_budget_that_allows_none_for_a_while_arms_nothing():
    bench = Bench()
    bench.budgets = {key_of("b"): 11}
    uids = pods(20)
    bench.expect(*uids, budget="b")
    assert bench.check_guard() is GuardTransition.TRIPPED
    bench.allow("b", 0)
    assert bench.check_guard() is None
    bench.allow("b", 11)
    assert bench.check_guard() is None
    bench.allow("b", 0)
    bench.forget(*uids)
    assert bench.check_guard() is GuardTransition.ARMED


def test_of_a_budget_that_allows_one_one_pod_is_held():
    bench = Bench()
    bench.budgets = {key_of("b"): 1}
    bench.expect(*pods(5, "b-"), budget="b")
    bench.trip()
    assert bench.guard.latch.counted() == {"shop": 12}


def test_a_policy_that_is_paused_trips_nothing_and_what_it_would_evict_counts_when_it_is_resumed():
    bench = Bench()
    bench.expect(*pods(11))
    assert bench.guard.check_wave(bench.now, may_trip=False) is None
    assert (bench.guard.latch.is_tripped, bench.guard.next_check_in(bench.now)) == (False, None)
    bench.change()
    assert bench.check_guard() is GuardTransition.TRIPPED


def test_the_guard_of_a_paused_policy_is_armed_when_the_cause_is_gone():
    bench = Bench()
    bench.forget(*bench.trip())
    assert bench.guard.check_wave(bench.now, may_trip=False) is GuardTransition.ARMED


def test_nothing_is_kept_of_a_wave_that_is_over():
    bench = Bench()
    uids = bench.trip()
    bench.forget(*uids)
    bench.check_guard()
    assert kept(bench.guard, *uids) == []
