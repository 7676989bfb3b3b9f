"""How the machine acts on limits: who is held, and what lets whom go again."""

import msgspec
import pytest

from engine.rig import REACHED, START, ZONE, Rig, exists, gt, limited, owner
from taintwarden.engine import commands, events
from taintwarden.engine.limit_settings import ALL_PODS, PerNode, PerWorkload
from taintwarden.engine.limits.budgets import UNSEEN_SECONDS
from taintwarden.engine.limits.refusal import BUDGET, CALLS, VIEW
from taintwarden.engine.machine import Phase, Timings
from taintwarden.engine.machine.dispatcher import MAX_CONFLICTS
from taintwarden.engine.machine.freshness import NODE_CHECK
from taintwarden.engine.model import Node, Owner, SpreadConstraint
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import Policy, Reclaim, Window
from taintwarden.engine.selectors import LabelSelector

ONE, NO_LIMIT = PerWorkload(1), PerWorkload("100%")
FOREIGN = owner("clone", "CloneSet")


def crowd(given: Policy, *names: str, of: Owner | None = None, wanted: int = 0, **options) -> Rig:
    """Ready pods of one workload on n1, which is good until :func:`spoil`."""
    rig = Rig(given, **options)
    if wanted:
        rig.wants(of or owner(), wanted)
    for name in names:
        rig.pod(name, owner=of or owner(), ready=True)
    return rig


def spoil(rig: Rig, name: str = "n1") -> list[str]:
    rig.node(name, "sla=940")
    return rig.evictions()


def short_of_one() -> Rig:
    """One of four pods that have to leave may be missing: ``a`` is called for."""
    rig = crowd(limited(per_workload=ONE), *"abcd", wanted=4)
    spoil(rig)
    return rig


def evicted(rig: Rig, name: str, node: str = "n1") -> None:
    """The call was accepted, and the pod is gone."""
    rig.settle(name)
    rig.gone(name, node)


def phase(rig: Rig, name: str) -> Phase:
    return rig.phase(name)


def test_a_pod_that_a_webhook_keeps_is_missing_for_ten_minutes_however_often_it_is_called():
    rig = short_of_one()
    rig.settle("a", Outcome.POSTPONED)
    began, called, others = rig.monotonic, 1, []
    for _ in range(601):
        rig.advance(1.0)
        for name in rig.evictions():
            rig.settle(name, Outcome.POSTPONED)
            called += name == "a"
            others += [rig.monotonic - began] * (name != "a")
    assert called > 5
    assert others == [600.0]


def test_a_pod_that_a_webhook_keeps_is_missing_although_it_may_stay_or_its_next_call_fails():
    rig = short_of_one()
    rig.settle("a", Outcome.POSTPONED)
    until = rig.monotonic + 600
    rig.advance(10)
    rig.settle("a", Outcome.FAILED)
    assert rig.world.claims.evictees["uid-a"].missing_until == until
    rig.pod("a", gt("900"), owner=owner(), ready=True)
    rig.out = []
    rig.advance(589)
    assert rig.evictions() == []
    rig.advance(2)
    assert rig.evictions() == ["b"]
    assert "uid-a" not in rig.world.claims.evictees


# -- labels of workloads -----------------------------------------------------------------------------------------------

BY_APP = PerWorkload("100%", label="app")
DB = {"app": "db"}


def database(given: Policy, *, templates: bool = True) -> Rig:
    """Three StatefulSets of one replica each on n1, of one database."""
    rig = Rig(given)
    for name in "abc":
        member(rig, name, templates=templates)
    return rig


def member(rig: Rig, name: str, pod: str = "", *, templates: bool = True, **more) -> None:
    of = owner(name, "StatefulSet")
    rig.process(events.WorkloadSeen(("shop", of.uid), 1, (("app", "db"),) if templates else ()))
    rig.pod(pod or name, owner=of, labels=DB, ready=True, **more)


def test_of_three_stateful_sets_with_one_label_one_pod_is_missing_at_a_time():
    rig = database(limited(per_workload=BY_APP))
    called, gone = spoil(rig), list[str]()
    while called:
        [name] = called
        evicted(rig, name)
        assert rig.evictions() == [], "the next waits for a Ready replacement"
        gone.append(name)
        member(rig, name, f"new-{name}", node="n2")
        called = rig.evictions()
    assert sorted(gone) == list("abc")


def test_without_the_label_all_three_leave_at_once():
    assert len(spoil(database(limited(per_workload=ONE)))) == 3


def test_an_edit_that_names_the_label_counts_the_pods_that_are_known():
    rig = database(limited(per_workload=ALL_PODS, spec={"paused": True}), templates=False)
    spoil(rig)
    rig.change(limited(per_workload=BY_APP))
    assert len(rig.evictions()) == 1


