"""The guard in the machine: it trips before the first eviction, is stored, reported, reset and restored."""

import msgspec
import pytest

from engine.rig import START, ZONE, Rig, gt, limited, owner
from taintwarden.engine import commands, events
from taintwarden.engine.commands import BadNode, BadNodes
from taintwarden.engine.events import WriteOutcome
from taintwarden.engine.limit_settings import GuardAction, GuardSettings, PerWorkload, UnhealthyTaint, ZoneHealth
from taintwarden.engine.machine import Phase
from taintwarden.engine.model import Node, SourceKind, SourceValue, Taint, Toleration, ValueSource
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import Mode, Policy, TaintSelector
from taintwarden.engine.records import GuardRecord

SETTINGS = GuardSettings(max_percent=20, min_pods=3, window_seconds=600, settle_seconds=0)
GUARDED = limited(guard=SETTINGS)


def guarded(spec: dict | None = None, **settings) -> Policy:
    return limited(guard=msgspec.structs.replace(SETTINGS, **settings), spec=spec)


def crowd(given: Policy, pods: int, **options) -> Rig:
    """Pods on n1, which is good until :func:`spoil`."""
    rig = Rig(given, **options)
    rig.node("n1", "sla=980")
    for number in range(pods):
        rig.pod(f"p{number}", gt())
    rig.out = []
    return rig


def spoil(rig: Rig) -> None:
    rig.node("n1", "sla=940")


def spoiled(given: Policy, pods: int, **options) -> Rig:
    """Pods that have to leave."""
    rig = crowd(given, pods, **options)
    spoil(rig)
    return rig


def tripped() -> Rig:
    """A guard that has tripped because of eight pods, with its record stored."""
    rig = spoiled(GUARDED, 8)
    rig.store()
    return rig


def commands_of(rig: Rig, *kinds: type) -> list:
    """The commands of these kinds so far, none forgotten."""
    return [one for one in rig.out if isinstance(one, kinds)]


def calls(rig: Rig) -> list[str]:
    return [one.pod.name for one in commands_of(rig, commands.Evict)]


def open_guard(rig: Rig, name: str = "p") -> bool:
    return rig.world.limiter.guards.by_policy[name].latch.is_tripped


# -- a pace ------------------------------------------------------------------------------------------------------------


def test_a_pace_evicts_the_allowance_in_each_window():
    rig = spoiled(guarded(action=GuardAction.PACE), 8)
    rig.store()
    assert open_guard(rig)
    assert calls(rig) == ["p0", "p1", "p2"]
    for name in calls(rig):
        rig.settle(name)
        rig.gone(name)
    rig.store(590)
    assert len(calls(rig)) == 3
    rig.store(50)
    assert len(calls(rig)) == 6


def test_reserved_pods_do_not_wait_behind_those_without_a_place():
    """Those of a later node come first by their UIDs."""
    rig = crowd(guarded(action=GuardAction.PACE, min_pods=9), 9)
    rig.node("n2", "sla=980")
    for number in range(9):
        rig.pod(f"a{number}", gt(), node="n2")
    spoil(rig)
    rig.node("n2", "sla=940")
    rig.store()
    assert calls(rig) == [f"p{number}" for number in range(9)]


# -- what counts -------------------------------------------------------------------------------------------------------


def test_pods_that_are_deleted_in_spite_of_their_budgets_trip_it_before_the_first_of_them_is():
    spec = {"eviction": {"method": "EvictThenDelete", "pdbTimeoutSeconds": 60}}
    rig = crowd(guarded(spec, settle_seconds=2), 8)
    rig.budget(allowed=0)
    spoil(rig)
    rig.store(50)
    assert not open_guard(rig)
    rig.store(20)
    assert open_guard(rig)
    assert calls(rig) == []


def test_a_few_that_are_deleted_in_spite_of_their_budgets_do_not():
    spec = {"eviction": {"method": "EvictThenDelete", "pdbTimeoutSeconds": 60}}
    rig = crowd(guarded(spec), 3)
    rig.budget(allowed=0)
    spoil(rig)
    rig.store(70)
    assert sorted(calls(rig)) == ["p0", "p1", "p2"]


# -- waiting -----------------------------------------------------------------------------------------------------------


def test_the_moment_of_its_record_is_not_named_if_something_else_made_a_pod_wait():
    rig = spoiled(limited(guard=SETTINGS, evictions_per_second=0.02, burst=1), 2)
    rig.store(120.0)
    assert [one.limit for one in commands_of(rig, commands.Decided)] == ["guard", "policy-rate"]


