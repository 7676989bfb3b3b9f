"""Which pods count, and how many may be evicted."""

import pytest

from engine.guard.bench import SLOT, WALL, WINDOW, Bench, pods
from engine.kept import kept
from taintwarden.engine.guard import ALL

# -- what it counts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("after", "counts"), [(-60, 1), (0, 1), (600, 1), (601, 0)])
def test_pods_due_within_the_window_count(after, counts):
    bench = Bench()
    bench.expect("a", after=after)
    assert bench.guard.expected() == counts


def test_a_pod_counts_when_the_window_reaches_it():
    bench = Bench()
    bench.expect("a", after=700)
    bench.look()
    assert bench.guard.next_look(bench.now) == 100
    bench.advance(99.5)
    assert bench.guard.next_look(bench.now) == 0.5
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


@pytest.mark.parametrize(("allows", "counts"), [(0, 0), (2, 2), (9, 3)])
def test_of_pods_with_a_budget_as_many_count_as_it_allows(allows, counts):
    bench = Bench()
    bench.budgets = {"b": allows}
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
    bench.look()
    bench.freed.clear()
    wait = bench.guard.next_look(bench.now)
    assert wait == WINDOW + SLOT
    bench.advance(wait)
    assert bench.guard.evicted() == 0
    assert bench.freed == [ALL]
    assert bench.guard.next_look(bench.now) is None
    assert bench.guard.record(bench.now).evicted == ()


def test_a_call_counts_from_its_beginning_and_no_more_as_due():
    bench = Bench()
    bench.expect("a")
    bench.call("a")
    assert (bench.guard.expected(), bench.guard.evicted()) == (0, 1)
    assert bench.guard.has_taken("a")


def test_a_call_that_evicted_no_pod_counts_no_more():
    bench = Bench()
    bench.call("a", "b")
    bench.seconds += SLOT
    bench.call("c", "d")
    bench.call("e", namespace="bank")
    bench.guard.settle("d", stays=True)
    bench.guard.settle("c", stays=False)
    bench.guard.settle("c", stays=True)
    for uid in "abe":
        bench.guard.settle(uid, stays=False)
    assert bench.guard.evicted() == 4
    assert not bench.guard.has_taken("d")
    assert bench.guard.record(bench.now).evicted == (
        (WALL + SLOT, (("shop", 2),)),
        (WALL + 2 * SLOT, (("bank", 1), ("shop", 1))),
    )


# -- the allowance -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("population", "allowed"), [(0, 5), (5, 5), (25, 12), (80, 40), (200, 50), (1_000, 200)])
def test_by_default_it_is_a_fifth_and_of_few_pods_a_half(population, allowed):
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
def test_it_is_the_greater_of_percent_and_min_pods_and_at_most_max_pods(limits, allowed):
    assert Bench(population=200, **limits).guard.allowance() == allowed


def test_pods_that_were_evicted_and_not_replaced_lower_no_allowance():
    bench = Bench()
    bench.look()
    bench.guard.allowance()
    bench.evict(*pods(10))
    bench.population = 90
    assert bench.guard.allowance() == 10
    bench.population = 50
    assert bench.guard.allowance() == 6, "40 others are gone for another reason"


def test_the_most_pods_of_the_window_count():
    bench = Bench()
    bench.look()
    for population in (100, 60, 80, 70):
        bench.population = population
        bench.guard.allowance()
        bench.advance(100)
    bench.population = 50
    bench.evict(*pods(40))
    assert bench.guard.allowance() == 9
    bench.advance(WINDOW + SLOT - 400)
    assert bench.guard.allowance() == 8
    bench.advance(300)
    assert bench.guard.allowance() == 5


def test_all_pods_are_counted_only_when_many_are_due():
    bench = Bench(min_pods=3)
    bench.guard.population = lambda: pytest.fail("they are many")
    bench.expect(*pods(3))
    assert bench.look() is None
