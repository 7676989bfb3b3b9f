"""The guard: when it is announced, looked at, and armed again."""

from engine.guard.bench import SLOT, WALL, WINDOW, Bench, uids
from taintwarden.engine.guard import Turn
from taintwarden.engine.guard.guard import ALL_PODS, NARROW_SECONDS
from taintwarden.engine.model import GuardAction

# -- when it is announced ---------------------------------------------------------------------------------------------


def test_it_halts_at_once_and_is_announced_when_the_wave_has_settled():
    bench = Bench(settle_seconds=2)
    bench.expect(*uids(300))
    assert bench.look() is None
    assert bench.guard.halts
    bench.pass_time(1.5)
    assert bench.look() is None
    bench.pass_time(1)
    assert bench.look() is Turn.TRIPPED
    bench.pass_time(1)
    assert bench.look() is None


def test_it_is_looked_at_again_to_be_announced():
    bench = Bench(settle_seconds=2)
    bench.expect(*uids(300))
    bench.look()
    assert bench.guard.next_look(bench.now) == 2.0


def test_a_wave_that_was_over_before_it_was_announced_passed():
    bench = Bench(settle_seconds=5)
    bench.expect(*uids(300))
    bench.look()
    bench.forget(*uids(300))
    bench.pass_time(1)
    assert bench.look() is Turn.PASSED
    assert not bench.guard.halts


def test_it_is_announced_again_when_it_trips_again():
    bench = Bench(settle_seconds=1)
    for prefix in "ab":
        bench.expect(*uids(300, prefix))
        bench.look()
        bench.pass_time(1)
        assert bench.look() is Turn.TRIPPED
        bench.forget(*uids(300, prefix))
        bench.pass_time(1)
        assert bench.look() is Turn.ARMED


# -- when it is armed again -------------------------------------------------------------------------------------------


def test_it_is_armed_when_its_cause_is_gone():
    bench = Bench().trip()
    bench.forget(*uids(300))
    assert bench.look() is Turn.ARMED
    assert (bench.guard.tripped_at, bench.guard.halts) == (None, False)


def test_fewer_pods_of_its_cause_are_not_enough():
    """Values are repaired node by node: what has not been repaired yet must not be evicted for that."""
    bench = Bench().trip()
    for number in range(299):
        bench.forget(f"p{number}")
        bench.pass_time(30)
        assert bench.look() is None
    assert bench.guard.halts
    bench.forget("p299")
    assert bench.look() is Turn.ARMED


def test_it_stays_tripped_while_the_cause_is_there():
    bench = Bench().trip()
    bench.pass_time(WINDOW * 2)
    assert bench.look() is None
    assert bench.guard.halts


def test_pods_bound_later_do_not_keep_it_tripped():
    bench = Bench().trip()
    bench.pass_time(60)
    bench.expect(*uids(50, "new"), bound=WALL + 60)
    bench.forget(*uids(300))
    assert bench.look() is Turn.ARMED


def test_a_pod_that_is_replaced_every_few_seconds_does_not_keep_it_tripped():
    """As those of a CronJob are: at any moment some pod has to leave."""
    bench = Bench().trip()
    turns = []
    for number in range(100):
        bench.pass_time(5)
        bench.expect(f"cron-{number}", bound=bench.now.wall)
        bench.forget(f"cron-{number - 1}")
        if number == 50:
            bench.forget(*uids(300))
        turns.append(bench.look())
    assert turns == [None] * 50 + [Turn.ARMED] + [None] * 49


def test_a_pod_of_its_cause_whose_deadline_moves_is_still_the_cause():
    bench = Bench().trip()
    bench.expect("p0", after=60)
    bench.forget(*uids(300)[1:])
    assert bench.look() is None
    assert bench.guard.halts


def test_a_pod_that_was_on_its_node_keeps_it_tripped_although_it_has_to_leave_since_later():
    bench = Bench().trip()
    bench.pass_time(60)
    bench.expect("old", since=WALL + 60)
    bench.forget(*uids(300))
    assert bench.look() is None


def test_too_many_that_came_later_trip_it_again():
    bench = Bench().trip()
    bench.expect(*uids(300, "new"), bound=WALL + 2)
    bench.forget(*uids(300))
    assert bench.look() is Turn.ARMED
    assert bench.look() is Turn.TRIPPED


def test_it_trips_once():
    bench = Bench().trip()
    bench.expect(*uids(50, "more"))
    assert bench.look() is None


def test_it_trips_again_for_another_wave():
    bench = Bench().trip()
    bench.forget(*uids(300))
    bench.look()
    bench.expect(*uids(300, "q"))
    assert bench.look() is Turn.TRIPPED


