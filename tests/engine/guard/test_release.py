"""The guard: pods that a person released, here and in another process."""

import pytest

from engine.guard.bench import WALL, WINDOW, Bench, uids
from taintwarden.engine.guard import GuardRecord, Turn
from taintwarden.engine.guard.guard import ALL_PODS

# -- released by a person ---------------------------------------------------------------------------------------------


def test_a_release_lets_go_what_it_holds():
    bench = Bench().trip(300)
    assert bench.release() == 300
    assert not bench.guard.halts
    assert bench.look() is None


def test_exactly_the_pods_it_held_are_released():
    bench = Bench().trip(300)
    assert bench.guard.release(bench.now) == uids(300)
    bench.expect(*uids(240, "later"))
    assert list(bench.guard.ahead.released) == uids(300)
    assert bench.guard.ahead.total == 240
    assert bench.look() is Turn.TRIPPED, "240 others are too many again"
    assert list(bench.guard.ahead.held()) == uids(240, "later")


def test_what_was_released_is_evicted_one_by_one_and_never_counts():
    bench = Bench().trip(300)
    bench.release()
    for uid in uids(300):
        bench.evict(uid)
        bench.pass_time(0.1)
        assert bench.look() is None
    assert bench.spent() == []


def test_a_released_pod_whose_deadline_moves_stays_released():
    bench = Bench().trip(300)
    bench.release()
    bench.expect(*uids(300), after=60)
    assert bench.guard.ahead.total == 0


@pytest.mark.parametrize(("others", "trips"), [(200, False), (201, True)])
def test_others_count_as_ever_after_a_release(others, trips):
    bench = Bench().trip(300)
    bench.release()
    bench.expect(*uids(others, "other"))
    assert (bench.look() is Turn.TRIPPED) == trips


def test_a_released_pod_that_could_stay_meanwhile_counts_when_it_has_to_leave_again():
    bench = Bench().trip(300)
    bench.release()
    bench.forget(*uids(300))
    bench.look()
    bench.expect(*uids(300))
    assert bench.look() is Turn.TRIPPED


def test_a_release_lets_the_policy_be_asked_again():
    bench = Bench().trip(300)
    bench.freed.clear()
    bench.release()
    assert set(bench.freed) == {ALL_PODS}


def test_an_armed_guard_releases_what_unhealthy_zones_hold():
    bench = Bench()
    bench.expect(*"abc")
    assert bench.look() is None
    assert bench.release() == 3
    assert bench.freed == [ALL_PODS]
    assert bench.stored(waiting=False).accepted == 3


# -- another process ---------------------------------------------------------------------------------------------------


def released_record(number: int = 300) -> tuple[Bench, GuardRecord]:
    """Pods were released at the start."""
    bench = Bench(population=0).trip(number)
    bench.release()
    return bench, bench.stored(waiting=False)


def test_released_pods_are_released_in_another_process():
    bench, record = released_record()
    other = bench.successor(record, after=30)
    other.expect(*uids(300))
    assert other.look() is None
    assert (len(other.guard.ahead.released), other.guard.ahead.total) == (300, 0)


def test_released_pods_known_before_the_record_are_released():
    _, record = released_record()
    other = Bench(population=0)
    other.expect(*uids(300))
    other.guard.restore(record, other.now)
    assert other.look() is None
    assert other.guard.ahead.total == 0


def test_no_more_pods_are_released_in_another_process_than_were():
    bench, record = released_record(6)
    other = bench.successor(record)
    other.expect(*uids(10))
    assert (len(other.guard.ahead.released), other.guard.ahead.total) == (6, 4)


@pytest.mark.parametrize(
    "late", [{"bound": WALL + 2}, {"since": WALL + 2}, {"after": WINDOW}], ids=["bound", "violated", "due"]
)
def test_what_was_not_held_by_then_is_not_released_in_another_process(late):
    bench, record = released_record(6)
    other = bench.successor(record, after=30)
    other.expect("late", **late)
    assert list(other.guard.ahead.released) == []
    assert other.guard.ahead.total == 1
    other.expect(*uids(6))
    assert list(other.guard.ahead.released) == uids(6)


def test_a_record_read_again_releases_no_more_pods_than_it_says():
    bench, record = released_record(6)
    other = bench.successor(record)
    other.expect(*uids(6))
    other.guard.restore(record, other.now)
    other.guard.restore(record, other.now)
    other.expect("another")
    assert (len(other.guard.ahead.released), other.guard.ahead.total) == (6, 1)
    assert other.guard.record(other.now).accepted == 6


def test_released_pods_not_met_yet_are_stored_again():
    bench, record = released_record()
    other = bench.successor(record)
    other.expect(*uids(100))
    assert other.guard.record(other.now).accepted == 300


def test_a_record_read_back_does_not_count_released_pods_twice_that_are_being_evicted():
    bench, record = released_record(6)
    bench.evict(*uids(6))
    bench.guard.restore(record, bench.now)
    assert bench.guard.record(bench.now).accepted == 6


def test_pods_of_an_earlier_release_that_are_not_identified_are_not_released_by_the_next():
    bench = Bench().successor(GuardRecord(accepted=5, released_at=WALL))
    bench.expect(*uids(300), since=WALL + 60)
    bench.look()
    bench.release()
    bench.expect(*uids(5, "other"))
    assert list(bench.guard.ahead.released) == uids(300)
