"""Settings of a guard that change."""

import pytest

from engine.guard.bench import Bench, pods
from taintwarden.engine.guard import GuardTransition
from taintwarden.engine.limit_settings import GuardAction


@pytest.mark.parametrize("settings", [{"max_percent": 11}, {"min_pods": 11}], ids=str)
def test_settings_that_allow_the_wave_arm_the_guard(settings):
    bench = Bench()
    bench.trip()
    bench.change(**settings)
    assert bench.check_guard() is GuardTransition.ARMED


def test_settings_that_do_not_allow_the_wave_leave_the_guard_tripped():
    bench = Bench()
    bench.evict(*pods(6, "gone-"))
    bench.trip(6)
    bench.change(max_percent=11)
    assert bench.guard.latch.is_tripped
    bench.check_guard()
    assert bench.guard.latch.is_tripped


def test_settings_from_before_the_wave_do_not_arm_the_guard():
    """Nor does a change of leader, after which it might hold for the first time what it reported before."""
    bench = Bench()
    bench.change(max_percent=9)
    bench.check_guard()
    for one in (bench, bench.restart()):
        one.resolve()
        one.trip(11)
        one.forget(*pods(3))
        one.check_guard()
        assert one.guard.latch.is_tripped, "of those that counted, 8 still have to leave"


def test_settings_from_before_the_wave_do_not_arm_the_guard_while_its_record_is_written():
    bench = Bench()
    bench.change(max_percent=9)
    bench.expect(*pods(11))
    bench.guard.check_wave(bench.now)
    bench.forget(*pods(3))
    bench.check_guard()
    assert bench.guard.latch.is_tripped


def test_settings_that_allow_the_wave_arm_the_guard_only_when_its_causes_are_known():
    bench = Bench()
    bench.trip()
    bench.is_known = False
    bench.change(max_percent=50)
    bench.check_guard()
    assert bench.guard.latch.is_tripped
    bench.is_known = True
    bench.check_guard()
    assert not bench.guard.latch.is_tripped


def test_another_action_applies_at_once():
    bench = Bench()
    bench.trip()
    bench.change(action=GuardAction.REPORT)
    bench.check_guard()
    assert (bench.guard.latch.is_tripped, bench.guard.halts) == (True, False)


@pytest.mark.parametrize("window", [60, 1_200])
def test_another_window_keeps_what_stands(window):
    bench = Bench()
    held = bench.trip(20)
    bench.change(window_seconds=window)
    bench.check_guard()
    assert bench.guard.latch.is_tripped
    assert bench.guard.latch.counted() == {"shop": 20}
    bench.forget(*held[1:])
    assert bench.check_guard() is None
    bench.forget(held[0])
    assert bench.check_guard() is GuardTransition.ARMED


def test_a_shorter_window_counts_fewer_pods():
    bench = Bench()
    bench.trip(11, after=300)
    bench.change(window_seconds=299)
    bench.check_guard()
    assert not bench.guard.latch.is_tripped
    assert bench.guard.expected() == 0
    bench.advance(1)
    assert bench.guard.expected() == 11
