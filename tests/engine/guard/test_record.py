"""The guard: what is stored before anything is evicted, and what another process makes of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.guard.bench import SLOT, WALL, WINDOW, Bench, uids
from taintwarden.engine.guard import GuardRecord, Turn
from taintwarden.engine.guard.guard import ALL_PODS
from taintwarden.engine.guard.record import SMALLEST_RESERVATION
from taintwarden.engine.model import GuardAction

# -- what is stored before anything is evicted ------------------------------------------------------------------------


def test_nothing_is_evicted_before_a_reservation_is_stored():
    bench = Bench()
    assert not bench.guard.may_take(bench.now)
    bench.store()
    assert bench.guard.may_take(bench.now)


def test_what_waits_for_the_record_is_asked_again_when_it_is_stored():
    bench = Bench()
    bench.store()
    assert bench.freed == [ALL_PODS]


def test_nothing_is_stored_while_nothing_waits():
    assert Bench().store(waiting=False) is None


def test_as_many_are_evicted_as_are_reserved():
    bench = Bench()
    [(_, reserved)] = bench.stored().spent
    assert reserved == SMALLEST_RESERVATION
    for _ in range(reserved):
        assert bench.guard.may_take(bench.now)
        bench.spend(1)
    assert not bench.guard.may_take(bench.now)


def test_a_reservation_is_renewed_before_it_is_used_up():
    bench = Bench()
    bench.store()
    bench.spend(SMALLEST_RESERVATION // 2 - 1)
    assert bench.store() is None
    bench.spend(1)
    assert bench.stored().spent[-1][1] == SMALLEST_RESERVATION + SMALLEST_RESERVATION // 2


def test_a_reservation_grows_with_what_waits():
    bench = Bench(population=10_000, min_pods=1_000)
    bench.expect(*uids(2_000))
    assert bench.stored().spent[-1][1] == 200


def test_no_more_is_reserved_than_may_be_evicted():
    bench = Bench(population=60, max_percent=20, min_pods=12)
    bench.spend(11)
    assert bench.stored().spent[-1][1] == 12
    bench.spend(1)
    bench.store()
    assert not bench.guard.may_take(bench.now)


def test_a_reservation_ends_with_its_slot():
    bench = Bench()
    bench.store()
    bench.pass_time(SLOT)
    assert not bench.guard.may_take(bench.now)
    bench.store()
    assert bench.guard.may_take(bench.now)


def test_a_reservation_that_was_not_stored_allows_nothing():
    bench = Bench()
    bench.store(succeeded=False)
    assert not bench.guard.may_take(bench.now)


def test_what_could_not_be_stored_is_stored_later():
    bench = Bench().trip()
    bench.store(waiting=False, succeeded=False)
    assert bench.stored(waiting=False).open_since == WALL


def test_tripping_and_arming_are_stored_although_nothing_waits():
    bench = Bench().trip()
    record = bench.stored(waiting=False)
    assert (record.open_since, record.would_evict) == (WALL, 300)
    assert bench.store(waiting=False) is None
    bench.forget(*uids(300))
    bench.look()
    assert bench.store(waiting=False) == GuardRecord()


def test_a_tripped_guard_reserves_nothing():
    bench = Bench().trip()
    bench.store()
    assert bench.store() is None
    assert not bench.guard.may_take(bench.now)


def test_a_tripped_guard_that_only_reports_reserves():
    bench = Bench(action=GuardAction.REPORT).trip()
    bench.store()
    assert bench.guard.may_take(bench.now)


def test_a_release_is_stored_with_how_many_and_when():
    bench = Bench().trip()
    bench.store()
    bench.pass_time(10)
    bench.release()
    record = bench.stored()
    assert (record.open_since, record.accepted, record.released_at) == (None, 300, WALL + 10)


def test_a_released_pod_that_is_gone_is_stored():
    bench = Bench().trip()
    bench.release()
    bench.store()
    bench.evict("p0")
    bench.forget("p0")
    assert bench.stored(waiting=False).accepted == 299


def test_when_it_was_released_is_stored_no_more_after_the_last_of_them():
    bench = Bench().trip()
    bench.release()
    bench.forget(*uids(300))
    record = bench.stored(waiting=False)
    assert (record.accepted, record.released_at) == (None, None)


def test_earlier_slots_are_stored_with_what_was_really_evicted():
    bench = Bench()
    bench.store()
    bench.spend(2)
    bench.pass_time(SLOT)
    assert bench.stored().spent == ((WALL + SLOT, 2), (WALL + 2 * SLOT, SMALLEST_RESERVATION))


# -- another process --------------------------------------------------------------------------------------------------


def tripped_record() -> tuple[Bench, GuardRecord]:
    bench = Bench().trip()
    bench.guard.cause = "taint sla"
    return bench, bench.stored()


def test_a_tripped_guard_stays_tripped_in_another_process():
    bench, record = tripped_record()
    other = bench.successor(record, after=30)
    other.expect(*uids(300))
    assert other.look() is None
    assert other.guard.halts
    assert (other.guard.tripped_at, other.guard.cause) == (WALL, "taint sla")


def test_a_tripped_guard_is_armed_in_another_process_if_the_cause_is_gone():
    bench, record = tripped_record()
    assert bench.successor(record).look() is Turn.ARMED


def test_pods_bound_later_do_not_keep_it_tripped_in_another_process():
    bench, record = tripped_record()
    other = bench.successor(record, after=30)
    other.expect("new", bound=WALL + 20)
    assert other.look() is Turn.ARMED


def test_pods_known_before_the_record_are_its_cause():
    _, record = tripped_record()
    other = Bench()
    other.expect(*uids(300))
    other.guard.restore(record, other.now)
    assert other.look() is None
    other.forget(*uids(300))
    assert other.look() is Turn.ARMED


def test_what_was_reserved_counts_as_spent_in_another_process():
    bench = Bench(population=0)
    other = bench.successor(bench.stored())
    other.expect(*uids(5))
    assert other.look() is Turn.TRIPPED, "one may have been evicted"


@pytest.mark.parametrize("population", [4, 25, 80, 300, 5_000])
def test_another_process_may_evict_what_the_limit_leaves_but_a_tenth(population):
    """What was reserved and never evicted counts there: no wave within the rest of the limit trips it."""
    bench = Bench(population=population, min_pods=None)
    record = bench.stored()
    bench.spend(1)
    other = bench.successor(record)
    limit = other.guard.limit()
    other.expect(*uids(limit - max(1, limit // 10)))
    assert other.look() is None


def test_what_was_spent_ends_in_another_process_when_the_window_does():
    bench = Bench()
    record = bench.stored()
    other = bench.successor(record, after=WINDOW + SLOT)
    other.population = 0
    other.expect(*uids(5))
    assert other.look() is None


def test_nothing_is_evicted_on_the_reservation_of_another_process():
    bench = Bench()
    assert not bench.successor(bench.stored()).guard.may_take(bench.now)


@given(st.floats(-1e6, 1e6), st.lists(st.tuples(st.floats(0, 2e9), st.integers(0, 50)), max_size=25))
def test_a_record_with_times_of_another_clock_blocks_for_no_longer_than_a_window(step, spent):
    bench = Bench(population=0)
    bench.seconds = abs(step)
    bench.guard.restore(GuardRecord(spent=tuple(spent)), bench.now)
    bench.pass_time(WINDOW + SLOT + 0.001)  # between two clocks times are rounded
    bench.expect(*uids(5))
    assert bench.look() is None


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 5)), max_size=10))
def test_a_record_read_back_says_the_same(steps):
    bench = Bench(min_pods=10_000)
    for seconds, pods in steps:
        bench.pass_time(seconds)
        bench.spend(pods)
        bench.look()
    record = bench.guard.record(bench.now)
    other = bench.successor(record)
    again = other.guard.record(other.now)
    assert [pods for _, pods in again.spent] == [pods for _, pods in record.spent]
    assert [at for at, _ in again.spent] == pytest.approx([at for at, _ in record.spent], abs=0.01)


@given(
    crash=st.integers(0, 40),
    steps=st.lists(st.tuples(st.sampled_from([0.0, 0.5, 10.0, 31.0]), st.booleans()), min_size=1, max_size=40),
)
def test_a_crash_never_counts_one_too_few(crash, steps):
    """Whatever was evicted since the last record that was stored was reserved in it."""
    bench = Bench(population=100_000, min_pods=10_000)
    stored = GuardRecord()
    evicted: list[float] = []
    for seconds, succeeded in steps[:crash]:
        bench.pass_time(seconds)
        record = bench.store(succeeded=succeeded)
        stored = record if record is not None and succeeded else stored
        for _ in range(3):
            if bench.guard.may_take(bench.now):
                bench.spend(1)
                evicted.append(bench.seconds)
    counted = sum(pods for at, pods in stored.spent if at + WINDOW > bench.now.wall)
    assert counted >= sum(at > bench.seconds - WINDOW for at in evicted)


def test_what_was_reserved_before_another_record_is_restored_is_reserved_no_more():
    bench = Bench()
    bench.stored()
    assert bench.guard.may_take(bench.now)
    bench.guard.restore(GuardRecord(), bench.now)
    assert not bench.guard.may_take(bench.now)
