"""RefusalScope the machine picks: policies and their precedence, exclusions, narrowing, opt-outs, changed verdicts."""

import json

import msgspec
import pytest

from engine.rig import START, Rig, exists, gt
from simulated import policy
from taintwarden.engine import commands, events
from taintwarden.engine.evaluate import TaintVerdict
from taintwarden.engine.machine import Phase
from taintwarden.engine.machine.verdicts import MAX_CACHED_VERDICTS
from taintwarden.engine.model import Gates, Owner, Toleration
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import OnInvalidValue, Reclaim
from taintwarden.engine.rfc3339 import at

WEB = Owner("ReplicaSet", "web", "uid-web")


def fate(rig: Rig, *tolerations: Toleration, **pod: object) -> str:
    """The policy that makes a pod leave, or an empty text."""
    made = rig.pod("a", *tolerations, **pod)
    claims = (claim for claim in rig.view.claims(made.uid) if claim.phase is not Phase.PAUSED)
    return next((claim.policy.name for claim in claims), "")


# -- precedence -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "acting"),
    [
        (["example.com/sla", "*"], "p0"),
        (["*", "example.com/sla"], "p1"),
        (["example.com/*", "*"], "p0"),
        (["example.com/*", "example.com/sla"], "p1"),
        (["example.com/*", "example.org/*"], "p0"),
        (["sla", "*"], "p1"),
        (["other", "sla"], ""),
    ],
)
def test_the_most_specific_key_acts(keys, acting):
    rig = Rig(*[policy(f"p{number}", taints=[{"key": key}]) for number, key in enumerate(keys)])
    rig.node("n1", "example.com/sla=1")
    assert fate(rig) == acting


def test_of_equal_keys_the_oldest_policy_acts():
    young, old = (
        msgspec.structs.replace(policy(name, taints=[{"key": "sla"}]), created_at=at)
        for name, at in (("a", 20.0), ("b", 10.0))
    )
    rig = Rig(young, old)
    rig.node("n1", "sla=1")
    assert fate(rig) == "b"


def test_a_more_specific_policy_that_is_paused_keeps_the_others_off():
    rig = Rig(policy("all"), policy("sla", taints=[{"key": "sla"}], paused=True))
    rig.node("n1", "sla=1")
    assert fate(rig) == ""


def test_each_taint_has_its_own_policy_and_the_first_deadline_wins():
    slow = policy("slow", taints=[{"key": "x"}], timing={"violationGraceSeconds": 60})
    rig = Rig(slow, policy("fast", taints=[{"key": "y"}], timing={"violationGraceSeconds": 30}))
    rig.node("n1", "x=1", "y=1")
    assert fate(rig) == "fast"
    assert rig.deadline("a") == 30.0
    rig.node("n1", "x=1")
    assert rig.deadline("a") == 60.0


# -- selectors --------------------------------------------------------------------------------------------------------


def test_only_selected_namespaces_count():
    rig = Rig(policy(namespaceSelector={"matchLabels": {"team": "a"}}))
    rig.node("n1", "sla=1")
    assert fate(rig) == ""  # a namespace that is not known yet is selected by no selector
    rig.process(events.NamespaceSeen("shop", {"team": "a"}))
    assert rig.deadline("a") == 0.0


@pytest.mark.parametrize("change", [events.NamespaceSeen("shop", {}), events.NamespaceSeen("shop")])
def test_a_namespace_that_is_no_longer_selected_spares_its_pods(change):
    grace = {"violationGraceSeconds": 60}
    rig = Rig(policy(namespaceSelector={"matchLabels": {"team": "a"}}, timing=grace))
    rig.feed(events.NamespaceSeen("shop", {"team": "a"}))
    rig.node("n1", "sla=1")
    assert fate(rig) == "p"
    rig.process(change)
    assert rig.deadline("a") is None


