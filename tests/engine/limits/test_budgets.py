"""What PodDisruptionBudgets' status says before the API server is asked."""

import msgspec
import pytest

from engine.kept import kept
from engine.limits.asking import AT_ONCE, ask
from engine.rig import budget, limited
from taintwarden.engine.interning import Interner
from taintwarden.engine.limits import EvictionRequest, Freed, Settlement
from taintwarden.engine.limits.budgets import UNSEEN_SECONDS, Budgets
from taintwarden.engine.limits.refusal import BUDGET
from taintwarden.engine.model import MonotonicTime, Pod, Tolerations
from work import steps


class Bench:
    """Budgets of the namespace ``shop``, and the keys that they have freed."""

    def __init__(self, *allowed: int) -> None:
        self.freed = Freed()
        self.budgets = Budgets(self.freed)
        self.interner = Interner()
        self.classes = []
        self.now = MonotonicTime(0.0)
        for number in allowed:
            self.see(number)

    def see(self, allowed: int = 0, name: str = "pdb", **more) -> None:
        self.budgets.set(budget(name, allowed, **more), self.now)

    def pod(self, name: str = "a", *, ready: bool = True, namespace: str = "shop", app: str = "web") -> Pod:
        shared = self.interner.pod_class(namespace, {"app": app}, Tolerations())
        self.classes.append(shared)  # the interner forgets what nobody holds
        return Pod(name, name, "n1", shared, 0.0, 1, ready)

    def admits(self, pod: Pod | None = None) -> bool:
        return self.budgets.refuse(pod or self.pod("z"), self.now) is None

    def limit(self, pod: Pod | None = None) -> str:
        refused = self.budgets.refuse(pod or self.pod("z"), self.now)
        assert refused is not None
        assert refused.until is None
        return refused.limit

    def evict(self, name: str, *, ready: bool = True) -> None:
        self.budgets.leave(self.pod(name, ready=ready))
        self.budgets.settle(name, Settlement.EVICTED, AT_ONCE)


def test_each_budget_of_a_pod_answers_for_itself():
    bench = Bench()
    bench.see(1, "a")
    bench.see(0, "b", problem="no pods have a controller")
    answers = [refused and refused.detail for _, refused in bench.budgets.evaluate(bench.pod(), bench.now)]
    why = "allows no disruption, as its controller cannot compute it (no pods have a controller)"
    assert answers == [None, f"PodDisruptionBudget shop/b {why}"]


def test_no_budget_is_asked_of_a_pod_that_does_not_run():
    bench = Bench(0)
    pod = msgspec.structs.replace(bench.pod(), running=False)
    assert bench.budgets.evaluate(pod, bench.now) == []


# -- which budgets count -----------------------------------------------------------------------------------------------


def test_a_pod_without_a_budget_is_not_held():
    assert Bench().admits()


@pytest.mark.parametrize(("allowed", "admits"), [(-1, False), (0, False), (1, True), (9, True)])
def test_a_budget_admits_while_it_allows(allowed, admits):
    assert Bench(allowed).admits() == admits


def test_a_budget_of_another_namespace_does_not_count():
    bench = Bench(0)
    assert bench.admits(bench.pod(namespace="office"))


def test_a_budget_of_other_pods_does_not_count():
    bench = Bench()
    bench.see(0, app="db")
    assert bench.admits()
    assert not bench.admits(bench.pod(app="db"))


def test_several_budgets_are_refused_as_the_api_server_refuses_them():
    bench = Bench(5)
    bench.see(5, "another")
    assert bench.limit() == BUDGET
    refused = bench.budgets.refuse(bench.pod(), bench.now)
    assert refused is not None
    assert "(shop/another, shop/pdb)" in refused.detail


def test_an_unreadable_budget_holds_the_whole_namespace():
    bench = Bench()
    bench.see(5, selector=None)
    assert bench.limit() == BUDGET
    assert bench.admits(bench.pod(namespace="office"))


def test_a_refusal_says_that_a_budget_is_unreadable():
    bench = Bench()
    bench.see(selector=None)
    refused = bench.budgets.refuse(bench.pod(), bench.now)
    assert refused is not None
    assert refused.detail == "PodDisruptionBudget shop/pdb has a selector that cannot be parsed"


def test_several_budgets_are_asked_again_when_one_of_them_selects_other_pods():
    bench = Bench()
    bench.see(0, "a")
    bench.see(0, "b")
    refused = bench.budgets.refuse(bench.pod(), bench.now)
    bench.freed.take()
    bench.see(0, "b", app="db")
    assert refused is not None
    assert refused.key in bench.freed.take()


def test_an_unreadable_budget_is_named_before_several_are():
    bench = Bench(5)
    bench.see(5, "broken", selector=None)
    assert bench.limit() == BUDGET


def test_no_budget_is_asked_for_a_pod_that_has_not_started():
    bench = Bench(0, 0)
    pod = bench.pod(ready=False)
    assert not bench.admits(pod)
    assert bench.admits(msgspec.structs.replace(pod, running=False))