REHEARSED_AGAIN = {
    "labels of the pods change": lambda rig: [rig.pod(f"p{number}", gt(), labels={"a": "b"}) for number in range(8)],
    "the value jitters": lambda rig: (rig.node("n1", "sla=980"), rig.node("n1", "sla=940")),
    "the policy changes": lambda rig: rig.change(rehearsing(eviction={"gracePeriodSeconds": 5})),
}


def rehearsing(**spec) -> Policy:
    return guarded({"mode": "DryRun"} | spec, min_pods=12)


@pytest.mark.parametrize("again", REHEARSED_AGAIN.values(), ids=REHEARSED_AGAIN)
def test_a_pod_counts_once_in_a_dry_run_however_often_it_would_be_evicted(again):
    rig = spoiled(rehearsing(), 8)
    rig.advance(1)
    assert len(rig.take(commands.Rehearsed)) == 8
    again(rig)
    rig.advance(1)
    assert commands_of(rig, commands.GuardTripped) == []
    guard = rig.world.limiter.guards.by_policy["p"]
    assert (guard.evicted(), guard.expected()) == (0, 8)


def test_a_pod_that_replaces_an_evicted_one_does_not_raise_the_allowance():
    rig = crowd(guarded(min_pods=None), 0)
    rig.node("n2", "sla=980")
    for number in range(20):
        rig.pod(f"p{number}", gt(), node="n1" if number < 4 else "n2", owner=owner())
    spoil(rig)
    rig.store()
    for name in calls(rig):
        rig.settle(name)
        rig.gone(name)
    assert rig.view.guard("p").record.population == 20
    rig.pod("replacement", gt(), node="n2", owner=owner())
    assert rig.view.guard("p").record.population == 20


# -- opening -----------------------------------------------------------------------------------------------------------


def test_a_record_that_is_read_before_the_pods_are_listed_does_not_hide_them():
    rig = Rig(guarded(min_pods=None), synced=False, leading=False)
    rig.feed(events.GuardRestored("p", GuardRecord(evicted=((rig.wall, (("shop", 4),)),))))
    rig.node("n1", "sla=940")
    rig.node("n2", "sla=980")
    for number in range(20):
        rig.pod(f"p{number}", gt(), node="n1" if number < 3 else "n2")
    rig.feed(events.Synced(), events.LeadershipChanged(leading=True))
    rig.store()
    assert commands_of(rig, commands.GuardTripped) == []
    assert len(calls(rig)) == 3


def test_the_cause_is_reported():
    rig = spoiled(GUARDED, 8)
    [opened] = commands_of(rig, commands.GuardTripped)
    assert opened.guard.record.cause == "taint sla:NoExecute on 1 node: sla=940:NoExecute on n1, 980 before"
    assert (opened.guard.due, opened.guard.evicted, opened.guard.allowance, opened.guard.halts) == (8, 0, 3, True)


def test_a_pod_that_leaves_for_a_removed_taint_is_not_the_cause():
    rig = Rig(guarded(spec={"taints": [{"key": "x"}, {"key": "y"}]}))
    rig.node("n1", "y=1:NoExecute")
    rig.pod("a", Toleration("x", "Exists"))
    for number in range(8):
        rig.pod(f"p{number}", Toleration("y", "Exists"))
    rig.store()
    rig.settle("a", Outcome.ACCEPTED)
    rig.node("n1", "x=1:NoExecute")
    [opened] = commands_of(rig, commands.GuardTripped)
    assert opened.guard.record.cause == "taint x:NoExecute on 1 node: x=1:NoExecute on n1"
    assert opened.guard.bad.named == (BadNode("n1", Taint("x", "1", "NoExecute")),)


WRITTEN = commands.FindWriter("p", "taint sla:NoExecute on 1 node: sla=940:NoExecute on n1, 980 before", "n1", "sla")


def test_the_writer_of_the_taint_is_asked_for_once_and_stored_with_the_cause():
    rig = tripped()
    assert commands_of(rig, commands.FindWriter) == [WRITTEN]
    rig.process(events.WriterFound(WRITTEN, "last written by kubectl"))
    [*_, last] = commands_of(rig, commands.SaveGuard)
    assert last.record.cause == f"{WRITTEN.cause}, last written by kubectl"
    rig.store()
    rig.process(events.WriterFound(WRITTEN, "last written by kubectl"))
    assert rig.world.limiter.guards.by_policy["p"].latch.cause == last.record.cause
    assert commands_of(rig, commands.FindWriter) == [WRITTEN]


