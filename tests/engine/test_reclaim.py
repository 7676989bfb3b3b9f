"""Nodes that will be gone: by when pods go, with how much time to stop, and who does not make it."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from engine.kept import kept
from engine.rig import START, Rig, limited
from taintwarden.engine import commands, events
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import Policy, Reclaim

SECONDS = 120


def spot(name: str = "p", seconds: int = SECONDS, spec: dict | None = None, **limits) -> Policy:
    return msgspec.structs.replace(limited(name, spec=spec, **limits), reclaim=Reclaim(seconds))


def commands_of(rig: Rig, kind: type) -> list:
    """The commands of a kind so far, none forgotten."""
    return [one for one in rig.out if isinstance(one, kind)]


def warn(rig: Rig, name: str = "n1") -> None:
    """The node will be gone."""
    rig.node(name, "spot=1", added=START)


def graces(rig: Rig) -> list[int | None]:
    return [one.grace_period_seconds for one in commands_of(rig, commands.Evict)]


# -- when --------------------------------------------------------------------------------------------------------------


def test_the_policys_grace_period_counts_instead_of_the_pods():
    rig = Rig(spot(spec={"timing": {"violationGraceSeconds": 1_000}, "eviction": {"gracePeriodSeconds": 10}}))
    rig.pod("a", grace_seconds=500)
    warn(rig)
    assert rig.deadline("a") == SECONDS - 10


def test_a_pod_that_asks_for_more_time_than_there_is_is_due_when_the_taint_was_added():
    rig = Rig(spot())
    rig.pod("a", grace_seconds=SECONDS + 1)
    warn(rig)
    assert rig.deadline("a") == 0.0


@pytest.mark.parametrize("other", ["a", "q"])
def test_each_pod_has_its_own_grace_where_another_policy_acts_too(other):
    late = {"timing": {"violationGraceSeconds": 1_000}}
    rig = Rig(spot(spec=late), limited(other, spec=late | {"taints": [{"key": "sla"}]}))
    warn(rig)
    for name, grace in (("short", 10), ("long", 100)):
        rig.pod(name, grace_seconds=grace)
        claims = rig.view.claims(f"uid-{name}")
        assert [one.due_at - START for one in claims if one.policy.name == "p"] == [SECONDS - grace]


def test_the_longest_grace_goes_first_among_equals():
    rig = Rig(spot(), max_in_flight=1, leading=False)
    for name, grace in (("short", 10), ("long", 100), ("middle", 50)):
        rig.pod(name, grace_seconds=grace)
    warn(rig)
    rig.process(events.LeadershipChanged(leading=True))
    for name in ("long", "middle", "short"):
        assert [one.pod.name for one in commands_of(rig, commands.Evict)] == [name]
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
    return [one.reason for one in commands_of(rig, commands.DeadlineMissed)]


LATER = SECONDS + 5
PAUSED = spot(spec={"paused": True})
DRY = {"mode": "DryRun"}
MISSED: dict[str, tuple[Policy, dict[str, Any], Callable[[Rig], object], list[str]]] = {
    "in time": (spot(), HELD, lambda rig: rig.advance(SECONDS - 1, step=1.0), []),
    "it stands there still": (spot(), HELD, lambda rig: rig.advance(SECONDS, step=1.0), ["not-evicted"]),
    "its call is accepted": (spot(), {"grace_seconds": 500}, lambda rig: rig.settle("a"), []),
    "it leaves with less time": (
        spot(),
        {"grace_seconds": 500},
        lambda rig: (rig.settle("a"), rig.gone("a", until=START + 30)),
        ["grace-cut"],
    ),
    "it leaves with less time though it may stay by then": (
        spot(),
        {"grace_seconds": 500},
        lambda rig: (rig.settle("a", Outcome.FAILED), rig.node("n1"), rig.gone("a", until=START + 30)),
        [],
    ),
    "it is gone while its call is in progress": (
        spot(),
        {},
        lambda rig: (rig.gone("a"), rig.advance(LATER, step=1.0)),
        [],
    ),
    "its call is accepted without effect": (
        spot(),
        {},
        lambda rig: (rig.settle("a"), rig.advance(SECONDS, step=1.0)),
        ["not-evicted"],
    ),
    "its call is refused": (spot(), {"grace_seconds": 500}, lambda rig: rig.settle("a", Outcome.BLOCKED), []),
    "it left": (
        spot(),
        {},
        lambda rig: (rig.settle("a"), rig.gone("a", until=START + 30), rig.advance(LATER, 1.0)),
        [],
    ),
    "the pod changes when the node goes": (
        spot(),
        HELD,
        lambda rig: (setattr(rig, "wall", START + SECONDS), rig.pod("a", ready=True)),
        ["not-evicted"],
    ),
    "the node vanishes": (spot(), HELD, lambda rig: rig.feed(events.NodeGone("n1")), ["not-evicted"]),
    "the node of another policy vanishes": (limited(), HELD, lambda rig: rig.feed(events.NodeGone("n1")), []),
    "the taint goes": (spot(), HELD, lambda rig: (rig.node("n1"), rig.advance(LATER, step=1.0)), []),
    "a dry run": (spot(spec=DRY), {}, lambda rig: rig.advance(LATER, step=1.0), []),
    "no removal any more": (spot(), HELD, lambda rig: (rig.change(limited()), rig.advance(LATER, step=1.0)), []),
    "an earlier removal": (spot(), HELD, lambda rig: (rig.change(spot(seconds=30)), rig.advance(30)), ["not-evicted"]),
}


@pytest.mark.parametrize(("given", "pod", "happens", "reasons"), MISSED.values(), ids=MISSED)
def test_missed_deadlines_are_reported_with_their_reasons(given, pod, happens, reasons):
    rig = Rig(given)
    if pod is HELD:
        rig.budget(allowed=0)
    rig.pod("a", **pod)
    warn(rig)
    happens(rig)
    assert missed(rig) == reasons


@pytest.mark.parametrize("between", [spot(spec={"eviction": {"gracePeriodSeconds": 7}}), PAUSED])
def test_edits_of_the_policy_report_no_pod_again(between):
    rig = held()
    rig.advance(SECONDS + 1, step=1.0)
    for edit in (between, spot()):
        rig.change(edit)
        rig.advance(2)
    assert missed(rig) == ["not-evicted"]


def test_a_policy_that_is_paused_when_the_node_goes_misses_nothing():
    rig = held()
    rig.change(PAUSED)
    rig.advance(SECONDS + 1, step=1.0)
    rig.change(spot())
    rig.advance(2)
    assert missed(rig) == []


@pytest.mark.parametrize("allowed", [0, 1])
def test_a_pod_that_comes_when_its_node_should_be_gone_is_counted_once(allowed):
    """The pod gets at most a second to stop."""
    rig = Rig(spot())
    warn(rig)
    rig.advance(SECONDS + 5, step=1.0)
    rig.budget(allowed=allowed)
    rig.pod("a", ready=True, bound_at=rig.wall, grace_seconds=30)
    if allowed:
        rig.settle("a")
    rig.advance(5)
    assert missed(rig) == ["not-evicted"]


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


# -- who ends with the node --------------------------------------------------------------------------------------------

OPTS_OUT = {"do_not_evict": True}
EVICTED = {"exclude": {"respectDoNotEvict": False}}
IGNORING = spot(spec=EVICTED)
LATE = {"timing": {"violationGraceSeconds": SECONDS + 1}}


def ending(rig: Rig) -> list[str]:
    return [one.pod.name for one in commands_of(rig, commands.EndsWithNode)]


@pytest.mark.parametrize(
    ("policies", "pod", "names"),
    [
        ((spot(),), OPTS_OUT, ["a"]),
        ((spot(),), {"do_not_disrupt": True}, ["a"]),
        ((spot(),), {"protected_seconds": 1e6}, []),
        ((spot(),), {}, []),
        ((spot(),), OPTS_OUT | {"namespace": "kube-system"}, []),
        ((IGNORING,), OPTS_OUT, []),
        ((limited(),), OPTS_OUT, []),
        ((spot(spec={"mode": "DryRun"}),), OPTS_OUT, []),
        ((spot(), limited("q", spec=EVICTED)), OPTS_OUT, []),
        ((spot(), limited("q", spec=EVICTED | LATE)), OPTS_OUT, ["a"]),
        ((spot(), limited("q", spec=EVICTED | {"mode": "DryRun"})), OPTS_OUT, ["a"]),
        ((spot(), limited("a", spec=LATE)), OPTS_OUT, []),
    ],
    ids=[
        "opted-out",
        "no-disruption",
        "protected",
        "free",
        "excluded",
        "ignoring",
        "stays",
        "dry",
        "in-time",
        "late",
        "rehearsed",
        "other",
    ],
)
def test_pod_that_opts_out_of_a_reclaimed_node_is_named(policies, pod, names):
    rig = Rig(*policies)
    rig.pod("a", **pod)
    warn(rig)
    assert ending(rig) == names


def test_pod_that_opts_out_is_named_once_for_each_notice():
    rig = Rig(spot())
    rig.pod("a", **OPTS_OUT)
    warn(rig)
    rig.pod("a", **OPTS_OUT, ready=True)
    rig.process(events.LeadershipChanged(leading=False), events.LeadershipChanged(leading=True, term=1))
    assert ending(rig) == ["a"]
    rig.node("n1")
    rig.advance(10)
    rig.node("n1", "spot=1", added=rig.wall)
    assert ending(rig) == ["a", "a"]


def test_pod_that_opts_out_after_the_notice_is_named():
    rig = held()
    rig.pod("a", ready=True, **OPTS_OUT)
    assert ending(rig) == ["a"]


def test_new_leader_names_pods_that_opt_out_and_end_later():
    rig = Rig(spot(), leading=False)
    rig.pod("a", **OPTS_OUT)
    warn(rig)
    assert ending(rig) == []
    rig.process(events.LeadershipChanged(leading=True))
    assert ending(rig) == ["a"]


def test_pod_that_opts_out_on_a_node_that_counts_as_removed_is_not_named():
    rig = Rig(spot())
    warn(rig)
    rig.advance(SECONDS, step=1.0)
    rig.pod("a", **OPTS_OUT)
    assert ending(rig) == []


def test_pods_that_were_named_are_forgotten_when_their_node_counts_as_removed():
    rig = Rig(spot())
    rig.pod("a", **OPTS_OUT)
    warn(rig)
    rig.advance(SECONDS, step=1.0)
    rig.process(events.Tick())
    assert len(rig.machine._judging._hard_deadlines._reported) == 0


# -- budgets -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("timeout", "after"), [(600, 90), (20, 20)])
def test_a_pod_that_a_budget_holds_is_deleted_in_time_if_wanted(timeout, after):
    rig = held(spot(spec={"eviction": {"method": "EvictThenDelete", "pdbTimeoutSeconds": timeout}}))
    rig.advance(after - 1, step=1.0)
    assert commands_of(rig, commands.Evict) == []
    rig.advance(1)
    assert [one.delete for one in commands_of(rig, commands.Evict)] == [True]


# -- many --------------------------------------------------------------------------------------------------------------


def test_pods_that_missed_are_reported_some_at_a_time():
    """One step for tens of thousands of them would stop everything else."""
    rig = Rig(spot(), overall_rate=1.0, slice_size=10)
    rig.budget(allowed=0)
    pods = [rig.make_pod(f"p{number}", grace_seconds=300, ready=True) for number in range(35)]
    rig.feed(events.PodsSeen(tuple(pods)))
    rig.feed(events.NodeSeen(msgspec.structs.replace(rig.node("n1"), taints=rig.make_taints("spot=1", added=START))))
    while rig.machine.wake_after(rig.now) == 0:
        rig.feed(events.Tick())
    rig.wall += SECONDS
    numbers = []
    while rig.machine.wake_after(rig.now) == 0:
        rig.out = []
        rig.feed(events.Tick())
        numbers.append(len(commands_of(rig, commands.DeadlineMissed)))
    assert [number for number in numbers if number] == [10, 10, 10, 5]


def test_nothing_is_kept_of_a_hard_deadline_that_its_policy_has_no_more():
    rig = Rig(spot())
    rig.pod("a")
    warn(rig)
    rig.change(limited())
    rig.gone("a")
    assert kept(rig.machine._hard_deadlines._ends, "uid-a") == []
