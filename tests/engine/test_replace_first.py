"""A Deployment of one replica starts the replacement before its pod is removed (``eviction.replaceFirst``)."""

import pytest

from engine.rig import START, Rig, exists, gt, limited
from taintwarden.engine import commands, events
from taintwarden.engine.limit_settings import GuardSettings
from taintwarden.engine.machine import Phase
from taintwarden.engine.model import Deployment, Owner, Revision
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import (
    EvictionSettings,
    Method,
    Policy,
    Reclaim,
    ReplaceFirst,
    TaintSelector,
    Timing,
    has_replace_first,
)
from taintwarden.engine.rfc3339 import at

WEB = Owner("ReplicaSet", "web-1", "rs")
SETTINGS = EvictionSettings(replace_first=ReplaceFirst(300))


def policy(**more) -> Policy:
    given = limited(**more.pop("limits", {}))
    taints = more.pop("taints", given.taints)
    eviction = more.pop("eviction", SETTINGS)
    return Policy(name="p", uid="uid-p", taints=taints, limits=given.limits, eviction=eviction, **more)


def deployment(restarted_at: str = "", *, can_replace: bool = True, version: str = "7") -> Deployment:
    return Deployment("shop", "web", "web", version, can_replace, restarted_at)


def rig(*policies: Policy, listed: bool = True, restarted_at: str = "", **more) -> Rig:
    made = Rig(*(policies or (policy(),)), **more)
    made.process(events.WorkloadSeen(("shop", "rs"), 1, revision=Revision("web", restarted_at)))
    made.process(events.DeploymentsKnown(is_known=True))
    if listed:
        made.process(events.DeploymentSeen(deployment(restarted_at)))
    else:
        made.process(events.DeploymentsKnown(is_known=False))
    return made


def due(*policies: Policy, **more) -> Rig:
    """The only pod of Deployment web is due."""
    made = rig(*policies, **more)
    made.pod("a", owner=WEB, ready=True)
    made.node("n1", "sla=940")
    return made


def orders(made: Rig) -> list[commands.Evict]:
    made.save()
    return made.take(commands.Evict)


def asked(made: Rig) -> bool:
    """True if the one order is to ask the Deployment, and not to evict."""
    [order] = orders(made)
    return order.deployment is not None


def test_a_due_pod_is_replaced_before_it_is_evicted():
    made = due()
    [order] = orders(made)
    assert order.deployment == deployment(at(START))


def test_one_of_several_policies_is_enough_to_replace_pods():
    assert has_replace_first([limited("q"), policy()])
    assert asked(due(policy(), limited("q")))


def test_a_pod_that_its_deployment_removes_counts_as_evicted_once():
    made = due()
    made.settle("a", Outcome.ASKED)
    made.advance(40)
    made.gone("a", until=made.wall + 30)
    assert len(made.take(commands.Evicted)) == 1
    assert made.report()[0].status.evicted == 1


def test_a_pod_waits_for_its_replacement_until_the_timeout_and_is_evicted_then():
    made = due()
    assert asked(made)
    made.settle("a", Outcome.ASKED)
    made.advance(299.5)
    assert orders(made) == []
    made.advance(1)
    assert not asked(made)


def test_a_waiting_pod_says_which_deployment_was_asked_and_until_when():
    made = due()
    made.settle("a", Outcome.ASKED)
    claim = made.claim("a")
    assert (claim.phase, claim.limit) == (Phase.BLOCKED, "workload")
    expected = f"asked Deployment web for a replacement at {at(START)}, waits for it until {at(START + 300)}"
    assert claim.detail == expected


def test_the_request_is_announced_with_its_end():
    made = due()
    made.out = []
    made.settle("a", Outcome.ASKED)
    [notice] = made.take(commands.ReplacementAsked)
    assert (notice.deployment, notice.until) == ("web", START + 300)


def test_a_budget_that_never_allows_does_not_matter():
    made = rig()
    made.budget("pdb", 0)
    made.pod("a", owner=WEB, ready=True)
    made.node("n1", "sla=940")
    assert asked(made)