def test_writer_that_is_found_after_the_guard_is_armed_is_ignored():
    rig = tripped()
    rig.node("n1", "sla=980")
    rig.store()
    assert not open_guard(rig)
    assert commands_of(rig, commands.GuardArmed) == [commands.GuardArmed(GUARDED, None)]
    rig.process(events.WriterFound(WRITTEN, "last written by kubectl"))
    assert rig.world.limiter.guards.by_policy["p"].latch.cause == ""
    rig.change()
    rig.process(events.WriterFound(WRITTEN, "last written by kubectl"))


def test_writer_that_is_found_without_the_lease_is_ignored():
    rig = tripped()
    rig.process(events.LeadershipChanged(leading=False), events.WriterFound(WRITTEN, "last written by kubectl"))
    assert rig.world.limiter.guards.by_policy["p"].latch.cause == WRITTEN.cause


def test_writer_of_a_taint_is_not_asked_for_where_a_policy_is_the_cause():
    rig = spoiled(guarded({"paused": True}), 8)
    rig.advance(60)
    rig.change(msgspec.structs.replace(GUARDED, generation=2))
    assert len(commands_of(rig, commands.GuardTripped)) == 1
    assert commands_of(rig, commands.FindWriter) == []


def test_writer_of_a_taint_that_a_policy_derives_is_not_asked_for():
    source = ValueSource(SourceKind.CONDITION, "Good")
    rig = crowd(msgspec.structs.replace(GUARDED, taints=(TaintSelector("good", source=source),)), 0)
    rig.feed(*(events.PodSeen(rig.make_pod(f"p{number}", Toleration("good", value="True"))) for number in range(8)))
    values = {source: SourceValue("False", None)}
    rig.process(events.NodeSeen(Node("n1", "uid-n1", {}, (), rig.version(), "", values=values), False))
    rig.advance(5)
    assert len(commands_of(rig, commands.GuardTripped)) == 1
    assert commands_of(rig, commands.FindWriter) == []


@pytest.mark.parametrize(
    ("before", "how"),
    [({"paused": True}, "was resumed"), ({"nodeSelector": {"matchLabels": {"pool": "b"}}}, "changed to generation 2")],
)
def test_a_policy_that_changed_is_reported_as_the_cause(before, how):
    rig = spoiled(guarded(before), 8)
    rig.advance(60)
    rig.change(msgspec.structs.replace(GUARDED, generation=2))
    [opened] = commands_of(rig, commands.GuardTripped)
    assert opened.guard.record.cause.startswith(f"the policy {how}; taint sla:NoExecute on 1 node")


def test_a_value_of_before_that_pods_did_not_tolerate_either_is_not_named():
    """The change of the policy did not make them leave: that may have been their tolerations."""
    rig = spoiled(guarded(settle_seconds=2), 8)
    rig.advance(1)
    rig.node("n1", "sla=930")
    rig.advance(3)
    [opened] = commands_of(rig, commands.GuardTripped)
    assert opened.guard.bad.named == (BadNode("n1", Taint("sla", "930"), None),)


@pytest.mark.parametrize("before", [0, 31], ids=["when the taint came", "long ago"])
def test_a_policy_that_changed_is_not_the_cause(before):
    rig = crowd(GUARDED, 8)
    rig.change(msgspec.structs.replace(GUARDED, generation=2))
    rig.advance(before)
    spoil(rig)
    [opened] = commands_of(rig, commands.GuardTripped)
    assert "policy" not in opened.guard.record.cause


def test_a_policy_that_changed_long_ago_is_not_the_cause_of_pods_that_come():
    rig = Rig(GUARDED)
    rig.node("n1", "sla=940")
    rig.advance(1)
    rig.change(msgspec.structs.replace(GUARDED, generation=2))
    rig.advance(31)
    for number in range(8):
        rig.pod(f"p{number}", gt())
    [opened] = commands_of(rig, commands.GuardTripped)
    assert "policy" not in opened.guard.record.cause


