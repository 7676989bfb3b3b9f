"""Answers from the status of PodDisruptionBudgets, before the API server is asked."""

from typing import Any

import pytest

from engine.limits.asking import AT_ONCE, ask
from engine.rig import budget, limited
from engine.script import play
from taintwarden.engine.guard import BudgetKey
from taintwarden.engine.interning import Interner
from taintwarden.engine.limits import EvictionRequest, FreedKeys, Settlement
from taintwarden.engine.limits.budgets import UNSEEN_SECONDS, Budgets
from taintwarden.engine.limits.refusal import BUDGET
from taintwarden.engine.model import Instant, MonotonicTime, Pod, Tolerations
from work import steps


class Bench:
    """Budgets of the namespace ``shop``, and the keys that they have freed."""

    def __init__(self, *allowed: int) -> None:
        self.freed = FreedKeys()
        self.budgets = Budgets(self.freed)
        self.interner = Interner()
        self.classes = []
        self.now = MonotonicTime(0.0)
        for number in allowed:
            self.see(number)

    def see(self, allowed: int = 0, name: str = "pdb", **more) -> None:
        self.budgets.set_budget(budget(name, allowed, **more), self.now)

    def pod(
        self, name: str = "a", *, ready: bool = True, namespace: str = "shop", app: str = "web", running: bool = True
    ) -> Pod:
        shared = self.interner.pod_class(namespace, {"app": app}, Tolerations())
        self.classes.append(shared)  # the interner forgets classes without a reference
        return Pod(name, name, "n1", shared, 0.0, 1, ready, running)

    def admits(self, pod: Pod | None = None) -> bool:
        return self.budgets.refuse(pod or self.pod("z"), self.now) is None

    def limit(self, pod: Pod | None = None) -> str:
        refused = self.budgets.refuse(pod or self.pod("z"), self.now)
        assert refused.until is None
        return refused.limit

    def leave(self, name: str) -> None:
        self.budgets.reserve(ask(self.pod(name), limited()))

    def settle(self, name: str, how: str) -> None:
        self.budgets.settle(name, Settlement[how], AT_ONCE)

    def allow(self, number: str) -> None:
        self.see(int(number))

    def evict(self, name: str, *, ready: bool = True) -> None:
        self.budgets.leave(self.pod(name, ready=ready))
        self.budgets.settle(name, Settlement.ACCEPTED, AT_ONCE)


def test_each_budget_of_a_pod_answers_for_itself():
    bench = Bench()
    bench.see(1, "a")
    bench.see(0, "b", problem="no pods have a controller")
    answers = [refused and refused.detail for _, refused in bench.budgets.evaluate(bench.pod(), bench.now)]
    why = "allows no disruption, as its controller cannot compute it (no pods have a controller)"
    assert answers == [None, f"PodDisruptionBudget shop/b {why}"]


# -- which budgets count -----------------------------------------------------------------------------------------------

NONE_NOW = "PodDisruptionBudget shop/pdb allows no disruption now"
UNREADABLE = "PodDisruptionBudget shop/{} has a selector that cannot be parsed"
UNREADY: Any = {"ready": False}
ANSWERS: dict[str, tuple[list[dict[str, Any]], dict[str, Any], str | None]] = {
    "none": ([], {}, None),
    "less than nothing": ([{"allowed": -1}], {}, NONE_NOW),
    "nothing": ([{}], {}, NONE_NOW),
    "one": ([{"allowed": 1}], {}, None),
    "many": ([{"allowed": 9}], {}, None),
    "of another namespace": ([{}], {"namespace": "office"}, None),
    "of other pods": ([{"app": "db"}], {}, None),
    "of this app": ([{"app": "web"}], {}, NONE_NOW),
    "not observed": ([{"allowed": 5, "observed": False}], {}, "has not been evaluated by its controller yet"),
    "several": ([{"allowed": 5}, {"allowed": 5, "name": "another"}], {}, "(shop/another, shop/pdb)"),
    "unreadable": ([{"allowed": 5, "selector": None}], {}, UNREADABLE.format("pdb")),
    "unreadable elsewhere": ([{"selector": None}], {"namespace": "office"}, None),
    "unreadable beside another": ([{"allowed": 5}, {"name": "b", "selector": None}], {}, UNREADABLE.format("b")),
    "unready, others are enough": ([{"healthy_enough": True}], UNREADY, None),
    "unready, others are too few": ([{}], UNREADY, NONE_NOW),
    "ready, others are enough": ([{"healthy_enough": True}], {}, NONE_NOW),
    "not started": ([{}], {"running": False}, None),
    "not started, several": ([{}, {"name": "b"}], {"running": False}, None),
}
"""Budgets, a pod, and a part of what refuses it."""