def test_a_budget_counts_for_a_pod_that_is_evicted_after_the_timeout():
    made = rig()
    made.budget("pdb", 0)
    made.pod("a", owner=WEB, ready=True)
    made.node("n1", "sla=940")
    made.settle("a", Outcome.ASKED)
    made.out = []
    made.advance(301)
    assert (orders(made), made.claim("a").limit) == ([], "budget")


def test_the_guard_counts_a_pod_whatever_its_budget_allows():
    guarded = policy(limits={"guard": GuardSettings(min_pods=0, max_percent=1, settle_seconds=0)})
    made = rig(guarded)
    made.budget("pdb", 0)
    made.pod("a", owner=WEB, ready=True)
    made.node("n1", "sla=940")
    made.save()
    assert made.report()[0].guard.record.tripped_at is not None


GUARDED = {"guard": GuardSettings(min_pods=10, settle_seconds=2)}


def guarded(*, listed: bool = True) -> Rig:
    """The pod of Deployment web has to leave, under a guard. A budget never allows its eviction."""
    made = rig(policy(limits=GUARDED), listed=listed)
    made.budget("pdb", 0)
    made.pod("a", owner=WEB, ready=True)
    made.node("n1", "sla=940")
    return made


def counted(made: Rig) -> int:
    return made.world.limiter.guards.by_policy["p"].expected()


def test_a_pod_whose_deployment_is_known_late_waits_until_its_wave_is_complete():
    made = guarded(listed=False)
    made.advance(3)
    made.process(events.DeploymentSeen(deployment()), events.DeploymentsKnown(is_known=True))
    assert (orders(made), counted(made)) == ([], 1)
    made.advance(2)
    assert asked(made)


def test_the_guard_stops_counting_a_pod_that_is_not_replaced_and_that_a_budget_keeps():
    made = guarded()
    assert counted(made) == 1
    made.process(events.DeploymentSeen(deployment(can_replace=False)))
    made.advance(2)
    assert (orders(made), counted(made)) == ([], 0)


def test_a_deployment_that_cannot_replace_has_its_pod_evicted():
    made = rig()
    made.process(events.DeploymentSeen(deployment(can_replace=False)))
    made.pod("a", owner=WEB, ready=True)
    made.node("n1", "sla=940")
    assert not asked(made)


def test_a_pod_that_is_not_ready_is_evicted():
    made = rig()
    made.pod("a", owner=WEB, ready=False)
    made.node("n1", "sla=940")
    assert not asked(made)


@pytest.mark.parametrize("missing", ["replica set", "deployment"])
def test_a_pod_whose_deployment_is_not_known_is_evicted(missing):
    made = rig()
    gone = events.WorkloadSeen(("shop", "rs"), 1) if missing == "replica set" else events.DeploymentGone("shop", "web")
    made.process(gone)
    made.pod("a", owner=WEB, ready=True)
    made.node("n1", "sla=940")
    assert not asked(made)


def test_no_pod_is_called_before_deployments_are_listed():
    made = due(listed=False)
    assert (orders(made), made.claim("a").limit) == ([], "view")
    made.process(events.DeploymentSeen(deployment()), events.DeploymentsKnown(is_known=True))
    assert asked(made)


def test_deployments_that_stay_unknown_are_reported_and_keep_a_pod_until_the_timeout():
    made = due(listed=False)
    made.advance(299)
    assert orders(made) == []
    made.advance(1)
    assert not asked(made)
    assert made.report()[0].replacement_problem == "the list of Deployments is not up to date"


def test_a_report_does_not_decide_that_a_deployment_was_asked():
    made = rig(policy(timing=Timing(violation_grace_seconds=600)))
    made.pod("a", owner=WEB, ready=True)
    made.node("n1", "sla=940")
    made.process(events.DeploymentSeen(deployment(at(made.wall), can_replace=False)))  # a person restarts it
    made.report()
    made.advance(30)
    made.process(events.DeploymentSeen(deployment()))  # and undoes that
    made.advance(600)
    assert asked(made)