def test_the_taint_by_which_the_most_pods_leave_is_the_cause():
    rig = Rig(guarded(spec={"taints": [{"key": "x"}, {"key": "y"}]}))
    for node, taint, pods in (("n1", "x=1", 1), ("n2", "y=1", 8)):
        for number in range(pods):
            rig.pod(f"{node}-{number}", node=node)
        rig.node(node, taint)
    [opened] = commands_of(rig, commands.GuardTripped)
    assert opened.guard.record.cause == "taint y:NoExecute on 1 node: y=1:NoExecute on n2"


def test_a_pod_that_its_budget_keeps_is_not_reserved_any_more():
    rig = spoiled(GUARDED, 1)
    rig.save()
    assert (rig.view.guard("p").record.reserved, rig.view.guard("p").bad) == ((("uid-p0", "shop"),), BadNodes())
    rig.settle("p0", Outcome.BLOCKED)
    assert rig.view.guard("p").record.reserved == ()


def test_pods_that_the_leader_before_had_reserved_count_as_evicted_if_they_are_gone():
    rig = crowd(GUARDED, 8, leading=False)
    rig.process(events.GuardRestored("p", GuardRecord(reserved=(("uid-p0", "shop"), ("uid-gone", "shop")))))
    rig.process(events.LeadershipChanged(leading=True))
    assert rig.view.guard("p").evicted == 1


def test_a_policy_that_is_new_is_the_cause():
    rig = Rig(limited("other", spec={"taints": [{"key": "other"}]}))
    for node in ("n1", "n2"):
        rig.node(node, "sla")
    rig.pod("p0")
    rig.advance(60)
    for node in ("n1", "n2"):
        rig.node(node, "sla=940")
        for number in range(4):
            rig.pod(f"{node}-{number}", node=node)
    rig.advance(1)
    rig.change(msgspec.structs.replace(GUARDED, created_at=rig.wall))
    [opened] = commands_of(rig, commands.GuardTripped)
    taint = "taint sla:NoExecute on 2 nodes, such as sla=940:NoExecute on n1, no value before"
    assert opened.guard.record.cause == f"the policy was created; {taint}"


def test_the_record_of_a_policy_that_is_gone_is_not_written():
    rig = spoiled(GUARDED, 2)
    [order] = [one for one in rig.ordered if isinstance(one, commands.SaveGuard)]
    assert rig.machine.is_still_valid(order, rig.now)
    rig.change()
    assert not rig.machine.is_still_valid(order, rig.now)


def test_pods_whose_guard_is_switched_off_meanwhile_are_shown():
    rig = spoiled(guarded(settle_seconds=60), 1)
    assert rig.claim("p0").limit == "guard"
    rig.feed(events.PoliciesChanged((limited(),)))
    assert rig.claim("p0").limit == "guard"


def test_the_guard_of_a_replica_that_does_not_lead_does_not_trip():
    rig = spoiled(GUARDED, 8, leading=False)
    rig.advance(5)
    assert commands_of(rig, commands.GuardTripped, commands.SaveGuard) == []
    rig.process(events.LeadershipChanged(leading=True))
    assert len(commands_of(rig, commands.GuardTripped)) == 1


def test_the_guard_of_a_blind_machine_does_not_trip():
    rig = crowd(GUARDED, 8)
    rig.feed(events.ViewChanged("pods", live=False))
    spoil(rig)
    assert commands_of(rig, commands.GuardTripped) == []
    rig.process(events.ViewChanged("pods", live=True))
    assert len(commands_of(rig, commands.GuardTripped)) == 1


# -- the record --------------------------------------------------------------------------------------------------------


def test_a_record_that_could_not_be_stored_is_tried_again():
    rig = spoiled(GUARDED, 1)
    rig.save(succeeded=False)
    assert calls(rig) == []
    rig.advance(2)
    assert len(commands_of(rig, commands.SaveGuard)) == 2
    rig.save()
    assert calls(rig) == ["p0"]


@pytest.mark.parametrize("seconds", [45, 110])
def test_a_pod_leaves_within_five_seconds_after_its_record_can_be_stored_again(seconds):
    rig = spoiled(GUARDED, 1)
    for _ in range(seconds):
        for order in [one for one in rig.ordered if isinstance(one, commands.SaveGuard)]:
            rig.ordered.remove(order)
            rig.process(events.Written(order, WriteOutcome.REFUSED, error="status is read-only"))
        rig.advance(1)
    assert "every 5s: status is read-only" in rig.claim("p0").detail
    rig.store(5.25)
    assert calls(rig) == ["p0"]


