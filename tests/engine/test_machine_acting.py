"""Evictions by the machine: their order, their number at once, the meaning of each answer, and the next try."""

import msgspec
import pytest

from engine.rig import REACHED, START, Rig, exists, gt, limited
from simulated import policy
from taintwarden.engine import commands, events
from taintwarden.engine.machine import Phase, Timings
from taintwarden.engine.machine.claims import retry_delay as delay_between
from taintwarden.engine.outcomes import OUTCOMES, Outcome


def retry_delay(outcome: Outcome, attempts: int, uid: str) -> float:
    return delay_between(OUTCOMES[outcome].back_off, attempts, uid)


def violated(*pods: str, **options: object) -> Rig:
    """Pods that are due at once, not yet acted upon."""
    rig = Rig(**options)
    rig.node("n1", "sla=980")
    for name in pods:
        rig.pod(name, gt())
    rig.take(commands.Evict)
    rig.node("n1", "sla=940")
    return rig


# -- how many at once -------------------------------------------------------------------------------------------------


def test_at_most_the_slots_are_in_progress():
    rig = violated(*"abcdefgh", max_in_flight=6)
    assert len(rig.evictions()) == 6
    rig.settle("a")
    rig.settle("b")
    assert len(rig.evictions()) == 2
    assert len(rig.world.limiter.calls._calls) == 6


def test_a_pod_has_one_call_in_progress():
    rig = violated("a")
    rig.take(commands.Evict)
    for value in ("930", "920"):
        rig.node("n1", f"sla={value}")
    rig.pod("a", gt())
    rig.advance(120)
    assert rig.evictions() == []


def test_a_wave_is_taken_in_slices():
    rig = Rig(slice_size=10, max_in_flight=1_000)
    node = rig.node("n1", "sla=980")
    for number in range(100):
        rig.pod(f"p{number}", gt())
    version = rig.version()
    rig.feed(
        events.NodeSeen(msgspec.structs.replace(node, taints=rig.make_taints("sla=940"), resource_version=version))
    )
    largest = 0
    while rig.machine.wake_after(rig.now) == 0.0:
        rig.out = []
        rig.feed(events.Tick())
        largest = max(largest, len(rig.take(commands.Evict)))
    assert largest == 10
    assert len(rig.world.limiter.calls._calls) == 100


def test_policies_that_change_are_followed_in_slices_without_evictions_meanwhile():
    rig = Rig(policy(paused=True), slice_size=10)
    for number in range(10):
        rig.node(f"n{number}", "sla=940")
        for copy in range(5):
            rig.pod(f"p{number}-{copy}", gt(), node=f"n{number}")
    rig.feed(events.PoliciesChanged((policy(),)))
    steps = 0
    rig.out = []
    while not rig.take(commands.Evict):
        rig.feed(events.Tick())
        steps += 1
        assert steps < 100
    assert steps >= 5
    assert len(rig.claimed()) == 50


# -- answers ----------------------------------------------------------------------------------------------------------


def evicted(rig: Rig) -> int:
    [report] = rig.report()
    return report.status.evicted


def test_an_answer_without_a_call_is_illegal_and_changes_nothing():
    rig = violated("a")
    for uid in ("uid-a", "uid-b"):
        if uid == "uid-a":
            rig.settle("a")
        before = (len(rig.world.limiter.calls._calls), rig.claimed(), evicted(rig))
        with pytest.raises(ValueError, match=uid):
            rig.machine.step(events.Settled(uid, Outcome.ACCEPTED), rig.now)
        assert (len(rig.world.limiter.calls._calls), rig.claimed(), evicted(rig)) == before


def test_an_evicted_pod_is_reported_with_its_lateness():
    rig = violated("a")
    rig.wall += 0.5
    rig.settle("a")
    assert rig.take(commands.Evicted) == []
    rig.gone("a", until=START + 30)
    [told] = rig.take(commands.Evicted)
    assert told.lateness == 0.5
    assert evicted(rig) == 1


def test_a_new_leader_counts_evictions_from_zero():
    rig = violated("a", "b")
    rig.settle("a")
    rig.gone("a")
    rig.feed(events.LeadershipChanged(leading=False), events.LeadershipChanged(leading=True))
    assert evicted(rig) == 0