def test_a_list_that_fails_again_prolongs_no_wait():
    made = due(listed=False)
    made.advance(200)
    made.process(events.DeploymentsKnown(is_known=False))
    made.advance(100)
    assert not asked(made)


def test_a_policy_that_begins_to_ask_waits_for_the_list_of_deployments():
    made = Rig(policy(eviction=EvictionSettings()))
    made.change(policy())
    made.pod("a", owner=WEB, ready=True)
    made.node("n1", "sla=940")
    assert (orders(made), made.claim("a").limit) == ([], "view")


def test_a_pod_that_a_budget_blocks_is_replaced_when_its_deployment_can_do_that():
    made = rig()
    made.process(events.DeploymentSeen(deployment(can_replace=False)))
    made.budget("pdb", 0)
    made.pod("a", owner=WEB, ready=True)
    made.node("n1", "sla=940")
    assert orders(made) == []
    made.process(events.DeploymentSeen(deployment()))
    assert asked(made)


def test_a_pod_that_a_budget_blocks_is_replaced_when_its_replica_set_is_known():
    made = rig()
    made.process(events.WorkloadSeen(("shop", "rs"), 1))
    made.budget("pdb", 0)
    made.pod("a", owner=WEB, ready=True)
    made.node("n1", "sla=940")
    assert orders(made) == []
    made.process(events.WorkloadSeen(("shop", "rs"), 1, revision=Revision("web", "")))
    assert asked(made)


def test_a_deployment_that_changes_delays_no_other_pod_of_its_namespace():
    made = rig()
    made.pod("other")
    made.feed(events.DeploymentSeen(deployment(can_replace=False)))
    assert made.machine._backlog.next_in(made.now) is None


def test_without_the_right_to_read_deployments_a_pod_is_evicted_as_any_other():
    made = due(listed=False)
    made.process(events.DeploymentsKnown(is_known=False, problem="forbidden"))
    assert not asked(made)
    assert made.report()[0].replacement_problem == "forbidden"


def test_a_refused_request_evicts_the_pod_as_any_other_and_is_reported():
    made = due()
    made.out = []
    made.settle("a", Outcome.NOT_REPLACED, message="forbidden")
    assert not asked(made)
    assert made.report()[0].replacement_problem == "the last request was refused: forbidden"


def test_a_right_to_read_that_comes_back_ends_the_problem_of_the_last_request():
    made = due()
    made.settle("a", Outcome.NOT_REPLACED, message="forbidden")
    made.process(events.DeploymentsKnown(is_known=False, problem="forbidden"))
    made.process(events.DeploymentsKnown(is_known=True))
    assert made.report()[0].replacement_problem == ""


def test_the_next_accepted_request_ends_the_problem():
    made = due()
    made.settle("a", Outcome.NOT_REPLACED, message="forbidden")
    made.settle("a")
    made.gone("a")
    made.pod("b", owner=WEB, ready=True)
    made.settle("b", Outcome.ASKED)
    assert made.report()[0].replacement_problem == ""


def test_a_policy_without_the_field_reports_nothing_about_replacements():
    assert Rig().report()[0].replacement_problem is None


def test_a_request_without_an_answer_is_not_repeated():
    made = due()
    assert asked(made)
    made.settle("a", Outcome.FAILED)
    made.advance(299)
    assert orders(made) == []
    made.advance(2)
    assert not asked(made)


@pytest.mark.parametrize("outcome", [Outcome.NOT_SENT, Outcome.THROTTLED])
def test_a_request_that_was_not_sent_or_that_flow_control_rejected_is_made_again(outcome):
    made = due()
    assert asked(made)
    made.settle("a", outcome)
    made.advance(2)
    assert asked(made)


def test_a_revert_of_the_annotation_causes_no_second_request():
    made = due()
    made.settle("a", Outcome.ASKED)
    made.out = []
    made.process(events.DeploymentSeen(deployment(at(START), can_replace=False)))
    made.process(events.DeploymentSeen(deployment(version="9")))
    made.advance(299)
    assert orders(made) == []
    made.advance(2)
    assert not asked(made)