def test_pods_of_a_budget_named_not_ready_trip_it():
    rig = crowd(guarded(min_pods=6), 30)
    rig.budget("not-ready", allowed=30)
    spoil(rig)
    rig.store()
    assert (open_guard(rig), calls(rig)) == (True, [])


# -- closing -----------------------------------------------------------------------------------------------------------


def eight_bad_nodes() -> Rig:
    """Each with a pod."""
    rig = Rig(GUARDED)
    for number in range(8):
        rig.node(f"n{number}", "sla=980")
        rig.pod(f"p{number}", gt(), node=f"n{number}")
    for number in range(8):
        rig.node(f"n{number}", "sla=0")
    rig.store()
    return rig


def test_the_nodes_that_are_bad_now_are_reported_and_no_repaired_one():
    rig = eight_bad_nodes()
    for number in range(1, 6):
        rig.node(f"n{number}", "sla=980")
    [tripped], [report] = commands_of(rig, commands.GuardTripped), rig.report()
    assert (tripped.guard.bad.number, [one.name for one in tripped.guard.bad.named]) == (4, ["n0", "n1", "n2"])
    expected = BadNodes(3, tuple(BadNode(name, Taint("sla", "0"), "980") for name in ("n0", "n6", "n7")))
    assert report.guard.bad == expected


@pytest.mark.parametrize("restarts", [False, True])
def test_a_trip_that_was_only_reported_is_reported_again_when_it_holds_pods(restarts):
    rig = spoiled(limited(guard=SETTINGS, spec={"mode": "DryRun"}), 8)
    rig.store()
    record = rig.view.guard("p").record
    rig.change(GUARDED)
    if restarts:
        rig = successor(record, 8)
    rig.store()
    assert [one.guard.halts for one in commands_of(rig, commands.GuardTripped)] == (
        [True] if restarts else [False, True]
    )


# -- a reset -----------------------------------------------------------------------------------------------------------


def reset(rig: Rig, outcome: WriteOutcome = WriteOutcome.DONE) -> None:
    """A person asks for a reset, and the request is removed, or not."""
    rig.process(events.GuardReset("p"))
    rig.answer(commands.ClearGuardReset, outcome)
    rig.wake()


def test_a_reset_releases_once_the_request_is_removed():
    """The next leader must not grant it again, for another wave."""
    rig = tripped()
    rig.process(events.GuardReset("p"))
    rig.advance(5)
    assert (calls(rig), commands_of(rig, commands.GuardArmed)) == ([], [])
    rig.store()
    assert len(calls(rig)) == 8


@pytest.mark.parametrize("outcome", [WriteOutcome.GONE, WriteOutcome.REFUSED, WriteOutcome.FAILED])
def test_a_request_that_was_not_removed_releases_nothing(outcome):
    rig = tripped()
    reset(rig, outcome)
    rig.save()
    rig.advance(0.5)
    assert (calls(rig), open_guard(rig)) == ([], True)


def test_a_reset_may_be_asked_for_again():
    rig = crowd(GUARDED, 8)
    reset(rig)
    assert commands_of(rig, commands.GuardArmed) == [], "it was armed"
    spoil(rig)
    rig.store()
    assert open_guard(rig)
    reset(rig)
    rig.store()
    assert len(calls(rig)) == 8


def test_a_reset_releases_more_pods_than_one_step_looks_at():
    rig = spoiled(GUARDED, 8, slice_size=3)
    rig.store()
    reset(rig)
    rig.store()
    assert len(calls(rig)) == 8


@pytest.mark.parametrize("outcome", [WriteOutcome.DONE, WriteOutcome.GONE])
def test_a_request_that_comes_while_one_is_removed_is_removed_too(outcome):
    """A request that stays would be granted for another wave by the next leader."""
    rig = tripped()
    rig.process(events.GuardReset("p"), events.GuardReset("p"))
    rig.answer(commands.ClearGuardReset, outcome)
    rig.answer(commands.ClearGuardReset)
    rig.store()
    assert len(calls(rig)) == 8
    assert [one for one in rig.ordered if isinstance(one, commands.ClearGuardReset)] == []


