"""The view of the machine for other packages: of its state, the cluster, and what holds a claim."""

import pytest

from engine.rig import REACHED, Rig, exists, gt, limited
from taintwarden.engine import commands, events
from taintwarden.engine.limits.refusal import VIEW
from taintwarden.engine.machine import ClaimView, Phase
from taintwarden.engine.model import Profile
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.selectors import LabelSelector


def evicted(*policies, **options) -> Rig:
    """The pod ``a`` has to leave ``n1`` now."""
    return Rig(*(policies or (limited(),)), **options).with_pod("sla=940")


def only(rig: Rig, name: str = "a") -> ClaimView:
    [claim] = rig.view.claims(f"uid-{name}")
    return claim


# -- what is in force -------------------------------------------------------------------------------------------------


def test_tolerations_of_a_class_are_its_own_and_those_of_profiles():
    rig = Rig()
    pod = rig.pod("a", gt())
    rig.feed(events.ProfileSeen(Profile("shop", "all", LabelSelector(), (exists("spot"),))))
    assert [one.key for one in rig.view.tolerations_of(pod.shared).native] == ["sla"]
    assert [one.key for one in rig.view.tolerations_of(pod.shared).extended] == ["spot"]
    assert [one.name for one in rig.view.profiles_of(pod.shared)] == ["all"]
    assert [one.name for one in rig.view.profiles] == ["all"]


def test_policies_of_a_class_are_those_that_select_it():
    rig = Rig(limited("a"), limited("b", spec={"podSelector": {"matchLabels": {"app": "db"}}}))
    assert [one.name for one in rig.view.policies_for(rig.pod("a").shared)] == ["a"]


@pytest.mark.parametrize("name", ["n2", "n3"], ids=["has a pod", "is unknown"])
def test_a_node_that_was_not_seen_is_none(name):
    rig = Rig()
    rig.pod("a", node="n2")
    assert (rig.view.node(name), rig.view.nodes) == (None, ())
    rig.node("n1")
    assert rig.view.nodes == ("n1",)


# -- the cluster ------------------------------------------------------------------------------------------------------


def test_a_node_has_its_taints_and_the_policies_that_act_on_it():
    rig = evicted(limited("a"), limited("b", spec={"nodeSelector": {"matchLabels": {"pool": "b"}}}))
    found = rig.view.node("n1")
    assert [(one.key, history.value) for one, history in found.taints] == [("sla", "940")]
    assert [one.name for one in found.policies] == ["a"]
    assert found.device_taints == ()


def test_verdicts_are_on_a_class_and_a_node_which_need_no_such_pod():
    rig = Rig()
    rig.node("n1", "sla=940")
    [verdict] = rig.view.verdicts("n1", rig.make_pod("a", gt()).shared)
    assert (verdict.taint.value, verdict.evicts) == ("940", True)


def test_a_pod_stays_for_no_reason_where_its_node_has_no_taint_that_the_policy_names():
    rig = Rig()
    rig.node("n1")
    [given], stays = rig.view.policies, rig.make_pod("a", do_not_evict=True).shared
    assert [rig.view.why_staying(node, stays, given) for node in ("n1", "unknown")] == ["", ""]
    rig.node("n1", "sla=940")
    assert rig.view.why_staying("n1", stays, given) == "opted out"
    rig.node("n1", "sla=940", do_not_evict=True)
    assert rig.view.why_staying("n1", stays, given) == "node opted out"


# -- what holds a claim -----------------------------------------------------------------------------------------------


def test_a_pod_that_is_gone_while_its_call_is_in_progress_is_not_shown():
    rig = evicted()
    rig.gone("a")
    assert list(rig.view.all_claims()) == []


@pytest.mark.parametrize(("message", "end"), [("policy says no", ": policy says no"), ("", "")])
def test_after_a_failed_call_its_outcome_holds_the_pod_until_the_next_one(message, end):
    rig = evicted()
    rig.settle("a", Outcome.DENIED, message=message)
    claim = only(rig)
    assert (claim.phase, claim.limit) == (Phase.READY, "failing")
    assert claim.detail.endswith(f"rejects the eviction{end}")
    assert claim.until == rig.monotonic + 1
    assert (claim.outcome, claim.attempts, claim.budgets) == (Outcome.DENIED, 1, ())


def test_a_pod_still_waits_for_it_between_reads_that_prove_nothing():
    rig = Rig(limited()).with_pod("sla=940", version=REACHED + 5)
    rig.process(events.NodeChecked("n1"))
    claim = only(rig)
    assert (claim.phase, claim.limit) == (Phase.BLOCKED, VIEW)
    assert rig.take(commands.Held) == []
    assert [one.limit for one in rig.report()[0].status.limits] == [VIEW]


def test_a_stream_that_is_cut_off_holds_all_that_are_due():
    rig = Rig(limited())
    rig.budget("mine", 0)
    rig.pod("a")
    rig.node("n1", "sla=940")
    rig.feed(events.ViewChanged("pods", live=False))
    assert only(rig).limit == VIEW