def test_a_pod_that_has_not_started_takes_nothing_from_a_budget():
    bench = Bench(1)
    bench.budgets.leave(msgspec.structs.replace(bench.pod("a"), running=False))
    assert bench.admits()


def test_a_budget_that_is_not_observed_holds():
    bench = Bench()
    bench.see(5, observed=False)
    assert bench.limit() == BUDGET


def test_a_refusal_names_the_budget():
    bench = Bench(0)
    refused = bench.budgets.refuse(bench.pod(), bench.now)
    assert refused is not None
    assert refused.detail == "PodDisruptionBudget shop/pdb allows no disruption now"


# -- pods that are not Ready -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ready", "healthy", "admits"), [(False, True, True), (False, False, False), (True, True, False)]
)
def test_a_pod_that_is_not_ready_goes_if_enough_others_are_healthy(ready, healthy, admits):
    bench = Bench()
    bench.see(0, healthy_enough=healthy)
    assert bench.admits(bench.pod(ready=ready)) == admits


# -- calls under way ---------------------------------------------------------------------------------------------------


def test_a_call_under_way_takes_from_what_is_allowed():
    bench = Bench(1)
    bench.budgets.leave(bench.pod("a"))
    assert not bench.admits()


def test_a_call_that_was_refused_gives_back_and_tells():
    bench = Bench(1)
    bench.budgets.leave(bench.pod("a"))
    bench.freed.take()
    bench.budgets.settle("a", Settlement.STAYS, AT_ONCE)
    assert bench.admits()
    assert "budget/shop/pdb" in bench.freed.take()


def test_an_accepted_call_counts_until_the_status_was_seen():
    bench = Bench(1)
    bench.evict("a")
    assert not bench.admits()
    bench.see(1)
    assert bench.admits()


def test_a_status_seen_before_the_answer_is_not_counted_twice():
    bench = Bench(2)
    bench.budgets.leave(bench.pod("a"))
    bench.see(1)
    bench.budgets.settle("a", Settlement.EVICTED, AT_ONCE)
    assert bench.admits()


def test_a_status_seen_before_the_answer_lets_the_next_go_when_the_answer_comes():
    bench = Bench(2)
    bench.budgets.leave(bench.pod("a"))
    bench.see(1)
    assert not bench.admits()
    bench.freed.take()
    bench.budgets.settle("a", Settlement.EVICTED, AT_ONCE)
    assert "budget/shop/pdb" in bench.freed.take()


def test_a_pod_that_was_not_ready_takes_nothing_from_the_status():
    bench = Bench()
    bench.see(1, healthy_enough=True)
    bench.evict("a", ready=False)
    assert bench.admits()


def test_calls_of_several_pods_add_up():
    bench = Bench(3)
    bench.evict("a")
    bench.budgets.leave(bench.pod("b"))
    assert bench.admits()
    bench.budgets.leave(bench.pod("c"))
    assert not bench.admits()


def test_an_answer_to_what_asked_no_budget_changes_nothing():
    bench = Bench(1)
    bench.freed.take()
    bench.budgets.settle("deleted", Settlement.EVICTED, AT_ONCE)
    assert bench.admits()
    assert bench.freed.take() == []


def test_a_pod_without_a_budget_leaves_without_trace():
    bench = Bench()
    bench.budgets.leave(bench.pod("a"))
    assert kept(bench.budgets, "a") == []


# -- as a limit --------------------------------------------------------------------------------------------------------


def request(bench: Bench, *, deletes: bool = False) -> EvictionRequest:
    return ask(bench.pod("a"), limited(), deletes=deletes)


@pytest.mark.parametrize(
    ("settlement", "admits"), [(Settlement.EVICTED, False), (Settlement.STAYS, True), (Settlement.UNKNOWN, True)]
)
def test_a_reservation_counts_until_it_is_settled_and_an_accepted_one_longer(settlement, admits):
    bench = Bench(1)
    bench.budgets.reserve(request(bench))
    assert not bench.admits()
    bench.budgets.settle("a", settlement, AT_ONCE)
    assert bench.admits() == admits


def test_an_accepted_eviction_that_no_status_includes_counts_for_ten_seconds():
    bench = Bench(1)
    bench.budgets.reserve(request(bench))
    bench.budgets.settle("a", Settlement.EVICTED, AT_ONCE)
    refused = bench.budgets.refuse(bench.pod("z"), bench.now)
    assert refused is not None
    assert refused.until == UNSEEN_SECONDS
    bench.now = refused.until
    assert bench.admits()


# -- since when a budget refuses ---------------------------------------------------------------------------------------


def test_a_budget_that_allows_refuses_since_never():
    assert Bench(1).budgets.refuses_since(Bench(1).pod()) is None


def test_one_that_allows_nothing_refuses_since_then():
    bench = Bench()
    bench.now = MonotonicTime(5.0)
    bench.see(0)
    bench.now = MonotonicTime(9.0)
    bench.see(0)
    assert bench.budgets.refuses_since(bench.pod()) == 5.0


