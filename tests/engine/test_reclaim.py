"""Nodes that will be gone: by when pods go, with how much time to stop, and who does not make it."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from engine.rig import START, Rig, exists, limited
from taintwarden.engine.machine import Outcome, commands, events
from taintwarden.engine.machine.reclaims import REMEMBERED_NODES, REMEMBERED_SECONDS
from taintwarden.engine.model import Node, Policy, Reclaim
from taintwarden.engine.reported_status import ReclaimStatus
from taintwarden.engine.rfc3339 import at

SECONDS = 120


def spot(name: str = "p", seconds: int = SECONDS, spec: dict | None = None, **limits) -> Policy:
    return msgspec.structs.replace(limited(name, spec=spec, **limits), reclaim=Reclaim(seconds))


def told(rig: Rig, kind: type) -> list:
    """The commands of a kind so far, none forgotten."""
    return [one for one in rig.out if isinstance(one, kind)]


def warn(rig: Rig, name: str = "n1") -> None:
    """The node will be gone."""
    rig.node(name, "spot=1", added=START)


def graces(rig: Rig) -> list[int | None]:
    return [one.grace_period_seconds for one in told(rig, commands.Evict)]


# -- when --------------------------------------------------------------------------------------------------------------


def test_the_policys_grace_period_counts_instead_of_the_pods():
    rig = Rig(spot(spec={"timing": {"violationGraceSeconds": 1_000}, "eviction": {"gracePeriodSeconds": 10}}))
    rig.pod("a", grace_seconds=500)
    warn(rig)
    assert rig.deadline("a") == SECONDS - 10


def test_the_longest_grace_goes_first_among_equals():
    rig = Rig(spot(), max_in_flight=1, leading=False)
    for name, grace in (("short", 10), ("long", 100), ("middle", 50)):
        rig.pod(name, grace_seconds=grace)
    warn(rig)
    rig.process(events.LeadershipChanged(leading=True))
    for name in ("long", "middle", "short"):
        assert [one.pod.name for one in told(rig, commands.Evict)] == [name]
        rig.out = []
        rig.settle(name)


# -- how long it may take to stop --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "left", "given"),
    [(30, 120, None), (120, 120, None), (121, 120, None), (122, 120, 120), (500, 120, 120), (30, 10, 10), (30, 0, 1)],
)
def test_a_pod_gets_no_more_time_than_there_is(asked, left, given):
    rig = Rig(spot(), leading=False)
    rig.pod("a", grace_seconds=asked)
    warn(rig)
    rig.wall += SECONDS - left
    rig.process(events.LeadershipChanged(leading=True))
    assert graces(rig) == [given]


def test_the_policys_grace_period_is_cut_too():
    rig = Rig(spot(seconds=20, spec={"eviction": {"gracePeriodSeconds": 60}}))
    rig.pod("a", grace_seconds=5)
    warn(rig)
    assert graces(rig) == [20]


def test_the_policys_grace_period_is_given_where_there_is_time():
    rig = Rig(spot(spec={"eviction": {"gracePeriodSeconds": 60}}))
    rig.pod("a", grace_seconds=500)
    warn(rig)
    assert graces(rig) == [60]


# -- who does not make it ----------------------------------------------------------------------------------------------


def test_a_pod_that_will_not_make_it_is_told_before():
    rig = Rig(spot())
    rig.pod("a", grace_seconds=200)
    rig.budget(allowed=0)
    warn(rig)
    [risk] = told(rig, commands.DeadlineAtRisk)
    assert (risk.hard_at, risk.reason) == (START + SECONDS, "it asks for 200 s to stop, and 120 s are left at best")


def test_it_is_told_once():
    rig = Rig(spot())
    rig.pod("a", grace_seconds=200, ready=True)
    rig.budget(allowed=0)
    warn(rig)
    for _ in range(5):
        warn(rig)
        rig.advance(5)
    assert len(told(rig, commands.DeadlineAtRisk)) == 1


def risks(rig: Rig) -> list[tuple[float, str]]:
    """When who was told to be at risk, within the time of a notice and a while more."""
    found = []
    for _ in range(4 * (SECONDS + 30)):
        rig.out = []
        rig.advance(0.25)
        found += [(rig.wall - START, one.pod.name) for one in told(rig, commands.DeadlineAtRisk)]
    return found


@pytest.mark.parametrize("method", ["Evict", "EvictThenDelete"])
def test_a_pod_that_is_held_is_told_once_it_has_too_little_time(method):
    rig = Rig(spot(spec={"eviction": {"method": method}}))
    rig.pod("a", grace_seconds=20, ready=True)
    rig.pod("b", grace_seconds=50, ready=True)
    rig.budget(allowed=0)
    warn(rig)
    told_at = {"b": SECONDS - 50 + 1.25, "a": SECONDS - 20 + 1.25} if method == "Evict" else {}
    if method == "EvictThenDelete":
        rig.advance(SECONDS - 49)
        rig.settle("b")
        rig.gone("b")
        rig.advance(30)
        rig.settle("a")
        rig.gone("a")
    assert risks(rig) == [(at, name) for name, at in told_at.items()]


def test_a_pod_whose_calls_are_not_answered_is_told_before_its_node_is_gone():
    rig = Rig(spot())
    rig.pod("a", grace_seconds=20)
    warn(rig)
    assert risks(rig) == [(SECONDS - 20 + 1.25, "a")]
    rig.settle("a", Outcome.FAILED)
    assert risks(rig) == []


def test_a_pod_that_opts_out_will_not_make_it_however_much_time_there_is():
    rig = Rig(spot())
    rig.pod("a", do_not_evict=True)
    warn(rig)
    [risk] = told(rig, commands.DeadlineAtRisk)
    assert risk.reason.startswith("it is not evicted, since")


def test_those_whose_turn_comes_too_late_are_told():
    rig = Rig(spot(), overall_rate=1.0)
    for number in range(8):
        rig.pod(f"p{number}", grace_seconds=SECONDS - 4)
    warn(rig)
    for _ in range(6):
        rig.advance(1)
        for call in [one for one in rig.out if isinstance(one, commands.Evict)]:
            rig.settle(call.pod.name)
        rig.out = [one for one in rig.out if not isinstance(one, commands.Evict)]
    assert [one.pod.name for one in told(rig, commands.DeadlineAtRisk)] == ["p6", "p7"]


# -- who did not -------------------------------------------------------------------------------------------------------


HELD = {"ready": True}
"""A pod that a budget holds."""


def held(policy: Policy | None = None) -> Rig:
    """A pod on a node that will be gone, held by a budget."""
    rig = Rig(policy or spot())
    rig.budget(allowed=0)
    rig.pod("a", ready=True)
    warn(rig)
    return rig


def missed(rig: Rig) -> list[str]:
    return [one.reason for one in told(rig, commands.DeadlineMissed)]


LATER = SECONDS + 5
DRY = {"mode": "DryRun"}
MISSED: dict[str, tuple[Policy, dict[str, Any], Callable[[Rig], object], list[str]]] = {
    "in time": (spot(), HELD, lambda rig: rig.advance(SECONDS - 1, step=1.0), []),
    "it stands there still": (spot(), HELD, lambda rig: rig.advance(SECONDS, step=1.0), ["not-evicted"]),
    "its call is accepted": (
        spot(),
        {"grace_seconds": 500},
        lambda rig: rig.settle("a"),
        ["grace-cut"],
    ),
    "its call is refused": (spot(), {"grace_seconds": 500}, lambda rig: rig.settle("a", Outcome.BLOCKED), []),
    "it left": (
        spot(),
        {},
        lambda rig: (rig.settle("a"), rig.gone("a", until=START + 30), rig.advance(LATER, 1.0)),
        [],
    ),
    "the node vanishes": (spot(), HELD, lambda rig: rig.feed(events.NodeGone("n1")), ["not-evicted"]),
    "the node of another policy vanishes": (limited(), HELD, lambda rig: rig.feed(events.NodeGone("n1")), []),
    "the taint goes": (spot(), HELD, lambda rig: (rig.node("n1"), rig.advance(LATER, step=1.0)), []),
    "a dry run": (spot(spec=DRY), {}, lambda rig: rig.advance(LATER, step=1.0), []),
    "no removal any more": (spot(), HELD, lambda rig: (rig.change(limited()), rig.advance(LATER, step=1.0)), []),
    "an earlier removal": (spot(), HELD, lambda rig: (rig.change(spot(seconds=30)), rig.advance(30)), ["not-evicted"]),
}


@pytest.mark.parametrize(("given", "pod", "happens", "reasons"), MISSED.values(), ids=MISSED)
def test_who_missed_the_deadline(given, pod, happens, reasons):
    rig = Rig(given)
    if pod is HELD:
        rig.budget(allowed=0)
    rig.pod("a", **pod)
    warn(rig)
    happens(rig)
    assert missed(rig) == reasons


def test_it_is_counted_once_whatever_comes():
    rig = held()
    rig.advance(SECONDS + 1, step=1.0)
    warn(rig)
    rig.advance(5)
    rig.budget(allowed=1)
    rig.settle("a", Outcome.FAILED)
    rig.advance(5)
    rig.settle("a")
    rig.feed(events.NodeGone("n1"))
    assert missed(rig) == ["not-evicted"]


EDITED = spot(spec={"eviction": {"gracePeriodSeconds": 7}})
PAUSED = spot(spec={"paused": True})


@pytest.mark.parametrize(
    ("between", "pod", "reason"), [(EDITED, {"do_not_evict": True}, "exempt"), (PAUSED, HELD, "not-evicted")]
)
def test_edits_of_the_policy_report_no_pod_again(between, pod, reason):
    rig = Rig(spot())
    rig.budget(allowed=0)
    rig.pod("a", **pod)
    warn(rig)
    rig.advance(SECONDS + 1, step=1.0)
    for edit in (between, spot()):
        rig.change(edit)
        rig.advance(2)
    assert missed(rig) == [reason]
    assert len(told(rig, commands.DeadlineAtRisk)) == 1


def test_a_pod_whose_policy_is_paused_is_not_at_risk_and_missed_once_it_is_resumed():
    rig = held()
    rig.change(PAUSED)
    rig.advance(SECONDS + 1, step=1.0)
    assert (missed(rig), told(rig, commands.DeadlineAtRisk)) == ([], [])
    rig.change(spot())
    rig.advance(2)
    assert missed(rig) == ["not-evicted"]


def end(pods: int = 0, at_risk: int = 0, missed: int = 0) -> ReclaimStatus:
    return ReclaimStatus("n1", at(START + SECONDS), pods, at_risk, missed)


def ends(rig: Rig) -> list[ReclaimStatus]:
    return list(rig.view.report(rig.now)[0].status.reclaims)


def test_a_pod_is_not_at_risk_any_more_when_its_policy_gives_it_less_grace():
    policies = [
        spot(spec={"timing": {"violationGraceSeconds": 1_000}, "eviction": {"gracePeriodSeconds": seconds}})
        for seconds in (200, 10)
    ]
    rig = held(policies[0])
    assert ends(rig) == [end(pods=1, at_risk=1)]
    rig.change(policies[1])
    rig.advance(1)
    assert ends(rig) == [end(pods=1)]


def test_a_pod_that_is_deleted_in_time_in_spite_of_its_budget_is_not_at_risk():
    rig = held(spot(spec={"eviction": {"method": "EvictThenDelete", "pdbTimeoutSeconds": 600}}))
    assert ends(rig) == [end(pods=1)]
    rig.advance(SECONDS - 1, step=1.0)
    assert [one.delete for one in told(rig, commands.Evict)] == [True]
    rig.settle("a", Outcome.REFUSED)
    assert ends(rig) == [end(pods=1, at_risk=1)]


def test_a_pod_that_was_still_there_is_reported_for_ten_minutes_after_its_node():
    rig = held()
    rig.advance(SECONDS, step=1.0)
    rig.feed(events.NodeGone("n1"))
    rig.gone("a")
    assert ends(rig) == [end(missed=1)]
    rig.advance(REMEMBERED_SECONDS - 1, step=1.0)
    assert len(ends(rig)) == 1
    rig.advance(1)
    assert ends(rig) == []


def test_the_end_of_a_node_is_reported_with_all_pods_that_are_on_it():
    rig = held()
    for name in "bc":
        rig.pod(name, ready=True, labels={"app": "other"})
    rig.budget(allowed=0)
    assert ends(rig) == [end(pods=3, at_risk=3)]
    rig.advance(SECONDS, step=1.0)
    assert ends(rig) == [end(pods=3, at_risk=3, missed=3)]


def test_the_end_of_a_node_is_the_earliest_of_its_pods():
    rig = held()
    rig.pod("b", exists("spot"), ready=True)
    rig.advance(10)
    taints = (*rig.make_taints("spot=1", added=START), *rig.make_taints("other=1", added=rig.wall))
    rig.process(events.NodeSeen(Node("n1", "uid-n1", {}, taints, rig.version())))
    assert ends(rig) == [end(pods=2, at_risk=2)]


def test_the_last_of_many_nodes_with_pods_that_missed_are_reported():
    rig = held()
    for number in range(REMEMBERED_NODES):
        rig.feed(events.PodSeen(rig.make_pod(f"p{number}", node=f"m{number}", ready=True)))
        rig.feed(events.NodeSeen(Node(f"m{number}", "", {}, rig.make_taints("spot=1", added=START + 1), rig.version())))
    rig.advance(SECONDS + 1, step=SECONDS + 1)
    rig.feed(events.NodesListed(frozenset(), 0), events.PodsListed({}, 0))
    [found] = rig.machine._reclaims.ended(rig.now).values()
    assert len(found) == REMEMBERED_NODES
    assert "n1" not in [one.node for one in found]


def test_a_pod_with_less_time_to_stop_did_not_end_with_its_node():
    rig = Rig(spot(seconds=20))
    rig.pod("a", grace_seconds=60)
    warn(rig)
    rig.settle("a")
    assert [one.reason for one in told(rig, commands.DeadlineMissed)] == ["grace-cut"]
    assert ends(rig) == []


def test_nodes_with_pods_at_risk_are_first():
    rig = Rig(spot(spec={"timing": {"violationGraceSeconds": 1_000}}))
    rig.pod("a", node="n1", grace_seconds=40)
    rig.pod("b", node="n2", grace_seconds=500)
    rig.budget(allowed=0)
    rig.node("n1", "spot=1", added=START)
    rig.node("n2", "spot=1", added=START + 10)
    rig.advance(2)
    assert [one.node for one in ends(rig)] == ["n2", "n1"]


# -- budgets -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("timeout", "after"), [(600, 90), (20, 20)])
def test_a_pod_that_a_budget_holds_is_deleted_in_time_if_wanted(timeout, after):
    rig = held(spot(spec={"eviction": {"method": "EvictThenDelete", "pdbTimeoutSeconds": timeout}}))
    rig.advance(after - 1, step=1.0)
    assert told(rig, commands.Evict) == []
    rig.advance(1)
    assert [one.delete for one in told(rig, commands.Evict)] == [True]


# -- changes -----------------------------------------------------------------------------------------------------------


def test_pods_that_go_while_others_are_reported_are_not_reported():
    rig = Rig(spot(), overall_rate=1.0, slice_size=10)
    rig.budget(allowed=0)
    rig.feed(events.PodsSeen(tuple(rig.make_pod(f"p{number}", grace_seconds=300, ready=True) for number in range(35))))
    rig.feed(events.NodeSeen(msgspec.structs.replace(rig.node("n1"), taints=rig.make_taints("spot=1", added=START))))
    while not told(rig, commands.DeadlineAtRisk):
        rig.feed(events.Woke())
    rig.process(*(events.PodGone(f"uid-p{number}", "n1") for number in range(35)))
    assert len(told(rig, commands.DeadlineAtRisk)) == 10


# -- a policy that reclaims no more ------------------------------------------------------------------------------------


def test_pods_of_a_policy_that_reclaims_no_more_are_not_at_risk():
    rig = Rig(spot(), leading=False)
    rig.pod("a", grace_seconds=300)
    warn(rig)
    rig.feed(events.LeadershipChanged(leading=True))
    rig.change(limited(spec={"mode": "DryRun"}))
    rig.advance(3)
    assert told(rig, commands.DeadlineAtRisk) == []
    assert rig.machine._reclaims.claims == {}


# -- many --------------------------------------------------------------------------------------------------------------


def test_pods_at_risk_and_pods_that_missed_are_reported_some_at_a_time():
    """One step for tens of thousands of them would stop everything else."""
    rig = Rig(spot(), overall_rate=1.0, slice_size=10)
    rig.budget(allowed=0)
    pods = [rig.make_pod(f"p{number}", grace_seconds=300, ready=True) for number in range(35)]
    rig.feed(events.PodsSeen(tuple(pods)))
    rig.feed(events.NodeSeen(msgspec.structs.replace(rig.node("n1"), taints=rig.make_taints("spot=1", added=START))))
    for kind in (commands.DeadlineAtRisk, commands.DeadlineMissed):
        numbers = []
        while rig.machine.wake_after(rig.now) == 0:
            rig.out = []
            rig.feed(events.Woke())
            numbers.append(len(told(rig, kind)))
        assert [number for number in numbers if number] == [10, 10, 10, 5]
        rig.wall += SECONDS
        rig.monotonic += SECONDS
