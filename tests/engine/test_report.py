"""The reported status of a policy: limits, their pods and times, budgets, zones and the guard."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.rig import REACHED, START, ZONE, Rig, exists, gt, limited, owner
from taintwarden.engine import commands, events
from taintwarden.engine.limit_settings import GuardSettings, PerNode, PerWorkload, RateLimit, UnhealthyTaint, ZoneHealth
from taintwarden.engine.machine import ClaimView, Phase, PolicyReport, Timings
from taintwarden.engine.machine.queues import rank_of
from taintwarden.engine.machine.reports import STAYING_AT_ONCE
from taintwarden.engine.model import Profile
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import Policy, Window
from taintwarden.engine.reported_status import (
    MAX_MESSAGE_CHARACTERS,
    MAX_STAYING,
    MAX_ZONES,
    NEXT_PODS,
    BlockedBudget,
    LimitStatus,
    PodState,
    ReportedStatus,
    StayingPods,
    ZoneStatus,
)
from taintwarden.engine.rfc3339 import at, until
from taintwarden.engine.selectors import LabelSelector

ONE = PerWorkload(1)


def report(rig: Rig, name: str = "p") -> PolicyReport:
    return next(one for one in rig.report() if one.policy.name == name)


def status_of(rig: Rig, name: str = "p") -> ReportedStatus:
    """The status, whose limits have no messages."""
    found = report(rig, name).status
    bare = tuple(msgspec.structs.replace(one, message="") for one in found.limits)
    return msgspec.structs.replace(found, limits=bare)


def held(limit: str, pods: int, since: float, ends: float | None) -> tuple[LimitStatus, ...]:
    return (LimitStatus(limit, pods, at(since), None if ends is None else until(ends)),)


def limits(rig: Rig) -> list[tuple[str, int]]:
    return [(one.limit, one.pods) for one in status_of(rig).limits]


def crowd(given: Policy, *names: str, **options) -> Rig:
    """Ready pods of one workload that have to leave now."""
    rig = Rig(given, **options)
    rig.wants(owner(), len(names))
    for name in names:
        rig.pod(name, owner=owner(), ready=True)
    rig.node("n1", "sla=940")
    return rig


# -- limits ------------------------------------------------------------------------------------------------------------


def test_since_when_is_the_oldest_pods():
    rig = crowd(limited(per_workload=ONE), "a", "b")
    rig.wants(owner(), 3)
    rig.pod("c", owner=owner(), node="n2", ready=True)
    rig.advance(10)
    rig.node("n2", "sla=940")
    assert status_of(rig).limits[0] == held("workload", 2, START, None)[0]


def test_pods_whose_node_is_read_again_wait_since_they_were_due():
    rig = crowd(limited(guard=GuardSettings(min_pods=1, settle_seconds=0)), *"abcd", timings=Timings(max_silence=5.0))
    node = rig.node("n1", "sla=940")
    rig.advance(10)
    rig.pod("e", owner=owner(), ready=True)
    rig.process(events.NodeChecked("n1", node.resource_version, REACHED))
    assert status_of(rig).limits == held("guard", 5, START, None)


def test_pods_whose_wave_may_still_grow_wait_for_their_guard():
    rig = crowd(limited(guard=GuardSettings(min_pods=9, settle_seconds=300)), *"abcd")
    due = rig.wall
    rig.advance(10)
    assert status_of(rig).limits == held("guard", 4, due, due + 300)
    rig.pod("later", node="n2")
    rig.node("n2", "sla=940")
    assert status_of(rig).limits == held("guard", 5, due, due + 300), "until the first may go"


def test_the_message_of_a_limit_is_reported():
    [limit] = crowd(limited(per_workload=ONE), *"ab").report()[0].status.limits
    assert limit.message.endswith("is missing or being evicted, and at most 1 may be")


NO_FAILURES = (Outcome.NOT_SENT, Outcome.ASKED, Outcome.NOT_REPLACED)


def test_a_pod_whose_deadline_is_ahead_waits_for_nothing_else():
    rig = Rig(limited(guard=GuardSettings(min_pods=9, settle_seconds=300))).with_pod(
        "sla=940", gt(violation_grace_seconds=60)
    )
    rig.advance(10)
    assert status_of(rig).limits == ()


def test_the_time_for_which_a_limit_held_is_reported_after_a_read_of_the_node():
    rig = crowd(limited(per_workload=ONE), "a", "b", timings=Timings(max_silence=5.0))
    node = rig.node("n1", "sla=940")
    rig.settle("a")
    rig.gone("a")
    rig.out = []
    rig.advance(60)
    rig.pod("c", owner=owner(), node="n2", ready=True)
    rig.process(events.NodeChecked("n1", node.resource_version, REACHED))
    [decided] = rig.take(commands.Decided)
    assert (decided.limit, decided.waited) == ("workload", 60.0)


@pytest.mark.parametrize("outcome", [Outcome.DENIED, Outcome.BLOCKED])
def test_a_pod_that_is_due_later_than_at_its_failed_call_is_not_blocked_by_it(outcome):
    rig = crowd(limited(), "a")
    rig.settle("a", outcome)
    assert report(rig).blocked_by == {outcome.value: 1}
    rig.pod("a", gt(violation_grace_seconds=600))
    assert report(rig).blocked_by == {}


@pytest.mark.parametrize("outcome", [one for one in Outcome if one.row.why and one not in NO_FAILURES])
def test_a_pod_whose_call_failed_is_reported_while_the_next_one_is_not_answered(outcome):
    rig = crowd(limited(), "a")
    first = report(rig)
    assert (first.status.limits, first.blocked_by, first.status.next_pods[0].limit) == ((), {}, "")
    rig.budget("mine", 1)
    rig.settle("a", outcome, message="why")
    before = report(rig)
    rig.advance(100)
    assert rig.phase("a") is Phase.IN_FLIGHT
    now = report(rig)
    assert now.blocked_by == before.blocked_by
    assert now.status.blocked == before.status.blocked
    assert now.status.blocked_budgets == before.status.blocked_budgets
    assert now.status.next_pods[0].limit == "failing"
    assert rig.view.claims("uid-a")[0].outcome is outcome


def test_the_limit_that_holds_the_most_is_first():
    rig = Rig(limited(per_workload=ONE, per_namespace=RateLimit(1.0)))
    rig.wants(owner(), 2)
    for name in "ab":
        rig.pod(name, owner=owner(), ready=True)
    for name in "wxyz":
        rig.pod(name, namespace="office")
    rig.node("n1", "sla=940")
    assert limits(rig) == [("namespace-rate", 3), ("workload", 1)]
    assert status_of(rig).limited_by == "namespace-rate"


def test_a_guard_that_trips_is_reported_for_pods_that_other_limits_held_before():
    given = limited(guard=GuardSettings(min_pods=2, settle_seconds=0), per_node=PerNode(1))
    rig = crowd(given, "a", "b")
    for _ in "ab":
        rig.save()
    assert limits(rig) == [("node", 1)]
    for name in "cdef":
        rig.pod(name, node="n2")
    rig.node("n2", "sla=940")
    rig.advance(5)
    assert limits(rig) == [("guard", 5), ("failing", 1)]


def test_a_pod_whose_lane_fails_does_not_wait_for_the_record_of_its_guard():
    rig = crowd(limited(guard=GuardSettings(min_pods=9, settle_seconds=0)), "a")
    rig.save()
    rig.settle("a", Outcome.WEBHOOK_FAILED)
    rig.pod("b", ready=True)
    rig.node("n1", "sla=930")
    assert limits(rig) == [("failing", 2)]


def test_a_closed_window_is_reported_with_its_end():
    given = msgspec.structs.replace(limited(), windows=(Window("0 0 1 1 *", 60),))
    rig = crowd(given, "a")
    assert status_of(rig).limits == held("window", 1, START, 1_704_067_200.0)


def test_a_blind_machine_reports_that_it_does_not_know():
    rig = crowd(limited(per_workload=ONE), *"abc")
    rig.feed(events.ViewChanged("nodes", live=False))
    assert limits(rig) == [("view", 2)]


def test_a_window_that_never_opens_has_no_end():
    rig = crowd(msgspec.structs.replace(limited(), windows=(Window("0 2 */20 * 1L", 60),)), "a")
    assert status_of(rig).limits == held("window", 1, START, None)


def test_of_a_long_message_beginning_and_end_are_reported():
    rig = crowd(limited(), "a")
    rig.settle("a", Outcome.REFUSED, message="failed calling webhook: " + "x" * 1_000 + ": unknown authority")
    (pod,), (limit,) = report(rig).status.next_pods, report(rig).status.limits
    assert pod.message == limit.message
    assert (len(limit.message), limit.message[-19:]) == (MAX_MESSAGE_CHARACTERS, ": unknown authority")
    assert "failed calling webhook: x" in limit.message


def test_a_call_without_an_answer_for_a_second_is_a_limit():
    rig = crowd(limited(), "a")
    rig.advance(1)
    (pod,), (limit,) = report(rig).status.next_pods, report(rig).status.limits
    assert (limit.limit, limit.pods, limit.message) == ("failing", 1, pod.message)
    assert pod.message == f"requested at {at(START)}, the API server has not answered"


# -- budgets -----------------------------------------------------------------------------------------------------------


def test_budgets_are_reported_with_the_number_of_pods_each_holds():
    rig = Rig(limited())
    rig.budget("web", app="web")
    rig.budget("db", app="db")
    for name, app in (("a", "web"), ("b", "db"), ("c", "db")):
        rig.pod(name, labels={"app": app}, ready=True)
    rig.node("n1", "sla=940")
    assert status_of(rig).blocked_budgets == (BlockedBudget("shop", "db", 2), BlockedBudget("shop", "web", 1))
    assert (status_of(rig).blocked, report(rig).blocked_by) == (3, {"blocked": 3})


def test_budgets_that_hold_as_many_are_sorted_by_name():
    rig = Rig(limited())
    for name, app in (("a", "web"), ("b", "db")):
        rig.budget(app, app=app)
        rig.pod(name, labels={"app": app}, ready=True)
    rig.node("n1", "sla=940")
    assert status_of(rig).blocked_budgets == (BlockedBudget("shop", "db", 1), BlockedBudget("shop", "web", 1))


def test_several_budgets_of_a_pod_are_all_reported():
    rig = Rig(limited())
    rig.budget("one", allowed=5)
    rig.budget("two", allowed=5)
    rig.pod("a", ready=True)
    rig.node("n1", "sla=940")
    assert status_of(rig).blocked_budgets == (BlockedBudget("shop", "one", 1), BlockedBudget("shop", "two", 1))
    assert (status_of(rig).blocked, report(rig).blocked_by) == (1, {"blocked": 1})


def test_several_budgets_of_a_pod_are_reported_even_if_only_the_api_server_knows():
    """Its answer comes before the watch of budgets does, and the pod waits for a minute."""
    rig = Rig(limited()).with_pod("sla=940", ready=True)
    rig.settle("a", Outcome.MISCONFIGURED, message="This pod has more than one PodDisruptionBudget")
    assert limits(rig) == [("budget", 1)]
    assert (status_of(rig).blocked, report(rig).blocked_by) == (1, {"misconfigured": 1})


def test_a_budget_that_the_api_server_named_is_reported():
    rig = Rig(limited())
    rig.budget(allowed=1)
    rig.pod("a", ready=True)
    rig.node("n1", "sla=940")
    rig.settle("a", Outcome.BLOCKED)
    assert status_of(rig).blocked_budgets == (BlockedBudget("shop", "pdb", 1),)
    assert status_of(rig).blocked == 1


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.THROTTLED, Outcome.REFUSED])
def test_a_budget_is_not_reported_for_a_call_that_it_did_not_block(outcome):
    rig = Rig(limited())
    rig.budget(allowed=1)
    rig.pod("a", ready=True)
    rig.node("n1", "sla=940")
    rig.settle("a", outcome)
    assert status_of(rig).blocked_budgets == ()
    assert report(rig).blocked_by == {outcome.value: 1}


# -- zones -------------------------------------------------------------------------------------------------------------


def test_zones_are_sorted_by_name():
    rig = Rig(limited(zone_health=ZoneHealth((UnhealthyTaint("sla", "Lt", "950"),))))
    rig.node("fine", labels={ZONE: "b"})
    for number in range(3):
        rig.node(f"n{number}", "sla=940", labels={ZONE: "a"})
    assert status_of(rig).zones == (ZoneStatus("a", "Full", 3, 3), ZoneStatus("b", "Normal", 1, 0))


def test_of_many_zones_those_in_trouble_are_reported():
    rig = Rig(limited(zone_health=ZoneHealth((UnhealthyTaint("sla", "Lt", "950"),))))
    for number in range(MAX_ZONES + 9):
        for node in "abc":
            rig.node(f"n{number}{node}", *(["sla=940"] if number == 55 else []), labels={ZONE: f"z{number:02}"})
    zones = status_of(rig).zones
    assert (len(zones), [one.zone for one in zones if one.state == "Full"]) == (MAX_ZONES, ["z55"])


def test_released_pods_are_counted_among_those_that_are_due():
    health = ZoneHealth((UnhealthyTaint("sla", "Lt", "950"),))
    rig = Rig(limited(zone_health=health, guard=GuardSettings(max_percent=99, min_pods=50)))
    for number in range(3):
        rig.node(f"n{number}", "sla=940")
    rig.pod("a")
    rig.process(events.GuardReset("p"))
    rig.answer(commands.ClearGuardReset)
    rig.wake()
    rig.pod("b")
    assert (report(rig).all_nodes_unhealthy, report(rig).due, report(rig).released) == (True, 2, 1)


def test_with_reclaim_zones_have_no_health():
    rig = Rig(
        limited(
            zone_health=ZoneHealth((UnhealthyTaint("sla", "Lt", "950"),)), spec={"reclaim": {"deadlineSeconds": 900}}
        )
    )
    for number in range(3):
        rig.node(f"n{number}", "sla=940", labels={ZONE: "a"})
    assert (status_of(rig).zones, report(rig).all_nodes_unhealthy) == ((), False)


# -- the guard ---------------------------------------------------------------------------------------------------------


def test_a_tripped_guard_is_reported_with_the_pods_that_would_leave_now():
    rig = crowd(limited(guard=GuardSettings(min_pods=1, settle_seconds=0)), *"abcd")
    before = report(rig).guard
    rig.pod("e", owner=owner(), ready=True)
    now = report(rig).guard
    assert (before.record.tripped_at, before.due, now.due, now.record.counted) == (START, 4, 5, (("shop", 5),))


# -- next --------------------------------------------------------------------------------------------------------------


def test_a_pod_is_scheduled_and_then_waits():
    rig = Rig(limited(per_workload=ONE, spec={"timing": {"violationGraceSeconds": 10}}), leading=False).with_pod(
        "sla=940"
    )
    assert [one.state for one in status_of(rig).next_pods] == [PodState.SCHEDULED]
    rig.advance(10)
    assert [one.state for one in status_of(rig).next_pods] == [PodState.WAITING]


def test_only_a_budget_blocks_a_pod():
    rig = crowd(limited(per_workload=ONE), "a", "b")
    assert [(one.limit, one.state, one.attempts) for one in status_of(rig).next_pods] == [
        ("", PodState.WAITING, 0),
        ("workload", PodState.WAITING, 0),
    ]
    rig = Rig(limited())
    rig.budget("mine")
    rig.pod("a", ready=True)
    rig.node("n1", "sla=940")
    [blocked] = status_of(rig).next_pods
    assert (blocked.limit, blocked.state) == ("budget", PodState.BLOCKED)


PODS = st.tuples(st.integers(-1, 1), st.integers(550, 650), st.sampled_from(["n1", "n2"]))
"""Priority, seconds until the deadline, node."""


@given(st.lists(PODS, max_size=30))
def test_the_next_pods_are_the_first_of_all_claims(pods: list[tuple[int, int, str]]):
    rig = Rig(limited(spec={"timing": {"violationGraceSeconds": 600}}))
    for number, (priority, seconds, node) in enumerate(pods):
        rig.pod(f"p{number}", gt(violation_grace_seconds=seconds), priority=priority, node=node)
    rig.node("n1", "sla=940")
    rig.advance(20)
    rig.node("n2", "sla=940")
    claims = list(rig.view.all_claims())
    expected = sorted(claims, key=lambda one: (_place(one), one.due_at, one.pod.uid))[:NEXT_PODS]
    assert [one.name for one in status_of(rig).next_pods] == [one.pod.name for one in expected]


def _place(claim: ClaimView) -> tuple[float, ...]:
    return rank_of(claim.pod.shared, claim.policy, claim.due_at, claim.verdict.hard_at)


# -- many claims -------------------------------------------------------------------------------------------------------


def finish(slices) -> PolicyReport:
    """The report, without anything in between."""
    while True:
        try:
            next(slices)
        except StopIteration as done:
            return done.value[0]


def test_a_report_in_slices_says_the_same():
    rig = crowd(limited(evictions_per_second=0.5, burst=1), *"abcdefg")
    slices = rig.view.report_in_slices(rig.now, claims_at_once=2)
    assert next(slices) is None
    found = finish(slices)
    assert found == report(rig)
    assert (found.status.pending, found.status.limits[0].pods) == (7, 6)


def test_a_pod_that_leaves_between_two_slices_is_not_counted():
    rig = crowd(limited(per_workload=ONE), *"abcde")
    slices = rig.view.report_in_slices(rig.now, claims_at_once=2)
    next(slices)
    for name in "de":
        rig.gone(name)
    assert finish(slices).status.pending == 3


def test_a_pod_that_was_counted_and_left_is_not_listed_as_next():
    rig = crowd(limited(per_workload=ONE), *"abcde")
    slices = rig.view.report_in_slices(rig.now, claims_at_once=2)
    next(slices)
    rig.node("n1")
    assert finish(slices).status.next_pods == ()


def test_a_policy_that_comes_between_two_slices_is_reported_without_counts():
    rig = crowd(limited(name="p"), *"abcde")
    slices = rig.view.report_in_slices(rig.now, claims_at_once=2)
    next(slices)
    rig.change(limited(name="a"), limited(name="p"))
    found = finish(slices)
    assert (found.policy.name, found.status.pending) == ("a", 0)


def test_nodes_of_a_policy_are_reported_before_they_are_evaluated_again():
    rig = crowd(limited(), "a")
    rig.feed(events.PoliciesChanged((limited(),)))
    found = report(rig)
    assert (found.status.selected_nodes, found.devices) == (1, None)


# -- what stays --------------------------------------------------------------------------------------------------------


def staying(rig: Rig, name: str = "p") -> dict[str, int]:
    return {one.reason: one.pods for one in status_of(rig, name).staying}


def counted_afresh(rig: Rig) -> dict[str, int]:
    for state in rig.world.cluster.nodes.values():
        state.staying = None
    return staying(rig)


def test_pods_that_stay_on_tainted_nodes_are_counted_by_reason():
    other = limited("q", spec={"nodeSelector": {"matchLabels": {"pool": "b"}}})
    taints = [{"key": "sla"}, {"key": "other"}]
    rig = Rig(limited(spec={"podSelector": {"matchLabels": {"app": "web"}}, "taints": taints}), other)
    web = {"labels": {"app": "web"}}
    rig.node("n1", "sla=980")
    rig.node("n2")
    rig.pod("a", gt(), **web)
    rig.pod("b", gt(), **web)
    rig.pod("c", do_not_evict=True, **web)
    rig.pod("d", **web)
    rig.pod("e")
    rig.pod("f", gt(), node="n2", **web)
    assert staying(rig) == {"tolerates": 2, "opted out": 1, "not selected by podSelector": 1}
    assert staying(rig, "q") == {}


def test_pod_that_leaves_by_another_policy_does_not_count_as_staying():
    rig = Rig(limited("a"), limited())
    rig.node("n1", "sla=980")
    rig.pod("a", ready=True)
    assert (staying(rig, "a"), staying(rig)) == ({}, {})


def test_pod_that_would_leave_by_one_taint_does_not_count_as_staying_by_another():
    rig = Rig(limited(spec={"mode": "DryRun"}))
    rig.node("n1", "other=1", "sla=980")
    rig.pod("a", gt())
    assert staying(rig) == {}


CHANGES: dict[str, Callable[[Rig], object]] = {
    "taint": lambda rig: rig.node("n1", "sla=900"),
    "no-taint": lambda rig: rig.node("n1"),
    "new-pod": lambda rig: rig.pod("c", gt()),
    "gone": lambda rig: rig.gone("a"),
    "opted-out": lambda rig: rig.pod("a", gt(), do_not_evict=True),
    "profile": lambda rig: rig.process(events.ProfileSeen(Profile("shop", "all", LabelSelector(), (exists(),)))),
    "policy": lambda rig: rig.change(limited(spec={"exclude": {"namespaces": ["shop"]}})),
    "labels": lambda rig: rig.process(events.NamespaceSeen("shop", {"team": "a"})),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_pods_that_stay_are_counted_again_after_a_change(change):
    rig = Rig(limited(spec={"namespaceSelector": {"matchLabels": {"team": "a"}}}))
    rig.node("n1", "sla=980")
    for name in ("a", "b"):
        rig.pod(name, gt())
    before = staying(rig)
    assert before == {"not selected by namespaceSelector": 2}
    rig.process(events.NamespaceSeen("shop", {"team": "a"}))
    assert staying(rig) == {"tolerates": 2}
    change(rig)
    kept = staying(rig)
    assert kept == counted_afresh(rig)


def test_pods_that_stay_by_any_profile_are_counted_together():
    rig = Rig(limited())
    rig.node("n1", "sla=980")
    for name in ("a", "b"):
        rig.pod(name, namespace=name)
        rig.process(events.ProfileSeen(Profile(name, name, LabelSelector(), (exists(),))))
    assert staying(rig) == {"profile": 2}


def test_the_most_frequent_reasons_to_stay_are_reported():
    names = [f"q{number:02}" for number in range(MAX_STAYING + 3)]
    rig = Rig(
        *(limited(name, spec={"taints": [{"key": name}]}) for name in names), limited(spec={"taints": [{"key": "*"}]})
    )
    for name in names:
        rig.node(name, f"{name}=1")
        rig.pod(name, exists(name), node=name)
    rig.pod("more", exists("q14"), node="q14")
    found = status_of(rig).staying
    assert (len(found), found[0]) == (MAX_STAYING, StayingPods("shadowed by policy q14", 2))


def test_recount_of_pods_that_stay_is_made_in_slices():
    rig = Rig(limited())
    for number in range(4):
        rig.node(f"n{number}", "sla=980")
        for pod in range(STAYING_AT_ONCE // 2):
            rig.feed(events.PodSeen(rig.make_pod(f"p{number}-{pod}", gt(), node=f"n{number}")))
    assert len(list(rig.view.report_in_slices(rig.now))) == 1
    assert len(list(rig.view.report_in_slices(rig.now))) == 0