@pytest.mark.parametrize(("uid", "counted"), [("", 1), ("another", 0)], ids=["edited", "created again"])
def test_evictions_are_those_of_this_policy_not_of_its_name(uid, counted):
    rig = violated("a", "b")
    rig.settle("a")
    rig.gone("a")
    other = policy(limits={"evictionsPerSecond": 100.0, "burst": 7})
    rig.change(msgspec.structs.replace(other, uid=uid or other.uid))
    assert evicted(rig) == counted


# -- what is seen decides ---------------------------------------------------------------------------------------------


def accepted(rig: Rig | None = None) -> Rig:
    """An eviction was accepted, and the stream still shows that the pod runs."""
    rig = rig or violated("a")
    rig.settle("a")
    rig.out = []
    return rig


def check(rig: Rig, *, runs: bool | None, seconds: float = 5.0) -> None:
    """Read the pod after `seconds` seconds, and not before."""
    rig.advance(seconds - 0.25)
    assert rig.take(commands.CheckPod) == []
    rig.advance(0.25)
    assert [one.pod.name for one in rig.take(commands.CheckPod)] == ["a"]
    rig.process(events.PodChecked("uid-a", runs))


def test_a_read_without_an_answer_is_repeated_about_as_soon_as_the_first():
    rig = accepted()
    check(rig, runs=None)
    rig.out = []
    rig.advance(6)
    assert len(rig.take(commands.CheckPod)) == 1


def test_an_accepted_pod_is_not_called_again_whatever_changes():
    rig = accepted()
    rig.node("n1", "sla=930")
    rig.pod("a", gt())
    rig.advance(4.75)
    assert rig.evictions() == []


def test_an_accepted_pod_that_a_read_shows_running_is_due_again_after_a_back_off():
    rig = accepted()
    check(rig, runs=True)
    [told] = rig.take(commands.EvictionFailed)
    assert (told.outcome, told.attempts) == (Outcome.WITHOUT_EFFECT, 1)
    rig.advance(told.retry_at - rig.wall - 0.5)
    assert rig.evictions() == []
    rig.advance(1)
    assert rig.evictions() == ["a"]


def test_an_accepted_pod_that_a_read_shows_gone_is_evicted_and_not_called_again():
    rig = accepted()
    check(rig, runs=False)
    assert evicted(rig) == 1
    rig.advance(300)
    assert rig.evictions() == []
    rig.gone("a")
    assert evicted(rig) == 1


def test_an_accepted_pod_is_read_again_if_the_read_is_not_answered():
    rig = accepted()
    check(rig, runs=None)
    rig.advance(60)
    assert len(rig.take(commands.CheckPod)) > 1


def test_a_leader_that_leads_again_reads_an_accepted_pod_soon():
    rig = accepted()
    rig.feed(events.LeadershipChanged(leading=False))
    rig.advance(120)
    assert rig.take(commands.CheckPod) == []
    rig.feed(events.LeadershipChanged(leading=True))
    rig.advance(Timings().check_accepted)
    assert len(rig.take(commands.CheckPod)) == 1


def test_a_read_from_before_the_last_call_says_nothing_of_it():
    rig = accepted()
    check(rig, runs=True)
    rig.advance(8)
    assert rig.evictions() == ["a"]
    accepted(rig)
    rig.process(events.PodChecked("uid-a", True))
    assert rig.phase("a") is Phase.ACCEPTED


def test_a_pod_whose_eviction_had_no_effect_waits_for_a_webhook_and_no_budget():
    rig = accepted()
    check(rig, runs=True)
    [limit] = rig.report()[0].status.limits
    assert limit.limit == "calls"
    assert "without effect" in limit.message
    assert rig.claim("a").budgets == ()


def test_a_read_of_a_pod_that_waits_for_another_call_changes_nothing():
    rig = accepted()
    check(rig, runs=True)
    rig.out = []
    rig.process(events.PodChecked("uid-a", True), events.PodChecked("uid-unknown", True))
    assert rig.out == []


