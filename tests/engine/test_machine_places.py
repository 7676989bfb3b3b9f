"""``concurrentNodes``: which nodes lose pods at once, until when, and who is next."""

import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.rig import REACHED, START, Rig, exists, limited, rate
from taintwarden.engine import commands, events
from taintwarden.engine.events import WriteOutcome
from taintwarden.engine.machine import Timings
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.records import Place

IDLE_SECONDS = 30.0
"""Seconds for which a node keeps its place without a pod that leaves for good."""
BLOCKED = {"app": "blocked"}


class Bench(Rig):
    """Bad nodes. Calls are answered, and pods that are called stop when a test says so."""

    def __init__(self, most: int | str = 1, nodes: int = 3, pods: int = 2, **more: Any) -> None:
        timings = Timings(max_silence=math.inf, namespace_pause=0.0, place_idle=IDLE_SECONDS)
        super().__init__(limited(concurrent_nodes=most, **more), timings=timings)
        self.names = [f"n{number}" for number in range(nodes)]
        self.pods: dict[str, str] = {}
        self.stopping: dict[str, str] = {}
        self.budget("blocked", 0, app="blocked")
        for node in self.names:
            self.node(node)
            for number in range(pods):
                self.add(node, f"{node}-{number}")
        for node in self.names:
            self.fall(node)

    def add(self, node: str, name: str, **more: Any) -> None:
        self.pods[name] = node
        self.pod(name, node=node, **more)

    def fall(self, *nodes: str) -> None:
        for node in nodes:
            self.node(node, "sla=0")

    def repair(self, node: str) -> None:
        self.node(node)

    def places(self) -> list[str]:
        """The nodes with a place."""
        return [*self.world.limiter.places.by_policy["p"].held]

    def store(self, seconds: float = 0.0) -> None:
        while orders := [one for one in self.ordered if isinstance(one, commands.SavePlaces)]:
            self.ordered.remove(orders[0])
            self.written(orders[0])
        super().advance(seconds)

    def pass_time(self, seconds: float) -> None:
        """Time passes, and places are stored."""
        for _ in range(int(seconds)):
            self.store()
            self.advance(1.0)
        self.store()

    def called(self) -> list[str]:
        """The pods that were called since the last time; they terminate now, for 10 s of grace."""
        found = self.evictions()
        for name in found:
            self.settle(name)
            self.stopping[name] = self.pods.pop(name)
            self.gone(name, self.stopping[name], self.wall + 10)
        return found

    def ends(self, *names: str) -> None:
        """Pods that terminate are gone."""
        for name in names or list(self.stopping):
            self.gone(name, self.stopping.pop(name))


def nodes_of(names: list[str]) -> list[str]:
    return list(dict.fromkeys(name.rpartition("-")[0] for name in names))


# -- taking a place ---------------------------------------------------------------------------------------------------


def test_a_place_is_stored_before_the_first_call():
    bench = Bench()
    assert bench.evictions() == []
    assert bench.claim("n0-0").detail == "the place of its node is stored first"
    [order] = [one for one in bench.ordered if isinstance(one, commands.SavePlaces)]
    assert [one.node for one in order.places] == ["n0"]
    bench.store()
    assert sorted(bench.evictions()) == ["n0-0", "n0-1"]


def test_a_place_that_cannot_be_stored_holds_the_pods():
    bench = Bench()
    bench.answer(commands.SavePlaces, WriteOutcome.FAILED)
    assert bench.evictions() == []
    bench.advance(2.0)
    bench.store()
    assert nodes_of(bench.evictions()) == ["n0"]


@pytest.mark.parametrize(("most", "nodes"), [(1, 1), (2, 2), (3, 3), ("10%", 1), ("70%", 2), ("100%", 3)])
def test_as_many_nodes_lose_pods_as_may(most, nodes):
    bench = Bench(most)
    bench.pass_time(5)
    assert len(nodes_of(bench.evictions())) == nodes