def test_a_label_that_the_pods_get_later_counts():
    rig = Rig(limited(per_workload=BY_APP))
    for name in "abc":
        rig.pod(name, owner=owner(name, "StatefulSet"), ready=True)
    for name in "abc":
        rig.pod(name, owner=owner(name, "StatefulSet"), labels=DB, ready=True)
    assert len(spoil(rig)) == 1


def test_a_pod_with_a_hard_deadline_does_not_wait_for_others_of_its_label():
    rig = database(limited(per_workload=BY_APP, spec={"taints": [{"key": "sla"}], "reclaim": {"deadlineSeconds": 120}}))
    assert len(spoil(rig)) == 3


def test_evictions_by_a_policy_without_the_label_count():
    rig = database(limited(per_workload=BY_APP))
    rig.change(limited("other", spec={"taints": [{"key": "spot"}]}), limited(per_workload=BY_APP))
    member(rig, "d", node="n2")
    rig.node("n2", "spot=1")
    assert rig.evictions() == ["d"]
    assert spoil(rig) == []


# -- workloads ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ready", "limit", "as_seen"), [(True, ONE, False), (False, ONE, True), (False, NO_LIMIT, False)]
)
def test_a_pod_that_is_not_ready_goes_only_if_it_still_is_not(ready, limit, as_seen):
    """A stream may be late: what has become Ready counts for its workload."""
    rig = Rig(limited(per_workload=limit))
    rig.wants(owner(), 1)
    rig.pod("a", owner=owner(), ready=ready)
    rig.node("n1", "sla=940")
    [order] = rig.take(commands.Evict)
    assert order.as_seen is as_seen


def test_a_pod_that_is_not_ready_and_changes_all_the_time_goes_in_the_end():
    rig = Rig(limited(per_workload=ONE))
    rig.wants(owner(), 1)
    rig.pod("a", owner=owner())
    rig.node("n1", "sla=940")
    for _ in range(MAX_CONFLICTS):
        [order] = rig.take(commands.Evict)
        assert order.as_seen
        rig.settle("a", Outcome.NOT_SENT, message="the object has been modified")
        rig.pod("a", owner=owner())
        rig.advance(2)
    [order] = rig.take(commands.Evict)
    assert not order.as_seen


def test_a_pod_whose_call_may_have_been_carried_out_counts_though_its_labels_change():
    rig = short_of_one()
    rig.settle("a", Outcome.FAILED)
    rig.pod("a", owner=owner(), labels={"new": "label"}, ready=True)
    rig.advance(0.25)
    assert "b" not in rig.evictions()


def test_new_labels_of_a_foreign_controllers_pod_replace_no_pod():
    rig = crowd(limited(per_workload=ONE), *"abcd", of=FOREIGN)
    spoil(rig)
    evicted(rig, "a")
    rig.pod("c", owner=FOREIGN, labels={"new": "label"}, ready=True)
    assert rig.evictions() == []


# -- nodes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("others", [{}, {"uid-stranger": "n2"}], ids=["not listed", "on another node"])
def test_terminating_pods_that_a_list_does_not_have_there_count_no_more(others):
    rig = crowd(limited(per_node=PerNode(1)), "a")
    rig.process(events.PodGone("uid-stranger", "n1", rig.wall + 30, rig.make_pod("stranger")))
    assert spoil(rig) == []
    rig.process(events.PodsListed({"uid-a": "n1"} | others))
    assert rig.evictions() == ["a"]


def test_pods_that_terminate_and_need_not_leave_do_not_count():
    """Else a tenant that deletes and replaces its pods would keep others on their node."""
    rig = crowd(limited(per_node=PerNode(1)), "a")
    rig.process(events.PodGone("uid-stranger", "n1", rig.wall + 30, rig.make_pod("stranger", gt("900"))))
    assert spoil(rig) == ["a"]


# -- budgets -----------------------------------------------------------------------------------------------------------


def test_a_pod_that_is_not_ready_any_more_is_retried():
    rig = crowd(limited(), "a")
    rig.budget(allowed=0, healthy_enough=True)
    assert spoil(rig) == []
    rig.pod("a", owner=owner(), ready=False)
    assert rig.evictions() == ["a"]


def test_a_budget_that_holds_is_reported_once():
    rig = crowd(limited(), "a")
    rig.budget(allowed=0)
    rig.out = []
    rig.node("n1", "sla=940")
    [told] = [one for one in rig.out if isinstance(one, commands.Held)]
    assert (told.reason, told.until) == ("PodDisruptionBudget shop/pdb allows no disruption now", None)
    rig.out = []
    rig.budget(allowed=0)
    rig.advance(60)
    assert rig.take(commands.Held) == []