@pytest.mark.parametrize("is_live", [True, False])
def test_a_reset_without_a_guard_releases_nothing_of_a_later_one(is_live):
    """All nodes are unhealthy, so what the later guard expects would be released."""
    full, zone = ZoneHealth((UnhealthyTaint("sla", "Lt", "950"),)), {ZONE: "a"}
    given = limited(zone_health=full, guard=SETTINGS)
    rig = Rig(limited(zone_health=full) if is_live else given)
    for number in range(3):
        rig.node(f"n{number}", "sla=940", labels=zone)
    for number in range(3):
        rig.pod(f"p{number}", gt(), node=f"n{number}")
    rig.feed(events.ViewChanged("pods", live=is_live))
    reset(rig)
    rig.change(limited(zone_health=full))
    rig.feed(events.ViewChanged("pods", live=True))
    rig.change(given)
    rig.store()
    assert calls(rig) == []
    assert len(commands_of(rig, commands.GuardArmed)) == (not is_live)  # by the guard that was there before


def test_a_guard_that_was_switched_off_counts_and_stores_what_was_evicted_before():
    """The status loses its record meanwhile, which the stream delivers."""
    rig = spoiled(GUARDED, 3)
    rig.store()
    for name in calls(rig):
        rig.settle(name)
        rig.gone(name)
    rig.change(limited())
    rig.process(events.GuardRestored("p", GuardRecord()))
    rig.feed(events.PoliciesChanged((GUARDED,)))
    rig.wake()
    [order] = [one for one in rig.ordered if isinstance(one, commands.SaveGuard)]
    assert [pods for _, pods in order.record.evicted] == [(("shop", 3),)]


def test_a_reset_of_a_policy_without_a_guard_only_removes_the_request():
    rig = crowd(limited(), 2)
    reset(rig)
    assert commands_of(rig, commands.GuardArmed) == []


def test_a_release_does_not_survive_its_leader():
    rig = spoiled(GUARDED, 8, overall_rate=1.0)
    rig.store()
    reset(rig)
    assert len(calls(rig)) == 1
    record = rig.world.limiter.guards.by_policy["p"].record(rig.now)
    rig.process(events.LeadershipChanged(leading=False), events.GuardRestored("p", record))
    rig.process(events.LeadershipChanged(leading=True, term=2))
    rig.store()
    assert (len(calls(rig)), open_guard(rig)) == (1, True)


@pytest.mark.parametrize("recovers", [False, True])
def test_a_release_ends_with_a_good_value_and_not_with_a_pause(recovers):
    rig = spoiled(GUARDED, 8, overall_rate=1.0)
    rig.store()
    reset(rig)
    made = len(calls(rig))
    rig.change(guarded({"paused": True}))
    rig.advance(30)
    if recovers:
        rig.node("n1", "sla=980")
        spoil(rig)
    rig.change(GUARDED)
    rig.store()
    assert (len(calls(rig)) == made) is recovers


def test_a_reset_waits_until_all_pods_are_known_that_it_releases():
    rig = Rig(GUARDED, synced=False, leading=False)
    rig.feed(events.GuardRestored("p", GuardRecord(START - 60, "taint", (("shop", 8),))))
    rig.feed(events.LeadershipChanged(leading=True))
    rig.node("n1", "sla=940")
    for number in range(8):
        rig.pod(f"p{number}", gt())
    rig.feed(events.GuardReset("p"))
    rig.answer(commands.ClearGuardReset)
    rig.process(events.Synced())
    [closed] = commands_of(rig, commands.GuardArmed)
    assert closed.released == 8
    rig.store()
    assert len(calls(rig)) == 8


def test_a_reset_releases_no_pod_that_comes_after_it_while_a_stream_is_cut_off():
    rig = tripped()
    rig.process(events.ViewChanged("pods", live=False))
    reset(rig)
    for number in range(8, 16):
        rig.pod(f"p{number}", gt())
    rig.process(events.ViewChanged("pods", live=True))
    rig.store()
    assert len(calls(rig)) == 8
    assert open_guard(rig)


def test_a_reset_is_for_the_leader_of_its_time():
    rig = crowd(GUARDED, 8)
    rig.feed(events.ViewChanged("pods", live=False))
    rig.feed(events.GuardReset("p"))
    rig.feed(events.LeadershipChanged(leading=False))
    rig.feed(events.ViewChanged("pods", live=True))
    spoil(rig)
    rig.process(events.LeadershipChanged(leading=True))
    assert open_guard(rig)


# -- another leader ----------------------------------------------------------------------------------------------------