def test_a_share_is_of_the_nodes_that_the_policy_selects():
    bench = Bench("50%", nodes=0, spec={"nodeSelector": {"matchLabels": {"pool": "b"}}})
    for number in range(8):
        bench.add(f"n{number}", f"n{number}-0")
        bench.node(f"n{number}", "sla=0", labels={"pool": "ab"[number % 2]})
    bench.pass_time(5)
    assert bench.evictions() == ["n1-0", "n3-0"]


def test_without_the_limit_all_nodes_lose_pods():
    assert len(nodes_of(Bench(None).evictions())) == 3


def test_pods_with_a_hard_deadline_take_no_place():
    bench = Bench(spec={"reclaim": {"deadlineSeconds": 600}})
    assert len(nodes_of(bench.evictions())) == 3


def test_a_rehearsal_takes_no_place():
    assert len(Bench(spec={"mode": "DryRun"}).take(commands.Rehearsed)) == 6


def test_each_policy_has_places_of_its_own():
    of = [{"taints": [{"key": key}]} for key in ("sla", "other")]
    bench = Rig(limited("p", concurrent_nodes=1, spec=of[0]), limited("q", concurrent_nodes=1, spec=of[1]))
    for node, taint in (("n1", "sla=0"), ("n2", "sla=0"), ("n3", "other=0"), ("n4", "other=0")):
        bench.node(node, taint)
        bench.pod(node, node=node)
    bench.answer(commands.SavePlaces)
    bench.answer(commands.SavePlaces)
    assert bench.evictions() == ["n1", "n3"]


def test_a_pod_that_a_budget_blocks_takes_no_place():
    bench = Bench(nodes=0)
    bench.node("a")
    bench.add("a", "a-0", labels=BLOCKED, ready=True)
    bench.node("b")
    bench.add("b", "b-0")
    bench.fall("a", "b")
    bench.store()
    assert bench.places() == ["b"]


def test_a_namespace_on_nodes_without_a_place_delays_no_other():
    bench = Bench(nodes=0)
    for node, namespace in (("a", "shop"), ("b", "shop"), ("a", "other")):
        bench.add(node, f"{node}-{namespace}", namespace=namespace)
    bench.fall("a", "b")
    bench.store()
    assert sorted(bench.evictions()) == ["a-other", "a-shop"]


def test_a_pod_that_is_stuck_takes_no_place_for_its_node_when_the_limit_is_added():
    bench = Bench(None, nodes=1, pods=1)
    assert bench.called() == ["n0-0"]
    bench.pass_time(30)
    bench.change(limited(concurrent_nodes=1))
    bench.pass_time(2)
    assert bench.places() == []


def test_a_node_with_a_call_in_progress_has_a_place_when_the_limit_is_added():
    bench = Bench(None, nodes=1, pods=1)
    bench.change(limited(concurrent_nodes=1))
    bench.pass_time(5)
    assert bench.report()[0].places.held == (Place("n0", START),)


# -- keeping it -------------------------------------------------------------------------------------------------------


def test_a_node_keeps_its_place_until_it_is_drained():
    bench = Bench()
    bench.store()
    assert nodes_of(bench.called()) == ["n0"]
    bench.pass_time(5)
    bench.ends("n0-0")
    bench.pass_time(4)
    assert bench.called() == []
    bench.ends("n0-1")
    bench.pass_time(2)
    assert nodes_of(bench.called()) == ["n1"]


def test_a_pod_that_leaves_though_others_deleted_it_keeps_the_place():
    bench = Bench(pods=1)
    bench.store()
    bench.add("n0", "late", labels=BLOCKED, ready=True)
    bench.called()
    bench.gone("late", "n0", bench.wall + 10)
    bench.ends()
    bench.pass_time(3)
    assert bench.places() == ["n0"]


