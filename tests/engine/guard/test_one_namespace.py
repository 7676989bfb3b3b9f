"""When the guard holds the pods of one namespace only."""

import pytest

from engine.guard.bench import Bench, pods, wave
from taintwarden.engine.guard import ALL, GuardTransition
from taintwarden.engine.guard.latch import NARROW_SECONDS, RECHECK_SECONDS


@pytest.mark.parametrize(("bank", "held"), [(1, False), (5, False), (6, True)])
def test_after_a_minute_the_guard_holds_the_largest_namespace_if_the_others_are_half_of_the_allowance(bank, held):
    bench = Bench()
    wave(bench, 20, bank)
    bench.advance(NARROW_SECONDS - 1)
    assert (bench.guard.holds("shop"), bench.guard.holds("bank")) == (True, True)
    assert bench.guard.next_check_in(bench.now) == 1
    bench.freed.clear()
    bench.advance(1)
    assert (bench.guard.holds("shop"), bench.guard.holds("bank")) == (True, held)
    assert bench.freed == ([] if held else [ALL])
    assert bench.guard.next_check_in(bench.now) == (RECHECK_SECONDS if held else None)


@pytest.mark.parametrize(("seconds", "scope"), [(NARROW_SECONDS + 5, "shop"), (NARROW_SECONDS - 5, ALL)])
def test_settings_that_allow_the_others_narrow_it_at_once_but_not_within_a_minute_of_their_growth(seconds, scope):
    bench = Bench()
    wave(bench, 40, 8)
    bench.advance(seconds)
    bench.change(min_pods=16, max_percent=1)
    bench.check_guard()
    assert bench.guard.latch.scope == scope


def test_others_count_together():
    bench = Bench()
    wave(bench, 20, 3)
    bench.expect(*pods(3, "play-"), namespace="play")
    bench.check_guard()
    bench.advance(NARROW_SECONDS)
    assert bench.guard.latch.scope == ALL


def test_growth_of_the_largest_namespace_delays_nothing():
    bench = Bench()
    wave(bench, 20, 1)
    for number in range(3):
        bench.advance(20)
        bench.expect(f"more-{number}")
    bench.check_guard()
    assert bench.guard.latch.scope == "shop"


def test_a_wave_whose_others_grow_is_held_for_another_minute():
    bench = Bench()
    wave(bench, 20, 1)
    bench.advance(NARROW_SECONDS - 1)
    bench.expect("one-more", namespace="bank")
    bench.advance(1)
    bench.advance(NARROW_SECONDS - 1)
    assert bench.guard.latch.scope == ALL
    bench.advance(1)
    assert bench.guard.latch.scope == "shop"


def test_blocked_pods_do_not_make_a_wave_grow():
    bench = Bench()
    wave(bench, 20, 1)
    bench.advance(NARROW_SECONDS - 1)
    bench.expect(*pods(20, "blocked-"), namespace="play", budget="b")
    bench.check_guard()
    bench.advance(1)
    assert bench.guard.latch.scope == "shop"


def test_pods_that_recover_do_not_make_others_small():
    """Nodes are repaired one by one: what was counted can only grow."""
    bench = Bench()
    wave(bench, 20, 6)
    bench.forget(*pods(5, "bank-"))
    bench.advance(NARROW_SECONDS)
    assert bench.guard.latch.scope == ALL


@pytest.mark.parametrize(("more", "scope"), [(4, "shop"), (5, ALL)])
def test_one_held_namespace_becomes_all_when_the_others_grow_above_half_of_the_allowance(more, scope):
    bench = Bench()
    wave(bench, 20, 1)
    bench.advance(NARROW_SECONDS)
    bench.freed.clear()
    bench.expect(*pods(more, "more-"), namespace="play")
    bench.check_guard()
    assert bench.guard.latch.scope == scope
    assert ("shop" in bench.freed) == (scope == ALL)