# -- exclusions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exclude", "pod", "leaves"),
    [
        ({}, {"namespace": "kube-system"}, False),
        ({"namespaces": []}, {"namespace": "kube-system"}, True),
        ({"namespaces": ["shop"]}, {}, False),
        ({}, {"daemon_set": True}, False),
        ({"daemonSets": False}, {"daemon_set": True}, True),
        ({}, {"priority": 2_000_000_000}, False),
        ({}, {"priority": 1_999_999_999}, True),
        ({"priorityAtLeast": 100}, {"priority": 100}, False),
        ({"priorityAtLeast": 100}, {"priority": 99}, True),
        ({"priorityAtLeast": None}, {"priority": 2_000_001_000}, True),
        ({}, {"do_not_evict": True}, False),
        ({"respectDoNotDisrupt": False}, {"do_not_evict": True}, False),
        ({"respectDoNotEvict": False}, {"do_not_evict": True}, True),
        ({}, {"do_not_disrupt": True}, False),
        ({"respectDoNotDisrupt": False}, {"do_not_disrupt": True}, True),
        ({}, {"owner": None}, True),
        ({"bare": True}, {"owner": None}, False),
        ({"bare": True}, {"owner": WEB}, True),
        ({}, {"local_storage": True}, True),
        ({"localStorage": True}, {"local_storage": True}, False),
        ({"localStorage": True}, {"local_storage": False}, True),
    ],
    ids=lambda given: json.dumps(given, default=str),
)
def test_excluded_pods_are_not_evicted(exclude, pod, leaves):
    rig = Rig(policy(exclude=exclude))
    rig.node("n1", "sla=1")
    assert bool(fate(rig, **pod)) is leaves


def test_a_pod_protected_for_a_time_leaves_after_it():
    rig = Rig()
    rig.with_pod("sla=940", gt(), bound_at=START, protected_seconds=3_600.0)
    rig.pod("b", gt(violation_grace_seconds=7_200), bound_at=START, protected_seconds=3_600.0)
    rig.pod("c", gt(), bound_at=START - 3_000, protected_seconds=3_600.0)
    rig.pod("d", gt(), bound_at=START)
    assert rig.evictions() == ["d"]
    due = {claim.pod.name: claim.due_at - rig.now.wall for claim in rig.view.all_claims() if claim.pod.name != "d"}
    assert due == {"a": 3_600, "b": 7_200, "c": 600}
    rig.advance(601)
    assert rig.evictions() == ["c"]


def test_a_policy_that_does_not_respect_it_protects_no_pod_for_a_time():
    rig = Rig(policy(exclude={"respectDoNotDisrupt": False}))
    rig.with_pod("sla=940", gt(), bound_at=START, protected_seconds=3_600.0)
    assert rig.evictions() == ["a"]


def test_a_node_that_will_be_removed_protects_no_pod_longer():
    rig = Rig(msgspec.structs.replace(policy(), reclaim=Reclaim(120))).with_pod(
        "sla=940", gt(violation_grace_seconds=7_200), bound_at=START, protected_seconds=3_600.0, grace_seconds=30
    )
    rig.advance(100)
    assert rig.evictions() == ["a"]


@pytest.mark.parametrize(("respected", "leaves"), [(True, False), (False, True)])
def test_a_node_that_opts_out(respected, leaves):
    rig = Rig(policy(exclude={"respectDoNotEvict": respected}))
    rig.node("n1", "sla=1", do_not_evict=True)
    assert bool(fate(rig)) is leaves


def test_operators_that_are_switched_off_tolerate_nothing():
    assert Rig(gates=Gates(numeric_operators=False)).with_pod("sla=980", gt()).claimed() == ["a"]


def test_a_node_that_is_selected_by_its_new_labels_loses_its_pods():
    rig = Rig(policy(nodeSelector={"matchLabels": {"pool": "b"}}))
    rig.pod("a")
    for pool in "ab":
        rig.node("n1", "sla=940", labels={"pool": pool})
        assert rig.claimed() == ["a"] * (pool == "b")


def test_a_node_that_opts_out_later_keeps_its_pods_and_opts_in_again():
    rig = Rig().with_pod("sla=940", gt(violation_grace_seconds=60))
    rig.out = []
    rig.node("n1", "sla=940", do_not_evict=True)
    assert rig.notices() == ["Cancelled a"]
    rig.advance(120)
    rig.node("n1", "sla=940")
    assert rig.evictions() == ["a"]