def test_a_place_ends_soon_even_if_no_other_node_waits():
    bench = Bench(nodes=1, pods=1)
    bench.store()
    bench.called()
    bench.pass_time(3)
    bench.ends()
    bench.advance(0.5)
    assert bench.places() == []


@pytest.mark.parametrize("ends", ["repair", "lose"])
def test_a_node_that_is_repaired_or_deleted_frees_its_place(ends):
    bench = Bench()
    bench.store()
    bench.settle("n0-0", Outcome.BLOCKED)
    bench.settle("n0-1", Outcome.BLOCKED)
    bench.evictions()
    bench.repair("n0") if ends == "repair" else bench.process(events.NodeGone("n0"))
    bench.pass_time(2)
    assert nodes_of(bench.called()) == ["n1"]


def blocked(most: int = 1, **more: Any) -> Bench:
    """Node ``a`` has a place and a pod that a budget blocks, and others wait."""
    bench = Bench(most, nodes=0, **more)
    bench.node("a")
    bench.add("a", "a-0")
    bench.add("a", "a-1", labels=BLOCKED, ready=True)
    bench.fall("a")
    bench.store()
    assert bench.called() == ["a-0"]
    bench.ends()
    return bench


def waits(bench: Bench, node: str = "b", **more: Any) -> None:
    bench.node(node)
    bench.add(node, f"{node}-0", **more)
    bench.fall(node)


def test_a_node_without_progress_loses_its_place_after_a_while():
    bench = blocked()
    waits(bench)
    bench.pass_time(IDLE_SECONDS - 2)
    assert (bench.places(), bench.claim("a-1").limit) == (["a"], "budget")
    bench.pass_time(5)
    assert bench.called() == ["b-0"]


def test_a_node_that_takes_a_place_again_has_all_of_the_time_again():
    bench = blocked()
    waits(bench)
    bench.pass_time(IDLE_SECONDS + 3)
    assert bench.called() == ["b-0"]
    bench.ends()
    bench.budget("blocked", 1, app="blocked")
    bench.pass_time(3)
    bench.budget("blocked", 0, app="blocked")
    bench.settle("a-1", Outcome.BLOCKED)
    waits(bench, "c")
    bench.pass_time(IDLE_SECONDS - 5)
    assert bench.places() == ["a"]


def test_time_does_not_count_while_no_other_node_waits():
    bench = blocked()
    bench.pass_time(10 * IDLE_SECONDS)
    waits(bench)
    bench.pass_time(IDLE_SECONDS - 2)
    assert bench.places() == ["a"]


def test_time_does_not_count_while_the_others_wait_for_something_else():
    bench = blocked()
    waits(bench, labels=BLOCKED, ready=True)
    bench.pass_time(10 * IDLE_SECONDS)
    assert bench.places() == ["a"]


def test_time_does_not_count_while_another_limit_holds_the_whole_policy():
    bench = blocked()
    waits(bench)
    bench.process(events.LeaseRenewal(succeeded=False))
    bench.pass_time(10 * IDLE_SECONDS)
    bench.process(events.LeaseRenewal(succeeded=True))
    bench.pass_time(10)
    assert bench.places() == ["a"]


def test_time_counts_while_the_others_wait_for_a_token_too():
    bench = blocked(2, evictions_per_second=0.01, burst=1)
    waits(bench, "b")  # it has a place, and waits for a token
    waits(bench, "c")
    bench.pass_time(IDLE_SECONDS + 5)
    assert sorted(bench.places()) == ["b", "c"]


def test_time_in_which_the_process_did_not_run_does_not_count():
    bench = blocked()
    waits(bench)
    bench.pass_time(2)
    bench.wall += 1_000
    bench.monotonic += 1_000
    bench.pass_time(5)
    assert bench.places() == ["a"]