def test_a_read_that_began_before_the_last_call_does_not_show_that_it_had_no_effect():
    rig = accepted()
    check(rig, runs=True)
    rig.advance(6)
    accepted(rig)
    rig.process(events.PodChecked("uid-a", True))
    assert (rig.phase("a"), rig.notices()) == (Phase.ACCEPTED, [])


@pytest.mark.parametrize("outcome", [one for one in Outcome if not one.row.stays and one is not Outcome.ASKED])
def test_a_pod_that_leaves_after_a_call_that_no_budget_refused_is_evicted_once(outcome):
    rig = violated("a")
    rig.settle("a", outcome)
    assert evicted(rig) == 0
    rig.gone("a", until=START + 30)
    rig.gone("a")
    assert [notice.pod.name for notice in rig.take(commands.Evicted)] == ["a"]
    assert evicted(rig) == 1


@pytest.mark.parametrize("outcome", [one for one in Outcome if one.row.stays])
def test_a_pod_that_leaves_after_a_call_known_to_have_failed_is_not_evicted(outcome):
    rig = violated("a")
    rig.settle("a", outcome)
    rig.gone("a", until=START + 30)
    assert evicted(rig) == 0


@pytest.mark.parametrize(("seconds", "counted"), [(599, 1), (600, 0)])
def test_a_pod_that_leaves_counts_as_evicted_within_a_window_after_the_call(seconds, counted):
    rig = violated("a")
    rig.settle("a", Outcome.POSTPONED)
    rig.change(limited(spec={"paused": True}))
    rig.advance(seconds)
    rig.gone("a")
    assert len(rig.take(commands.Evicted)) == counted


def test_a_budget_that_refuses_the_next_call_does_not_undo_the_one_before():
    rig = violated("a")
    rig.settle("a", Outcome.POSTPONED)
    rig.advance(8)
    rig.settle("a", Outcome.BLOCKED)
    rig.gone("a")
    assert evicted(rig) == 1


def test_nothing_is_kept_of_a_pod_that_leaves_after_a_webhook_kept_it():
    rig = violated("a")
    rig.settle("a", Outcome.POSTPONED)
    rig.gone("a")
    assert rig.world.claims.evictees == {}


def test_a_pod_that_leaves_while_its_budget_refuses_was_removed_by_others():
    rig = violated("a")
    rig.gone("a", until=START + 30)
    rig.settle("a", Outcome.BLOCKED)
    assert evicted(rig) == 0
    assert [told.pod.name for told in rig.take(commands.PodAlreadyGone)] == ["a"]


# -- how calls end ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seen_first", [True, False])
def test_the_watch_may_be_faster_than_the_answer(seen_first):
    rig = violated("a")
    steps = [lambda: rig.gone("a"), lambda: rig.settle("a")]
    for step in steps if seen_first else reversed(steps):
        step()
    assert rig.claimed() == []
    assert [type(one).__name__ for one in rig.out].count("Evicted") == 1


def test_a_pod_that_was_gone_already_is_reported_as_gone():
    rig = violated("a")
    rig.settle("a", Outcome.GONE)
    assert [told.pod.name for told in rig.take(commands.PodAlreadyGone)] == ["a"]


@pytest.mark.parametrize(
    "outcome", [Outcome.BLOCKED, Outcome.THROTTLED, Outcome.MISCONFIGURED, Outcome.REFUSED, Outcome.FAILED]
)
def test_a_call_without_effect_is_reported_and_retried(outcome):
    rig = violated("a")
    rig.settle("a", outcome, message="why")
    [told] = rig.take(commands.EvictionFailed)
    assert (told.outcome, told.message, told.attempts) == (outcome.value, "why", 1)
    expected = retry_delay(outcome, 1, "uid-a")
    assert told.retry_at == rig.wall + expected
    rig.advance(expected - 0.5)
    assert rig.evictions() == []
    rig.advance(1)
    assert rig.evictions() == ["a"]


def test_a_call_that_failed_for_a_pod_that_may_stay_by_then_is_called_off():
    rig = violated("a")
    rig.node("n1", "sla=980")
    rig.out = []
    rig.settle("a", Outcome.FAILED)
    assert rig.notices() == ["Cancelled a"]
    assert rig.claimed() == []