# -- quarantine --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pod",
    [
        {"native": [Toleration("", "Exists")]},
        {"native": [exists()]},
        {"extended": [exists()]},
        {"extended": [gt("1", violation_grace_seconds=2**31 - 1)]},
        {"native": [exists(toleration_seconds=2**31 - 1)]},
    ],
    ids=str,
)
@pytest.mark.parametrize("quarantine", [False, True])
def test_no_toleration_answers_a_quarantine(pod, quarantine):
    rig = Rig(msgspec.structs.replace(policy(), quarantine=quarantine)).with_pod(
        "sla=1", *pod.get("native", ()), extended=pod.get("extended", ())
    )
    assert rig.evictions() == (["a"] if quarantine else [])


def test_the_grace_of_a_quarantine_is_that_of_its_policy():
    rig = Rig(msgspec.structs.replace(policy(timing={"violationGraceSeconds": 60}), quarantine=True)).with_pod(
        "sla=1", extended=[gt("950", violation_grace_seconds=3_600)]
    )
    rig.advance(59)
    assert rig.evictions() == []
    rig.advance(2)
    assert rig.evictions() == ["a"]


# -- narrowing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("native", "extended", "leaves"),
    [
        ([exists()], [gt()], True),
        ([exists()], [], False),
        ([], [gt()], True),
        ([exists()], [exists()], False),
        ([exists()], [gt("900")], False),
        ([exists()], [exists("other")], False),
        ([exists("")], [gt()], True),
        ([], [exists("")], False),
        ([exists()], [exists(""), gt()], False),
    ],
)
def test_extended_tolerations_narrow_the_keys_they_name(native, extended, leaves):
    rig = Rig()
    rig.node("n1", "sla=940")
    assert bool(fate(rig, *native, extended=extended)) is leaves


# -- values that cannot be compared -----------------------------------------------------------------------------------


def test_an_invalid_value_is_reported_once_though_pods_that_compare_it_come_and_go():
    rig = Rig()
    rig.node("n1", "sla=high")
    for name in "abc":
        rig.pod(name, gt())
        rig.gone(name)
        rig.node("n1", "sla=high")
    rig.node("n1", "sla=high", "other=1")
    rig.pod("d", gt())
    assert len(rig.take(commands.InvalidValue)) == 1
    rig.node("n1", "sla=higher")
    [told] = rig.take(commands.InvalidValue)
    assert (told.verdict.taint.value, told.held, told.node_uid) == ("higher", True, "uid-n1")


def test_an_invalid_value_is_reported_again_by_the_next_leader():
    rig = Rig().with_pod("sla=high", gt())
    rig.take(commands.InvalidValue)
    rig.process(events.LeadershipChanged(leading=False), events.LeadershipChanged(leading=True, term=2))
    assert len(rig.take(commands.InvalidValue)) == 1


def test_an_invalid_value_that_comes_back_is_reported_again():
    rig = Rig().with_pod("sla=high", gt())
    for value in ("980", "high"):
        rig.node("n1", f"sla={value}")
    assert len(rig.take(commands.InvalidValue)) == 2


def invalid(rig: Rig) -> list[tuple[str, str, int]]:
    """The invalid taints in the status."""
    (report,) = rig.report()
    return [(one.node, one.taint, one.pods) for one in report.status.invalid_taints]


@pytest.mark.parametrize("reaction", OnInvalidValue)
def test_a_value_that_is_not_of_its_type_is_reported_as_long_as_it_is_there(reaction):
    rig = Rig(policy(timing={"onInvalidValue": reaction}, taints=[{"key": "sla", "valueType": "Integer"}]))
    rig.pod("a", gt())
    rig.node("n1", "sla=98O")
    assert invalid(rig) == [("n1", "sla=98O:NoExecute", 1)]
    rig.gone("a")
    assert invalid(rig) == [("n1", "sla=98O:NoExecute", 0)]
    rig.node("n1", "sla=980")
    assert invalid(rig) == []


def test_a_value_that_is_not_of_its_type_is_reported_before_a_pod_is_there():
    rig = Rig(policy(taints=[{"key": "sla", "valueType": "Integer"}]))
    rig.node("n1", "other=1", "sla=98O")
    assert [told.verdict.taint.value for told in rig.take(commands.InvalidValue)] == ["98O"]


