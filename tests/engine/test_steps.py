"""The cost of a step does not depend on the number of pods that wait: calls in it are counted, never timed."""

import gc
import sys
from collections.abc import Callable
from types import FrameType

import msgspec
import pytest

from engine.rig import ZONE, Rig, gt, limited, rate
from taintwarden.engine import commands, events
from taintwarden.engine.limit_settings import GuardAction, GuardSettings, RateLimit
from taintwarden.engine.model import Budget, Node, Profile
from taintwarden.engine.policy import Policy
from taintwarden.engine.selectors import LabelSelector

FEW, MANY = 60, 400
GUARD = GuardSettings(max_percent=1, min_pods=1, settle_seconds=0)
GUARDED = limited(guard=GUARD)
AT_ONCE = 20
"""Pods that a step may evaluate."""


def wave(given: Policy, pods: int, *budgets: Budget, namespaces: int = 1, nodes: int = 1) -> Rig:
    """`pods` pods on nodes, which are about to get a taint."""
    rig = Rig(given, slice_size=AT_ONCE)
    for number in range(nodes):
        rig.node(f"n{number + 1}", "sla=980", labels={ZONE: "a"})
    rig.feed(*[events.BudgetSeen(budget) for budget in budgets])
    for number in range(pods):
        namespace, node = f"ns{number % namespaces}", f"n{number % nodes + 1}"
        rig.process(events.PodSeen(rig.make_pod(f"p{number}", gt(), node=node, namespace=namespace, ready=True)))
    return rig


def waiting(given: Policy, pods: int, *budgets: Budget, namespaces: int = 1, nodes: int = 0) -> Rig:
    """`pods` pods that have to leave, and wait."""
    nodes = nodes or pods // AT_ONCE
    rig = wave(given, pods, *budgets, namespaces=namespaces, nodes=nodes)
    for number in range(nodes):
        rig.node(f"n{number + 1}", "sla=940", labels={ZONE: "a"})
    rig.save()
    for evicted in rig.take(commands.Evict):
        rig.settle(evicted.pod.name)
        rig.gone(evicted.pod.name, evicted.pod.node)
    rig.advance(1.0)
    return rig


