"""The durable clock: what is written on nodes, what is believed of it, and who knows best."""

import json

import msgspec
import pytest

from engine.rig import START, Rig, exists, gt, limited, parse
from simulated import policy
from taintwarden.engine import commands, events
from taintwarden.engine.events import WriteOutcome
from taintwarden.engine.history import TaintHistory, decode_histories, encode_histories
from taintwarden.engine.model import Node, Toleration
from taintwarden.engine.policy import Reclaim


def history(*spans: tuple[str, float]) -> str:
    made = TaintHistory.begin(*spans[0])
    for value, since in spans[1:]:
        made = made.with_value(value, since)
    return encode_histories({"sla:NoExecute": made})


def raw(*spans: tuple[str, float]) -> str:
    return json.dumps({"sla:NoExecute": {"values": [[since, [value]] for value, since in spans]}})


def test_an_answer_that_comes_while_another_leads_is_not_waited_for():
    rig = Rig().with_pod("sla=940", gt(violation_grace_seconds=100))
    [order] = rig.take(commands.SaveHistory)
    rig.feed(events.LeadershipChanged(leading=False), events.Written(order, WriteOutcome.FAILED))
    rig.process(events.LeadershipChanged(leading=True))
    assert len(rig.take(commands.SaveHistory)) == 1


def test_what_another_client_removes_before_the_write_is_answered_is_written_again():
    """No other event of the node may come for minutes, and a restart would begin the grace again."""
    rig = Rig()
    rig.pod("a", gt(violation_grace_seconds=100))
    node = rig.node("n1", "sla=940")
    [order] = rig.take(commands.SaveHistory)
    stored, removed = rig.version(), rig.version()
    rig.feed(events.NodeSeen(msgspec.structs.replace(node, history="", resource_version=removed)))
    rig.process(events.Written(order, WriteOutcome.DONE, stored))
    assert [one.text for one in rig.take(commands.SaveHistory)] == [order.text]


def test_a_history_whose_taint_goes_before_its_write_ends_is_removed_again():
    rig = Rig()
    rig.node("n1", "sla=940")
    rig.node("n1")
    rig.answer(commands.SaveHistory)
    assert [one.text for one in rig.take(commands.SaveHistory)][1:] == [""]


def test_a_leader_believes_its_own_memory():
    rig = Rig().with_pod("sla=940", gt(violation_grace_seconds=100))
    rig.advance(50, step=5.0)
    rig.node("n1", "sla=940", history=history(("940", START - 500)))
    assert rig.deadline("a") == 100.0


def test_such_a_time_ends_no_operator_under_a_reclaim_policy():
    rig = Rig(policy(reclaim={"deadlineSeconds": 120}))
    assert rig.view.policies[0].reclaim == Reclaim(120)
    rig.pod("a")
    rig.node("n1", "sla=1", history=raw(("1", -1e18)))
    rig.advance(1)
    assert rig.evictions() == ["a"]


def test_a_time_in_the_future_counts_from_now_and_is_reported_once():
    rig = Rig()
    rig.pod("a", gt(violation_grace_seconds=100))
    future = START + 1e10
    rig.node("n1", "sla=940", history=raw(("940", future)))
    rig.node("n1", "sla=940", history=raw(("940", future)), labels={"x": "y"})
    assert rig.deadline("a") == 100.0
    assert len(rig.take(commands.UnreadableHistory)) == 1


def test_a_recovery_is_saved_during_a_wave():
    rig = Rig(max_in_flight=2)
    rig.node("bad", "sla=900")
    rig.pod("a", gt(violation_grace_seconds=100))
    rig.node("n1", "sla=940")
    rig.answer(commands.SaveHistory)
    rig.answer(commands.SaveHistory)
    for number in range(5):
        rig.pod(f"b{number}", gt(), node="bad")
    assert rig.view.is_busy
    rig.out = []
    rig.node("n1", "sla=980", history=history(("940", START)))
    assert decode_histories(rig.take(commands.SaveHistory)[-1].text)["sla:NoExecute"].values == ("980", "940")


@pytest.mark.parametrize("skew", [2.0, 4e9])
def test_a_time_ahead_of_the_clock_moves_nothing_at_a_restart(skew):
    """Written by a clock that runs ahead, or in the year 2099: it is compared with itself only."""
    first = Rig(policy(timing={"violationGraceSeconds": 300}))
    first.pod("a", gt())
    first.node("n1", "sla=980", added=START + skew)
    first.advance(37, step=1.0)
    node = first.node("n1", "sla=940", added=START + skew)
    stored = first.world.cluster.nodes["n1"].history_text()
    second = Rig(policy(timing={"violationGraceSeconds": 300}))
    second.wall = first.wall + 20
    second.pod("a", gt())
    second.feed(events.NodeSeen(msgspec.structs.replace(node, history=stored)))
    assert second.deadline("a") == first.deadline("a") == 337.0


