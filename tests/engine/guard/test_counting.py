"""Which pods count, and how many may be evicted."""

import pytest

from engine.guard.bench import SLOT, WALL, WINDOW, Bench, key_of, pods
from engine.kept import kept
from taintwarden.engine.guard import ALL
from taintwarden.engine.guard.guard import TIDY_SECONDS

# -- what it counts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("after", "counts"), [(-60, 1), (0, 1), (600, 1), (601, 0)])
def test_pods_due_within_the_window_count(after, counts):
    bench = Bench()
    bench.expect("a", after=after)
    assert bench.guard.expected() == counts


def test_the_pods_that_were_evicted_first_are_replaced_first():
    bench = Bench()
    for names in ("ab", "cd"):
        bench.evict(*names, of="web")
        bench.seconds += 2 * SLOT
    for uid in "xy":
        bench.guard.ledger.past.pod_added(uid, ("web", "web"))
    bench.advance(WINDOW - 2 * SLOT)
    assert bench.guard.ledger.population(100) == 102
    bench.advance(2 * SLOT)
    assert bench.guard.ledger.population(100) == 100


@pytest.mark.parametrize(("comes", "missing"), [("x", 1), ("a", 0)])
def test_no_pod_replaces_one_without_a_controller(comes, missing):
    bench = Bench()
    bench.evict("a")
    bench.guard.ledger.past.pod_added(comes, None)
    assert bench.guard.ledger.population(100) == 100 + missing
    bench.advance(WINDOW + SLOT)
    assert bench.guard.ledger.population(100) == 100


def test_a_pod_counts_when_the_window_reaches_it():
    bench = Bench()
    bench.expect("a", after=700)
    bench.check_guard()
    assert bench.guard.next_check_in(bench.now) == 100
    bench.advance(99.5)
    assert bench.guard.next_check_in(bench.now) == 0.5
    assert bench.guard.expected() == 0
    bench.advance(0.5)
    assert bench.guard.expected() == 1


@pytest.mark.parametrize("after", [0, 700], ids=["near", "far"])
def test_a_pod_that_may_stay_counts_no_more(after):
    bench = Bench()
    bench.expect("a", after=after)
    bench.forget("a", "unknown")
    bench.advance(200)
    assert bench.guard.expected() == 0
    assert kept(bench.guard, "a") == []


@pytest.mark.parametrize(("allows", "counts"), [(-1, 0), (0, 0), (2, 2), (9, 3)])
def test_of_pods_with_a_budget_as_many_count_as_it_allows(allows, counts):
    bench = Bench()
    bench.budgets = {key_of("b"): allows}
    bench.expect("a", "b", "c", budget="b")
    assert bench.guard.expected() == counts


@pytest.mark.parametrize("at", [0, 1, 29.5])
def test_an_eviction_counts_for_its_window_and_at_most_a_twentieth_longer(at):
    bench = Bench()
    bench.advance(at)
    bench.evict("a")
    bench.advance(WINDOW)
    assert bench.guard.evicted() == 1
    bench.advance(SLOT)
    assert bench.guard.evicted() == 0


def test_evictions_count_by_twentieths_of_the_window():
    bench = Bench()
    for seconds in (0, 29, 1, 30):
        bench.advance(seconds)
        bench.evict(f"at-{bench.seconds}")
    assert bench.guard.record(bench.now).evicted == (
        (WALL + 30, (("shop", 2),)),
        (WALL + 60, (("shop", 1),)),
        (WALL + 90, (("shop", 1),)),
    )


def test_evictions_leave_the_window_when_nothing_happens():
    bench = Bench()
    bench.advance(SLOT)
    bench.evict("a")
    bench.check_guard()
    bench.advance(TIDY_SECONDS)
    bench.store()
    bench.freed.clear()
    wait = bench.guard.next_check_in(bench.now)
    assert wait == WINDOW + SLOT - TIDY_SECONDS
    bench.advance(wait)
    assert bench.guard.evicted() == 0
    assert bench.freed == [ALL]
    assert bench.guard.next_check_in(bench.now) is None
    assert bench.guard.record(bench.now).evicted == ()


@pytest.mark.parametrize("answers", [[], [False], [True, False], [False, True]], ids=str)
def test_a_called_pod_counts_as_due_until_it_is_seen_to_leave_and_then_as_evicted(answers):
    """Any answers and any allowance of its budget; True is an answer by which the pod is known to stay."""
    bench = Bench()
    bench.expect("a", budget="b")
    for stays in answers or [False]:
        bench.call("a")
        assert (bench.guard.expected(), bench.guard.evicted()) == (1, 0)
        if answers:
            bench.guard.settle("a", stays=stays)
        bench.expect("a", budget="b")
    assert bench.guard.expected() == 1
    bench.seconds += SLOT
    bench.guard.gone("a", None, bench.now)  # its claim ends with the answer
    bench.guard.gone("a", None, bench.now)
    assert (bench.guard.expected(), bench.guard.evicted()) == (0, 1)
    assert bench.guard.record(bench.now).evicted == ((WALL + 2 * SLOT, (("shop", 1),)),)