@pytest.mark.parametrize(("budgets", "of", "detail"), ANSWERS.values(), ids=ANSWERS)
def test_what_budgets_answer(budgets, of, detail):
    bench = Bench()
    for one in budgets:
        bench.see(**one)
    refused = bench.budgets.refuse(bench.pod(**of), bench.now)
    assert (refused is None) == (detail is None)
    if refused is not None:
        assert (refused.limit, refused.until) == (BUDGET, None)
        assert detail in refused.detail


def test_a_budget_counts_once_when_another_is_added():
    bench, names = Bench(1), []
    for other in "bc":
        names.append(bench.budgets.key_of(bench.pod()).names)
        bench.see(0, other, app="db")
    assert names == [("pdb",)] * 2


def test_pods_of_several_budgets_are_retried_when_one_of_them_selects_other_pods():
    bench = Bench()
    bench.see(0, "a")
    bench.see(0, "b")
    refused = bench.budgets.refuse(bench.pod(), bench.now)
    bench.freed.take()
    bench.see(0, "b", app="db")
    assert refused.key in bench.freed.take()
    assert bench.budgets.key_of(bench.pod()).names == ("a",)


def test_a_pod_that_has_not_started_takes_nothing_from_a_budget():
    bench = Bench(1)
    pod = bench.pod("a", running=False)
    assert bench.budgets.key_of(pod) is None
    bench.budgets.leave(pod)
    assert bench.admits()
    bench.see(0)
    assert (bench.budgets.refuses_since(pod), bench.budgets.evaluate(pod, bench.now)) == (None, [])


# -- calls in progress -------------------------------------------------------------------------------------------------


CALLS = {
    "a call in progress takes from what is allowed": (1, "leave a", False),
    "one that was refused gives back": (1, "leave a, settle a STAYS", True),
    "one without an answer as well": (1, "leave a, settle a OPEN", True),
    "an accepted one counts": (1, "leave a, settle a ACCEPTED", False),
    "until the status was seen": (1, "leave a, settle a ACCEPTED, allow 1", True),
    "a status that was seen before the answer is not counted twice": (2, "leave a, allow 1, settle a ACCEPTED", True),
    "calls of several pods add up": (3, "leave a, settle a ACCEPTED, leave b", True),
    "to what is allowed": (3, "leave a, settle a ACCEPTED, leave b, leave c", False),
}


@pytest.mark.parametrize(("allowed", "happens", "admits"), CALLS.values(), ids=CALLS)
def test_calls_take_from_budgets(allowed, happens, admits):
    bench = Bench(allowed)
    play(bench, happens)
    assert bench.admits() == admits


def test_a_call_that_was_refused_frees_the_pods_of_its_budget():
    bench, changed = Bench(1), []
    bench.budgets.changed = changed.append
    bench.budgets.leave(bench.pod("a"))
    assert BudgetKey("shop", ("pdb",)) in changed, "guards count fewer pods"
    bench.freed.take()
    bench.budgets.settle("a", Settlement.STAYS, AT_ONCE)
    assert "budget/shop/pdb" in bench.freed.take()


def test_a_pod_that_was_not_ready_takes_nothing_from_the_status():
    bench = Bench()
    bench.see(1, healthy_enough=True)
    bench.evict("a", ready=False)
    assert bench.admits()


# -- as a limit --------------------------------------------------------------------------------------------------------