def test_a_node_with_a_call_in_progress_keeps_its_place():
    bench = Bench(nodes=0)
    bench.add("a", "a-0")
    bench.add("a", "a-1", labels=BLOCKED, ready=True)
    bench.fall("a")
    bench.store()
    waits(bench, namespace="other")
    bench.pass_time(2 * IDLE_SECONDS)
    assert bench.places() == ["a"]


def test_time_does_not_count_while_the_operator_is_cut_off():
    bench = blocked()
    waits(bench)
    bench.process(events.ViewChanged("pods", live=False))
    bench.pass_time(10 * IDLE_SECONDS)
    bench.process(events.ViewChanged("pods", live=True))
    bench.pass_time(10)
    assert bench.places() == ["a"]


def test_a_pod_that_leaves_within_its_grace_prolongs_it():
    bench = blocked()
    bench.add("a", "a-2", bound_at=bench.wall - 100)
    waits(bench)
    bench.pass_time(IDLE_SECONDS - 5)
    assert bench.called() == ["a-2"]
    bench.pass_time(IDLE_SECONDS - 5)
    assert bench.places() == ["a"]


def test_a_pod_that_is_stuck_does_not():
    bench = blocked()
    bench.add("a", "a-2", bound_at=bench.wall - 100)
    waits(bench)
    bench.store()
    bench.called()
    bench.pass_time(10 + 15 + IDLE_SECONDS + 3)
    assert bench.places() == ["b"]


def test_a_node_whose_last_pod_is_stuck_keeps_its_place_for_a_while():
    bench = Bench(pods=1)
    bench.pass_time(1)
    bench.called()
    bench.pass_time(10 + 15 + 5)
    assert bench.places() == ["n0"]


@pytest.mark.parametrize("stops", [True, False])
def test_a_pod_that_came_back_does_not(stops):
    bench, called = blocked(), list[str]()
    waits(bench)
    for number in range(int(IDLE_SECONDS / 5) + 4):
        bench.add("a", f"again-{number}", bound_at=bench.wall + 1)
        bench.pass_time(5)
        called += bench.called()
        if not stops:
            bench.ends()
    assert "b-0" in called
    for _ in range(2):
        bench.ends()
        bench.pass_time(5)
        called += bench.called()
    assert list(bench.pods) == ["a-1"], "those that came back are asked again"


# -- who is next ------------------------------------------------------------------------------------------------------


def test_a_node_that_has_begun_comes_before_those_that_wait():
    bench = blocked()
    for node in ("b", "c"):
        waits(bench, node)
    bench.pass_time(IDLE_SECONDS + 3)
    assert bench.called() == ["b-0"]
    bench.budget("blocked", 1, app="blocked")
    bench.ends()
    bench.pass_time(2)
    assert bench.called() == ["a-1"]


def test_a_node_that_was_drained_comes_after_those_that_wait():
    bench = Bench(pods=1)
    bench.store()
    bench.called()
    bench.ends()
    bench.pass_time(2)
    assert bench.called() == ["n1-0"]
    bench.add("n0", "n0-1")
    bench.ends()
    bench.pass_time(2)
    assert bench.called() == ["n2-0"]


def test_a_node_whose_pods_wait_for_a_read_keeps_its_turn():
    bench = Bench(nodes=1, pods=1)
    bench.store()
    for node in ("b", "c"):
        waits(bench, node)
    bench.add("b", "b-1", version=REACHED + 5)
    bench.gone("b-0", "b")
    bench.pass_time(2)
    bench.process(events.NodeChecked("b", bench.view.node("b").node.resource_version, REACHED + 5))
    assert bench.called() == ["n0-0"]
    bench.ends()
    bench.pass_time(2)
    assert bench.called() == ["b-1"]


def test_nodes_take_turns_by_how_long_they_have_waited():
    bench, order = Bench(nodes=6, pods=1), []
    for _ in range(6):
        bench.pass_time(2)
        order += bench.called()
        bench.ends()
    assert nodes_of(order) == bench.names