def test_one_that_allowed_meanwhile_begins_anew():
    bench = Bench(0)
    bench.see(1)
    bench.now = MonotonicTime(9.0)
    bench.see(0)
    assert bench.budgets.refuses_since(bench.pod()) == 9.0


def test_what_the_api_server_says_counts_until_the_status_allows_again():
    bench = Bench(1)
    bench.budgets.refused(bench.pod(), MonotonicTime(3.0))
    assert bench.budgets.refuses_since(bench.pod()) == 3.0
    bench.see(1)
    assert bench.budgets.refuses_since(bench.pod()) is None


def test_several_budgets_refuse_since_there_are_several():
    bench = Bench(1)
    bench.now = MonotonicTime(7.0)
    bench.see(1, "other")
    assert bench.budgets.refuses_since(bench.pod()) == 7.0


def test_several_budgets_refuse_since_a_selector_changed_to_select_the_pod():
    bench = Bench()
    bench.see(0, "a")
    bench.see(0, "b", app="db")
    bench.now = MonotonicTime(50.0)
    bench.see(0, "b", app="web")
    assert bench.budgets.refuses_since(bench.pod()) == 50.0


def test_several_budgets_refuse_since_then_whatever_their_status_becomes():
    bench = Bench()
    bench.see(0, "a")
    bench.see(0, "b")
    bench.now = MonotonicTime(50.0)
    bench.see(1, "b")
    assert bench.budgets.refuses_since(bench.pod()) == 0.0


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
    ("ready", "healthy_enough", "since"), [(True, True, 0.0), (False, False, 0.0), (False, True, None)]
)
def test_a_budget_refuses_no_pod_that_is_not_ready_while_enough_others_are(ready, healthy_enough, since):
    bench = Bench()
    bench.see(0, healthy_enough=healthy_enough)
    assert bench.budgets.refuses_since(bench.pod(ready=ready)) == since


def test_a_pod_without_a_budget_is_refused_since_never():
    assert Bench().budgets.refuses_since(Bench().pod()) is None


def test_a_pod_that_is_deleted_asks_no_budget():
    bench = Bench(0)
    assert bench.budgets.admit(request(bench)) is not None
    assert bench.budgets.admit(request(bench, deletes=True)) is None


def test_a_pod_that_is_deleted_takes_from_no_budget():
    bench = Bench(1)
    bench.budgets.reserve(request(bench, deletes=True))
    assert bench.admits()


# -- budgets change ----------------------------------------------------------------------------------------------------


def test_a_budget_that_is_gone_holds_nobody():
    bench = Bench(0)
    assert not bench.admits()
    bench.freed.take()
    bench.budgets.drop("shop", "pdb")
    assert bench.admits()
    assert "budget/shop/pdb" in bench.freed.take()


def test_dropping_what_was_never_there_tells_nobody():
    bench = Bench()
    bench.budgets.drop("shop", "pdb")
    assert bench.freed.take() == []


def test_a_new_budget_concerns_pods_that_were_asked_about_before():
    bench = Bench(1)
    pod = bench.pod()
    assert bench.admits(pod)
    bench.see(1, "second")
    assert bench.limit(pod) == BUDGET


def test_a_selector_that_changes_is_asked_again():
    bench = Bench(0)
    pod = bench.pod()
    assert not bench.admits(pod)
    bench.freed.take()
    bench.see(0, app="db")
    assert bench.admits(pod)
    assert "budgets/shop" in bench.freed.take()


def test_one_of_two_budgets_that_goes_lets_the_pods_be_asked_again():
    bench = Bench(1)
    bench.see(1, "second")
    bench.freed.take()
    bench.budgets.drop("shop", "second")
    assert "budgets/shop" in bench.freed.take()
    assert bench.admits()


def test_a_budget_that_becomes_readable_counts_by_its_numbers():
    bench = Bench()
    bench.see(1, selector=None)
    pod = bench.pod()
    bench.limit(pod)
    bench.see(1)
    assert bench.admits(pod)


def test_a_status_that_changes_is_told():
    bench = Bench(0)
    bench.freed.take()
    bench.see(1)
    freed = bench.freed.take()
    assert "budget/shop/pdb" in freed
    assert "budgets/shop" not in freed, "nobody else is selected than before"


def test_a_budget_that_was_deleted_and_made_again_starts_afresh():
    bench = Bench(1)
    bench.evict("a")
    bench.budgets.drop("shop", "pdb")
    bench.see(1)
    assert bench.admits()


# -- what is remembered ------------------------------------------------------------------------------------------------


def test_nothing_is_remembered_of_a_budget_that_is_gone():
    bench = Bench(3)
    bench.evict("a")
    bench.budgets.leave(bench.pod("b"))
    bench.budgets.drop("shop", "pdb")
    bench.budgets.settle("b", Settlement.STAYS, AT_ONCE)
    bench.freed.take()
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
