"""The breaker: when it opens and closes, what it remembers, and what it has written before anybody leaves."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taintwarden.engine.limits.guard import (
    CALM_SECONDS,
    LOOK_AGAIN_SECONDS,
    RETRY_SECONDS,
    SLOTS,
    SMALLEST_RESERVATION,
    Guard,
    GuardRecord,
    Turn,
)
from taintwarden.engine.model import GuardAction, GuardSettings, Instant

WALL = 1_700_000_000.0
WINDOW = 600
SLOT = WINDOW / SLOTS


class Bench:
    """A guard on a clock turned by hand, over a population that can be set."""

    def __init__(self, *, population: int = 1_000, **settings) -> None:
        self.population = population
        given = {"max_percent": 20, "min_pods": 5, "window_seconds": WINDOW, "settle_seconds": 0} | settings
        self.guard = Guard(GuardSettings(**given), lambda: self.population)
        self.seconds = 0.0

    @property
    def now(self) -> Instant:
        return Instant(WALL + self.seconds, self.seconds)

    def pass_time(self, seconds: float) -> None:
        self.seconds += seconds

    def expect(self, *uids: str, after: float = 0.0) -> None:
        for uid in uids:
            self.guard.expect(uid, self.now.wall + after, self.now)

    def forget(self, *uids: str) -> None:
        for uid in uids:
            self.guard.forget(uid)

    def evict(self, number: int) -> float:
        """Returns the slot in which they count."""
        slot = 0.0
        for _ in range(number):
            slot = self.guard.take(self.now)
        return slot

    def look(self) -> Turn | None:
        return self.guard.look(self.now)

    def store(self, *, waiting: bool = True, succeeded: bool = True) -> GuardRecord | None:
        """What is wanted is written."""
        record = self.guard.record_wanted(self.now, waiting=waiting)
        if record is not None:
            self.guard.saving = True
            self.guard.saved(self.now, succeeded=succeeded)
        return record

    def successor(self, record: GuardRecord, after: float = 0.0) -> "Bench":
        """Another process, whose monotonic clock began elsewhere."""
        other = Bench(population=self.population)
        other.guard = Guard(self.guard.settings, lambda: other.population)
        other.seconds = self.seconds + after
        other.guard.restore(record, other.now)
        return other


def uids(number: int, prefix: str = "p") -> list[str]:
    return [f"{prefix}{index}" for index in range(number)]


def opened(number: int = 300) -> Bench:
    bench = Bench()
    bench.expect(*uids(number))
    assert bench.look() is Turn.OPENED
    return bench


# -- when it opens -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pods", "population", "opens"),
    [(5, 0, False), (6, 0, True), (6, 30, False), (7, 30, True), (200, 1_000, False), (201, 1_000, True)],
)
def test_it_opens_above_the_greater_of_share_and_number(pods, population, opens):
    bench = Bench(population=population)
    bench.expect(*uids(pods))
    assert (bench.look() is Turn.OPENED) == opens


def test_a_share_is_rounded_down():
    assert GuardSettings(max_percent=20, min_pods=1).limit(39) == 7


def test_the_population_is_not_counted_while_few_would_leave():
    bench = Bench()
    bench.guard = Guard(GuardSettings(min_pods=5), lambda: pytest.fail("counted in vain"))
    bench.expect(*uids(5))
    assert bench.look() is None


def test_an_open_guard_knows_since_when_and_how_many():
    bench = opened(300)
    assert (bench.guard.open_since, bench.guard.expected()) == (WALL, 300)
    assert bench.guard.halts


def test_a_pod_expected_twice_counts_once():
    bench = Bench(population=0)
    for after in (0.0, 1.0, 2.0):
        bench.expect(*uids(5), after=after)
    assert bench.guard.expected() == 5
    assert bench.look() is None


def test_those_beyond_the_window_do_not_count():
    bench = Bench(population=0)
    bench.expect(*uids(5), after=WINDOW)
    bench.expect(*uids(100, "late"), after=WINDOW + 1)
    assert bench.look() is None


def test_those_beyond_the_window_count_when_it_reaches_them():
    bench = Bench(population=0)
    bench.expect(*uids(100), after=WINDOW + 10)
    bench.look()
    bench.pass_time(9)
    assert bench.look() is None
    bench.pass_time(1)
    assert bench.look() is Turn.OPENED


def test_a_deadline_that_moves_away_counts_no_more():
    bench = Bench(population=0)
    bench.expect(*uids(6))
    bench.expect("p0", after=WINDOW + 1)
    assert bench.look() is None


def test_a_deadline_that_comes_nearer_counts():
    bench = Bench(population=0)
    bench.expect(*uids(5))
    bench.expect("far", after=WINDOW + 100)
    assert bench.look() is None
    bench.expect("far")
    assert bench.look() is Turn.OPENED


def test_those_that_need_not_leave_do_not_count():
    bench = Bench(population=0)
    bench.expect(*uids(6))
    bench.expect("far", after=WINDOW + 100)
    bench.forget("p0", "far", "stranger")
    assert bench.look() is None


def test_what_left_in_the_window_counts_with_what_would_leave():
    bench = Bench(population=0)
    bench.evict(3)
    bench.expect(*uids(3))
    assert bench.look() is Turn.OPENED


def test_what_left_before_the_window_does_not_count():
    bench = Bench(population=0)
    bench.evict(3)
    bench.pass_time(WINDOW + SLOT)
    bench.expect(*uids(3))
    assert bench.look() is None


def test_what_left_counts_with_later_deadlines_only_while_one_window_holds_both():
    bench = Bench(population=0)
    bench.evict(3)
    bench.pass_time(SLOT * 2)
    bench.expect(*uids(3), after=WINDOW)
    assert bench.look() is None


def test_a_call_that_did_not_happen_is_given_back():
    bench = Bench(population=0)
    bench.guard.give_back(bench.evict(3))
    bench.expect(*uids(3))
    assert bench.look() is None


def test_nothing_is_given_back_that_was_not_taken():
    bench = Bench(population=0)
    bench.guard.give_back(SLOT)
    slot = bench.evict(1)
    bench.guard.give_back(slot)
    bench.guard.give_back(slot)
    assert bench.guard.current_record(bench.now).spent == ()


def test_it_is_given_back_in_the_slot_in_which_it_was_taken():
    """Or a later slot would hold one too few when the earlier one has passed."""
    bench = Bench()
    slot = bench.evict(2)
    bench.pass_time(SLOT)
    bench.evict(3)
    bench.guard.give_back(slot)
    assert [pods for _, pods in bench.guard.current_record(bench.now).spent] == [1, 3]


def test_a_due_pod_that_waits_is_due_now():
    """However long ago its deadline was: it will leave in the window that begins now."""
    bench = Bench(population=0)
    bench.expect(*uids(3))
    bench.look()
    bench.pass_time(WINDOW * 3)
    bench.evict(3)
    bench.expect("new")
    bench.expect(*uids(3), after=-WINDOW * 3)
    assert bench.look() is Turn.OPENED


@given(
    spent=st.lists(st.tuples(st.floats(0, 900), st.integers(1, 4)), max_size=8),
    ahead=st.lists(st.floats(-50, 700), max_size=12),
)
def test_it_counts_the_worst_window_as_a_naive_count_does(spent, ahead):
    bench = Bench(min_pods=0)
    ends = []
    for at, pods in sorted(spent):
        bench.seconds = at
        bench.evict(pods)
        end = (at // SLOT + 1) * SLOT
        ends += [end] * pods
    bench.seconds = 900.0
    for index, due in enumerate(ahead):
        bench.guard.expect(f"p{index}", bench.now.wall + due, bench.now)
    bench.look()
    now = bench.now.wall
    near = [max(now + due, now) for due in ahead if now + due <= now + WINDOW]
    past = [WALL + end for end in ends if end + WINDOW > 900.0]
    moments = [now, *near]
    naive = max(sum(at - WINDOW < end for end in past) + sum(due <= at for due in near) for at in moments)
    assert bench.guard._most(bench.now) == naive


# -- when it is told ---------------------------------------------------------------------------------------------------


def test_it_halts_at_once_and_is_told_when_the_wave_has_settled():
    bench = Bench(settle_seconds=2)
    bench.expect(*uids(300))
    assert bench.look() is None
    assert bench.guard.halts
    bench.pass_time(1.5)
    assert bench.look() is None
    bench.pass_time(1)
    assert bench.look() is Turn.OPENED
    bench.pass_time(1)
    assert bench.look() is None


def test_it_is_looked_at_again_to_be_told():
    bench = Bench(settle_seconds=2)
    bench.expect(*uids(300))
    bench.look()
    assert bench.guard.next_look(bench.now) is not None


def test_a_wave_that_was_over_before_it_was_told_passed():
    bench = Bench(settle_seconds=5)
    bench.expect(*uids(300))
    bench.look()
    bench.forget(*uids(300))
    bench.pass_time(1)
    assert bench.look() is Turn.PASSED
    assert not bench.guard.halts


def test_it_is_told_again_when_it_opens_again():
    bench = Bench(settle_seconds=1)
    for prefix in "ab":
        bench.expect(*uids(300, prefix))
        bench.look()
        bench.pass_time(1)
        assert bench.look() is Turn.OPENED
        bench.forget(*uids(300, prefix))
        bench.pass_time(1)
        assert bench.look() is Turn.CLOSED


# -- when it closes ----------------------------------------------------------------------------------------------------


def test_it_closes_when_the_cause_is_gone():
    bench = opened()
    bench.forget(*uids(300))
    bench.pass_time(LOOK_AGAIN_SECONDS)
    assert bench.look() is Turn.CLOSED
    assert (bench.guard.open_since, bench.guard.halts) == (None, False)


def test_it_closes_when_enough_recovered_and_nothing_changes_any_more():
    bench = opened()
    for number in range(150):
        bench.forget(f"p{number}")
        bench.pass_time(CALM_SECONDS - 2)
        assert bench.look() is None
    bench.pass_time(CALM_SECONDS)
    assert bench.look() is Turn.CLOSED


def test_it_stays_open_while_the_cause_is_there():
    bench = opened()
    bench.pass_time(WINDOW * 2)
    assert bench.look() is None
    assert bench.guard.halts


def test_it_opens_once():
    bench = opened()
    bench.expect(*uids(50, "more"))
    bench.pass_time(LOOK_AGAIN_SECONDS)
    assert bench.look() is None


def test_it_is_looked_at_once_a_second_while_open():
    bench = opened()
    assert bench.guard.next_look(bench.now) == LOOK_AGAIN_SECONDS
    bench.pass_time(0.25)
    assert bench.guard.next_look(bench.now) == LOOK_AGAIN_SECONDS - 0.25
    bench.forget(*uids(300))
    assert bench.look() is None


def test_it_need_not_be_looked_at_while_closed():
    bench = Bench()
    bench.look()
    assert bench.guard.next_look(bench.now) is None


def test_it_is_looked_at_when_more_have_to_leave():
    bench = Bench()
    bench.look()
    bench.expect("p")
    assert bench.guard.next_look(bench.now) == 0.0


def test_it_is_looked_at_when_what_leaves_its_window_makes_room():
    """With fewer pods in all, fewer may leave than have left: nobody opens it for that, nor tells when it is over."""
    bench = Bench(population=20, min_pods=1)
    bench.expect(*"abcd")
    bench.look()
    bench.store()
    slot = bench.evict(3)
    bench.forget(*"abc")
    bench.population = 10
    bench.pass_time(SLOT)
    assert (bench.look(), bench.store()) == (None, None)
    wait = bench.guard.next_look(bench.now)
    assert wait == slot + WINDOW - bench.seconds
    bench.pass_time(wait)
    bench.look()
    assert bench.store() is not None


def test_it_is_looked_at_when_its_window_reaches_a_deadline():
    bench = Bench()
    bench.expect("p", after=WINDOW + 30)
    bench.look()
    assert bench.guard.next_look(bench.now) == 30.0


def test_it_opens_again_for_another_wave():
    bench = opened()
    bench.forget(*uids(300))
    bench.pass_time(1)
    bench.look()
    bench.expect(*uids(300, "q"))
    assert bench.look() is Turn.OPENED


def test_more_pods_in_the_cluster_close_it():
    bench = opened(300)
    bench.population = 2_000
    bench.pass_time(CALM_SECONDS)
    assert bench.look() is Turn.CLOSED


def test_other_settings_hold_for_what_is_known():
    bench = Bench()
    bench.expect(*uids(100))
    assert bench.look() is None
    bench.guard.change(msgspec.structs.replace(bench.guard.settings, max_percent=5))
    assert bench.look() is Turn.OPENED
    bench.pass_time(CALM_SECONDS)
    bench.guard.change(msgspec.structs.replace(bench.guard.settings, max_percent=50))
    assert bench.look() is Turn.CLOSED


def test_the_same_settings_change_nothing():
    bench = opened()
    bench.forget(*uids(300))
    bench.guard.change(msgspec.structs.replace(bench.guard.settings))
    assert bench.look() is None


def test_a_guard_that_only_reports_halts_nobody():
    bench = Bench(action=GuardAction.REPORT)
    bench.expect(*uids(300))
    assert bench.look() is Turn.OPENED
    assert not bench.guard.halts


# -- a reset -----------------------------------------------------------------------------------------------------------


def test_a_reset_lets_go_what_it_holds():
    bench = opened(300)
    assert bench.guard.reset(bench.now) == 300
    assert not bench.guard.halts
    bench.pass_time(1)
    assert bench.look() is None


def test_a_reset_of_a_closed_guard_accepts_nothing():
    bench = Bench()
    bench.expect("a")
    assert bench.guard.reset(bench.now) is None
    assert bench.guard.accepted is None


def test_what_was_accepted_may_leave_one_by_one():
    bench = opened(300)
    bench.guard.reset(bench.now)
    for uid in uids(300):
        bench.forget(uid)
        bench.evict(1)
        bench.pass_time(0.1)
        assert bench.look() is None


def test_one_more_than_accepted_opens_it_again():
    bench = opened(300)
    bench.guard.reset(bench.now)
    bench.expect("another")
    assert bench.look() is Turn.OPENED


def test_what_was_accepted_is_accepted_once():
    bench = opened(300)
    bench.guard.reset(bench.now)
    bench.forget(*uids(300))
    bench.pass_time(1)
    bench.look()
    assert bench.guard.accepted is None
    bench.expect(*uids(300))
    assert bench.look() is Turn.OPENED


# -- what is written before anybody leaves -----------------------------------------------------------------------------


def test_nobody_leaves_before_a_reservation_is_written():
    bench = Bench()
    assert not bench.guard.may_take(bench.now)
    bench.store()
    assert bench.guard.may_take(bench.now)


def test_nothing_is_written_while_nobody_waits():
    assert Bench().store(waiting=False) is None


def test_as_many_leave_as_are_reserved():
    bench = Bench()
    record = bench.store()
    assert record is not None
    [(_, reserved)] = record.spent
    assert reserved == SMALLEST_RESERVATION
    for _ in range(reserved):
        assert bench.guard.may_take(bench.now)
        bench.evict(1)
    assert not bench.guard.may_take(bench.now)


def test_a_reservation_is_renewed_before_it_is_used_up():
    bench = Bench()
    bench.store()
    bench.evict(SMALLEST_RESERVATION // 2 - 1)
    assert bench.store() is None
    bench.evict(1)
    record = bench.store()
    assert record is not None
    assert record.spent[-1][1] == SMALLEST_RESERVATION + SMALLEST_RESERVATION // 2


def test_a_reservation_grows_with_what_waits():
    bench = Bench(min_pods=1_000)
    bench.expect(*uids(2_000))
    record = bench.store()
    assert record is not None
    assert record.spent[-1][1] == 200


def test_no_more_is_reserved_than_may_leave():
    bench = Bench(population=0, min_pods=12)
    bench.evict(5)
    record = bench.store()
    assert record is not None
    assert record.spent[-1][1] == 12


def test_what_was_accepted_may_be_reserved():
    bench = opened()
    bench.guard.reset(bench.now)
    bench.evict(250)
    bench.store()
    assert bench.guard.may_take(bench.now)


def test_a_reservation_ends_with_its_slot():
    bench = Bench()
    bench.store()
    bench.pass_time(SLOT)
    assert not bench.guard.may_take(bench.now)
    bench.store()
    assert bench.guard.may_take(bench.now)


def test_a_reservation_that_was_not_stored_lets_nobody_leave():
    bench = Bench()
    bench.store(succeeded=False)
    assert not bench.guard.may_take(bench.now)


def test_what_could_not_be_stored_is_tried_again_later():
    bench = Bench()
    bench.store(succeeded=False)
    assert bench.guard.retry_in(bench.now) == RETRY_SECONDS
    assert bench.store() is None
    bench.pass_time(RETRY_SECONDS)
    assert bench.guard.retry_in(bench.now) == 0.0
    assert bench.store() is not None
    assert bench.guard.retry_in(bench.now) is None


def test_one_thing_is_written_at_a_time():
    bench = Bench()
    assert bench.guard.record_wanted(bench.now, waiting=True) is not None
    bench.guard.saving = True
    assert bench.guard.record_wanted(bench.now, waiting=True) is None


def test_opening_and_closing_are_written_although_nobody_waits():
    bench = opened()
    record = bench.store(waiting=False)
    assert record is not None
    assert (record.open_since, record.would_evict) == (WALL, 300)
    assert bench.store(waiting=False) is None
    bench.forget(*uids(300))
    bench.pass_time(1)
    bench.look()
    assert bench.store(waiting=False) == GuardRecord()


def test_an_open_guard_reserves_nothing():
    bench = opened()
    bench.store()
    assert bench.store() is None
    assert not bench.guard.may_take(bench.now)


def test_an_open_guard_that_only_reports_reserves():
    bench = Bench(action=GuardAction.REPORT)
    bench.expect(*uids(300))
    bench.look()
    bench.store()
    assert bench.guard.may_take(bench.now)


def test_a_reset_is_written_with_what_it_accepts():
    bench = opened()
    bench.store()
    bench.guard.reset(bench.now)
    record = bench.store()
    assert record is not None
    assert (record.open_since, record.accepted) == (None, 300)


def test_earlier_slots_are_written_with_what_really_left():
    bench = Bench()
    bench.store()
    bench.evict(2)
    bench.pass_time(SLOT)
    record = bench.store()
    assert record is not None
    assert record.spent == ((WALL + SLOT, 2), (WALL + 2 * SLOT, SMALLEST_RESERVATION))


# -- another process ---------------------------------------------------------------------------------------------------


def test_an_open_guard_stays_open_in_another_process():
    bench = opened()
    bench.guard.cause = "taint sla"
    record = bench.store()
    assert record is not None
    other = bench.successor(record, after=30)
    assert other.guard.halts
    assert (other.guard.open_since, other.guard.cause) == (WALL, "taint sla")


def test_an_open_guard_closes_in_another_process_if_the_cause_is_gone():
    bench = opened()
    bench.guard.cause = "taint sla"
    record = bench.store()
    assert record is not None
    assert bench.successor(record).look() is Turn.CLOSED


def test_what_was_accepted_is_accepted_in_another_process():
    bench = opened()
    bench.guard.reset(bench.now)
    record = bench.store(waiting=False)
    assert record is not None
    other = bench.successor(record)
    other.expect(*uids(280))
    assert other.look() is None


def test_what_was_reserved_counts_as_spent_in_another_process():
    bench = Bench(population=0)
    record = bench.store()
    assert record is not None
    other = bench.successor(record)
    other.expect("a")
    assert other.look() is Turn.OPENED, "ten may have left"


def test_what_was_spent_ends_in_another_process_when_the_window_does():
    bench = Bench(population=0)
    record = bench.store()
    assert record is not None
    other = bench.successor(record, after=WINDOW + SLOT)
    other.expect(*uids(5))
    assert other.look() is None


def test_nobody_leaves_on_the_reservation_of_another_process():
    bench = Bench()
    record = bench.store()
    assert record is not None
    assert not bench.successor(record).guard.may_take(bench.now)


@given(st.floats(-1e6, 1e6), st.lists(st.tuples(st.floats(0, 2e9), st.integers(0, 50)), max_size=25))
def test_a_record_with_times_of_another_clock_blocks_for_no_longer_than_a_window(step, spent):
    bench = Bench(population=0)
    bench.seconds = abs(step)
    bench.guard.restore(GuardRecord(spent=tuple(spent)), bench.now)
    bench.pass_time(WINDOW + SLOT)
    bench.expect(*uids(5))
    assert bench.look() is None


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 5)), max_size=10))
def test_a_record_read_back_says_the_same(steps):
    bench = Bench(min_pods=10_000)
    for seconds, pods in steps:
        bench.pass_time(seconds)
        bench.evict(pods)
        bench.look()
    record = bench.guard.current_record(bench.now)
    other = bench.successor(record)
    again = other.guard.current_record(other.now)
    assert [pods for _, pods in again.spent] == [pods for _, pods in record.spent]
    assert [at for at, _ in again.spent] == pytest.approx([at for at, _ in record.spent], abs=0.01)


@given(
    crash=st.integers(0, 40),
    steps=st.lists(st.tuples(st.sampled_from([0.0, 0.5, 10.0, 31.0]), st.booleans()), min_size=1, max_size=40),
)
def test_a_crash_never_counts_one_too_few(crash, steps):
    """Whatever left since the last record that was stored was reserved in it."""
    bench = Bench(min_pods=10_000)
    stored = GuardRecord()
    left: list[float] = []
    for seconds, succeeded in steps[:crash]:
        bench.pass_time(seconds)
        record = bench.store(succeeded=succeeded)
        stored = record if record is not None and succeeded else stored
        for _ in range(3):
            if bench.guard.may_take(bench.now):
                bench.evict(1)
                left.append(bench.seconds)
    other = bench.successor(stored)
    counted = sum(pods for at, pods in stored.spent if at + WINDOW > other.now.wall)
    assert counted >= sum(at > other.seconds - WINDOW for at in left)


def test_the_wall_clock_does_not_move_what_was_spent():
    bench = Bench(population=0)
    bench.evict(3)
    stepped = Instant(bench.now.wall + 10 * WINDOW, bench.now.monotonic)
    for uid in uids(3):
        bench.guard.expect(uid, stepped.wall, stepped)
    assert bench.guard.look(stepped) is Turn.OPENED
