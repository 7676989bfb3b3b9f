"""State that is cleared on rare paths: a pause, a reset, another leader, an answer that comes too late."""

import msgspec
import pytest

from engine.kept import kept
from engine.rig import REACHED, START, ZONE, Rig, gt, limited, owner
from simulated import policy
from taintwarden.engine import commands, events
from taintwarden.engine.events import WriteOutcome
from taintwarden.engine.limit_settings import GuardSettings, PerNode, PerWorkload, UnhealthyTaint, ZoneHealth
from taintwarden.engine.machine import Phase
from taintwarden.engine.machine.freshness import NODE_CHECK
from taintwarden.engine.model import Profile
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import Mode, Policy, Reclaim
from taintwarden.engine.selectors import LabelSelector

THEN_DELETE = {"eviction": {"method": "EvictThenDelete", "pdbTimeoutSeconds": 60}}
GUARD = GuardSettings(min_pods=50, settle_seconds=0)
UNHEALTHY = ZoneHealth((UnhealthyTaint("sla", "Lt", "950"),))


# -- a pause -----------------------------------------------------------------------------------------------------------


def test_what_was_held_by_a_budget_is_cancelled_once_by_a_pause():
    rig = Rig()
    rig.budget(allowed=0)
    rig.pod("a", ready=True)
    rig.node("n1", "sla=940")
    rig.change(policy(paused=True))
    told = [(one.pod.name, one.verdict.policy.mode) for one in rig.take(commands.Cancelled)]
    assert told == [("a", Mode.PAUSED)]
    rig.node("n1")
    assert rig.claimed() == []
    assert rig.take(commands.Cancelled) == []


@pytest.mark.parametrize("resting", [{"paused": True}, {"mode": "DryRun"}], ids=["paused", "in DryRun"])
def test_what_a_budget_held_before_or_while_its_policy_did_not_act_begins_again(resting):
    rig = Rig(limited(spec=THEN_DELETE))
    rig.budget(allowed=0)
    rig.with_pod("sla=940", ready=True)
    rig.advance(30)
    rig.change(limited(spec=THEN_DELETE | resting))
    rig.advance(45)
    rig.change(limited(spec=THEN_DELETE))
    rig.advance(59)
    assert rig.evictions() == []
    rig.advance(1)
    assert rig.evictions() == ["a"]


def test_an_eviction_is_announced_again_when_its_policy_enforces_after_a_dry_run():
    later = {"timing": {"violationGraceSeconds": 60}}
    rig = Rig(limited(spec=later | {"mode": "DryRun"})).with_pod("sla=940")
    rig.change(limited(spec=later))
    assert [one.verdict.policy.mode for one in rig.take(commands.Scheduled)] == [Mode.DRY_RUN, Mode.ENFORCE]


SPOT = msgspec.structs.replace(limited(), reclaim=Reclaim(120))
RESTING = {
    "paused": (limited(), Phase.PAUSED, lambda rig: rig.change(limited(spec={"paused": True}))),
    "the pod opts out": (SPOT, None, lambda rig: rig.pod("a", do_not_evict=True)),
    "the node opts out": (SPOT, None, lambda rig: rig.node("n1", "sla=940", do_not_evict=True)),
}


@pytest.mark.parametrize(("given", "phase", "change"), RESTING.values(), ids=RESTING)
@pytest.mark.parametrize("outcome", [Outcome.NOT_SENT, Outcome.BLOCKED, Outcome.FAILED, Outcome.REFUSED])
def test_no_call_follows_one_that_failed_after_its_policy_ceased_to_act(given, phase, change, outcome):
    rig = Rig(given).with_pod("sla=940")
    assert rig.evictions() == ["a"]
    change(rig)
    rig.settle("a", outcome)
    assert rig.phase("a") is phase
    assert rig.take(commands.EvictionFailed) == []  # with the time of a next call, which is not made
    rig.advance(90)
    assert rig.evictions() == []
    rig.change(given)
    rig.pod("a")
    rig.node("n1", "sla=940")
    rig.advance(90)
    assert rig.evictions() == ["a"]


