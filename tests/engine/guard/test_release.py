"""A person releases the pods that the guard holds."""

import pytest

from engine.guard.bench import WINDOW, Bench, key_of, pods, wave
from taintwarden.engine.guard import GuardTransition
from taintwarden.engine.guard.latch import NARROW_SECONDS


def test_a_release_in_slices_releases_exactly_the_pods_that_were_held_when_it_began():
    bench = Bench()
    held = bench.trip()
    assert bench.guard.release() == len(held)
    first = bench.guard.let_pass(4)
    bench.expect("later")
    bench.forget(held[0])
    assert bench.check_guard() is None
    assert bench.guard.holds("shop")
    assert bench.guard.next_check_in(bench.now) == 0.0
    assert bench.guard.let_pass(100) == [uid for uid in held if uid not in first]
    assert list(bench.guard.wave.released) == [*first, *held[1:-4]]
    assert bench.check_guard() is None
    assert (bench.guard.latch.is_tripped, bench.guard.expected()) == (False, 1)


def test_a_second_release_counts_each_pod_once():
    bench = Bench()
    held = bench.trip()
    assert bench.guard.release() == bench.guard.release() == len(held)


def test_released_pods_count_no_more():
    bench = Bench()
    held = bench.trip()
    bench.release()
    assert bench.check_guard() is None
    assert bench.guard.expected() == 0
    bench.evict(*held)
    assert bench.guard.evicted() == 0
    assert bench.check_guard() is None


def test_a_called_pod_that_is_released_is_not_reserved_any_more():
    bench = Bench()
    bench.fail("p0")
    bench.trip()
    bench.release()
    assert bench.guard.ledger.used == 0
    bench.see_gone("p0")
    assert bench.guard.evicted() == 0


def test_a_release_of_one_held_namespace_is_not_one_of_others():
    bench = Bench()
    wave(bench, 20, 2)
    bench.advance(NARROW_SECONDS)
    assert bench.release() == pods(20, "shop-")
    assert bench.guard.expected() == 2


def test_a_pod_that_its_budget_blocks_is_not_released():
    bench = Bench()
    bench.expect("blocked", budget="b")
    held = bench.trip()
    assert bench.release() == held


def test_of_pods_with_a_budget_as_many_are_released_as_count():
    bench = Bench()
    bench.budgets = {key_of("b"): 2}
    bench.expect(*pods(5, "b-"), budget="b")
    held = bench.trip()
    assert bench.release() == ["b-0", "b-1", *held]


def test_a_release_while_budgets_allow_no_pod_arms_the_guard():
    """Its pods count again when their budgets allow them."""
    bench = Bench()
    bench.allow("b", 11)
    bench.trip(budget="b")
    bench.allow("b", 0)
    assert bench.release() == []
    assert not bench.guard.latch.is_tripped
    bench.allow("b", 10)
    assert bench.check_guard() is None
    bench.allow("b", 11)
    assert bench.check_guard() is GuardTransition.TRIPPED


def test_an_armed_guard_releases_all_pods_within_the_window():
    """They wait because all nodes are unhealthy."""
    bench = Bench()
    bench.expect(*pods(3))
    bench.expect("far", after=700)
    bench.expect("blocked", budget="b")
    assert bench.release(all_are_unhealthy=True) == [*pods(3), "blocked"]
    assert bench.release(all_are_unhealthy=True) == []
    assert not bench.guard.has_to_save


def test_while_all_are_unhealthy_pods_beside_the_held_namespace_are_released_too():
    bench = Bench()
    held = bench.trip()
    bench.expect("other", namespace="bank")
    bench.check_guard()
    bench.advance(NARROW_SECONDS + 1)
    assert not bench.guard.holds("bank")
    assert bench.release(all_are_unhealthy=True) == [*held, "other"]


def test_a_released_pod_that_may_stay_is_released_no_more():
    bench = Bench()
    [first, *_] = bench.trip()
    bench.release()
    bench.forget(first)
    bench.expect(first)
    assert first not in bench.guard.wave.released
    assert bench.guard.expected() == 1


@pytest.mark.parametrize("other", [{"after": 5}, {"budget": "b"}])
def test_a_released_pod_whose_deadline_or_budgets_change_stays_released(other):
    bench = Bench()
    [first, *_] = bench.trip()
    bench.release()
    bench.expect(first, **other)
    assert first in bench.guard.wave.released


def test_a_change_of_leader_ends_a_release_of_which_no_pod_has_passed():
    bench = Bench()
    bench.trip()
    assert bench.guard.release() == 11
    bench.guard.restore(bench.guard.record(bench.now), bench.now)
    assert bench.guard.latch.is_stored
    assert bench.guard.let_pass(11) == []


def test_all_pods_of_a_guard_that_is_gone_are_forgotten_also_those_due_later():
    bench = Bench()
    bench.expect("now")
    bench.expect("later", after=2 * WINDOW)
    assert [bench.guard.wave.drop_some(1) for _ in range(2)] == [False, True]


def test_nothing_is_kept_of_a_node_whose_released_pods_have_left():
    bench = Bench()
    uids = bench.trip()
    bench.release()
    bench.forget(*uids)
    assert not bench.guard.wave.nodes