def test_a_call_that_failed_for_a_pod_that_left_by_then_is_settled():
    rig = violated("a")
    rig.gone("a")
    rig.out = []
    rig.settle("a", Outcome.FAILED)
    assert rig.notices() == ["Evicted a"]


# -- evict, then delete -----------------------------------------------------------------------------------------------


def then_delete(seconds: int = 10, **eviction: object) -> Rig:
    rig = Rig(policy(eviction={"method": "EvictThenDelete", "pdbTimeoutSeconds": seconds} | eviction))
    rig.node("n1", "sla=940")
    rig.budget(allowed=1)
    rig.pod("a", gt(), ready=True)
    return rig


def block_until_deleted(rig: Rig, outcome: Outcome = Outcome.BLOCKED, until: float = 120.0) -> float:
    """When the pod was deleted, in seconds since the start: all tries are answered so, whatever the budget says."""
    while rig.wall < START + until:
        for command in rig.take(commands.Evict):
            if command.delete:
                return rig.wall - START
            rig.settle("a", outcome)
        rig.advance(0.25)
    return float("inf")


def test_a_pod_blocked_for_long_enough_is_deleted_and_not_before():
    assert 10.0 <= block_until_deleted(then_delete(10)) <= 10.5


def test_a_pod_whose_deadline_moves_back_is_blocked_for_as_long_again():
    rig = then_delete(60)
    rig.take(commands.Evict)
    rig.settle("a", Outcome.BLOCKED)
    rig.budget(allowed=0)
    rig.advance(30)
    eviction = {"method": "EvictThenDelete", "pdbTimeoutSeconds": 60}
    rig.change(policy(eviction=eviction, timing={"violationGraceSeconds": 50}))
    assert 110.0 <= block_until_deleted(rig, until=200.0) <= 112.0


def test_a_method_that_deletes_asks_no_budget():
    rig = Rig(policy(eviction={"method": "Delete", "gracePeriodSeconds": 3})).with_pod("sla=940", gt())
    [command] = rig.take(commands.Evict)
    assert (command.delete, command.grace_period_seconds) == (True, 3)


def test_a_deletion_in_spite_of_a_budget_is_called_so_and_counted():
    rig = Rig(policy(eviction={"method": "Delete"}))
    rig.budget(allowed=1)
    rig.node("n1", "sla=980")
    for name in "abc":
        rig.pod(name, gt(), ready=True)
    rig.node("n1", "sla=940")
    for name in "abc":
        rig.settle(name)
        rig.gone(name)
    assert [notice.past_budgets for notice in rig.take(commands.Evicted)] == [(), ("shop/pdb",), ("shop/pdb",)]
    [report] = rig.report()
    assert (report.status.evicted, report.status.past_budgets) == (3, 2)


def test_a_new_leader_counts_deletions_in_spite_of_budgets_from_zero():
    rig = Rig(policy(eviction={"method": "Delete"}))
    rig.budget(allowed=0)
    rig.with_pod("sla=940", gt())
    rig.settle("a")
    rig.gone("a")
    rig.feed(events.LeadershipChanged(leading=False), events.LeadershipChanged(leading=True))
    assert rig.report()[0].status.past_budgets == 0


def test_the_time_of_being_blocked_starts_again_for_another_violation():
    rig = then_delete(10)
    assert block_until_deleted(rig, until=8) == float("inf")
    rig.node("n1", "sla=980")
    assert rig.claimed() == []
    rig.node("n1", "sla=930")
    assert 18 <= block_until_deleted(rig) <= 19


# -- leadership -------------------------------------------------------------------------------------------------------


def test_a_replica_that_does_not_lead_commands_nothing():
    rig = Rig(leading=False)
    rig.node("n1", "sla=high", "x=1")
    rig.pod("a", gt(), exists("sla"))
    rig.advance(10)
    assert rig.out == []
    assert rig.deadline("a") == 0.0


def test_a_replica_that_loses_the_lead_commands_nothing_more():
    rig = violated(*"abcdef", max_in_flight=4)
    rig.feed(events.LeadershipChanged(leading=False))
    rig.out = []
    rig.settle("a")
    rig.settle("b", Outcome.FAILED)
    rig.advance(120)
    assert rig.out == []