@pytest.mark.parametrize("spec", [{"paused": True}, {"mode": "DryRun"}], ids=["paused", "DryRun"])
@pytest.mark.parametrize("is_answered", [False, True], ids=["under way", "accepted"])
def test_a_policy_that_acts_again_makes_no_second_call_for_a_pod(spec, is_answered):
    first, second = ({"taints": [{"key": key}]} for key in "pq")
    rig = Rig(limited("p", spec=first), limited("q", spec=second | spec)).with_pod("q=1")
    rig.node("n1", "p=1", "q=1")
    assert rig.evictions() == ["a"]
    if is_answered:
        rig.settle("a")
    rig.change(limited("p", spec=first), limited("q", spec=second))
    rig.advance(5)
    assert rig.evictions() == []
    if not is_answered:
        rig.settle("a", Outcome.REFUSED)
        assert rig.evictions() == ["a"]  # by the other one
        rig.settle("a", Outcome.REFUSED)
        assert len(rig.world.limiter.calls._calls) == 0


def test_a_policy_that_is_paused_during_the_call_of_another_one_expects_no_eviction():
    first = limited("p", spec={"taints": [{"key": "p"}]})
    second = {"guard": GUARD, "spec": {"taints": [{"key": "q"}], "timing": {"violationGraceSeconds": 10}}}
    rig = Rig(first, limited("q", **second)).with_pod("q=1")
    assert len(rig.take(commands.Scheduled)) == 1
    rig.node("n1", "p=1", "q=1")
    assert rig.evictions() == ["a"]
    rig.change(first, limited("q", guard=GUARD, spec=second["spec"] | {"paused": True}))
    rig.settle("a", Outcome.REFUSED)
    assert [one.phase for one in rig.world.claims.of("uid-a") if one.policy.name == "q"] == [Phase.PAUSED]
    rig.change(limited("q", guard=GUARD, spec=second["spec"] | {"paused": True}))
    rig.change(first, limited("q", **second))
    assert [one.verdict.policy.name for one in rig.take(commands.Scheduled)] == ["q"]  # and is announced again


def test_a_new_leader_announces_what_it_knew_before():
    rig = Rig(leading=False).with_pod("sla=940", gt(violation_grace_seconds=60))
    rig.process(events.LeadershipChanged(leading=True))
    assert len(rig.take(commands.Scheduled)) == 1


def test_a_pod_that_does_not_opt_out_any_more_is_not_called_for_twice():
    first = limited("p", spec={"taints": [{"key": "p"}], "exclude": {"respectDoNotEvict": False}})
    second = msgspec.structs.replace(limited("q", spec={"taints": [{"key": "q"}]}), reclaim=Reclaim(120))
    rig = Rig(first, second)
    rig.node("n1", "p=1", "q=1")
    rig.pod("a", do_not_evict=True)
    assert rig.evictions() == ["a"]
    rig.pod("a")
    rig.advance(5)
    assert rig.evictions() == []


# -- another leader ----------------------------------------------------------------------------------------------------


def test_what_a_budget_held_before_another_led_begins_again():
    rig = Rig(limited(spec=THEN_DELETE))
    rig.budget(allowed=0)
    rig.pod("a", ready=True)
    rig.node("n1", "sla=940")
    rig.advance(50)
    rig.feed(events.LeadershipChanged(leading=False))
    rig.advance(1)
    rig.feed(events.LeadershipChanged(leading=True))
    rig.advance(59)
    assert rig.evictions() == []
    rig.advance(1)
    assert [one.delete for one in rig.take(commands.Evict)] == [True]


def test_what_a_budget_held_begins_again_for_another_policy_of_the_same_name():
    given = limited(spec=THEN_DELETE)
    rig = Rig(given)
    rig.budget(allowed=0)
    rig.with_pod("sla=940", ready=True)
    rig.advance(50)
    rig.change(msgspec.structs.replace(given, uid="another"))
    rig.advance(50)
    assert rig.evictions() == []
    rig.advance(10)
    assert rig.evictions() == ["a"]


def test_failures_of_calls_before_another_led_do_not_slow_down_the_next_ones():
    rig = Rig(limited())
    for number in range(6):
        rig.pod(f"p{number}")
    rig.node("n1", "sla=940")
    for number in range(6):
        rig.settle(f"p{number}", Outcome.DENIED)
    rig.out = []
    rig.feed(events.LeadershipChanged(leading=False), events.LeadershipChanged(leading=True))
    rig.pod("other", node="n2", namespace="bank")
    rig.node("n2", "sla=940")
    assert sorted(rig.evictions()) == ["other", *(f"p{number}" for number in range(6))]