def test_a_budget_named_not_ready_is_counted_as_any_other():
    bench = Bench()
    bench.see(2, "not-ready")
    assert [bench.budgets.allowed(bench.budgets.key_of(bench.pod(ready=ready))) for ready in (True, False)] == [2, 2]


def request(bench: Bench, *, deletes: bool = False) -> EvictionRequest:
    return ask(bench.pod("a"), limited(), deletes=deletes)


def test_an_accepted_eviction_that_no_status_includes_counts_for_ten_seconds():
    bench = Bench(1)
    bench.budgets.reserve(request(bench))
    bench.budgets.settle("a", Settlement.ACCEPTED, AT_ONCE)
    refused = bench.budgets.refuse(bench.pod("z"), bench.now)
    assert refused.until == UNSEEN_SECONDS
    bench.now, changed = refused.until, []
    bench.budgets.changed = changed.append
    assert bench.admits()
    assert BudgetKey("shop", ("pdb",)) in changed, "guards count more pods"


def test_a_refusal_ends_with_the_first_eviction_that_no_longer_counts():
    bench = Bench(2)
    for name, at in (("a", 0.0), ("b", 5.0)):
        bench.leave(name)
        bench.budgets.settle(name, Settlement.ACCEPTED, Instant(at, at))
    assert bench.budgets.refuse(bench.pod("z"), bench.now).until == UNSEEN_SECONDS


# -- since when a budget refuses ---------------------------------------------------------------------------------------


def test_what_the_api_server_says_counts_until_the_status_allows_again():
    bench = Bench(1)
    bench.budgets.refused(bench.pod(), MonotonicTime(3.0))
    assert bench.budgets.refuses_since(bench.pod()) == 3.0
    assert bench.budgets.violated(request(bench, deletes=True))
    bench.see(1)
    assert bench.budgets.refuses_since(bench.pod()) is None


SINCE = {
    "there are several": ([(0, {"allowed": 1}), (7, {"allowed": 1, "name": "b"})], 7.0),
    "a selector selects the pod, too": (
        [(0, {}), (0, {"name": "b", "app": "db"}), (50, {"name": "b", "app": "web"})],
        50.0,
    ),
    "one comes to select the pod": ([(0, {"app": "db"}), (50, {"app": "web"})], 50.0),
    "then, whatever the status becomes": ([(0, {}), (0, {"name": "b"}), (50, {"name": "b", "allowed": 1})], 0.0),
    "one that allows nothing does": ([(5, {}), (9, {})], 5.0),
    "one that allowed meanwhile does again": ([(0, {}), (5, {"allowed": 1}), (9, {})], 9.0),
    "it is not observed": ([(4, {"allowed": 5, "observed": False})], 4.0),
    "it cannot be read": ([(3, {"allowed": 1, "selector": None})], 3.0),
    "never": ([(0, {"allowed": 1})], None),
}


@pytest.mark.parametrize(("seen", "since"), SINCE.values(), ids=SINCE)
def test_since_when_budgets_refuse(seen, since):
    bench = Bench()
    for at, one in seen:
        bench.now = MonotonicTime(float(at))
        bench.see(**one)
    assert bench.budgets.refuses_since(bench.pod()) == since


@pytest.mark.parametrize("second", [{"app": "web"}, {"selector": None}], ids=["several", "unreadable"])
def test_several_budgets_and_one_that_is_unreadable_refuse_a_pod_that_is_not_ready_too(second):
    bench = Bench()
    bench.see(0, "a", healthy_enough=True)
    bench.now = MonotonicTime(7.0)
    bench.see(0, "b", healthy_enough=True, **second)
    pod = bench.pod(ready=False)
    assert bench.budgets.refuse(pod, bench.now) is not None
    assert bench.budgets.refuses_since(pod) == 7.0