def test_a_call_that_was_not_made_is_made_again_without_a_storm():
    """The lease may run out some seconds before the machine knows it."""
    rig = violated("a")
    rig.take(commands.Evict)
    rig.settle("a", Outcome.NOT_SENT)
    tries = 0
    for _ in range(40):
        for name in rig.evictions():
            tries += 1
            rig.settle(name, Outcome.NOT_SENT)
        rig.advance(0.25)
    assert 1 <= tries <= 20


def test_a_call_that_was_not_made_does_not_end_the_failure_of_its_lane():
    rig = violated("a")
    for outcome in (Outcome.FAILED, Outcome.NOT_SENT):
        rig.advance(5)
        assert rig.evictions() == ["a"]
        rig.settle("a", outcome)
    assert any(map(rig.world.limiter.calls.is_failing, rig.world.limiter.calls._lanes))


# -- views ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", ["pods", "nodes", "namespaces"])
def test_no_pod_is_evicted_while_a_stream_is_cut_off(stream):
    rig = Rig()
    rig.feed(events.ViewChanged(stream, live=False))
    rig.node("n1", "sla=940")
    rig.pod("a", gt())
    rig.advance(30)
    assert rig.evictions() == []
    assert rig.report()[0].status.limited_by
    rig.process(events.ViewChanged(stream, live=True))
    assert rig.evictions() == ["a"]


# -- before all is known ----------------------------------------------------------------------------------------------


def test_no_pod_is_evicted_before_all_is_known():
    rig = Rig(synced=False).with_pod("sla=940", gt())
    rig.feed(events.Tick())
    assert rig.evictions() == []
    assert rig.machine.wake_after(rig.now) is None
    rig.process(events.Synced())
    assert rig.evictions() == ["a"]


# -- rehearsals -------------------------------------------------------------------------------------------------------


def test_a_dry_run_is_reported_once_and_evicts_no_pod():
    rig = Rig(policy(mode="DryRun")).with_pod("sla=940", gt())
    assert "Rehearsed a" in rig.notices()
    rig.advance(300)
    assert rig.out == []


def test_what_is_enforced_is_not_held_up_by_a_rehearsal():
    """A pod has one fate: an early rehearsal must not keep a later eviction from happening."""
    rehearsed = policy("a", taints=[{"key": "x"}], mode="DryRun")
    enforced = policy("b", taints=[{"key": "y"}], timing={"violationGraceSeconds": 30})
    rig = Rig(rehearsed, enforced)
    rig.node("n1", "x=1", "y=1")
    rig.pod("a")
    rig.advance(29)
    assert rig.evictions() == []
    rig.advance(2)
    assert rig.evictions() == ["a"]


def test_a_paused_policy_does_nothing_and_says_nothing():
    rig = Rig(policy(paused=True)).with_pod("sla=940", gt())
    rig.advance(120)
    assert rig.phase("a") is Phase.PAUSED
    assert [one for one in rig.out if not isinstance(one, commands.SaveHistory)] == []


def test_pausing_calls_off_what_is_scheduled():
    rig = Rig().with_pod("sla=940", gt(violation_grace_seconds=60))
    rig.out = []
    rig.process(events.PoliciesChanged((policy(paused=True),)))
    assert "Cancelled a" in rig.notices()


# -- freshness --------------------------------------------------------------------------------------------------------


def test_a_pod_that_the_stream_has_just_come_to_needs_no_read():
    rig = Rig().with_pod("sla=940", gt(), version=REACHED)
    assert (rig.take(commands.CheckNode), rig.phase("a")) == ([], Phase.IN_FLIGHT)


def test_a_node_is_read_once_for_all_of_its_pods():
    rig = Rig().with_pod("sla=940", gt(), version=REACHED + 5)
    rig.pod("b", gt(), version=REACHED + 6)
    assert rig.take(commands.CheckNode) == [commands.CheckNode("n1")]


def test_a_list_after_a_silence_is_believed_at_once():
    rig = Rig(timings=Timings(max_silence=15.0, namespace_pause=0.0))
    rig.node("n1", "sla=940")
    rig.monotonic += 60
    rig.node("n1", "sla=940", listed=True)
    rig.process(events.NodesListed(frozenset({"n1"}), REACHED))
    rig.pod("a", gt())
    assert rig.evictions() == ["a"]


