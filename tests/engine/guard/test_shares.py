"""The guard: what one namespace or one node weighs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.guard.bench import Bench, uids
from taintwarden.engine.guard import Turn
from taintwarden.engine.guard.guard import ALL_PODS, NARROW_SECONDS
from taintwarden.engine.model import GuardAction

# -- pods that count for their own namespace only ---------------------------------------------------------------------


def test_own_pods_hold_their_namespace_and_no_other():
    bench = Bench(population=0)
    bench.expect(*uids(60), namespace="shop", is_own=True)
    assert bench.look() is None
    assert bench.guard.hold_on("shop", "a") == "namespace shop"
    assert bench.guard.hold_on("bank", "a") is None
    assert not bench.guard.halts


def test_own_pods_of_one_node_are_held_there_and_nowhere_else():
    """A kubelet may annotate the pods of its node."""
    bench = Bench(population=0)
    bench.expect(*uids(60), namespace="shop", node="a", is_own=True)
    bench.expect("other", namespace="shop", node="b")
    bench.look()
    assert bench.guard.hold_on("shop", "a") == "namespace shop on node a"
    assert bench.guard.hold_on("shop", "b") is None


def test_so_they_are_when_some_of_them_are_evicted_already():
    bench = Bench(population=0)
    bench.expect(*uids(5), namespace="shop", node="a", is_own=True)
    bench.evict(*uids(5))
    bench.expect("more", namespace="shop", node="a", is_own=True)
    bench.expect("other", namespace="shop", node="b")
    bench.look()
    assert bench.guard.hold_on("shop", "a") == "namespace shop on node a"
    assert bench.guard.hold_on("shop", "b") is None


def test_own_pods_on_several_nodes_hold_the_namespace_on_all():
    bench = Bench(population=0)
    bench.expect(*uids(60, "a"), namespace="shop", node="a", is_own=True)
    bench.expect(*uids(60, "b"), namespace="shop", node="b", is_own=True)
    bench.look()
    assert bench.guard.hold_on("shop", "c") == "namespace shop"


def test_they_count_beside_what_counts_for_all():
    bench = Bench(population=0)
    bench.expect(*uids(3, "all"))
    bench.expect(*uids(3), namespace="shop", is_own=True)
    bench.look()
    assert bench.guard.hold_on("shop", "a") is not None


def test_they_are_held_no_longer_when_they_need_not_leave():
    bench = Bench(population=0)
    bench.expect(*uids(6), namespace="shop", is_own=True)
    bench.look()
    bench.forget("p0")
    bench.look()
    assert bench.guard.hold_on("shop", "a") is None
    assert bench.freed == ["namespace shop"]


def test_evictions_of_own_pods_count_for_their_namespace():
    bench = Bench(population=0)
    bench.expect(*uids(5), namespace="shop", is_own=True)
    bench.evict(*uids(5))
    bench.expect("one-more", namespace="shop", is_own=True)
    bench.expect("other")
    bench.look()
    assert bench.guard.hold_on("shop", "a") is not None
    assert bench.guard.hold_on("bank", "a") is None
    assert bench.spent() == [], "no record reserves them"


def test_they_no_longer_count_after_a_window():
    bench = Bench(population=0)
    bench.expect(*uids(5), namespace="shop", is_own=True)
    bench.evict(*uids(5))
    bench.expect("one-more", namespace="shop", is_own=True)
    bench.look()
    wait = bench.guard.next_look(bench.now)
    bench.pass_time(wait)
    bench.look()
    assert bench.guard.hold_on("shop", "a") is None


def test_a_guard_that_only_reports_holds_no_namespace():
    bench = Bench(population=0, action=GuardAction.REPORT)
    bench.expect(*uids(60), namespace="shop", is_own=True)
    bench.look()
    assert bench.guard.hold_on("shop", "a") is None
    assert bench.guard.own_holds == {}


def test_a_reset_releases_them():
    bench = Bench(population=0)
    bench.expect(*uids(60), namespace="shop", is_own=True)
    bench.look()
    assert bench.release() == 60
    bench.look()
    assert bench.guard.hold_on("shop", "a") is None


@given(st.lists(st.tuples(st.sampled_from(["shop", "bank", "play"]), st.booleans()), max_size=40))
def test_own_pods_of_others_never_hold_a_namespace(pods):
    """What the other namespaces bring upon themselves changes nothing for one of them."""
    alone, beside = Bench(population=0), Bench(population=0)
    for number, (namespace, is_own) in enumerate(pods):
        beside.expect(f"p{number}", namespace=namespace, is_own=is_own)
        if namespace == "shop" or not is_own:
            alone.expect(f"p{number}", namespace=namespace, is_own=is_own)
    assert alone.look() == beside.look()
    assert alone.guard.hold_on("shop", "a") == beside.guard.hold_on("shop", "a")


# -- a tripped guard narrows ------------------------------------------------------------------------------------------


def narrowed(**of: str) -> Bench:
    bench = Bench(population=0)
    bench.expect(*uids(60), **of)
    bench.expect("other", namespace="bank", node="b")
    assert bench.look() is Turn.TRIPPED
    assert bench.guard.hold_on("bank", "b") == ALL_PODS
    bench.pass_time(NARROW_SECONDS)
    bench.look()
    return bench


@pytest.mark.parametrize(("of", "scope"), [({"namespace": "shop"}, "namespace shop"), ({"node": "a"}, "node a")])
def test_after_a_minute_it_holds_only_the_namespace_or_node_that_is_the_reason(of, scope):
    bench = narrowed(**of)
    assert bench.guard.scope == scope
    assert bench.guard.hold_on(of.get("namespace", "ns"), of.get("node", "n")) == scope
    assert bench.guard.hold_on("bank", "b") is None
    assert bench.freed == [ALL_PODS]


def test_not_if_the_rest_exceeds_the_limit():
    bench = Bench(population=0)
    bench.expect(*uids(6, "a"), namespace="shop", node="a")
    bench.expect(*uids(6, "b"), namespace="bank", node="b")
    bench.look()
    bench.pass_time(NARROW_SECONDS)
    bench.look()
    assert bench.guard.scope == ALL_PODS


def test_not_while_the_wave_grows():
    bench = Bench(population=0)
    bench.expect(*uids(60), node="a")
    bench.look()
    for number in range(3):
        bench.pass_time(NARROW_SECONDS - 1)
        bench.expect(f"more-{number}", node="a")
        bench.look()
        assert bench.guard.scope == ALL_PODS


def test_it_holds_everybody_again_if_the_rest_grows_beyond_the_limit():
    bench = narrowed(node="a")
    bench.expect(*uids(6, "more"), node="c", namespace="bank")
    bench.look()
    assert bench.guard.scope == ALL_PODS


def test_evictions_beside_a_narrow_hold_never_exceed_the_limit():
    bench = narrowed(node="a")
    bench.evict("other")
    bench.expect(*uids(5, "more"), node="b", namespace="bank")
    bench.look()
    assert bench.guard.hold_on("bank", "b") == ALL_PODS


def test_evictions_beside_a_narrow_hold_count_once():
    """They were ahead when it tripped, and are past now."""
    bench = Bench(population=0, min_pods=50)
    bench.expect(*uids(60), namespace="shop")
    bench.expect(*uids(40, "other"), namespace="bank")
    bench.look()
    bench.pass_time(NARROW_SECONDS)
    bench.look()
    assert bench.guard.scope == "namespace shop"
    bench.evict(*uids(20, "other"))
    bench.expect("more", namespace="bank")
    bench.look()
    assert bench.guard.hold_on("bank", "b") is None


def test_pods_that_come_where_others_were_evicted_beside_a_narrow_hold_are_more():
    bench = Bench(population=0, min_pods=50)
    bench.expect(*uids(60), namespace="shop")
    bench.expect(*uids(40, "other"), namespace="bank", node="b")
    bench.look()
    bench.pass_time(NARROW_SECONDS)
    bench.look()
    bench.evict(*uids(40, "other"))
    bench.expect(*uids(11, "more"), namespace="bank", node="b")
    bench.look()
    assert bench.guard.hold_on("bank", "b") == ALL_PODS


def test_a_value_that_jitters_does_not_make_a_wave_grow():
    """Else the kubelet of one node could stop the evictions of all others for as long as it likes."""
    bench = Bench(population=0)
    bench.expect(*uids(60), node="a")
    bench.expect("other", node="b")
    bench.look()
    for _ in range(3):
        bench.pass_time(NARROW_SECONDS / 3)
        bench.forget(*uids(60))
        bench.look()
        bench.expect(*uids(60), node="a")
        bench.look()
    assert bench.guard.scope == "node a"


def test_a_narrow_hold_ends_when_it_holds_everybody_again():
    """Who waits for the end of that hold has to wait for the other one."""
    bench = narrowed(node="a")
    bench.freed.clear()
    bench.expect(*uids(6, "more"), node="c", namespace="bank")
    bench.look()
    assert bench.freed == ["node a"]


def test_when_it_is_armed_the_narrow_hold_ends():
    bench = narrowed(node="a")
    bench.freed.clear()
    bench.forget(*uids(60), "other")
    bench.look()
    assert set(bench.freed) == {ALL_PODS, "node a"}


def test_own_pods_do_not_make_a_wave_grow():
    bench = Bench(population=0)
    bench.expect(*uids(60), node="a")
    bench.look()
    bench.pass_time(NARROW_SECONDS - 1)
    bench.expect(*uids(6, "own"), namespace="evil", node="a", is_own=True)
    bench.look()
    bench.pass_time(1)
    bench.look()
    assert bench.guard.scope == "node a"


# -- since when a policy enforces -------------------------------------------------------------------------------------


def test_another_generation_enforces_anew():
    bench = Bench()
    bench.guard.enforce(1, bench.now)
    bench.pass_time(100)
    bench.guard.enforce(1, bench.now)
    assert bench.guard.acts_since == bench.now.wall - 100
    bench.guard.enforce(2, bench.now)
    assert bench.guard.acts_since == bench.now.wall


def test_a_successor_goes_on_from_what_is_stored():
    bench = Bench()
    bench.guard.enforce(1, bench.now)
    record = bench.stored(waiting=False)
    bench.pass_time(500)
    other = Bench()
    other.begin(bench.guard.settings)
    other.seconds = bench.seconds
    other.guard.enforce(1, other.now)
    other.guard.restore(record, other.now)
    assert other.guard.acts_since == bench.guard.acts_since


def test_of_another_generation_it_takes_nothing_over():
    bench = Bench()
    bench.guard.enforce(1, bench.now)
    record = bench.stored(waiting=False)
    other = Bench()
    other.seconds = 500.0
    other.guard.enforce(2, other.now)
    other.guard.restore(record, other.now)
    assert other.guard.acts_since == other.now.wall


def test_it_is_stored_once():
    bench = Bench()
    bench.guard.enforce(1, bench.now)
    assert bench.store(waiting=False) is not None
    assert bench.store(waiting=False) is None


def test_a_policy_that_does_not_enforce_has_nothing_to_store():
    bench = Bench()
    bench.guard.enforce(None, bench.now)
    assert bench.store(waiting=False) is None


def test_a_hold_on_own_pods_ends_when_they_are_few_without_another_event():
    bench = Bench(population=0)
    bench.expect(*uids(6), namespace="shop", node="a", is_own=True)
    bench.look()
    assert bench.guard.hold_on("shop", "a") is not None
    bench.forget("p0")
    assert bench.guard.next_look(bench.now) == 0.0


def test_a_guard_may_hold_no_own_pods():
    """In a quarantine that would keep them."""
    bench = Bench(population=0, holds_own=False)
    bench.expect(*uids(60), namespace="shop", node="a", is_own=True)
    bench.look()
    assert bench.guard.hold_on("shop", "a") is None


# -- what a narrowed guard holds later ---------------------------------------------------------------------------------


def test_a_guard_that_trips_again_holds_all_pods_at_first():
    bench = narrowed(namespace="shop")
    bench.forget(*uids(60), "other")
    assert bench.look() is Turn.ARMED
    bench.expect(*uids(60, "again"), namespace="shop")
    bench.look()
    assert bench.guard.hold_on("office", "a") == ALL_PODS


def test_a_guard_whose_record_is_restored_holds_all_pods_at_first():
    bench = narrowed(namespace="shop")
    bench.guard.restore(bench.guard.record(bench.now), bench.now)
    assert bench.guard.hold_on("office", "a") == ALL_PODS