def test_evictions_of_the_window_make_the_guard_hold_all_again():
    bench = Bench()
    wave(bench, 20, 1)
    bench.advance(NARROW_SECONDS)
    bench.evict(*pods(4, "gone-"), namespace="bank")
    bench.expect("one-more", namespace="play")
    bench.check_guard()
    assert bench.guard.latch.scope == ALL


def test_an_allowance_that_grows_narrows_it_soon():
    bench = Bench(population=80)
    wave(bench, 12, 5)
    bench.advance(NARROW_SECONDS)
    assert bench.guard.holds("bank"), "five are more than half of 8"
    bench.population = 100
    bench.advance(2)
    assert (bench.guard.holds("shop"), bench.guard.holds("bank")) == (True, False)


@pytest.mark.parametrize("stored", [False, True])
def test_the_guard_narrows_only_when_its_counts_are_stored(stored):
    bench = Bench()
    wave(bench, 20, 1)
    bench.advance(NARROW_SECONDS - 1)
    bench.expect("one-more")
    bench.guard.check_wave(bench.now)
    bench.seconds += 1
    if stored:
        bench.store()
    bench.guard.check_wave(bench.now)
    assert bench.guard.latch.scope == ("shop" if stored else ALL)
    assert bench.guard.next_check_in(bench.now) != 0.0


def test_the_guard_holds_one_namespace_while_only_pods_of_that_have_to_leave():
    bench = Bench()
    wave(bench, 10, 10)
    bench.forget(*pods(9, "bank-"))
    bench.check_guard()
    assert bench.guard.latch.scope == ALL
    bench.forget("bank-9")
    assert bench.guard.next_check_in(bench.now) == 0.0
    bench.check_guard()
    assert bench.guard.latch.scope == "shop"


@pytest.mark.parametrize(("late", "scope"), [((), "shop"), (("bank-0",), ALL)])
def test_a_wave_that_is_not_complete_is_not_of_one_namespace(late, scope):
    """Its pods come one by one: those of the namespace that comes first may be too many already."""
    bench = Bench(settle_seconds=2)
    bench.expect(*pods(11))
    bench.check_guard()
    assert bench.guard.latch.scope == ALL
    bench.expect(*late, namespace="bank")
    bench.advance(1)
    assert bench.guard.next_check_in(bench.now) == pytest.approx(1.0)
    assert bench.advance(1) is GuardTransition.TRIPPED
    assert bench.guard.latch.scope == scope


def test_the_guard_holds_the_only_namespace_and_passes_and_arms_only_when_its_counts_are_stored():
    bench = Bench()
    bench.expect(*pods(11))
    bench.guard.check_wave(bench.now)
    assert (bench.guard.check_wave(bench.now), bench.guard.latch.scope) == (None, ALL)
    assert (bench.guard.release(), bench.guard.let_pass(20)) == (11, [])
    assert bench.guard.next_check_in(bench.now) is None, "it waits for the write"
    bench.forget(*pods(11))
    bench.guard.check_wave(bench.now)
    assert bench.guard.latch.is_tripped
    bench.store()
    bench.guard.check_wave(bench.now)
    assert not bench.guard.latch.is_tripped


def test_while_causes_are_not_known_the_guard_holds_all():
    bench = Bench()
    wave(bench, 10, 10)
    bench.is_known = False
    bench.forget(*pods(10, "bank-"))
    bench.check_guard()
    assert bench.guard.latch.scope == ALL
    bench.is_known = True
    bench.check_guard()
    assert bench.guard.latch.scope == "shop"


def test_a_record_that_is_stored_has_the_guard_checked_at_once():
    bench = Bench()
    bench.expect(*pods(11))
    bench.guard.check_wave(bench.now)
    bench.guard.check_wave(bench.now)
    assert bench.guard.next_check_in(bench.now) is None
    bench.store()
    assert bench.guard.next_check_in(bench.now) == 0.0