def test_a_budget_that_holds_is_reported_once_even_if_the_node_is_read_between():
    rig = crowd(limited(), "a", timings=Timings(max_silence=5.0))
    rig.budget(allowed=0)
    node = rig.node("n1", "sla=940")
    rig.advance(6)
    rig.out = []
    rig.pod("a", owner=owner(), ready=False)
    assert rig.claim("a").limit == VIEW
    rig.process(events.NodeChecked("n1", node.resource_version, REACHED))
    assert rig.claim("a").limit == BUDGET
    assert rig.take(commands.Held) == []


THEN_DELETE = {"eviction": {"method": "EvictThenDelete", "pdbTimeoutSeconds": 60}}


def deletions(rig: Rig) -> list[tuple[str, bool]]:
    return [(one.pod.name, one.delete) for one in rig.take(commands.Evict)]


def test_a_pod_that_another_limit_holds_is_not_deleted_for_that_although_the_api_server_refused_it_once():
    rig = crowd(limited(spec=THEN_DELETE, per_node=PerNode(1)), "a")
    rig.budget(allowed=1)
    spoil(rig)
    rig.settle("a", Outcome.BLOCKED)
    rig.gone("stranger", until=rig.wall + 500)
    rig.budget(allowed=1)
    rig.advance(100)
    rig.gone("stranger")
    assert deletions(rig) == [("a", False)]


def test_a_pod_that_its_budget_keeps_is_reported_with_the_time_of_its_deletion():
    rig = crowd(limited(spec=THEN_DELETE), "a")
    rig.budget(allowed=0)
    rig.node("n1", "sla=940")
    assert [one.until for one in rig.take(commands.Held)] == [rig.wall + 60]


def slowly_pressing(**budget) -> Rig:
    """A pod that a budget blocks, under a policy that may evict the next pod in 50 seconds only."""
    rig = crowd(limited(spec=THEN_DELETE, evictions_per_second=0.02, burst=1), "a")
    rig.budget(allowed=0, **budget)
    assert spoil(rig) == []
    rig.pod("b", namespace="other")
    assert rig.evictions() == ["b"]
    return rig


def assert_deleted_in(rig: Rig, seconds: float) -> None:
    rig.advance(seconds - 0.25)
    assert deletions(rig) == []
    rig.advance(0.25)
    assert deletions(rig) == [("a", True)]


def test_the_time_starts_again_even_if_no_call_was_tried_meanwhile():
    rig = slowly_pressing(healthy_enough=True)
    rig.advance(40)
    rig.pod("a", owner=owner(), ready=False)
    rig.advance(5)
    rig.pod("a", owner=owner(), ready=True)
    assert_deleted_in(rig, 60)


def test_the_time_starts_again_when_no_budget_selects_the_pod_meanwhile():
    rig = slowly_pressing()
    rig.advance(40)
    rig.pod("a", owner=owner(), ready=True, labels={"app": "free"})
    rig.budget(allowed=0, app="web")
    rig.advance(5)
    rig.budget(allowed=0)
    assert_deleted_in(rig, 60)


def test_a_pod_whose_deadline_moves_starts_its_blocked_time_again():
    rig = Rig(limited(spec=THEN_DELETE))
    rig.budget(allowed=0)
    rig.node("n1", "sla=940", added=START)
    rig.pod("a", exists(toleration_seconds=10), bound_at=START, ready=True)
    rig.advance(11)
    rig.pod("a", exists(toleration_seconds=200), bound_at=START, ready=True)
    rig.budget(allowed=1)
    rig.advance(200)
    assert deletions(rig) == [("a", False)]


def test_another_timeout_holds_for_those_that_are_held():
    rig = crowd(limited(spec=THEN_DELETE), "a")
    rig.budget(allowed=0)
    spoil(rig)
    rig.advance(20)
    rig.change(limited(spec={"eviction": {"method": "EvictThenDelete", "pdbTimeoutSeconds": 30}}))
    rig.advance(10)
    assert deletions(rig) == [("a", True)]


# -- several policies --------------------------------------------------------------------------------------------------


def hard(given: Policy) -> Policy:
    return msgspec.structs.replace(given, reclaim=Reclaim(120))


def keyed(name: str, key: str, **limits) -> Policy:
    return limited(name, spec={"taints": [{"key": key}]}, **limits)