def test_a_node_that_is_held_by_something_else_by_then_is_passed_over():
    bench = Bench(pods=1)
    waits(bench, "blocked", labels=BLOCKED, ready=True)
    bench.budget("blocked", 1, app="blocked")
    bench.store()
    bench.called()
    bench.budget("blocked", 0, app="blocked")
    seen = []
    for _ in range(4):
        bench.ends()
        bench.pass_time(3)
        seen += bench.called()
    assert seen == ["n1-0", "n2-0"]
    bench.budget("blocked", 1, app="blocked")
    bench.pass_time(2)
    assert bench.called() == ["blocked-0"]


def test_a_node_whose_namespace_fails_delays_no_other():
    bench = Bench(2, nodes=0)
    for node, namespace in (("a", "shop"), ("f", "failing"), ("x", "failing"), ("y", "shop")):
        bench.add(node, f"{node}-0", namespace=namespace)
    bench.add("x", "x-1", namespace="failing")
    bench.fall("a", "f", "x")
    bench.store()
    bench.fall("y")
    assert bench.evictions() == ["a-0", "f-0"]
    for _ in range(2):
        bench.settle("f-0", Outcome.FAILED)
        bench.advance(2.5)
        assert bench.evictions() == ["f-0"]
    bench.settle("f-0", Outcome.FAILED)
    bench.settle("a-0")
    bench.gone("a-0", "a")
    bench.pass_time(2)
    assert bench.evictions() == ["y-0"]


def test_a_node_that_has_begun_and_whose_namespace_fails_delays_no_other():
    bench = Bench(2, nodes=0)
    bench.budget("late", 0, namespace="failing", app="blocked")
    for name, more in (("a-0", {}), ("a-1", {"labels": BLOCKED, "ready": True}), ("f-0", {}), ("f-1", {})):
        bench.add(name[0], name, namespace="failing", **more)
    bench.add("c", "c-0")
    bench.fall("a", "c")
    bench.store()
    bench.settle("a-0")
    bench.gone("a-0", "a")
    bench.fall("f")
    bench.pass_time(IDLE_SECONDS + 3)
    assert bench.places() == ["c", "f"]
    bench.budget("late", 1, namespace="failing", app="blocked")
    for name in ("f-0", "f-1"):
        bench.settle(name, Outcome.FAILED)
    waits(bench, "y")
    bench.settle("c-0")
    bench.gone("c-0", "c")
    bench.pass_time(1)
    assert bench.places() == ["f", "y"]


# -- changes ----------------------------------------------------------------------------------------------------------


def test_a_lower_limit_lets_no_other_node_begin():
    bench = Bench(2)
    bench.store()
    bench.called()
    bench.change(limited(concurrent_nodes=1))
    assert bench.places() == ["n0", "n1"]
    bench.ends("n0-0", "n0-1")
    bench.pass_time(3)
    assert bench.called() == []
    bench.ends()
    bench.pass_time(3)
    assert nodes_of(bench.called()) == ["n2"]


def test_a_higher_limit_lets_the_next_begin():
    bench = Bench()
    bench.store()
    bench.called()
    bench.change(limited(concurrent_nodes=2))
    bench.pass_time(2)
    assert nodes_of(bench.called()) == ["n1"]


def test_free_places_are_taken_at_once():
    bench = Bench(nodes=4)
    bench.store()
    bench.change(limited(concurrent_nodes=3))
    bench.advance(0.5)
    assert len(bench.places()) == 3


def test_without_the_limit_all_others_begin():
    bench = Bench()
    bench.store()
    bench.called()
    bench.change(limited())
    assert sorted(nodes_of(bench.called())) == ["n1", "n2"]


