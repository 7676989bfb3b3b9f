"""The guard: when it trips, and what counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.guard.bench import LONG_AGO, SLOT, WALL, WINDOW, Bench, uids
from taintwarden.engine.guard import Due, Turn
from taintwarden.engine.guard.spent import SLOTS
from taintwarden.engine.limits.protocol import Settlement
from taintwarden.engine.model import GuardSettings, Instant

# -- the limit --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pods", "population", "trips"),
    [(5, 0, False), (6, 0, True), (6, 30, False), (7, 30, True), (200, 1_000, False), (201, 1_000, True)],
)
def test_it_trips_above_the_greater_of_share_and_number(pods, population, trips):
    bench = Bench(population=population)
    bench.expect(*uids(pods))
    assert (bench.look() is Turn.TRIPPED) == trips


def test_a_share_is_rounded_down():
    assert GuardSettings(max_percent=20, min_pods=1).limit(39) == 7


@pytest.mark.parametrize(
    ("population", "limit"), [(0, 5), (6, 5), (10, 5), (12, 6), (40, 20), (99, 49), (100, 50), (250, 50), (300, 60)]
)
def test_by_default_half_of_a_small_population_is_the_most_but_a_handful_may_go(population, limit):
    assert GuardSettings(max_percent=20).limit(population) == limit


def test_a_number_that_is_given_counts_as_it_is():
    assert GuardSettings(min_pods=50).limit(10) == 50


@pytest.mark.parametrize(("population", "limit"), [(10, 5), (100, 50), (500, 100), (1_000, 120), (50_000, 120)])
def test_a_ceiling_caps_the_percentage(population, limit):
    assert GuardSettings(max_percent=20, max_pods=120).limit(population) == limit


@pytest.mark.parametrize(("pods", "trips"), [(30, False), (31, True)])
def test_a_ceiling_trips_it_though_the_percentage_allows_more(pods, trips):
    bench = Bench(population=1_000, min_pods=None, max_pods=30)
    bench.expect(*uids(pods))
    assert (bench.look() is Turn.TRIPPED) == trips


def test_a_ceiling_is_lower_than_what_a_small_cluster_may_always_lose():
    assert GuardSettings(max_pods=3).limit(100) == 3


@pytest.mark.parametrize(("pods", "trips"), [(20, False), (21, True)])
def test_a_small_cluster_is_guarded(pods, trips):
    bench = Bench(population=40, min_pods=None)
    bench.expect(*uids(pods))
    assert bench.guard.is_tripped is False
    assert (bench.look() is Turn.TRIPPED) == trips


def test_the_population_is_not_counted_while_few_would_be_evicted():
    bench = Bench()
    bench.guard.population = lambda: pytest.fail("counted in vain")
    bench.expect(*uids(5))
    assert bench.look() is None


# -- when it trips ----------------------------------------------------------------------------------------------------


def test_it_trips_before_the_first_eviction():
    bench = Bench().trip(300)
    assert bench.guard.halts
    assert bench.spent() == []


def test_a_tripped_guard_knows_since_when_and_how_many():
    bench = Bench().trip(300)
    assert (bench.guard.tripped_at, bench.guard.ahead.total) == (WALL, 300)


def test_a_pod_expected_twice_counts_once():
    bench = Bench(population=0)
    for after in (0.0, 1.0, 2.0):
        bench.expect(*uids(5), after=after)
    assert bench.guard.ahead.total == 5
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
    assert bench.look() is Turn.TRIPPED


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
    assert bench.look() is Turn.TRIPPED


def test_those_that_need_not_leave_do_not_count():
    bench = Bench(population=0)
    bench.expect(*uids(6))
    bench.expect("far", after=WINDOW + 100)
    bench.forget("p0", "far", "stranger")
    assert bench.look() is None


def test_what_was_evicted_in_the_window_counts_with_what_would_be():
    bench = Bench(population=0)
    bench.spend(3)
    bench.expect(*uids(3))
    assert bench.look() is Turn.TRIPPED


def test_what_was_evicted_alone_trips_no_guard():
    bench = Bench(population=0)
    bench.expect("a")
    bench.spend(50)
    bench.forget("a")
    assert bench.look() is None


def test_what_was_evicted_before_the_window_does_not_count():
    bench = Bench(population=0)
    bench.spend(3)
    bench.pass_time(WINDOW + SLOT)
    bench.expect(*uids(3))
    assert bench.look() is None


def test_what_was_evicted_counts_with_later_deadlines_only_while_one_window_holds_both():
    bench = Bench(population=0)
    bench.spend(3)
    bench.pass_time(SLOT * 2)
    bench.expect(*uids(3), after=WINDOW)
    assert bench.look() is None


def test_a_pod_that_is_overdue_counts_as_due_now():
    """However long ago its deadline was: it will be evicted in the window that begins now."""
    bench = Bench(population=0)
    bench.pass_time(WINDOW * 3)
    bench.spend(3)
    bench.expect(*uids(3), after=-WINDOW * 3)
    assert bench.look() is Turn.TRIPPED


def test_the_wall_clock_does_not_move_what_was_spent():
    bench = Bench(population=0)
    bench.spend(3)
    stepped = Instant(bench.now.wall + 10 * WINDOW, bench.now.monotonic)
    for uid in uids(3):
        bench.guard.expect(Due(uid, stepped.wall, LONG_AGO, LONG_AGO), stepped)
    assert bench.guard.look(stepped) is Turn.TRIPPED


@given(
    spent=st.lists(st.tuples(st.floats(0, 900), st.integers(1, 4)), max_size=8),
    ahead=st.lists(st.floats(-50, 700), max_size=12),
)
def test_it_counts_the_worst_window_as_a_naive_count_of_slots_does(spent, ahead):
    bench = Bench(min_pods=0)
    ends = []
    for at, pods in sorted(spent):
        bench.seconds = at
        bench.spend(pods)
        ends += [(at // SLOT + 1) * SLOT] * pods
    bench.seconds = 900.0
    now = bench.now.wall
    for index, due in enumerate(ahead):
        bench.expect(f"p{index}", after=due)
    bench.look()
    near = [max((now + due) // SLOT * SLOT, now) for due in ahead if now + due <= now + WINDOW]
    past = [WALL + end for end in ends if end + WINDOW > 900.0]
    naive = (
        max(sum(at + WINDOW > end for at in past) + sum(due <= end for due in near) for end in [now, *near])
        if near
        else 0
    )
    assert bench.guard._most(bench.now) == naive


@given(
    spent=st.lists(st.tuples(st.floats(0, 900), st.integers(1, 4)), max_size=8),
    ahead=st.lists(st.floats(0, 600), min_size=1, max_size=12),
)
def test_it_never_counts_fewer_than_any_window_holds(spent, ahead):
    bench = Bench(min_pods=0)
    moments = []
    for at, pods in sorted(spent):
        bench.seconds = at
        bench.spend(pods)
        moments += [at] * pods
    bench.seconds = 900.0
    for index, due in enumerate(ahead):
        bench.expect(f"p{index}", after=due)
    bench.look()
    moments += [900.0 + due for due in ahead]
    exact = max(sum(end - WINDOW < at <= end for at in moments) for end in moments if end >= 900.0)
    assert bench.guard._most(bench.now) >= exact


class Unread(dict):
    """Fails when it is gone through."""

    def __iter__(self):
        raise AssertionError("every pod was looked at")

    values = items = keys = __iter__


def test_counting_looks_at_slots_and_not_at_pods():
    bench = Bench(population=200_000)
    bench.spend(10)
    for index in range(30_000):
        bench.expect(f"p{index}", after=index % WINDOW)
    bench.guard.ahead.near = Unread(bench.guard.ahead.near)
    assert bench.look() is None
    assert bench.guard._most(bench.now) == 30_010
    assert len(bench.guard.ahead.begins()) <= SLOTS + 1


# -- calls that end otherwise -----------------------------------------------------------------------------------------


def test_a_call_that_was_not_carried_out_is_given_back():
    bench = Bench(population=0)
    bench.settle(Settlement.STAYS, *bench.spend(3))
    bench.expect(*uids(3))
    assert bench.look() is None


@pytest.mark.parametrize("settlement", [Settlement.EVICTED, Settlement.UNKNOWN])
def test_a_call_that_may_have_been_carried_out_is_not_given_back(settlement):
    bench = Bench(population=0)
    bench.settle(settlement, *bench.spend(3))
    assert bench.spent() == [3]


def test_it_is_given_back_in_the_slot_in_which_it_was_taken():
    """Or a later slot would hold one too few when the earlier one has passed."""
    bench = Bench()
    first, _ = bench.spend(2)
    bench.pass_time(SLOT)
    bench.spend(3)
    bench.settle(Settlement.STAYS, first)
    assert bench.spent() == [1, 3]


def test_an_eviction_counts_once_however_often_it_is_tried():
    bench = Bench()
    for _ in range(5):
        bench.evict("a")
        bench.settle(Settlement.UNKNOWN, "a")
        bench.pass_time(SLOT)
    assert bench.guard.has_taken("a")
    assert bench.spent() == [1]


def test_a_try_that_shows_that_the_first_was_not_carried_out_gives_back_once():
    bench = Bench()
    bench.evict("a")
    bench.settle(Settlement.UNKNOWN, "a")
    bench.evict("a")
    bench.settle(Settlement.STAYS, "a")
    assert not bench.guard.has_taken("a")
    assert bench.spent() == []


def test_a_pod_of_which_no_call_is_under_way_counts_anew():
    bench = Bench()
    bench.evict("a")
    bench.settle(Settlement.UNKNOWN, "a")
    bench.guard.stay("a")
    assert not bench.guard.has_taken("a")
    bench.evict("a")
    assert bench.spent() == [2]


# -- rehearsals -------------------------------------------------------------------------------------------------------


def rehearse(bench: Bench, *names: str) -> None:
    for name in names:
        bench.guard.rehearse(name, bench.now)


def test_what_would_have_been_evicted_counts():
    bench = Bench(population=0)
    bench.expect(*uids(3))
    rehearse(bench, *uids(3))
    bench.expect(*uids(3, "q"))
    assert bench.look() is Turn.TRIPPED


def test_what_would_have_been_evicted_is_not_in_the_record():
    bench = Bench(population=0)
    rehearse(bench, *uids(3))
    assert bench.spent() == []


def test_a_policy_that_enforces_begins_without_rehearsals():
    bench = Bench(population=0)
    rehearse(bench, *uids(3))
    bench.guard.forget_rehearsals()
    bench.expect(*uids(3))
    assert bench.look() is None


def test_the_rehearsal_of_a_released_pod_does_not_count():
    bench = Bench(population=0).trip(50)
    bench.release()
    rehearse(bench, *uids(50))
    bench.expect("another")
    assert bench.look() is None