def test_evicting_by_an_invalid_value_is_the_policys_choice():
    rig = Rig(policy(timing={"onInvalidValue": "Evict"})).with_pod("sla=high", gt())
    [told] = rig.take(commands.InvalidValue)
    assert told.held is False
    assert rig.deadline("a") == 0.0


# -- nodes ------------------------------------------------------------------------------------------------------------


def test_an_unreadable_history_is_reported_and_counts_as_none():
    rig = Rig()
    rig.node("n1", "sla=940", history="not JSON")
    assert [told.node for told in rig.take(commands.UnreadableHistory)] == ["n1"]
    rig.pod("a", gt(violation_grace_seconds=30))
    assert rig.deadline("a") == 30.0


def test_what_a_list_does_not_name_is_gone():
    rig = Rig(policy(timing={"violationGraceSeconds": 60}))
    for name in ("n1", "n2"):
        rig.node(name, "sla=1")
        rig.pod(f"on-{name}", node=name)
    rig.feed(events.NodesListed(frozenset({"n1"})))
    assert (rig.deadline("on-n1"), rig.deadline("on-n2")) == (60.0, None)
    rig.feed(events.PodsListed({"uid-on-n2": "n2"}))
    assert rig.claimed() == []
    assert [uid for state in rig.world.cluster.nodes.values() for uid in state.pods] == ["uid-on-n2"]


# -- verdicts that classes share --------------------------------------------------------------------------------------


def verdicts_on(rig: Rig, node: str) -> list[TaintVerdict]:
    return [verdict for [verdict], _ in rig.world.cluster.nodes[node].class_verdicts.values()]


def test_classes_with_equal_tolerations_share_their_verdicts():
    rig = Rig(policy()).with_pod("sla=980", gt("950"), labels={"app": "a"})
    rig.pod("b", gt("950"), labels={"app": "b"})
    rig.pod("c", gt("900"), labels={"app": "c"})
    first, second, other = verdicts_on(rig, "n1")
    assert first is second
    assert other is not first


def test_classes_that_other_policies_select_share_no_verdicts():
    rig = Rig(policy(podSelector={"matchLabels": {"app": "a"}}, name="one"), policy(name="two"))
    rig.node("n1", "sla=1")
    for name in "ab":
        rig.pod(name, labels={"app": name})
    assert [verdict.policy.name for verdict in verdicts_on(rig, "n1")] == ["one", "two"]


def test_classes_with_another_grace_share_no_verdicts_if_the_node_is_reclaimed():
    rig = Rig(policy(reclaim={"deadlineSeconds": 120}))
    rig.node("n1", "sla=1")
    for grace_seconds in (10, 60):
        rig.pod(f"a{grace_seconds}", grace_seconds=grace_seconds)
    first, second = verdicts_on(rig, "n1")
    assert first.latest_at - second.latest_at == 50


def test_what_classes_share_is_bounded():
    rig = Rig(policy())
    rig.node("n1", "sla=980")
    for number in range(MAX_CACHED_VERDICTS + 20):
        rig.pod(f"p{number}", gt(str(900 + number)))
        assert len(rig.world.cluster.nodes["n1"].shared_verdicts) <= MAX_CACHED_VERDICTS
    assert len(verdicts_on(rig, "n1")) == MAX_CACHED_VERDICTS + 20


def listed_on(rig: Rig, uid: str, node: str) -> None:
    """A list, after a restore of etcd, has the pod on this node."""
    rig.feed(events.PodsSeen((rig.make_pod(uid, node=node),)), events.PodsListed({f"uid-{uid}": node}))


def test_a_pod_that_is_bound_to_another_tainted_node_after_a_restore_has_to_leave_that_one():
    rig = Rig(policy(timing={"violationGraceSeconds": 60}))
    for name in ("n1", "n2"):
        rig.node(name, "sla=1")
    rig.pod("web", node="n1")
    listed_on(rig, "web", "n2")
    assert rig.deadline("web") == 60.0
    rig.advance(61)
    assert [command.pod.node for command in rig.take(commands.Evict)] == ["n2"]