def test_while_the_stream_has_to_deliver_a_version_that_was_read_no_other_event_of_it_will_do():
    rig = Rig(timings=Timings(max_silence=15.0, namespace_pause=0.0))
    node = rig.node("n1", "sla=940")
    rig.monotonic += 60
    rig.pod("a", gt())
    rig.process(events.NodeChecked("n1", node.resource_version + 100, REACHED))
    rig.out = []
    for _ in range(3):
        rig.node("n2")
        rig.advance(5)
    rig.pod("b", gt())
    assert [type(one) for one in rig.out if isinstance(one, commands.CheckNode | commands.Evict)] == []
    rig.node("n1", "sla=940", version=node.resource_version + 100)
    assert rig.evictions() == ["a", "b"]


def test_a_taint_that_went_away_spares_them():
    rig = Rig().with_pod("sla=940", gt(), version=REACHED + 5)
    rig.feed(events.NodeChecked("n1", 99, REACHED + 5))
    rig.advance(10)
    assert rig.evictions() == []
    rig.node("n1", "sla=980", version=99)
    rig.advance(60)
    assert rig.evictions() == []
    assert rig.claimed() == []


def test_no_pod_of_a_node_that_cannot_be_decoded_is_evicted_until_it_can_be():
    """Its last taints count for what is expected, and nothing else is held."""
    rig = Rig()
    for name in ("n1", "n2"):
        node = rig.node(name, "sla=940")
        rig.pod(f"on-{name}", gt(violation_grace_seconds=5), node=name)
    rig.feed(events.NodeUnreadable("n1"))
    rig.take(commands.CheckNode)
    rig.advance(6)
    assert [one.name for one in rig.out if isinstance(one, commands.CheckNode)] == ["n1"]
    assert rig.evictions() == ["on-n2"]
    rig.feed(events.NodeChecked("n1", node.resource_version + 100, REACHED))
    rig.advance(600)
    assert (rig.deadline("on-n1"), rig.evictions()) == (5, [])
    rig.node("n1", "sla=940", "new=1", version=node.resource_version + 100)
    assert rig.evictions() == ["on-n1"]


def test_the_stream_catching_up_is_as_good_as_a_read():
    rig = Rig()
    rig.node("n1", "sla=940", "other=1")
    rig.feed(events.NodesReached(REACHED + 10))
    rig.pod("a", gt(), version=REACHED + 5)
    assert rig.evictions() == ["a"]


def test_a_read_that_failed_is_repeated_after_a_pause():
    rig = Rig().with_pod("sla=940", gt(), version=REACHED + 5)
    rig.out = []
    rig.process(events.NodeChecked("n1"))
    assert rig.take(commands.CheckNode) == []
    rig.advance(5)
    assert rig.take(commands.CheckNode) == [commands.CheckNode("n1")]
    assert rig.evictions() == []


def test_a_read_of_an_older_version_than_the_stream_has_delivered_is_repeated():
    rig = Rig()
    node = rig.node("n1", "sla=940", version=50)
    rig.pod("a", gt(), version=REACHED + 5)
    rig.feed(events.NodeChecked("n1", 49, REACHED + 5))
    rig.out = []
    rig.advance(2)
    assert rig.take(commands.CheckNode) == [commands.CheckNode("n1")]
    rig.process(events.NodeChecked("n1", node.resource_version, REACHED + 5))
    assert rig.evictions() == ["a"]


def test_a_node_that_is_created_again_is_read_by_a_request_of_its_own():
    rig = Rig().with_pod("sla=940", gt(), version=REACHED + 5)
    rig.out = []
    again = rig.node("n1", "sla=940", uid="another")
    assert rig.take(commands.CheckNode) == [commands.CheckNode("n1")]
    rig.process(events.NodeChecked("n1", again.resource_version, REACHED + 5))
    assert rig.evictions() == ["a"]