def test_zones_that_are_full_hold_only_pods_that_are_due():
    rig = Rig(limited(zone_health=UNHEALTHY))
    for number in range(3):
        rig.node(f"n{number}", "sla=940")
    rig.pod("later", gt(violation_grace_seconds=100))
    rig.pod("a")
    [report] = rig.report()
    assert (report.all_nodes_unhealthy, report.due, report.status.pending) == (True, 1, 2)


# -- a policy that changes, or is created again ------------------------------------------------------------------------


def test_pods_that_a_policy_may_evict_are_counted_again_when_it_changes():
    def selecting(**more: object) -> Policy:
        spec = {"nodeSelector": {"matchLabels": {"pool": "a"}}} | more
        return limited(guard=GuardSettings(max_percent=50, min_pods=1), spec=spec)

    rig = Rig(selecting())
    rig.node("n1", labels={"pool": "a"})
    for number in range(10):
        rig.pod(f"p{number}", namespace="shop" if number < 5 else "bank")
    guards = rig.world.limiter.guards
    assert guards.by_policy["p"].allowance() == 5
    rig.change(selecting(exclude={"namespaces": ["bank"]}))
    assert guards.by_policy["p"].allowance() == 2


UNSEEN = pytest.mark.parametrize("deleted", [[()], []], ids=["its deletion is seen", "its deletion is not seen"])


@UNSEEN
def test_a_policy_that_is_created_again_does_not_wait_for_a_write_of_the_one_before(deleted):
    rig = Rig(created("first")).with_pod("sla=940")
    rig.answer(commands.SaveGuard, WriteOutcome.REFUSED)
    rig.ordered = []
    for policies in (*deleted, (created("second"),)):
        rig.change(*policies)
    rig.store()
    assert rig.evictions() == ["a"]


@UNSEEN
def test_a_reset_of_the_policy_before_is_not_granted(deleted):
    rig = Rig(created("first"))
    rig.node("n1", "sla=940")
    for number in range(60):
        rig.pod(f"p{number}")
    rig.feed(events.ViewChanged("nodes", live=False), events.GuardReset("p"))
    rig.feed(*(events.PoliciesChanged(one) for one in (*deleted, (created("second"),))))
    rig.feed(events.ViewChanged("nodes", live=True))
    rig.store()
    assert rig.world.limiter.guards.by_policy["p"].latch.is_tripped
    assert [one for one in rig.out if isinstance(one, commands.Evict)] == []


def created(uid: str, **limits: object) -> Policy:
    return msgspec.structs.replace(limited(guard=GUARD, **limits), uid=uid)


# -- answers -----------------------------------------------------------------------------------------------------------


def one_at_a_time_and_the_first_call_failed() -> Rig:
    rig = Rig(limited(per_node=PerNode(1)))
    for name in "ab":
        rig.pod(name)
    rig.node("n1", "sla=940")
    assert rig.evictions() == ["a"]
    rig.settle("a", Outcome.FAILED)
    return rig


def test_a_retry_that_was_not_sent_leaves_open_whether_the_call_before_was_carried_out():
    rig = one_at_a_time_and_the_first_call_failed()
    rig.advance(5)
    assert rig.evictions() == ["a"]
    rig.settle("a", Outcome.NOT_SENT)
    assert rig.evictions() == []
    assert rig.phase("b") is Phase.BLOCKED


def test_a_pod_that_a_webhook_keeps_frees_its_node_when_its_retry_is_not_sent():
    rig = Rig(limited(per_node=PerNode(1)))
    rig.pod("a")
    rig.node("n1", "sla=940")
    rig.settle("a", Outcome.DENIED)
    rig.advance(2)
    rig.pod("a", gt("900"))
    rig.settle("a", Outcome.NOT_SENT)
    rig.out = []
    rig.pod("b", namespace="bank")
    assert rig.evictions() == ["b"]


def test_a_pod_whose_call_may_have_been_carried_out_delays_no_other_once_it_may_stay():
    rig = one_at_a_time_and_the_first_call_failed()
    rig.pod("a", gt("900"))
    rig.advance(1)  # its lane waits
    assert rig.evictions() == ["b"]