def successor(record: GuardRecord, pods: int, value: str = "940") -> Rig:
    rig = Rig(GUARDED, leading=False)
    rig.feed(events.GuardRestored("p", record))
    rig.node("n1", f"sla={value}")
    for number in range(pods):
        rig.pod(f"p{number}", gt())
    rig.process(events.LeadershipChanged(leading=True))
    return rig


def test_a_tripped_guard_stays_tripped_under_the_next_leader():
    rig = successor(GuardRecord(START - 60, "taint sla", (("shop", 8),)), 8)
    rig.store()
    assert calls(rig) == []
    assert commands_of(rig, commands.GuardTripped) == [], "the former leader reported it"
    record = GuardRecord(START - 60, "taint sla", (("shop", 8),), population=8)
    assert rig.report()[0].guard.record == record


# -- for whom a pod counts ---------------------------------------------------------------------------------------------


def test_pods_of_a_wave_that_another_client_relabels_still_count_for_all():
    """Operators of databases, meshes and people label pods: that is no reason to evict them."""
    rig = Rig(GUARDED)
    rig.node("n1", "sla=980")
    for labels in ({}, {"role": "primary"}):
        for number in range(6):
            rig.pod(f"p{number}", gt(), namespace=f"ns{number}", labels=labels)
        spoil(rig)
        rig.store()
        assert open_guard(rig)
    assert calls(rig) == []


def test_a_guard_whose_policy_was_not_in_force_for_a_while_continues_from_its_record():
    other = guarded({"taints": [{"key": "other"}]})
    rig = tripped()
    record = rig.view.guard("p").record
    rig.change(msgspec.structs.replace(other, name="q"))
    for number in range(6):
        rig.gone(f"p{number}")
    rig.feed(events.GuardRestored("p", record))
    rig.change(GUARDED)
    rig.store()
    assert open_guard(rig)
    assert calls(rig) == []


# -- what does not count, or counts no longer --------------------------------------------------------------------------


def test_a_pod_that_came_while_its_lane_fails_has_the_next_call_but_one():
    rig = Rig(guarded(min_pods=50, settle_seconds=0))
    rig.node("n1", "sla=940")
    for name in ("x", "y", "new"):  # calls for x and y are denied repeatedly
        rig.pod(name)
        for _ in range(80):
            rig.store(1.0)
            for called in rig.evictions():
                rig.settle(called, Outcome.ACCEPTED if called == "new" else Outcome.DENIED)
    assert rig.phase("new") is Phase.ACCEPTED


def test_a_lane_that_fails_keeps_half_of_the_reservations():
    """Its pods may wait indefinitely, and the guard allows only a limited number."""
    rig = spoiled(guarded(min_pods=22, max_percent=99), 22)
    rig.advance(1)
    rig.save()
    for name in calls(rig):
        rig.settle(name, Outcome.DENIED)
    rig.store()
    ledger = rig.world.limiter.guards.by_policy["p"].ledger
    assert (len(ledger.rows), len(ledger.called)) == (11, 10), "and that of the pod that goes next"


def test_a_pause_does_not_arm_the_guard():
    rig = crowd(GUARDED, 5)
    rig.node("n2", "sla=980")
    for number in range(5, 8):
        rig.pod(f"p{number}", gt(), node="n2")
    spoil(rig)
    rig.node("n2", "sla=940")
    rig.store()
    rig.change(msgspec.structs.replace(GUARDED, mode=Mode.PAUSED))
    rig.node("n1", "sla=980")
    rig.store()
    rig.change(GUARDED)
    rig.store()
    assert open_guard(rig)
    assert calls(rig) == []


@pytest.mark.parametrize(("returns", "pods"), [((), ["p5", "p6", "p7"]), (("n1",), [])])
def test_what_was_counted_before_a_pause_holds_no_other_wave(returns: tuple[str, ...], pods: list[str]) -> None:
    """The nodes of the first wave were repaired while the policy was paused; or one of them is bad again."""
    rig = crowd(GUARDED, 5)
    rig.node("n2", "sla=980")
    for number in range(5, 8):
        rig.pod(f"p{number}", gt(), node="n2")
    spoil(rig)
    rig.store()
    rig.change(msgspec.structs.replace(GUARDED, mode=Mode.PAUSED))
    rig.node("n1", "sla=980")
    rig.node("n2", "sla=940")
    for node in returns:
        rig.node(node, "sla=940")
    rig.change(GUARDED)
    rig.store()
    assert calls(rig) == pods