def test_more_pods_in_the_cluster_do_not_arm_it():
    bench = Bench().trip()
    bench.population = 2_000
    bench.pass_time(60)
    assert bench.look() is None
    assert bench.guard.halts


def test_what_it_refused_is_asked_again_when_it_is_armed():
    bench = Bench().trip()
    bench.freed.clear()
    bench.forget(*uids(300))
    bench.look()
    assert bench.freed == [ALL_PODS]


def test_a_guard_that_only_reports_halts_nothing():
    bench = Bench(action=GuardAction.REPORT).trip()
    assert not bench.guard.halts


def test_a_guard_that_only_reports_is_armed_when_its_cause_was_evicted():
    bench = Bench(action=GuardAction.REPORT).trip()
    bench.evict(*uids(300))
    assert bench.look() is Turn.ARMED


# -- when it is looked at ---------------------------------------------------------------------------------------------


def test_a_tripped_guard_need_not_be_looked_at_until_something_changes_or_it_may_narrow():
    bench = Bench().trip()
    assert bench.guard.next_look(bench.now) == NARROW_SECONDS


def test_it_is_looked_at_when_its_cause_is_gone():
    bench = Bench().trip()
    bench.forget(*uids(300))
    assert bench.guard.next_look(bench.now) == 0.0


def test_a_guard_that_narrowed_stays_narrow_until_the_wave_grows():
    bench = Bench()
    bench.expect(*(f"bad-{number}" for number in range(300)), namespace="bad")
    bench.look()
    bench.pass_time(NARROW_SECONDS)
    for _ in range(3):
        bench.look()
        assert bench.guard.scope == "namespace bad"
        bench.pass_time(NARROW_SECONDS)
    bench.expect(*(f"other-{number}" for number in range(300)))
    bench.look()
    assert bench.guard.scope == ALL_PODS


def test_an_armed_guard_need_not_be_looked_at():
    bench = Bench()
    bench.look()
    assert bench.guard.next_look(bench.now) is None


def test_it_is_looked_at_when_more_have_to_leave():
    bench = Bench()
    bench.look()
    bench.expect("p")
    assert bench.guard.next_look(bench.now) == 0.0


def test_it_is_looked_at_when_what_leaves_its_window_makes_room():
    """With fewer pods in all, fewer may be evicted than were: nothing trips it for that, nor says when it is over."""
    bench = Bench(population=20, min_pods=1)
    bench.expect(*"abcd")
    bench.look()
    bench.store()
    bench.evict(*"abc")
    bench.population = 10
    bench.pass_time(SLOT)
    assert (bench.look(), bench.store()) == (None, None)
    wait = bench.guard.next_look(bench.now)
    assert wait == WINDOW, "the first slot has ended now"
    bench.pass_time(wait)
    bench.look()
    assert bench.store() is not None


def test_it_is_looked_at_when_its_window_reaches_a_deadline():
    bench = Bench()
    bench.expect("p", after=WINDOW + 30)
    bench.look()
    assert bench.guard.next_look(bench.now) == 30.0


# -- other settings ---------------------------------------------------------------------------------------------------


def test_a_lower_limit_trips_it_for_what_is_known():
    bench = Bench()
    bench.expect(*uids(100))
    assert bench.look() is None
    bench.change(max_percent=5)
    assert bench.look() is Turn.TRIPPED


def test_settings_changed_by_a_person_arm_it_if_that_is_within_the_new_limit():
    bench = Bench().trip(300)
    bench.change(max_percent=30)
    assert bench.look() is Turn.ARMED
    assert bench.guard.ahead.causes == {}


def test_settings_that_still_allow_too_few_leave_it_tripped():
    bench = Bench().trip(300)
    bench.change(max_percent=29)
    assert bench.look() is None
    assert bench.guard.halts


def test_the_same_settings_change_nothing():
    bench = Bench().trip(300)
    bench.population = 2_000
    bench.change()
    assert bench.look() is None


def test_a_shorter_window_holds_for_what_is_known():
    bench = Bench(population=0)
    bench.expect(*uids(4), after=30)
    bench.expect(*uids(4, "later"), after=300)
    bench.change(window_seconds=60)
    assert bench.look() is None
    bench.pass_time(240)
    assert bench.look() is Turn.TRIPPED


def test_a_longer_window_holds_for_what_is_known():
    bench = Bench(population=0)
    bench.expect(*uids(4), after=30)
    bench.expect(*uids(4, "later"), after=WINDOW + 30)
    assert bench.look() is None
    bench.change(window_seconds=WINDOW * 2)
    assert bench.look() is Turn.TRIPPED