def test_a_node_that_is_created_again_does_not_wait_as_the_one_before():
    rig = Rig().with_pod("sla=940", gt(), version=REACHED + 5)
    rig.process(events.NodeChecked("n1"))
    rig.out = []
    rig.node("n1", "sla=940", uid="another")
    assert rig.take(commands.CheckNode) == [commands.CheckNode("n1")]


def test_a_read_that_began_before_the_node_went_does_not_bring_it_back():
    rig = Rig()
    node = rig.node("n1", "sla=940")
    rig.pod("a", gt(), version=REACHED + 5)
    rig.feed(events.NodeGone("n1"))
    rig.feed(events.NodeChecked("n1", node.resource_version, REACHED + 5))
    rig.advance(60)
    assert rig.evictions() == []


def test_a_read_of_the_node_before_does_not_confirm_the_one_that_replaced_it():
    rig = Rig().with_pod("sla=940", gt(), version=REACHED + 5)
    again = rig.node("n1", uid="another")
    rig.process(events.NodeChecked("n1", again.resource_version, REACHED + 5))
    rig.node("n1", "sla=940", uid="another")
    assert rig.evictions() == []


def test_a_read_of_a_node_is_not_named_as_the_limit_for_which_a_pod_waited():
    rig = Rig()
    node = rig.node("n1", "sla=940")
    rig.pod("a", version=REACHED + 5)
    rig.advance(1)
    rig.process(events.NodeChecked("n1", node.resource_version, REACHED + 5))
    assert [one.limit for one in rig.take(commands.Decided)] == [""]


@pytest.mark.parametrize(("retry_after", "waits"), [(200.0, 200.0), (1_000.0, 300.0)])
def test_a_longer_retry_after_counts(retry_after, waits):
    rig = violated("a")
    rig.settle("a", Outcome.POSTPONED, retry_after=retry_after)
    assert rig.claim("a").until == rig.monotonic + waits


def test_a_call_that_was_not_sent_is_not_reported_as_failed():
    rig = violated("a")
    rig.settle("a", Outcome.NOT_SENT)
    assert rig.take(commands.EvictionFailed) == []


def test_a_pod_that_is_due_does_not_wait_for_one_that_is_due_soon():
    rig = Rig()
    rig.pod("a")
    rig.pod("b", gt(violation_grace_seconds=1))
    rig.node("n1", "sla=940")
    assert rig.evictions() == ["a"]


def test_a_lane_has_half_of_the_slots_while_another_could_go():
    rig = Rig(max_in_flight=4)
    for namespace in "ab":
        for number in range(4):
            rig.pod(f"{namespace}{number}", namespace=namespace)
    rig.node("n1", "sla=940")
    assert rig.evictions() == ["a0", "b0", "a1", "b1"]
    rig.settle("b0")
    assert rig.evictions() == ["b2"]


def test_a_pod_whose_priority_changes_while_it_waits_has_its_new_turn():
    rig = violated(*"abc", max_in_flight=1)
    rig.pod("c", gt(), priority=-1)
    rig.pod("b", gt(), priority=1)
    assert rig.evictions() == ["a"]
    rig.settle("a")
    assert rig.evictions() == ["c"]


def test_a_new_leader_begins_without_tokens():
    rig = Rig(limited(evictions_per_second=1.0, burst=5), leading=False)
    rig.monotonic += 3_600
    for name in "abc":
        rig.pod(name)
    rig.node("n1", "sla=940")
    rig.process(events.LeadershipChanged(leading=True))
    assert rig.evictions() == []
    rig.advance(1)
    assert rig.evictions() == ["a"]


def test_nodes_are_evaluated_in_slices():
    rig = Rig(slice_size=10)
    for number in range(20):
        rig.node(f"n{number}")
    rig.feed(events.PoliciesChanged((policy(),)), events.Tick())
    assert len(rig.machine._backlog.nodes) == 10


def test_all_pods_that_are_due_take_turns_not_only_those_that_are_made_ready_first():
    rig = Rig(slice_size=2, max_in_flight=6)
    for namespace in "abc":
        for number in range(3):
            rig.pod(f"{namespace}{number}", namespace=namespace)
    rig.node("n1", "sla=940")
    assert rig.evictions() == ["a0", "b0", "c0", "a1", "b1", "c1"]