def test_a_pod_known_to_stay_counts_as_its_budget_allows_and_is_not_evicted_when_it_leaves():
    bench = Bench()
    bench.expect("a", budget="b")
    bench.call("a")
    bench.guard.settle("a", stays=True)
    bench.expect("a", budget="b")
    assert bench.guard.expected() == 0
    bench.see_gone("a")
    assert bench.guard.evicted() == 0


def test_a_pod_that_leaves_later_than_a_window_after_its_last_call_was_not_evicted():
    bench = Bench()
    bench.fail("a", "b")
    bench.advance(WINDOW - 1)
    bench.see_gone("a")
    bench.advance(1)
    bench.see_gone("b")
    assert bench.guard.evicted() == 1


# -- the allowance -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("population", "allowed"), [(0, 5), (5, 5), (25, 12), (80, 40), (200, 50), (1_000, 200)])
def test_the_default_allowance_is_a_fifth_and_of_few_pods_a_half(population, allowed):
    bench = Bench(population=population, max_percent=20, min_pods=None)
    assert bench.guard.allowance() == allowed


@pytest.mark.parametrize(
    ("limits", "allowed"),
    [
        ({"max_percent": 10}, 20),
        ({"max_percent": 10, "min_pods": 30}, 30),
        ({"max_percent": 10, "min_pods": 15}, 20),
        ({"max_percent": 10, "max_pods": 12}, 12),
        ({"max_percent": 10, "min_pods": 30, "max_pods": 25}, 25),
        ({"max_percent": 100}, 200),
    ],
)
def test_the_allowance_is_the_greater_of_percent_and_min_pods_and_at_most_max_pods(limits, allowed):
    assert Bench(population=200, **limits).guard.allowance() == allowed


def test_pods_that_were_evicted_and_not_replaced_lower_no_allowance():
    bench = Bench()
    bench.check_guard()
    bench.guard.allowance()
    bench.evict(*pods(10))
    bench.population = 90
    assert bench.guard.allowance() == 10
    bench.population = 50
    assert bench.guard.allowance() == 6, "40 others are gone for another reason"


def test_pods_that_were_evicted_and_replaced_count_once():
    bench = Bench()
    bench.evict(*pods(6), of="web")
    for _ in range(6):
        bench.guard.ledger.past.pod_added("replacement", ("web", "web"))
        bench.guard.ledger.past.pod_added("another", ("other", "other"))
    bench.population = 60
    assert bench.guard.allowance() == 6, "40 others are gone for another reason"


@pytest.mark.parametrize("again", [False, True])
def test_an_evicted_pod_that_is_there_again_was_not_evicted(again):
    """An etcd was restored."""
    bench = Bench()
    bench.evict("a", "b", of="web")
    bench.guard.ledger.past.pod_added("a", ("web", "web"))
    if again:
        bench.advance(SLOT)
        bench.evict("a", of="web")
    assert bench.guard.evicted() == 1 + again
    assert bench.guard.ledger.population(98) == 99 + again
    bench.advance(WINDOW + SLOT)
    assert (bench.guard.evicted(), bench.guard.ledger.past.by_namespace) == (0, {})
    assert kept(bench.guard, "a", "b") == []


def test_pods_that_were_evicted_and_not_replaced_count_for_the_window():
    bench = Bench()
    bench.evict(*pods(10), of="web")
    bench.population = 80
    assert bench.guard.allowance() == 9
    bench.advance(WINDOW + SLOT)
    assert bench.guard.allowance() == 8


@pytest.mark.parametrize(("population", "allowance"), [(90, 10), (100, 10), (60, 7), (130, 13)])
def test_a_new_process_begins_with_the_stored_population(population, allowance):
    """10 of 100 pods were evicted; they were replaced, or other pods were deleted or created."""
    bench = Bench()
    bench.evict(*pods(10), of="web")
    bench.population = 90
    other = bench.restart()
    other.population = population
    other.check_guard()
    assert other.guard.allowance() == allowance


def test_a_report_changes_no_allowance():
    bench = Bench()
    bench.evict(*pods(10), of="web")
    bench.population = 90
    other = bench.restart()
    other.population = 100
    other.guard.record(other.now)
    other.population = 90
    other.check_guard()
    assert other.guard.allowance() == 10


def test_all_pods_are_counted_only_when_many_are_due():
    bench = Bench(min_pods=3)
    bench.guard.population = lambda: pytest.fail("they are many")
    bench.expect(*pods(3))
    assert bench.check_guard() is None