def test_a_new_process_waits_for_the_rest_of_the_time():
    made = rig()
    made.process(events.DeploymentSeen(deployment(at(START - 100), can_replace=False)))
    made.pod("a", owner=WEB, ready=True)
    made.node("n1", "sla=940")
    made.advance(199)
    assert orders(made) == []
    made.advance(2)
    assert not asked(made)


@pytest.mark.parametrize("annotation", ["yesterday", at(START + 9_000)])
def test_an_annotation_without_a_usable_time_counts_from_when_it_is_seen(annotation):
    made = rig()
    made.process(events.DeploymentSeen(deployment(annotation, can_replace=False)))
    made.pod("a", owner=WEB, ready=True)
    made.node("n1", "sla=940")
    made.advance(299)
    assert orders(made) == []
    made.advance(2)
    assert not asked(made)


def test_an_annotation_that_is_written_again_keeps_no_pod():
    made = rig()
    made.process(events.DeploymentSeen(deployment(at(START), can_replace=False)))
    made.pod("a", owner=WEB, ready=True)
    made.node("n1", "sla=940")
    for _ in range(6):
        made.advance(49)
        made.process(events.DeploymentSeen(deployment(at(made.wall), can_replace=False)))
    made.advance(10)
    assert not asked(made)


def test_a_pod_with_the_annotation_of_its_deployment_was_not_asked_for():
    assert asked(due(restarted_at=at(START - 10)))


def test_a_pod_that_its_deployment_was_asked_for_counts_as_missing():
    made = due()
    made.settle("a", Outcome.ASKED)
    assert "uid-a" in made.world.limiter.workloads._leaving
    made.advance(301)
    made.settle("a", Outcome.BLOCKED)
    assert "uid-a" not in made.world.limiter.workloads._leaving


def test_a_pod_that_may_stay_meanwhile_is_not_evicted():
    made = due()
    made.settle("a", Outcome.ASKED)
    made.out = []
    made.node("n1", "sla=990")
    made.node("n1")
    made.advance(400)
    assert orders(made) == []


@pytest.mark.parametrize(("deadline", "is_asked"), [(329, False), (331, True)])
def test_a_pod_whose_node_is_removed_is_replaced_if_timeout_and_grace_fit(deadline, is_asked):
    made = rig(policy(reclaim=Reclaim(deadline)))
    made.pod("a", owner=WEB, ready=True)
    made.node("n1", "sla=940", added=START)
    assert asked(made) is is_asked


@pytest.mark.parametrize(("own", "given"), [(100, 10), (10, 100)])
def test_a_pod_is_evicted_if_the_longer_grace_of_its_own_and_its_policy_does_not_fit(own, given):
    eviction = EvictionSettings(grace_period_seconds=given, replace_first=ReplaceFirst(300))
    made = rig(policy(reclaim=Reclaim(399), eviction=eviction))
    made.pod("a", owner=WEB, ready=True, grace_seconds=own)
    made.node("n1", "sla=940", added=START)
    assert not asked(made)


@pytest.mark.parametrize(("placement", "is_asked"), [(False, False), (True, True)])
def test_a_pod_whose_replacement_may_come_back_to_the_node_is_evicted(placement, is_asked):
    made = rig(policy(taints=(TaintSelector("sla", placement=placement),)))
    made.pod("a", exists(), extended=(gt(),), owner=WEB, ready=True)
    made.node("n1", "sla=940")
    assert asked(made) is is_asked


@pytest.mark.parametrize(("taints", "is_asked"), [(["soft=1:PreferNoSchedule"], False), (["hard=1"], True)])
def test_a_pod_is_replaced_if_one_of_its_taints_keeps_the_replacement_away(taints, is_asked):
    effects = "NoExecute", "PreferNoSchedule"
    made = rig(policy(taints=(TaintSelector("*", effects=effects),)))
    made.pod("a", owner=WEB, ready=True)
    made.node("n1", "another=1:PreferNoSchedule", *taints)
    assert asked(made) is is_asked


def test_delete_is_no_method_for_a_pod_that_is_replaced():
    made = due(policy(eviction=EvictionSettings(method=Method.DELETE, replace_first=ReplaceFirst(300))))
    [order] = orders(made)
    assert (order.deployment is not None, order.delete) == (True, False)