@pytest.mark.parametrize(
    ("ready", "healthy_enough", "allowed", "since"),
    [(True, True, 0, 0.0), (False, False, 0, 0.0), (False, True, 0, None), (False, False, 1, None)],
)
def test_a_budget_refuses_no_pod_that_is_not_ready_while_enough_others_are(ready, healthy_enough, allowed, since):
    bench = Bench()
    bench.see(allowed, healthy_enough=healthy_enough)
    pod = bench.pod(ready=ready)
    assert bench.budgets.refuses_since(pod) == since
    assert (bench.budgets.allowed(bench.budgets.key_of(pod)) > 0) is (since is None)


def test_a_pod_that_is_deleted_takes_from_its_budget_like_any_other():
    bench = Bench(1)
    bench.budgets.reserve(request(bench, deletes=True))
    assert not bench.admits()


@pytest.mark.parametrize(("allowed", "deletes", "violated"), [(0, True, True), (1, True, False), (0, False, False)])
def test_a_deletion_violates_a_budget_that_allows_nothing(allowed, deletes, violated):
    bench = Bench(allowed)
    assert bool(bench.budgets.violated(request(bench, deletes=deletes))) is violated


# -- budgets change ----------------------------------------------------------------------------------------------------


def test_pods_of_two_budgets_are_retried_when_one_is_deleted():
    bench = Bench(1)
    bench.see(1, "second")
    bench.freed.take()
    bench.budgets.drop_budget("shop", "second")
    assert "budgets/shop" in bench.freed.take()
    assert bench.admits()


def test_a_status_that_changes_frees_the_pods_of_its_budget():
    bench = Bench(0)
    keys = {bench.budgets.refuse(bench.pod(ready=ready), bench.now).key for ready in (True, False)}
    bench.freed.take()
    bench.see(1)
    freed = bench.freed.take()
    assert len(keys & {*freed}) == 2, "pods that are not Ready wait apart"
    assert "budgets/shop" not in freed, "nobody else is selected than before"


# -- what is remembered ------------------------------------------------------------------------------------------------


def test_nothing_is_remembered_of_a_budget_that_is_gone():
    bench = Bench(3)
    bench.evict("a")
    bench.budgets.leave(bench.pod("b"))
    for name in ("pdb", "another that was not known"):
        bench.budgets.drop_budget("shop", name)
    bench.budgets.settle("b", Settlement.STAYS, AT_ONCE)
    bench.freed.take()
    bench.classes.clear()
    kept = [part for part in vars(bench.budgets).values() if hasattr(part, "__len__") and len(part)]
    assert kept == []


def test_one_budget_of_thousands_costs_what_one_costs():
    """A tenant may have as many as it likes, and change any of them all the time."""

    def cost(number: int) -> int:
        bench = Bench()
        for index in range(number):
            bench.see(name=f"b{index}", app=f"a{index}")
        pods = [bench.pod(f"p{index}", app=f"a{index}") for index in range(5)]
        assert not any(map(bench.admits, pods))

        def change() -> None:
            bench.see(1, name="b0", app="a1")
            assert bench.admits(pods[0])
            assert not any(map(bench.admits, pods[1:]))

        return steps(change)

    assert cost(3_000) <= 1.2 * cost(30)


class Compared(str):
    """A name that counts how often names are compared."""

    __slots__ = ()
    times = 0

    def __lt__(self, other: str) -> bool:
        Compared.times += 1
        return str.__lt__(self, other)

    __hash__ = str.__hash__


def test_thousands_of_budgets_that_select_a_pod_cost_no_more_than_a_look_at_each(monkeypatch):
    """A tenant has as many as it wants, and each pod may have labels of its own."""
    monkeypatch.setattr(Compared, "times", 0)
    bench, pods = Bench(), 1_000
    for number in range(pods):
        bench.see(name=Compared(f"pdb-{number:04}"))
    found = bench.budgets.of(bench.pod().shared)
    assert Compared.times <= 20 * pods
    assert [budget.name for budget in found] == ["pdb-0000", "pdb-0001", "pdb-0002"]
    assert len(bench.budgets.key_of(bench.pod()).names) == 3
    for number in range(2, pods):
        bench.budgets.drop_budget("shop", f"pdb-{number:04}")
    assert [budget.name for budget in bench.budgets.of(bench.pod().shared)] == ["pdb-0000", "pdb-0001"]