def test_a_tool_that_renews_the_time_with_each_value_moves_nothing_at_a_restart():
    first = Rig(policy(timing={"violationGraceSeconds": 300}))
    first.pod("a", gt())
    first.node("n1", "sla=940", added=START)
    first.advance(37, step=1.0)
    node = first.node("n1", "sla=930", added=START + 37)
    stored = first.world.cluster.nodes["n1"].history_text()
    second = Rig(policy(timing={"violationGraceSeconds": 300}))
    second.wall = first.wall + 20
    second.pod("a", gt())
    second.feed(events.NodeSeen(msgspec.structs.replace(node, history=stored)))
    assert second.deadline("a") == 300.0


def test_the_two_taints_of_a_node_that_does_not_work_are_one_condition():
    """Kubernetes replaces one by the other, each with a time of its own: the first timer continues."""
    rig = Rig(policy(taints=[{"key": "node.kubernetes.io/*"}]))
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    rig.pod("a", *(exists(key, toleration_seconds=60) for key in keys))
    rig.node("n1", keys[0], added=START)
    for turn in range(1, 5):
        rig.advance(10, step=1.0)
        pair = (parse(keys[0]), parse(keys[1]))
        both = ((pair[turn % 2], START + 10 * turn), (pair[1 - turn % 2], START + 10 * turn - 10))
        for taints in (both, both[:1]):  # one is added, then the other removed
            rig.feed(events.NodeSeen(Node("n1", "uid-n1", {}, taints, rig.version())))
    assert rig.deadline("a") == 60.0


@pytest.mark.parametrize("restarts", [True, False])
def test_a_node_that_fails_again_after_a_gap_counts_from_then(restarts):
    """The first taint went and the second came, and the node may have worked for days in between."""
    keys = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    given = policy(taints=[{"key": "node.kubernetes.io/*"}])
    stays = [exists(key, toleration_seconds=300) for key in keys]
    first = Rig(given)
    first.pod("a", *stays)
    first.node("n1", keys[0], added=START - 100)
    stored = first.world.cluster.nodes["n1"].history_text()
    rig = Rig(given) if restarts else first
    if not restarts:
        rig.feed(events.ViewChanged("nodes", live=False))
    rig.wall = START + 10_000
    if restarts:
        rig.pod("a", *stays)
    taints = ((parse(keys[1]), START + 9_990),)
    rig.feed(events.NodeSeen(Node("n1", "uid-n1", {}, taints, 100, stored), listed=True))
    rig.process(events.ViewChanged("nodes", live=True))
    assert rig.deadline("a") == 10_290
    assert rig.evictions() == []


def took_over_blind(text: str, *, listed: bool = True) -> Rig:
    """A follower missed what happened, leads since then, and reads a node that the leader before it has written."""
    rig = Rig(leading=False)
    rig.pod("a", gt(violation_grace_seconds=100))
    node = rig.node("n1", "sla=940")
    rig.feed(events.ViewChanged("nodes", live=False), events.LeadershipChanged(leading=True))
    rig.advance(50, step=5.0)
    seen = msgspec.structs.replace(node, history=text, resource_version=rig.version())
    rig.feed(events.NodeSeen(seen, listed=listed), events.ViewChanged("nodes", live=True))
    return rig


def test_a_leader_after_a_gap_uses_the_history_that_its_predecessor_wrote():
    rig = took_over_blind(history(("940", START), ("980", START + 20), ("940", START + 40)))
    assert rig.deadline("a") == 140.0
    assert rig.take(commands.SaveHistory)[1:] == []


def test_a_leader_after_a_gap_ignores_a_history_that_would_make_a_deadline_earlier():
    assert took_over_blind(history(("940", START - 60))).deadline("a") == 100.0


def test_what_was_seen_and_could_not_be_stored_outlasts_a_list():
    rig = Rig()
    rig.pod("a", gt(violation_grace_seconds=100))
    rig.node("n1", "sla=940", added=START)
    rig.advance(20, step=5.0)
    rig.node("n1", "sla=980", added=START)
    rig.advance(20, step=5.0)
    node = rig.node("n1", "sla=940", added=START)
    stored = msgspec.structs.replace(node, history=history(("940", START)), resource_version=rig.version())
    rig.feed(events.NodeSeen(stored, listed=True))
    assert rig.deadline("a") == 140.0


def test_a_time_that_is_renewed_while_it_is_watched_moves_nothing_after_a_gap():
    rig = Rig()
    rig.pod("a", gt(violation_grace_seconds=100))
    rig.node("n1", "sla=940", added=START)
    rig.advance(20, step=5.0)
    rig.node("n1", "sla=940", added=START + 20)
    rig.feed(events.ViewChanged("nodes", live=False))
    rig.advance(5)
    rig.node("n1", "sla=940", added=START + 20, listed=True)
    assert rig.deadline("a") == 100.0


def test_a_taint_may_have_been_added_again_while_its_node_could_not_be_decoded():
    rig = Rig()
    rig.pod("a", gt(violation_grace_seconds=100))
    rig.node("n1", "sla=940", added=START)
    rig.advance(20, step=5.0)
    rig.feed(events.NodeUnreadable("n1"))
    rig.advance(5)
    rig.node("n1", "sla=940", added=START + 22)
    assert rig.deadline("a") == 122.0


