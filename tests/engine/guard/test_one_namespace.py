"""When the guard holds the pods of one namespace only."""

import pytest

from engine.guard.bench import Bench, pods, wave
from taintwarden.engine.guard import ALL, NARROW_SECONDS, Turn


@pytest.mark.parametrize(("bank", "held"), [(1, False), (5, False), (6, True)])
def test_after_a_minute_it_holds_the_largest_namespace_if_the_others_are_half_of_the_allowance(bank, held):
    bench = Bench()
    wave(bench, 20, bank)
    bench.advance(NARROW_SECONDS - 1)
    assert (bench.guard.holds("shop"), bench.guard.holds("bank")) == (True, True)
    assert bench.guard.next_look(bench.now) == 1
    bench.freed.clear()
    bench.advance(1)
    assert (bench.guard.holds("shop"), bench.guard.holds("bank")) == (True, held)
    assert bench.freed == ([] if held else [ALL])
    assert bench.guard.next_look(bench.now) == (60 if held else None)


def test_others_count_together():
    bench = Bench()
    wave(bench, 20, 3)
    bench.expect(*pods(3, "play-"), namespace="play")
    bench.look()
    bench.advance(NARROW_SECONDS)
    assert bench.guard.scope == ALL


def test_a_wave_that_grows_is_held_for_another_minute():
    bench = Bench()
    wave(bench, 20, 1)
    bench.advance(NARROW_SECONDS - 1)
    bench.expect("one-more")
    bench.advance(1)
    bench.advance(NARROW_SECONDS - 1)
    assert bench.guard.scope == ALL
    bench.advance(1)
    assert bench.guard.scope == "shop"


def test_blocked_pods_do_not_make_a_wave_grow():
    bench = Bench()
    wave(bench, 20, 1)
    bench.advance(NARROW_SECONDS - 1)
    bench.expect(*pods(20, "blocked-"), namespace="play", budget="b")
    bench.look()
    bench.advance(1)
    assert bench.guard.scope == "shop"


def test_pods_that_recover_do_not_make_others_small():
    """Nodes are repaired one by one: what was counted can only grow."""
    bench = Bench()
    wave(bench, 20, 6)
    bench.forget(*pods(5, "bank-"))
    bench.advance(NARROW_SECONDS)
    assert bench.guard.scope == ALL


@pytest.mark.parametrize(("more", "scope"), [(4, "shop"), (5, ALL)])
def test_one_held_namespace_becomes_all_when_the_others_grow_above_half_of_the_allowance(more, scope):
    bench = Bench()
    wave(bench, 20, 1)
    bench.advance(NARROW_SECONDS)
    bench.freed.clear()
    bench.expect(*pods(more, "more-"), namespace="play")
    bench.look()
    assert bench.guard.scope == scope
    assert bench.freed == ([] if scope else ["shop"])


def test_while_those_that_have_to_leave_are_of_one_namespace_it_holds_only_that():
    bench = Bench()
    wave(bench, 10, 10)
    bench.forget(*pods(9, "bank-"))
    bench.look()
    assert bench.guard.scope == ALL
    bench.forget("bank-9")
    bench.look()
    assert bench.guard.scope == "shop"


@pytest.mark.parametrize(("late", "scope"), [((), "shop"), (("bank-0",), ALL)])
def test_a_wave_that_is_not_complete_is_not_of_one_namespace(late, scope):
    """Its pods come one by one: those of the namespace that comes first may be too many already."""
    bench = Bench(settle_seconds=2)
    bench.expect(*pods(11))
    bench.look()
    assert bench.guard.scope == ALL
    bench.expect(*late, namespace="bank")
    bench.advance(1)
    assert bench.guard.next_look(bench.now) == pytest.approx(1.0)
    assert bench.advance(1) is Turn.TRIPPED
    assert bench.guard.scope == scope


def test_while_causes_are_not_known_it_holds_all():
    bench = Bench()
    wave(bench, 10, 10)
    bench.is_known = False
    bench.forget(*pods(10, "bank-"))
    bench.look()
    assert bench.guard.scope == ALL
    bench.is_known = True
    bench.look()
    assert bench.guard.scope == "shop"