def test_pods_are_not_evicted_before_they_count_by_their_new_budgets():
    rig = crowd(guarded(min_pods=100), 8)
    rig.budget(allowed=0)
    spoil(rig)
    rig.store()
    guard = rig.world.limiter.guards.by_policy["p"]
    rig.feed(events.BudgetGone("shop", "pdb"))
    assert guard.expected() == 0
    assert all(rig.machine._backlog.pending(pod) for pod in rig.view.pods("n1"))
    rig.feed(events.Tick())
    assert guard.expected() == 8
    assert calls(rig) == []
    rig.store()
    assert len(calls(rig)) == 8


def test_what_a_policy_in_dry_run_rehearsed_counts_by_its_new_budgets():
    rig = spoiled(guarded({"mode": "DryRun"}, min_pods=100), 8)
    rig.store()
    guard = rig.world.limiter.guards.by_policy["p"]
    assert (rig.phase("p0"), guard.expected()) == (Phase.REHEARSED, 8)
    rig.budget(allowed=2)
    assert guard.expected() == 2


def test_a_record_that_was_being_written_when_leadership_was_lost_is_written_again():
    rig = spoiled(GUARDED, 8)
    rig.store()
    rig.node("n1", "sla=980")
    rig.ordered = []  # it is armed, and that is never stored
    rig.process(events.LeadershipChanged(leading=False), events.LeadershipChanged(leading=True, term=2))
    assert [one.record.tripped_at for one in rig.ordered if isinstance(one, commands.SaveGuard)] == [None]


def test_calls_that_are_answered_after_a_change_of_leaders_count():
    rig = Rig(limited(guard=msgspec.structs.replace(SETTINGS, min_pods=5)))
    for number in range(25):
        rig.pod(f"p{number}", gt(), node=f"n{number}")
    for number in range(5):
        rig.node(f"n{number}", "sla=940")
    rig.store()
    in_the_air = calls(rig)
    record = rig.world.limiter.guards.by_policy["p"].record(rig.now)
    rig.process(events.LeadershipChanged(leading=False, term=1), events.GuardRestored("p", record))
    rig.process(events.LeadershipChanged(leading=True, term=2))
    rig.advance(1)
    for name in in_the_air:
        rig.settle(name)
        rig.gone(name, f"n{name[1:]}")
    for number in range(5, 9):
        rig.node(f"n{number}", "sla=940")
    rig.store()
    assert len(in_the_air) == 5
    assert calls(rig) == in_the_air


def test_a_release_that_is_granted_ends_with_the_leadership():
    rig = tripped()
    rig.process(events.GuardReset("p"))
    [order] = [one for one in rig.ordered if isinstance(one, commands.ClearGuardReset)]
    rig.feed(events.Written(order, WriteOutcome.DONE), events.LeadershipChanged(leading=False))
    rig.process(events.LeadershipChanged(leading=True, term=2))
    rig.store()
    assert open_guard(rig)
    assert calls(rig) == []


def test_a_pod_that_another_limit_holds_for_long_leaves_its_reservation_to_others():
    rig = Rig(guarded(settle_seconds=0), synced=True)
    given = msgspec.structs.replace(GUARDED.limits, per_workload=PerWorkload(1))
    rig.change(msgspec.structs.replace(GUARDED, limits=given))
    rig.wants(owner(), 2)
    for name in "ab":
        rig.pod(name, owner=owner(), ready=True)
    spoil(rig)
    rig.store()
    assert rig.evictions() == ["a"]
    assert [*rig.world.limiter.guards.by_policy["p"].ledger.rows] == ["uid-a"]


def test_a_pod_that_a_read_finds_gone_counts_as_evicted_before_the_stream_shows_it():
    rig = spoiled(GUARDED, 1)
    rig.store()
    rig.settle("p0")
    guard = rig.world.limiter.guards.by_policy["p"]
    assert guard.evicted() == 0
    rig.advance(10)
    rig.process(events.PodChecked("uid-p0", runs=False))
    assert guard.evicted() == 1


def test_a_released_pod_is_reported_as_released_when_it_is_due():
    rig = Rig(GUARDED)
    for number in range(8):
        rig.pod(f"p{number}", gt(violation_grace_seconds=60))
    spoil(rig)
    rig.store()
    assert open_guard(rig)
    rig.process(events.GuardReset("p"))
    rig.store()
    [report] = rig.report()
    assert not open_guard(rig)
    assert (report.status.pending, report.released) == (8, 0)