def test_a_hard_deadline_does_not_wait_behind_softer_ones_that_a_budget_holds():
    rig = Rig(keyed("soft", "s"), hard(keyed("hard", "h")))
    rig.budget(allowed=0)
    rig.node("n1", "s=1", added=START - 500)
    rig.node("n2", "h=1")
    rig.pod("a", node="n1", ready=True)
    rig.pod("z", node="n2", grace_seconds=100, ready=True)
    rig.advance(30)
    rig.budget(allowed=1)
    assert rig.evictions() == ["z"]


def test_a_policy_that_may_not_evict_holds_back_no_others_of_a_budget():
    rig = Rig(keyed("x", "x", evictions_per_second=0.001, burst=1), keyed("y", "y"))
    rig.budget(allowed=0)
    for node, taint in (("n0", "x=1"), ("n1", "x=1"), ("n2", "y=1")):
        rig.node(node, taint)
    rig.pod("a", node="n1", ready=True)
    rig.pod("b", node="n2", ready=True)
    rig.pod("elsewhere", node="n0", namespace="office", ready=True)
    assert rig.evictions() == ["elsewhere"]
    rig.budget(allowed=1)
    assert rig.evictions() == ["b"]


def test_refused_policies_leave_the_turns_of_a_step_to_another_one():
    never = msgspec.structs.replace(keyed("x", "x"), windows=(Window("0 0 1 1 *", 60),))
    rig = Rig(never, keyed("y", "y"), slice_size=1)
    for node, taint in (("n1", "x=1"), ("n2", "y=1")):
        rig.node(node, taint)
        rig.pod(f"on-{node}", node=node)
    assert rig.evictions() == ["on-n2"]


# -- changes while held -----------------------------------------------------------------------------------------------


def test_pods_held_by_a_policy_are_retried_when_it_changes():
    rig = short_of_one()
    rig.change(limited(per_workload=PerWorkload(3)))
    assert rig.evictions() == ["b", "c"]


def test_a_parked_pod_lets_the_next_of_its_key_be_asked():
    rig = Rig(limited())
    rig.budget(allowed=0)
    for name, node in (("a", "n1"), ("b", "n2")):
        rig.pod(name, ready=True, node=node)
        rig.node(node, "sla=940")
    rig.feed(events.NodeUnreadable("n1"))
    rig.budget(allowed=2)
    assert rig.view.claims("uid-a")[0].detail == NODE_CHECK
    assert rig.evictions() == ["b"]


# -- memory ------------------------------------------------------------------------------------------------------------


def test_an_eviction_that_its_budget_never_counts_holds_the_next_one_for_some_seconds_only():
    """The API server saw a pod that is not Ready by then, so the status of the budget does not change."""
    rig = Rig(limited())
    rig.budget(allowed=1)
    for name in "ab":
        rig.pod(name, ready=True)
    rig.node("n1", "sla=1")
    assert rig.evictions() == ["a"]
    rig.settle("a")
    rig.gone("a")
    rig.advance(UNSEEN_SECONDS - 1, step=0.5)
    assert rig.evictions() == []
    rig.advance(1, step=0.5)
    assert rig.evictions() == ["b"]


# -- effects of answers on other calls ---------------------------------------------------------------------------------


def test_no_call_is_made_while_the_api_server_requests_a_pause():
    rig = Rig(limited()).with_pod("sla=940")
    rig.settle("a", Outcome.THROTTLED, retry_after=30.0)
    rig.pod("b")
    assert rig.evictions() == ["a"]
    assert rig.claim("b").limit == CALLS
    rig.advance(30)
    assert "b" in rig.evictions()


# -- the spread of a workload ------------------------------------------------------------------------------------------


def test_pods_that_leave_do_not_count_for_their_domain():
    rig = Rig(limited())
    by_zone = (SpreadConstraint(ZONE, LabelSelector()),)
    for node in "ab":
        rig.node(node, labels={ZONE: node})
        for number in range(2):
            rig.pod(f"{node}{number}", node=node, owner=owner(), spread=by_zone)
    taints = rig.make_taints("sla=940")
    rig.process(*(events.NodeSeen(Node(name, f"uid-{name}", {ZONE: name}, taints, rig.version())) for name in "ab"))
    assert rig.evictions() == ["a0", "b0", "a1", "b1"]


def test_nothing_is_kept_of_pods_that_are_gone_before_they_are_deleted_in_spite_of_a_budget():
    rig = Rig(limited(spec=THEN_DELETE))
    rig.budget(allowed=0)
    rig.node("n1", "sla=940")
    for name in ("a", "b"):
        rig.pod(name, gt(), ready=True)
    rig.gone("a")
    assert rig.machine.wake_after(rig.now) == pytest.approx(60)
    rig.gone("b")
    assert rig.machine.wake_after(rig.now) is None