def test_what_is_kept_of_a_pod_ends_with_it():
    made = due()
    made.settle("a", Outcome.ASKED)
    made.gone("a")
    assert made.world.limiter.replacements._asked == {}


def test_what_is_kept_ends_with_the_last_policy_that_asks():
    made = due()
    made.settle("a", Outcome.ASKED)
    made.change(policy(eviction=EvictionSettings()))
    kept = made.world.limiter.replacements
    assert (kept._asked, kept._deployments, kept._revisions) == ({}, {}, {})


def test_a_request_that_is_answered_when_no_policy_asks_any_more_delays_no_pod():
    made = due()
    made.change(policy(eviction=EvictionSettings()))
    orders(made)
    made.settle("a", Outcome.ASKED)
    made.advance(1)
    assert [order.deployment for order in orders(made)] == [None]


def test_pods_are_evicted_as_any_other_if_the_right_is_removed_later():
    made = rig()
    made.process(events.DeploymentsKnown(is_known=False, problem="forbidden"))
    made.pod("a", owner=WEB, ready=True)
    made.node("n1", "sla=940")
    assert not asked(made)


def test_a_pod_whose_node_is_removed_waits_for_no_rollout_that_ends_too_late():
    made = rig(policy(reclaim=Reclaim(120)))
    made.process(events.DeploymentSeen(deployment(at(START - 10), can_replace=False)))
    made.pod("a", owner=WEB, ready=True)
    made.node("n1", "sla=940", added=START)
    made.advance(89)
    assert orders(made) == []
    made.advance(1)
    [order] = orders(made)
    assert (order.deployment, order.grace_period_seconds) == (None, None)


def test_a_deadline_that_comes_nearer_ends_the_wait():
    made = due(policy(reclaim=Reclaim(400)))
    made.settle("a", Outcome.ASKED)
    made.change(policy(reclaim=Reclaim(120)))
    made.advance(89)
    made.out = []
    made.advance(1)
    assert not asked(made)


def test_each_pod_of_a_deployment_waits_until_its_own_time():
    made = rig()
    made.process(events.DeploymentSeen(deployment("yesterday", can_replace=False)))
    made.pod("b", owner=WEB, ready=True)
    made.node("n1", "sla=940")
    made.advance(100)
    made.pod("a", owner=WEB, ready=True)  # first in order, and the last whose time is over
    made.advance(201)
    assert [one.pod.name for one in orders(made)] == ["b"]


def not_sent(made: Rig, seconds: int) -> bool:
    """Settle each request as not sent. Returns whether the pod was evicted."""
    for _ in range(seconds):
        for order in orders(made):
            if order.deployment is None:
                return True
            made.settle("a", Outcome.NOT_SENT)
        made.advance(1)
    return False


def test_a_deployment_that_changes_before_each_request_has_its_pod_evicted_after_the_timeout():
    made = due()
    assert not not_sent(made, 299)
    assert not_sent(made, 5)


def test_requests_of_an_earlier_wave_do_not_count():
    made = due()
    assert not not_sent(made, 200)
    made.settle("a", Outcome.NOT_SENT)
    made.node("n1")
    made.advance(400)
    made.out = []
    made.node("n1", "sla=940")
    assert not not_sent(made, 200)


@pytest.mark.parametrize("asks", [True, False])
def test_a_refusal_of_deployments_that_is_repeated_has_no_pod_evaluated_again(asks):
    made = rig(policy(eviction=SETTINGS if asks else EvictionSettings()))
    made.node("n1")
    refused = events.DeploymentsKnown(is_known=False, problem="forbidden")
    made.process(refused)
    made.feed(refused)
    assert made.machine.wake_after(made.now) != 0.0


def test_deployments_that_no_policy_asks_have_no_pod_evaluated_again():
    made = rig(policy(eviction=EvictionSettings()))
    made.node("n1")
    made.feed(events.DeploymentsKnown(is_known=False))
    assert made.machine.wake_after(made.now) != 0.0