def test_a_pod_whose_call_got_no_answer_is_not_missing_once_the_watch_would_have_shown_that():
    """Its policy is paused, so no other call finds out."""
    share = PerWorkload("25%")
    first, second = (limited(name, per_workload=share, spec={"taints": [{"key": name}]}) for name in "xy")
    rig = Rig(first, second, limited("z", spec={"taints": [{"key": "z"}], "mode": "DryRun"}))
    rig.wants(owner(), 4)
    for number in range(4):
        rig.node(f"n{number}", *(["x=1", "z=1"] if number == 0 else []))
        rig.pod(f"p{number}", node=f"n{number}", ready=True, owner=owner())
    assert rig.evictions() == ["p0"]
    rig.settle("p0", Outcome.FAILED)
    rig.change(limited("x", per_workload=share, spec={"taints": [{"key": "x"}], "paused": True}), second)
    rig.node("n1", "y=1")
    rig.advance(59)
    assert rig.evictions() == []
    rig.advance(2)
    assert rig.evictions() == ["p1"]


def test_a_pod_counts_as_leaving_while_its_next_call_is_in_progress():
    rig = one_at_a_time_and_the_first_call_failed()
    rig.advance(90)
    assert rig.evictions() == ["a"]
    assert rig.phase("b") is Phase.BLOCKED


def test_nor_has_it_been_evicted_for_the_guard():
    """Half a minute of time-outs, and then a window that closes, are no evictions."""
    guard = GuardSettings(min_pods=5, max_percent=1, settle_seconds=0)
    rig = Rig(limited(guard=guard))
    for number in range(5):
        rig.pod(f"p{number}")
    rig.node("n1", "sla=940")
    rig.store()
    assert len(rig.evictions()) == 5
    for number in range(5):
        rig.settle(f"p{number}", Outcome.FAILED)
    rig.feed(events.ViewChanged("pods", live=False))
    rig.advance(70)
    rig.feed(events.ViewChanged("pods", live=True))
    rig.store()
    assert rig.take(commands.GuardTripped) == []
    assert rig.world.limiter.guards.by_policy["p"].evicted() + rig.world.limiter.guards.by_policy["p"].expected() == 5


def test_what_a_guard_counted_is_settled_when_the_pod_is_gone_before_the_answer_is_known():
    rig = Rig(limited(guard=GUARD)).with_pod("sla=940")
    rig.store()
    rig.settle("a", Outcome.FAILED)
    guard = rig.world.limiter.guards.by_policy["p"]
    assert "uid-a" in guard.ledger.called
    rig.gone("a")
    assert "uid-a" not in guard.ledger.called
    assert guard.evicted() == 1


# -- a node that is gone -----------------------------------------------------------------------------------------------


def test_pods_of_a_node_that_is_gone_are_in_no_domain_of_it(monkeypatch):
    rig = Rig()
    rig.node("n1", labels={ZONE: "a"})
    rig.pod("a")
    again: list[tuple[str, dict[str, str]]] = []
    labels = rig.world.cluster.labels
    monkeypatch.setattr(rig.world.spread, "relabel", lambda name: again.append((name, labels(name))))
    rig.feed(events.NodeGone("n1"))
    assert again == [("n1", {})]


# -- a node that is created again --------------------------------------------------------------------------------------


def test_pods_that_wait_for_a_version_of_a_node_do_not_wait_for_it_when_another_has_its_name():
    rig = Rig()
    rig.node("n1", "sla=940", added=START - 10)
    rig.pod("a", version=REACHED + 5)
    rig.feed(events.NodeChecked("n1", 99, REACHED + 5))
    rig.advance(5)
    assert rig.view.claims("uid-a")[0].detail == NODE_CHECK
    rig.feed(events.NodesReached(REACHED + 10))
    rig.node("n1", "sla=940", added=START - 10, uid="another", version=120)
    assert rig.evictions() == ["a"]


# -- a store that was restored -----------------------------------------------------------------------------------------


def test_pods_do_not_wait_for_a_version_that_was_lost_by_a_restore():
    rig = Rig()
    node = rig.node("n1", "sla=940", version=50)
    rig.pod("a", version=REACHED + 5)
    rig.feed(events.NodeChecked("n1", 99, REACHED + 5))
    rig.advance(5)
    assert rig.view.claims("uid-a")[0].detail == NODE_CHECK
    older = msgspec.structs.replace(node, resource_version=20)
    rig.process(events.NodeSeen(older, listed=True), events.NodesListed(frozenset({"n1"}), REACHED + 10))
    assert rig.evictions() == ["a"]