@pytest.mark.parametrize("outcome", list(Outcome))
def test_a_pod_that_is_bound_to_another_node_during_the_call_is_evicted_from_there(outcome):
    rig = Rig(policy())
    for name in ("n1", "n2"):
        rig.node(name, "sla=1")
    rig.pod("web", node="n1")
    assert [command.pod.node for command in rig.take(commands.Evict)] == ["n1"]
    listed_on(rig, "web", "n2")
    rig.settle("web", outcome)
    rig.advance(5)
    rig.process(events.PodChecked("uid-web", True))
    rig.advance(900)
    assert "n2" in [command.pod.node for command in rig.take(commands.Evict)]


def test_a_pod_whose_binding_was_seen_earlier_keeps_it():
    rig = Rig(policy(timing={"violationGraceSeconds": 60}))
    rig.node("n1", "sla=1", added=START - 500)
    rig.pod("a", bound_at=START - 20)
    rig.pod("a", bound_at=START - 5)
    assert rig.deadline("a") == 40.0
    rig.pod("a", bound_at=START - 30)
    assert rig.deadline("a") == 30.0


# -- what is announced ------------------------------------------------------------------------------------------------


def test_a_deadline_ahead_is_announced_once():
    rig = Rig().with_pod("sla=940", gt(violation_grace_seconds=60)).with_pod("sla=930", gt(violation_grace_seconds=60))
    [told] = rig.take(commands.Scheduled)
    assert told.due_at == START + 60


@pytest.mark.parametrize(("term", "again"), [(0, 0), (1, 1)])
def test_the_leader_of_another_term_announces_it_again(term, again):
    rig = Rig().with_pod("sla=940", gt(violation_grace_seconds=60))
    rig.out = []
    rig.process(events.LeadershipChanged(leading=False), events.LeadershipChanged(leading=True, term=term))
    assert len(rig.take(commands.Scheduled)) == again


# -- the durable clock ------------------------------------------------------------------------------------------------


def test_a_history_is_saved_while_a_deadline_lies_ahead():
    rig = Rig().with_pod("sla=940", gt(violation_grace_seconds=60))
    [save] = rig.take(commands.SaveHistory)
    assert (save.node, save.uid) == ("n1", "uid-n1")
    assert json.loads(save.text)["sla:NoExecute"]["values"] == [[START, ["940"]]]


def test_an_annotation_that_was_removed_is_written_again():
    rig = Rig().with_pod("sla=940", gt(violation_grace_seconds=60))
    rig.answer(commands.SaveHistory)
    rig.out = []
    rig.node("n1", "sla=940", history="")
    assert len(rig.take(commands.SaveHistory)) == 1


def test_taints_that_no_policy_acts_on_are_not_saved():
    rig = Rig(policy(taints=[{"key": "sla"}], timing={"violationGraceSeconds": 60}))
    rig.pod("a")
    rig.node("n1", "sla=940", "other=1")
    [save] = rig.take(commands.SaveHistory)
    assert set(json.loads(save.text)) == {"sla:NoExecute"}


# -- the report -------------------------------------------------------------------------------------------------------


def test_a_report_counts_each_policy_for_itself():
    slow = policy("slow", taints=[{"key": "x"}], timing={"violationGraceSeconds": 60})
    fast = policy("fast", taints=[{"key": "y"}], nodeSelector={"matchLabels": {"zone": "a"}})
    rig = Rig(slow, fast)
    rig.node("n1", "x=1", labels={"zone": "a"})
    rig.node("n2", "y=1", labels={"zone": "a"})
    rig.node("n3", "x=1")
    rig.pod("a", node="n1")
    rig.pod("b", node="n2")
    rig.pod("c", node="n3")
    rig.settle("b", Outcome.BLOCKED)
    by_name = {one.policy.name: one for one in rig.report()}
    told = by_name["slow"].status
    assert (told.selected_nodes, told.evicting_nodes, told.pending, told.blocked) == (3, 2, 2, 0)
    assert told.next_deadline == at(START + 60)
    told = by_name["fast"].status
    assert (told.selected_nodes, told.evicting_nodes, told.pending, told.blocked) == (2, 1, 1, 1)
    assert by_name["fast"].blocked_by == {"blocked": 1}


def test_a_value_that_all_tolerate_is_saved_soon_too():
    """If it changes while no operator runs, only the annotation knows that it was tolerated until then."""
    rig = Rig().with_pod("sla=980", gt(violation_grace_seconds=60))
    rig.advance(2)
    assert len(rig.take(commands.SaveHistory)) == 1