def test_a_paused_policy_keeps_its_places_and_no_node_waits():
    bench = Bench()
    bench.store()
    bench.change(limited(concurrent_nodes=1, spec={"paused": True}))
    bench.pass_time(2)
    assert (bench.places(), bench.report()[0].places.waiting) == (["n0"], 0)
    assert bench.machine.wake_after(bench.now) is None
    bench.change(limited(concurrent_nodes=1))
    assert nodes_of(bench.called()) == ["n0"]


def test_a_limit_that_is_added_counts_the_nodes_that_lose_pods_already():
    bench = Bench(None)
    bench.called()
    bench.change(limited(concurrent_nodes=1))
    waits(bench, "late")
    bench.ends("n0-0", "n0-1", "n1-0", "n1-1")
    bench.pass_time(3)
    assert bench.places() == ["n2"]
    bench.ends()
    bench.pass_time(3)
    assert bench.called() == ["late-0"]


def test_another_policy_of_the_name_has_no_places():
    bench = Bench()
    bench.store()
    bench.change(replace(limited(concurrent_nodes=1), uid="another"))
    assert bench.world.limiter.places.by_policy["p"].stored == {}


# -- other processes --------------------------------------------------------------------------------------------------


def restarted(*stored: str, most: int = 1) -> Bench:
    """A process that begins to lead while these places are stored."""
    bench = Bench(most, nodes=0)
    bench.process(events.LeadershipChanged(leading=False))
    bench.process(events.PlacesRestored("p", tuple(Place(node, bench.wall - 60) for node in stored)))
    for node in ("n0", "n1", "n2"):
        bench.add(node, f"{node}-0", bound_at=bench.wall - 100)
    bench.fall("n0", "n1", "n2")
    bench.process(events.LeadershipChanged(leading=True, term=2))
    return bench


def test_a_new_leader_keeps_the_places_that_are_stored():
    bench = restarted("n2")
    assert bench.called() == ["n2-0"]
    bench.pass_time(5)
    assert bench.called() == []


def test_a_new_leader_keeps_the_bound_if_more_are_stored():
    bench = restarted("n1", "n2")
    assert bench.called() == ["n1-0", "n2-0"]
    bench.ends("n1-0")
    bench.pass_time(5)
    assert bench.called() == []


def test_a_place_whose_node_is_gone_is_free_for_a_new_leader():
    bench = restarted("gone")
    bench.pass_time(3)
    assert len(bench.called()) == 1


def test_a_place_that_was_never_stored_ends_with_its_leader():
    bench = Bench()
    bench.process(events.LeadershipChanged(leading=False))
    bench.process(events.PlacesRestored("p", (Place("n2", bench.wall),)))
    bench.process(events.LeadershipChanged(leading=True, term=2))
    bench.store()
    assert nodes_of(bench.called()) == ["n2"]


def test_a_leader_follows_no_places_but_its_own():
    bench = Bench()
    bench.store()
    bench.process(events.PlacesRestored("p", ()))
    assert bench.places() == ["n0"]


# -- reports -----------------------------------------------------------------------------------------------------------


def test_a_pod_tells_which_nodes_lose_pods_and_how_many_wait():
    bench = Bench(2, nodes=5)
    bench.pass_time(2)
    claim = bench.claim("n4-0")
    assert (claim.limit, claim.detail) == (
        "place",
        "node n4 waits for a place: n0, n1 lose pods now; 3 nodes wait",
    )


def test_a_pod_of_a_node_with_a_place_waits_for_no_place():
    bench = Bench(nodes=1, pods=1, **rate("per_namespace", 0.1))
    for name in ("b-0", "b-1", "b-2"):
        bench.add("b", name, namespace="other")
    bench.fall("b")
    bench.store()
    assert bench.called() == ["n0-0"]
    assert bench.claim("b-2").limit == "place"
    bench.ends()
    bench.pass_time(2)
    assert bench.called() == ["b-0"]
    assert [bench.claim(name).limit for name in ("b-1", "b-2")] == ["namespace-rate", "namespace-rate"]