# -- a node that is to be removed, and then is not ---------------------------------------------------------------------


def test_a_second_deadline_is_missed_again():
    policy = msgspec.structs.replace(limited(), reclaim=Reclaim(120))
    rig = Rig(policy)
    rig.budget(allowed=0)
    rig.pod("a", ready=True, grace_seconds=300)
    for _ in range(2):
        rig.out = []
        rig.node("n1", "spot=1", added=rig.wall)
        rig.advance(125, step=1.0)
        assert [type(one) for one in rig.out].count(commands.DeadlineMissed) == 1
        rig.node("n1")


# -- a namespace that gets other labels --------------------------------------------------------------------------------


def test_nothing_is_kept_of_a_namespace_that_is_gone_before_its_pods():
    rig = Rig()
    for name in ("brief", "other"):
        rig.feed(events.NamespaceSeen(name, {}))
    rig.pod("a", gt("900"), namespace="brief")
    rig.node("n1", "sla=980")
    rig.feed(events.NamespaceSeen("brief"))
    rig.node("n1", "sla=940")
    rig.gone("a")
    rig.feed(events.NamespaceSeen("other"))
    assert not rig.world.cluster.namespaces


# -- a namespace that is gone ------------------------------------------------------------------------------------------


def test_nothing_is_kept_of_a_namespace_whose_profile_goes_after_it():
    """Streams of different kinds have no common order."""
    selecting = limited(spec={"namespaceSelector": {"matchLabels": {"team": "a"}}})
    rig = Rig(selecting)
    rig.node("n1", "sla=940")
    rig.feed(events.NamespaceSeen("brief", {}))
    rig.feed(events.ProfileSeen(Profile("brief", "x", LabelSelector(), (gt(),))))
    rig.pod("a", namespace="brief")
    rig.process(events.NamespaceSeen("brief", {"team": "a"}))
    rig.settle("a")
    rig.gone("a")
    rig.feed(events.NamespaceSeen("brief"), events.ProfileGone("brief", "x"))
    rig.out.clear()  # what was ordered has the pod
    verdicts = rig.world.verdicts
    assert kept((verdicts._profiles._found, verdicts._namespaces), "brief") == []


# -- a node that is gone -----------------------------------------------------------------------------------------------


def test_nothing_is_kept_of_a_node_that_is_gone_before_its_read_has_failed():
    rig = Rig(reached=0).with_pod("sla=940", version=9)
    assert rig.take(commands.CheckNode)
    rig.feed(events.NodeGone("n1"))
    rig.gone("a")
    rig.process(events.NodeChecked("n1"))
    rig.out.clear()
    assert kept(rig.machine._freshness, "n1") == []


# -- a policy that is gone ---------------------------------------------------------------------------------------------


def test_nothing_is_kept_of_a_policy_that_is_gone():
    limits = {"guard": GUARD, "zone_health": UNHEALTHY, "evictions_per_second": 5.0}
    brief = limited("brief", **limits)
    rig = Rig(limited("stays", **limits))
    rig.node("n1", "sla=980", labels={ZONE: "a"})
    rig.node("n2", labels={ZONE: "b"})
    rig.pod("a", gt())
    rig.change(*rig.view.policies, brief)
    rig.node("n1", "sla=940", labels={ZONE: "a"})
    rig.store()
    rig.settle("a", Outcome.BLOCKED)
    rig.node("n2", "sla=940", labels={ZONE: "b"})
    rig.change(limited("stays", **limits))
    world, machine = rig.world, rig.machine
    assert kept((world.claims, world.limiter.zones), "brief") == []
    for part in (world.limiter.guards, world.queues, machine._outbox, machine._guarding):
        assert [name for name, found in vars(part).items() if isinstance(found, dict) and "brief" in found] == []


def test_a_pod_that_is_gone_after_a_call_without_an_answer_counts_as_evicted():
    """That call most likely evicted it."""
    rig = Rig(limited(guard=GUARD)).with_pod("sla=940")
    rig.store()
    rig.settle("a", Outcome.FAILED)
    rig.store()
    rig.settle("a", Outcome.GONE)
    rig.gone("a")
    assert rig.world.limiter.guards.by_policy["p"].evicted() == 1