def test_what_is_written_to_a_node_while_it_is_watched_moves_nothing():
    rig = Rig()
    rig.pod("a", gt(violation_grace_seconds=100))
    rig.node("n1", "sla=940", added=START)
    rig.advance(20, step=5.0)
    foreign = history(("940", START), ("980", START + 5), ("940", START + 10))
    rig.node("n1", "sla=940", added=START, history=foreign)
    assert rig.deadline("a") == 100.0


# -- a taint counts from the later of its time and when it was not there -----------------------------------------------

LONG_AGO = START - 600
GRACE_15 = policy(timing={"violationGraceSeconds": 15})


@pytest.mark.parametrize("stays", [gt(), exists(toleration_seconds=15)], ids=["grace", "native"])
def test_an_old_time_removes_no_grace_where_the_node_was_seen_without_the_taint(stays):
    rig = Rig(GRACE_15)
    rig.pod("a", stays)
    rig.node("n1")
    rig.advance(20, step=5.0)
    rig.node("n1", "sla=940", added=LONG_AGO)
    assert rig.deadline("a") == 35.0


@pytest.mark.parametrize(("added", "due"), [(LONG_AGO, 15.0), (START + 12, 27.0), (None, 35.0)])
def test_what_appears_in_a_gap_counts_from_its_time_and_not_from_before_the_gap(added, due):
    """A restore of the store brings back a startup taint of last week."""
    rig = Rig(GRACE_15)
    rig.pod("a", gt())
    rig.node("n1")
    rig.feed(events.ViewChanged("nodes", live=False))
    rig.advance(20, step=5.0)
    rig.node("n1", "sla=940", added=added, listed=True)
    assert rig.deadline("a") == due


@pytest.mark.parametrize("listed", [True, False])
def test_an_old_annotation_comes_back_and_makes_no_deadline_earlier(listed):
    rig = Rig(GRACE_15)
    rig.pod("a", gt())
    rig.node("n1")
    rig.advance(20, step=5.0)
    rig.node("n1", "sla=940", added=LONG_AGO, history=history(("940", LONG_AGO)), listed=listed)
    assert rig.deadline("a") == 35.0


def test_a_node_that_could_not_be_decoded_was_seen_until_then():
    rig = Rig(GRACE_15)
    rig.pod("a", gt())
    rig.node("n1")
    rig.advance(10, step=5.0)
    for _ in range(2):  # the next version cannot be decoded, either
        rig.feed(events.NodeUnreadable("n1"))
        rig.advance(5, step=5.0)
    rig.node("n1", "sla=940", added=LONG_AGO)
    assert rig.deadline("a") == 25.0


# -- a value that does not rest ---------------------------------------------------------------------------------------

LATER = {"violation_grace_seconds": 600}
NEVER_AT_REST = {
    "falls": ("980", gt(**LATER), lambda at: str(949 - at)),
    "rises": ("20", Toleration("sla", "Lt", "80", **LATER), lambda at: str(80 + at)),
    "flaps": ("980", gt(**LATER), lambda at: ["940", "unknown", "930", "unknown"][at % 4]),
    "falls and flaps": ("980", gt(**LATER), lambda at: "unknown" if at % 2 else str(949 - at)),
    "jitters": ("980", gt(**LATER), lambda at: str(900 + at * 37 % 49)),
    "rotates": ("31", Toleration("sla", "In", values=("31", "43"), **LATER), lambda at: ["79", "48", "63"][at % 3]),
    "time stamp": ("ok", Toleration("sla", "Equal", "ok"), lambda at: f"2026-11-27T08.{at // 60:02}.{at % 60:02}Z"),
    "versions": ("1.9", Toleration("sla", "VersionGt", "1.5", **LATER), lambda at: f"1.4.{900 - at}"),
}


@pytest.mark.parametrize(("good", "stays", "value"), NEVER_AT_REST.values(), ids=NEVER_AT_REST)
def test_a_value_that_never_rests_evicts_in_time(good, stays, value):
    rig = Rig(limited(spec={"timing": {"violationGraceSeconds": 600}}))
    rig.pod("a", stays)
    rig.node("n1", f"sla={good}")
    rig.advance(3_600, step=600.0)
    evicted_at = None
    for number in range(70):
        rig.node("n1", f"sla={value(number)}")
        rig.advance(10, step=10.0)
        if evicted_at is None and rig.evictions():
            evicted_at = rig.wall - START - 3_600
    assert 600 <= evicted_at <= 690


@pytest.mark.parametrize(("times", "latest"), [(4, 120), (18, 120), (200, 140)])
def test_the_last_valid_value_is_held_however_long_none_comes(times, latest):
    rig = Rig(limited()).with_pod("sla=900", gt(violation_grace_seconds=120))
    for number in range(times):
        rig.advance(0.5)
        rig.node("n1", f"sla={['error', 'unknown'][number % 2]}")
    assert 120 <= rig.deadline("a") <= latest