def test_a_node_that_is_repaired_waits_for_no_place():
    bench = Bench(nodes=5)
    bench.repair("n3")
    bench.pass_time(1)
    assert bench.report()[0].places.waiting == 3


def test_a_node_whose_pods_are_not_due_any_more_waits_for_no_place():
    bench = Bench(nodes=2)
    bench.node("late")
    bench.pod("late-0", exists(toleration_seconds=60), node="late")
    bench.fall("late")
    bench.pass_time(62)
    assert bench.report()[0].places.waiting == 2
    bench.repair("late")
    bench.fall("late")
    bench.pass_time(1)
    assert bench.report()[0].places.waiting == 1


def test_a_node_whose_pods_wait_for_their_namespace_waits_for_no_place():
    bench = Bench(nodes=1, pods=1)
    waits(bench, "f")
    bench.store()
    bench.settle("n0-0", Outcome.FAILED)
    for name in ("f-1", "f-2"):
        bench.add("f", name)
    bench.gone("f-0", "f")
    bench.advance(0.5)
    assert bench.report()[0].places.waiting == 0


def test_a_pod_waits_for_no_place_once_its_policy_has_no_such_limit():
    bench = Bench()
    bench.feed(events.PoliciesChanged((limited(),)))
    assert bench.claim("n1-0").limit == "place"
    bench.wake()
    assert bench.claim("n1-0").limit == ""


def test_a_node_is_passed_over_until_the_next_check():
    bench = Bench(nodes=3)
    nodes = bench.world.limiter.places.by_policy["p"]
    nodes.passed_over["n1"] = None
    bench.pass_time(1)
    assert nodes.passed_over == {}


# -- histories --------------------------------------------------------------------------------------------------------


def play(bench: Bench, seed: int) -> Iterator[list[str]]:
    """Calls are answered, and pods stop after a while. Yields each second the nodes that lose pods."""
    chance = random.Random(seed)
    for _ in range(300):
        if not bench.pods and not bench.stopping:
            return
        bench.store()
        for name in bench.evictions():
            bench.stopping[name] = bench.pods.pop(name)
            bench.settle(name)
            bench.gone(name, bench.stopping[name], bench.wall + 10)
        yield list(dict.fromkeys(bench.stopping.values()))
        for name in list(bench.stopping):
            if chance.random() < 0.4:
                bench.ends(name)
        bench.advance(1.0)


@settings(max_examples=20)
@given(st.integers(), st.integers(1, 3), st.lists(st.integers(0, 3), min_size=1, max_size=7))
def test_never_more_nodes_lose_pods_than_may_and_all_are_drained(seed, most, sizes):
    bench = Bench(most, nodes=0)
    for number, size in enumerate(sizes):
        for pod in range(size):
            bench.add(f"n{number}", f"n{number}-{pod}")
    bench.fall(*(f"n{number}" for number in range(len(sizes))))
    assert all(len(nodes) <= most for nodes in play(bench, seed))
    assert bench.pods == bench.stopping == {}


@settings(max_examples=10)
@given(st.integers(), st.integers(0, 5))
def test_a_blocked_node_leaves_at_most_one_more_half_done(seed, number):
    bench = Bench(2, nodes=0)
    for node in range(6):
        bench.add(f"n{node}", f"n{node}-0")
        if node == number:
            bench.add(f"n{node}", "blocked", labels=BLOCKED, ready=True)
        bench.add(f"n{node}", f"n{node}-2")
    bench.fall(*(f"n{node}" for node in range(6)))
    left = {node: 2 + (node == f"n{number}") for node in bench.pods.values()}
    for _ in play(bench, seed):
        rest = [*bench.pods.values(), *bench.stopping.values()]
        assert sum(0 < rest.count(node) < whole for node, whole in left.items()) <= 3
        if set(bench.pods) == {"blocked"} and not bench.stopping:
            break
    assert set(bench.pods) == {"blocked"}