def longest(rig: Rig, *fed: events.Event, seconds: float = 0.0) -> int:
    """The greatest number of functions that one step calls, for these events and until it rests."""
    calls = most = 0

    def see(_frame: FrameType, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event == "call"

    def step(event: events.Event) -> None:
        nonlocal calls, most
        calls, before = 0, sys.getprofile()
        sys.setprofile(see)
        try:
            rig.feed(event)
        finally:
            sys.setprofile(before)
        most = max(most, calls)

    rig.wall, rig.monotonic = rig.wall + seconds, rig.monotonic + seconds
    for event in fed:
        step(event)
    while rig.machine.wake_after(rig.now) == 0.0:
        step(events.Tick())
    return most


def is_alike(measured: Callable[[int], int]) -> bool:
    """True if a step costs the same with few pods and with many."""
    few, many = measured(FEW), measured(MANY)
    return few > 0 and many <= 1.3 * few + 50


def test_a_guard_trips_at_once() -> None:
    def measured(pods: int) -> int:
        rig = wave(GUARDED, pods)
        rig.feed(events.NodeSeen(Node("n1", "uid-n1", {ZONE: "a"}, rig.make_taints("sla=940"), rig.version())))
        calls = longest(rig, seconds=1.0)
        assert rig.world.limiter.guards.by_policy["p"].latch.is_tripped
        return calls

    assert is_alike(measured)


def pdb(**more) -> Budget:
    return Budget(
        more.pop("namespace", "ns0"), more.pop("name", "pdb"), LabelSelector(), more.pop("allowed", 0), **more
    )


def granted(rig: Rig) -> events.Event:
    """The request for a reset is removed."""
    rig.feed(events.GuardReset("p"))
    order = next(one for one in rig.ordered if isinstance(one, commands.ClearGuardReset))
    return events.Written(order, events.WriteOutcome.DONE)


EVENTS = {
    "a budget allows": (lambda rig: events.BudgetSeen(pdb(allowed=1))),
    "a budget selects": (lambda rig: events.BudgetSeen(pdb(name="other"))),
    "a budget is gone": (lambda rig: events.BudgetGone("ns0", "pdb")),
    "a release": granted,
    "a pod is gone": (lambda rig: events.PodGone("uid-p0", "n1")),
}


@pytest.mark.parametrize("held", [0, 10**6], ids=["by the budget", "by the guard"])
@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_an_event_while_pods_wait(event: Callable[[Rig], events.Event], held: int) -> None:
    def measured(pods: int) -> int:
        rig = waiting(GUARDED, pods, pdb(allowed=held))
        assert not rig.take(commands.Evict)
        return longest(rig, event(rig))

    assert is_alike(measured)


def test_as_many_budgets_as_there_are_cost_nothing_when_one_changes() -> None:
    def measured(budgets: int) -> int:
        names, reporting = range(budgets), msgspec.structs.replace(GUARD, min_pods=9, action=GuardAction.REPORT)
        rig = waiting(
            limited(guard=reporting), budgets, *[pdb(namespace=f"ns{one}") for one in names], namespaces=budgets
        )
        return longest(rig, events.BudgetSeen(pdb(allowed=1)))

    assert is_alike(measured)


OF_A_NAMESPACE = {
    "its labels": events.NamespaceSeen("ns0", {"team": "b"}),
    "its labels, which go": events.NamespaceSeen("ns0"),
    "a profile": events.ProfileSeen(Profile("ns0", "all", LabelSelector(), (gt("900"),))),
    "a budget": events.BudgetGone("ns0", "pdb"),
}


@pytest.mark.parametrize("event", OF_A_NAMESPACE.values(), ids=OF_A_NAMESPACE)
def test_what_concerns_all_pods_of_a_namespace_each_of_which_is_its_own_class(event: events.Event) -> None:
    def measured(pods: int) -> int:
        selecting = limited(spec={"namespaceSelector": {"matchLabels": {"team": "a"}}}, guard=GUARD)
        rig = Rig(selecting, slice_size=AT_ONCE)
        rig.feed(events.NamespaceSeen("ns0", {"team": "a"}), events.BudgetSeen(pdb(allowed=10**6)))
        for number in range(pods):
            node = f"n{number // AT_ONCE}"
            if number % AT_ONCE == 0:
                rig.node(node, "sla=980")
            pod = rig.make_pod(f"p{number}", gt(), node=node, namespace="ns0", labels={"n": f"{number}"})
            rig.feed(events.PodSeen(pod))
        return longest(rig, event)

    assert is_alike(measured)


@pytest.mark.parametrize("event", OF_A_NAMESPACE.values(), ids=OF_A_NAMESPACE)
def test_what_concerns_a_namespace_that_has_one_pod_among_many_on_each_node(event: events.Event) -> None:
    def measured(others: int) -> int:
        selecting = limited(spec={"namespaceSelector": {"matchLabels": {"team": "a"}}}, guard=GUARD)
        rig = Rig(selecting, slice_size=AT_ONCE)
        rig.feed(events.NamespaceSeen("ns0", {"team": "a"}), events.BudgetSeen(pdb(allowed=10**6)))
        for node in range(AT_ONCE):
            rig.node(f"n{node}", "sla=980")
            for number in range(others // AT_ONCE):
                namespace = f"ns{number}"
                rig.feed(events.PodSeen(rig.make_pod(f"p{node}-{number}", node=f"n{node}", namespace=namespace)))
        return longest(rig, event)

    assert is_alike(measured)


def test_many_namespaces_change_at_once() -> None:
    def measured(namespaces: int) -> int:
        rig = waiting(GUARDED, namespaces, namespaces=namespaces)
        rig.feed(*[events.BudgetSeen(pdb(namespace=f"ns{number}", allowed=1)) for number in range(namespaces)])
        return longest(rig)

    assert is_alike(measured)


@pytest.mark.parametrize("limit", ["evictions_per_second", "per_zone", "per_namespace"])
@pytest.mark.parametrize("namespaces", [1, 20])
def test_a_token_for_one_of_many(limit: str, namespaces: int) -> None:
    def measured(pods: int) -> int:
        rig = waiting(limited(**rate(limit, 1.0)), pods, namespaces=namespaces)
        return longest(rig, seconds=2.5)

    assert is_alike(measured)


def test_a_token_for_one_of_many_namespaces_in_a_zone() -> None:
    def measured(namespaces: int) -> int:
        rig = waiting(limited(per_zone=RateLimit(1.0)), namespaces, namespaces=namespaces)
        return longest(rig, seconds=2.5)

    assert is_alike(measured)


def test_the_garbage_collector_looks_at_nothing_of_a_pod_that_waits() -> None:
    def measured(pods: int) -> int:
        gc.collect()
        before = len(gc.get_objects())
        rig = waiting(limited(evictions_per_second=1.0), pods, nodes=1)
        gc.collect()
        assert len(rig.view.pods("n1")) > pods // 2
        return len(gc.get_objects()) - before

    assert is_alike(measured)
