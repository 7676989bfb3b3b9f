"""What `explain` says, each case in a few lines. The rules themselves are tested with the engine."""

import pytest

from cli.policies import condition
from cli.world import (
    NOON,
    Json,
    answers,
    budget,
    explained,
    history,
    kept_from_enforcing,
    namespace,
    node,
    only_taint,
    pod,
    policy,
    profile,
    reasons,
    snapshot,
    taint,
    toleration,
)
from taintwarden.controller.words.wording import guard_advice
from taintwarden.engine.model import Gates
from taintwarden_cli.explain.explaining import explain
from taintwarden_cli.explain.explanation import Fate
from taintwarden_cli.explain.explanation_table import parts
from taintwarden_cli.rehearsal.manifests import BadInput
from taintwarden_cli.rendering import render

GT = toleration("Gt", "950")
FELL = history(("980", 3600), ("940", 60))
BAD_NODE = node(taint("940"), recorded=FELL)


# -- fate ------------------------------------------------------------------------------------------------------------


def test_pod_that_tolerates_stays():
    answer = explained(pod(GT), node(taint("980")), policy())
    assert (answer.fate, answer.deadline, answer.taints[0].verdict) == (Fate.STAYS, None, "Tolerated")


def test_pod_that_does_not_leaves_after_its_grace():
    answer = explained(pod(toleration("Gt", "950", tolerationSeconds=300)), BAD_NODE, policy())
    assert (answer.fate, answer.deadline, answer.seconds_left) == (Fate.LEAVES, "2026-01-31T12:04:00Z", 240)
    assert answer.waits_for == "for its deadline, in 4m"


def test_taint_tells_its_clock():
    found = only_taint(pod(toleration("Gt", "950", tolerationSeconds=300)), BAD_NODE, policy())
    assert (found.added_at, found.since) == ("2026-01-31T11:00:00Z", "2026-01-31T11:59:00Z")
    assert (found.grace_seconds, found.deadline, found.seconds_left) == (300, "2026-01-31T12:04:00Z", 240)


def test_grace_of_the_policy_counts():
    found = only_taint(pod(), BAD_NODE, policy(timing={"violationGraceSeconds": 45}))
    assert (found.since, found.grace_seconds) == ("2026-01-31T11:00:00Z", 45)


def test_pod_tolerating_for_a_time_leaves_then():
    found = only_taint(pod(toleration("Exists", tolerationSeconds=7200)), BAD_NODE, policy())
    assert (found.verdict, found.since, found.seconds_left) == ("ToleratedFor", "2026-01-31T11:00:00Z", 3600)


NOT_ENFORCED = {
    "DryRun": "for nothing: policy {} is in mode DryRun, so the pod is not evicted",
    "Paused": "policy {} is paused: taintwarden resume {}",
}
SPECS: dict[str, Json] = {"DryRun": {"mode": "DryRun"}, "Paused": {"paused": True}}


@pytest.mark.parametrize("mode", NOT_ENFORCED)
def test_pod_would_leave_under_a_policy_that_does_not_enforce(mode):
    answer = explained(pod(GT), BAD_NODE, policy(**SPECS[mode]))
    assert (answer.fate, answer.policy, answer.taints[0].mode) == (Fate.WOULD_LEAVE, "sla", mode)
    assert answer.waits_for == NOT_ENFORCED[mode].format("sla", "sla")


def test_paused_policy_says_how_many_pods_would_be_due():
    resting = condition("Progressing", "False", "paused, 12 pods would be due", "Paused")
    answer = explained(pod(GT), BAD_NODE, policy(paused=True) | {"status": {"conditions": [resting]}})
    assert answer.waits_for == "policy sla is paused, 12 pods would be due: taintwarden resume sla"


def test_pod_would_leave_if_the_operator_did_not_rehearse():
    answer = explained(pod(GT), BAD_NODE, kept_from_enforcing(policy()))
    assert (answer.fate, answer.policy, answer.taints[0].mode) == (Fate.WOULD_LEAVE, "sla", "Enforce")
    assert answer.waits_for == "for nothing: the operator runs with --dry-run, so the pod is not evicted"


def test_what_was_said_of_another_version_of_the_policy_does_not_count():
    answer = explained(pod(GT), BAD_NODE, kept_from_enforcing(policy(), generation=0))
    assert answer.fate is Fate.LEAVES


def test_a_policy_in_mode_dry_run_says_nothing_of_the_operator():
    answer = explained(pod(GT), BAD_NODE, kept_from_enforcing(policy(mode="DryRun")))
    assert answer.waits_for == "for nothing: policy sla is in mode DryRun, so the pod is not evicted"


def test_huge_toleration_seconds_mean_very_late():
    answer = explained(pod(toleration("Exists", tolerationSeconds=2**63 - 1)), BAD_NODE, policy())
    assert (answer.fate, answer.deadline) == (Fate.LEAVES, "9999-12-31T23:59:59Z")


@pytest.mark.parametrize(
    ("ends", "reason"),
    [
        ("2026-01-31T12:00:20Z", ", and its grace period ends at 2026-01-31T12:00:20Z, in 20s"),
        ("2026-01-31T11:59:50Z", ", and its grace period ended at 2026-01-31T11:59:50Z, 10s ago"),
        ("soon", ""),
    ],
)
def test_pod_that_terminates(ends, reason):
    answer = explained(pod(metadata={"deletionTimestamp": ends}), BAD_NODE, policy())
    assert (answer.fate, answer.reason, answer.taints) == (Fate.TERMINATES, f"it is terminating{reason}", [])


@pytest.mark.parametrize(
    ("finalizers", "phase", "kept"),
    [
        (["a/b", "c/d"], "Succeeded", "finalizer a/b or finalizer c/d keeps it"),
        ([], "Failed", "a volume keeps it"),
        (["a/b"], "Running", "finalizer a/b, a volume, or a kubelet that does not answer keeps it"),
        ([], "Running", "a volume, or a kubelet that does not answer keeps it"),
    ],
)
def test_what_keeps_a_pod_that_should_have_ended(finalizers, phase, kept):
    metadata = {"deletionTimestamp": "2026-01-31T11:00:00Z", "finalizers": finalizers}
    answer = explained(pod(metadata=metadata, status={"phase": phase}), BAD_NODE, policy())
    ended = "it is terminating, and its grace period ended at 2026-01-31T11:00:00Z, 1h ago"
    assert answer.reason == f"{ended}: {kept}"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"status": {"phase": "Succeeded"}}, "it has finished: its phase is Succeeded"),
        ({"status": {"phase": "Failed"}}, "it has finished: its phase is Failed"),
        ({"annotations": {"kubernetes.io/config.mirror": "x"}}, "it is a mirror pod, which only its node can remove"),
    ],
)
def test_pod_the_operator_never_acts_on(given, reason):
    answer = explained(pod(**given), BAD_NODE, policy())
    assert (answer.fate, answer.reason, answer.taints) == (Fate.NOT_ACTED_ON, reason, [])


# -- which policy ----------------------------------------------------------------------------------------------------


def test_taint_of_no_policy_is_left_to_kubernetes():
    found = only_taint(pod(), node(taint("x", "other")), policy())
    assert (found.verdict, found.policy, found.other_policies) == ("NotSelected", None, [])


def test_every_effect_is_told_of():
    effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
    answer = explained(pod(), node(*(taint(effect=effect) for effect in effects)), policy())
    assert [one.verdict for one in answer.taints] == ["NotSelected", "NotSelected", "Violated"]
    assert reasons(answer.taints[0]) == {"sla": "it selects this key only with effect NoExecute"}


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"nodeSelector": {"matchLabels": {"pool": "a"}}}, "nodeSelector does not select the node"),
        ({"podSelector": {"matchLabels": {"app": "db"}}}, "podSelector does not select it"),
        ({"namespaceSelector": {"matchLabels": {"team": "x"}}}, "namespaceSelector does not select its namespace"),
        ({"exclude": {"namespaces": ["shop"]}}, "exclude.namespaces lists shop"),
        ({"exclude": {"priorityAtLeast": 0}}, "its priority 0 is at or above exclude.priorityAtLeast"),
    ],
)
def test_policy_that_leaves_the_pod_alone_says_why(spec, reason):
    answer = explained(pod(GT), BAD_NODE, policy(**spec), namespace(team="shop"))
    assert reasons(answer.taints[0]) == {"sla": reason}
    assert [(one.selects, one.reason) for one in answer.policies] == [(False, reason)]
    assert answer.fate is Fate.STAYS


def test_daemon_set_pod_stays():
    owners = [{"kind": "DaemonSet", "controller": True}]
    found = only_taint(pod(GT, metadata={"ownerReferences": owners}), BAD_NODE, policy())
    assert reasons(found) == {"sla": "it belongs to a DaemonSet and exclude.daemonSets is true"}


def test_closer_key_wins():
    found = only_taint(pod(GT), BAD_NODE, policy("all", "*"), policy())
    assert (found.policy, reasons(found)) == ("sla", {"all": "policy sla selects the key more closely"})


def test_older_policy_wins():
    found = only_taint(pod(GT), BAD_NODE, policy("a"), policy("b", created="2025-01-01T00:00:00Z"))
    assert (found.policy, reasons(found)) == ("b", {"a": "policy b is older, or comes first by its name"})


def test_namespace_label_that_the_server_adds_is_there():
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}
    assert explained(pod(GT), BAD_NODE, policy(namespaceSelector=selector), namespace()).fate is Fate.LEAVES


def test_unknown_namespace_that_a_policy_asks_for_is_no_answer():
    with pytest.raises(
        BadInput, match="policy sla selects namespaces by their labels, and the files hold no Namespace"
    ):
        explained(pod(GT), BAD_NODE, policy(namespaceSelector={"matchLabels": {"team": "x"}}))


def test_invalid_policy_is_told_of():
    answer = explained(pod(GT), BAD_NODE, policy(mode="Enforced"))
    assert answer.fate is Fate.STAYS
    assert "must be one of Enforce, DryRun" in answer.policies[0].reason
    assert answer.notes == [
        "policy sla is not valid as stored; a running operator may still follow its last valid version",
        "there is no valid TaintEvictionPolicy",
    ]


# -- tolerations -----------------------------------------------------------------------------------------------------


def test_each_toleration_says_why_it_failed():
    found = only_taint(pod(GT, toleration("Equal", "980"), toleration("Exists", key="other")), BAD_NODE, policy())
    assert answers(found) == [
        ("sla Gt '950':NoExecute", "spec", "does not hold"),
        ("sla Equal '980':NoExecute", "spec", "does not hold"),
    ]


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (toleration("Gt", "high"), "has a value that cannot be compared"),
        (toleration("Gt", "950", effect="NoSchedule"), "is for another effect"),
        (toleration("Near", "950"), "has an unknown operator"),
        ({"operator": "Exists"}, "holds"),
    ],
)
def test_answers_are_those_of_the_engine(given, answer):
    assert [one[2] for one in answers(only_taint(pod(given), BAD_NODE, policy()))] == [answer]


def test_annotation_overrules_the_native_toleration():
    found = only_taint(pod(toleration("Exists"), extended=[GT]), BAD_NODE, policy())
    assert [(one.source, one.holds, one.answer) for one in found.tolerations] == [
        ("spec", False, "does not count, since the annotation names this key"),
        ("annotation", False, "does not hold"),
    ]


def test_tolerations_of_a_profile_say_where_they_come_from():
    found = only_taint(pod(toleration("Exists")), BAD_NODE, policy(), profile("strict", GT, app="web"))
    assert [(one.source, one.holds, one.answer) for one in found.tolerations] == [
        ("spec", False, "does not count, since profile strict names this key"),
        ("profile strict", False, "does not hold"),
    ]
    assert "sla Gt '950'" in found.reason


def test_annotation_and_profiles_are_tried_in_their_order():
    profiles = [profile("b", toleration("Gt", "930")), profile("a", toleration("Gt", "990"))]
    found = only_taint(pod(toleration("Exists"), extended=[GT]), BAD_NODE, policy(), *profiles)
    assert [(one.source, one.holds) for one in found.tolerations] == [
        ("spec", False),
        ("annotation", False),
        ("profile a", False),
        ("profile b", True),
    ]
    assert found.tolerations[0].answer == "does not count, since the annotation names this key"
    assert (found.verdict, found.reason) == (
        "Tolerated",
        "taint sla=940:NoExecute is tolerated by sla Gt '930':NoExecute",
    )


def test_profiles_of_the_namespace_are_told_with_what_they_select():
    others = [profile("elsewhere", GT, space="bank"), profile("db", GT, app="db"), profile("wrong", {"key": "a b"})]
    answer = explained(pod(), BAD_NODE, policy(), profile("web", GT, app="web"), *others)
    assert [(one.name, one.selects) for one in answer.profiles] == [("db", False), ("web", True), ("wrong", None)]
    assert "spec.tolerations[0].key" in answer.profiles[-1].reason
    assert "profile wrong is not valid as stored; a running operator may still follow its last valid version" in (
        answer.notes
    )


def test_invalid_entries_of_the_annotation_are_told_of():
    answer = explained(pod(extended=[toleration("Gt", "0950")]), BAD_NODE, policy())
    assert "leading zeros are not allowed: write 950, not 0950" in answer.invalid_tolerations[0]
    assert answer.taints[0].tolerations == []


def test_typo_is_judged_by_the_last_valid_value():
    spoilt = node(taint("high"), recorded=history(("980", 3600), ("high", 60)))
    found = only_taint(pod(GT), spoilt, policy())
    assert (found.verdict, found.judged_value, found.invalid_value) == ("Tolerated", "980", True)
    assert answers(found)[0][2] == "holds"


def test_taint_that_was_never_valid_is_held():
    found = only_taint(pod(GT), node(taint("high")), policy())
    assert (found.verdict, found.deadline) == ("Held", None)
    assert "never could" in found.reason


# -- clocks ----------------------------------------------------------------------------------------------------------


def test_clock_that_nobody_recorded_starts_now_and_says_so():
    answer = explained(pod(), node(taint("940")), policy())
    found = answer.taints[0]
    assert (found.clock_recorded, found.added_at, found.since) == (False, None, "2026-01-31T12:00:00Z")
    assert answer.notes == ["no record says since when the node has sla=940:NoExecute: its time is taken to start now"]


def test_value_newer_than_the_record_counts_from_now():
    found = only_taint(pod(GT), node(taint("940"), recorded=history(("980", 3600))), policy())
    assert (found.clock_recorded, found.since) == (False, "2026-01-31T12:00:00Z")


def test_time_added_is_a_record():
    found = only_taint(pod(), node(taint("940", timeAdded="2026-01-31T11:30:00Z")), policy())
    assert (found.clock_recorded, found.since) == (True, "2026-01-31T11:30:01Z")  # some time in that second


def test_spoilt_record_counts_as_absent():
    answer = explained(pod(), node(taint("940"), recorded="{"), policy())
    assert "cannot be read and counts as absent" in answer.notes[0]


def test_a_semantic_comparison_by_text_is_noted():
    compared = toleration("SemverGt", "5.15.0-91-generic")
    (note,) = explained(
        pod(toleration("Exists"), extended=[compared]),
        node(taint("5.15.0-100-generic", timeAdded="2026-01-31T11:30:00Z")),
        policy(),
    ).notes
    assert "with 5.15.0-100-generic: -100-generic counts as a pre-release, below its release; use VersionGt" in note


OPTS_OUT = {"annotations": {"taintwarden.io/do-not-evict": "true"}}


def test_why_a_pod_stays_is_said_at_once():
    answer = explained(pod(GT, **OPTS_OUT), BAD_NODE, policy())
    told = "taint sla=940:NoExecute: policy sla does not act: the pod opts out with taintwarden.io/do-not-evict"
    assert (answer.fate, answer.reason) == ("Stays", told)


# -- what it waits for -----------------------------------------------------------------------------------------------


def waits_for(*objects, **spec) -> str | None:
    return explained(pod(GT), BAD_NODE, policy(**spec), *objects).waits_for


def test_due_pod_waits_for_nothing():
    assert waits_for() == "for nothing: it is due now"


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        ("policy-rate", "limit policy-rate of policy sla: the rate of the policy"),
        ("guard", "the guard of policy sla holds evictions: it has tripped"),
    ],
)
def test_limit_that_the_operator_reports_is_named(limit, told):
    limited = policy() | {"status": {"limits": [{"limit": limit, "pods": 3, "since": "2026-07-01T11:59:00Z"}]}}
    assert explained(pod(GT), BAD_NODE, limited).waits_for == told


def test_what_a_guard_counts_and_which_nodes_are_bad_is_told_without_its_advice():
    says = "since 2026-07-01T11:59:00Z no pod is evicted: 12 pods due, 3 are allowed. Still bad: node c1 sla=0"
    held = listed(limit="guard")
    held["status"]["conditions"] = [condition("GuardTripped", "True", f"{says}. {guard_advice('sla')}")]
    assert explained(pod(GT), BAD_NODE, held).waits_for == f"the guard of policy sla holds evictions: {says}"


def test_which_namespace_a_guard_holds_is_said_once():
    says = "since 2026-07-01T11:59:00Z it holds namespace shop only: 12 pods due, 3 are allowed"
    held = listed(limit="guard", message="it holds namespace shop only")
    held["status"]["conditions"] = [condition("GuardTripped", "True", f"{says}. {guard_advice('sla')}")]
    assert explained(pod(GT), BAD_NODE, held).waits_for == f"the guard of policy sla holds evictions: {says}"


@pytest.mark.parametrize(
    ("grace", "action", "told"),
    [
        (0, "Halt", "the guard of policy sla holds evictions: it has tripped"),
        (120, "Halt", "for its deadline, in 1m; then the guard of policy sla holds evictions: it has tripped"),
        (0, "Report", "for nothing: it is due now"),
    ],
)
def test_a_tripped_guard_is_told_before_the_operator_lists_the_pod_as_held(grace, action, told):
    halted = policy(timing={"violationGraceSeconds": grace}, limits={"guard": {"action": action}})
    halted["status"] = {"guard": {"trippedAt": "2026-01-31T11:59:00Z"}, "nextPods": listed()["status"]["nextPods"]}
    assert explained(pod(GT), BAD_NODE, halted).waits_for == told


def test_that_the_guard_of_a_paused_policy_may_hold_the_pod_is_told_with_the_way_to_resume():
    halted = policy(paused=True) | {"status": {"guard": {"trippedAt": "2026-01-31T11:59:00Z"}}}
    told = explained(pod(GT), BAD_NODE, halted).waits_for
    resume = "policy sla is paused: taintwarden resume sla"
    assert told == f"{resume}; then the guard of policy sla holds evictions: it has tripped"


RECLAIMED = node(taint("1", timeAdded="2026-01-31T11:59:00Z"))


def test_the_end_of_a_node_of_which_the_operator_has_not_reported():
    answer = explained(pod(GT), RECLAIMED, policy(reclaim={"deadlineSeconds": 120}))
    assert answer.node_end == "node n1 is removed at 2026-01-31T12:01:01Z"
    rehearsed = policy(reclaim={"deadlineSeconds": 120}, mode="DryRun")
    assert explained(pod(GT), RECLAIMED, rehearsed).node_end is None


def test_of_several_limits_none_is_blamed_and_no_budget_of_other_pods():
    counts, since = (("bounce", 9), ("per-node", 2), ("budget", 1)), "2026-07-01T11:59:00Z"
    limits = [{"limit": name, "pods": pods, "since": since} for name, pods in counts]
    told = "one of the limits of policy sla (by the number of pods that each delays): bounce (9), per-node (2)"
    assert explained(pod(GT), BAD_NODE, policy() | {"status": {"limits": limits}}).waits_for == told
    of_others = policy() | {"status": {"limits": limits[-1:]}}
    assert explained(pod(GT), BAD_NODE, of_others).waits_for == "for nothing: it is due now"


def listed(**of) -> Json:
    """A policy whose operator says what refuses this pod, and that a bounce delays most others."""
    reference = {"namespace": "shop", "name": "web", "node": "n1", "taint": "sla=1:NoExecute", "state": "Blocked"}
    limits = [{"limit": "bounce", "pods": 9, "since": "2026-07-01T11:59:00Z"}]
    next_pods = [reference | {"deadline": "2026-07-01T11:59:00Z"} | of]
    return policy() | {"status": {"limits": limits, "nextPods": next_pods}}


def test_what_refuses_this_pod_is_told_and_no_other_limit():
    refused = listed(limit="failing", message='pods "web" is forbidden', attempts=14, until="2026-07-01T12:00:40Z")
    told = explained(pod(GT), BAD_NODE, refused).waits_for
    assert told.startswith("eviction calls fail or hang: pods")
    assert "; the next call is made " in told
    assert "bounce" not in told


@pytest.mark.parametrize(
    ("until", "told"), [("2026-01-31T12:00:40Z", "; the next call is made in 40s"), ("2026-01-31T11:59:58Z", "")]
)
def test_the_next_call_is_not_told_as_past(until, told):
    refused = listed(limit="failing", message="no", attempts=2, until=until)
    assert explained(pod(GT), BAD_NODE, refused).waits_for.endswith(f": no{told}")


def test_what_the_operator_has_reported_says_how_old_it_is():
    refused = listed(limit="failing", message="no", attempts=2)
    refused["status"]["observedAt"] = "2026-01-31T11:59:42Z"
    assert explained(pod(GT), BAD_NODE, refused).waits_for.endswith(": no (reported 18s ago)")


def test_the_error_of_another_pod_is_told_as_such():
    refused = listed(limit="failing", message='pods "other" is forbidden', attempts=0)
    told = explained(pod(GT), BAD_NODE, refused).waits_for
    assert told == 'eviction calls fail or hang: of another pod of its namespace: pods "other" is forbidden'


def test_the_error_of_another_pod_is_not_told_of_one_that_is_not_listed():
    limits = [{"limit": "failing", "pods": 9, "since": "2026-07-01T11:59:00Z", "message": 'pods "other" is forbidden'}]
    told = explained(pod(GT), BAD_NODE, policy() | {"status": {"limits": limits}}).waits_for
    assert told == "eviction calls fail or hang"


def test_when_a_limit_lets_the_next_pod_go_is_told_as_of_a_pod():
    held = listed(limit="policy-rate", until="2026-01-31T12:00:40Z")
    told = explained(pod(GT), BAD_NODE, held).waits_for
    assert told == "limit policy-rate of policy sla: the rate of the policy; the next may be evicted in 40s"


def test_a_deletion_that_fails_does_not_wait_for_the_budget_any_more():
    refused = listed(limit="failing", message="no right to delete", attempts=2)
    refused["spec"]["eviction"] = {"method": "EvictThenDelete"}
    told = explained(pod(GT), BAD_NODE, refused, budget()).waits_for
    assert told == "eviction calls fail or hang: no right to delete"


def test_a_budget_is_told_once():
    held = listed(limit="budget", message="PodDisruptionBudget shop/web allows no disruption now")
    told = explained(pod(GT), BAD_NODE, held, budget()).waits_for
    assert told.startswith("for PodDisruptionBudget web: it allows no disruption now")
    assert render(*parts(explained(pod(GT), BAD_NODE, held, budget()))).count("it allows no disruption now") == 1


def test_a_due_pod_waits_for_an_operator_if_none_is_at_work():
    silent = snapshot(pod(GT), BAD_NODE, policy())
    silent.operator_problem = "the operator has not renewed its Lease for 29s"
    assert explain(silent, Gates()).waits_for == "for an operator"


def test_a_listed_pod_that_nothing_refuses_waits_for_nothing():
    assert explained(pod(GT), BAD_NODE, listed()).waits_for == "for nothing: it is due now"


def test_a_pod_whose_call_has_no_answer_waits_for_that():
    asked = listed(message="requested at 2026-01-31T11:59:59Z, the API server has not answered")
    told = "its eviction: requested at 2026-01-31T11:59:59Z, the API server has not answered"
    assert explained(pod(GT), BAD_NODE, asked).waits_for == told


def test_budget_that_blocks_is_named():
    answer = explained(pod(GT), BAD_NODE, policy(), budget())
    assert answer.waits_for.startswith("for PodDisruptionBudget web: it allows no disruption now")
    assert [(one.name, one.allows) for one in answer.budgets] == [("web", False)]


def test_budget_that_allows_blocks_nothing():
    assert waits_for(budget(allowed=1)) == "for nothing: it is due now"


def test_two_budgets_are_a_mistake():
    assert "refuses a pod with more than one PodDisruptionBudget (a, b)" in waits_for(budget("a", 1), budget("b", 1))


def test_deleting_asks_no_budget():
    assert waits_for(budget(), eviction={"method": "Delete"}) == "for nothing: it is due now"


def test_patience_with_a_budget_is_told():
    told = waits_for(budget(), eviction={"method": "EvictThenDelete", "pdbTimeoutSeconds": 900})
    assert told.startswith(
        "for PodDisruptionBudget web, 15m at most from this operator's first try on, then it is deleted:"
    )


def test_deadline_comes_before_the_budget():
    told = waits_for(budget(), timing={"violationGraceSeconds": 120})
    assert told.startswith("for its deadline, in 1m; then for PodDisruptionBudget web")


# -- files -----------------------------------------------------------------------------------------------------------


def test_object_of_the_wrong_shape_is_named_with_its_place():
    with pytest.raises(
        BadInput, match=r"world.yaml:1: document 2: Node/n1: Expected `str`, got `int`.*taints\[0\].value"
    ):
        snapshot(pod(), node(taint(950)))


def test_nulls_count_as_absent():
    obj = pod(spec={"tolerations": None}, metadata={"labels": None, "ownerReferences": None})
    assert explained(obj, BAD_NODE, policy()).fate is Fate.LEAVES


def test_timestamp_that_is_none_is_refused():
    with pytest.raises(BadInput, match="Pod shop/web: "):
        explained(pod(metadata={"creationTimestamp": "yesterday"}), BAD_NODE, policy())


def test_answer_is_as_of_the_given_time():
    grace = pod(toleration("Gt", "950", tolerationSeconds=300))
    later = explained(grace, BAD_NODE, policy(), now=NOON + 600)
    assert (later.at, later.seconds_left) == ("2026-01-31T12:10:00Z", -360)


# -- several policies --------------------------------------------------------------------------------------------------


def test_every_policy_that_wants_the_pod_gone_is_told_what_is_enforced_first():
    bad = node(taint("940"), taint("1", key="cni"), taint("1", key="gpu"), recorded=FELL)
    tolerated = toleration("Exists", key="cni", tolerationSeconds=7200), toleration("Exists", key="gpu")
    policies = (
        policy(timing={"violationGraceSeconds": 300}),
        policy("cni", key="cni"),
        policy("gpu", key="gpu"),
        policy("rehearsed", key="sla", nodeSelector={"matchLabels": {"no": "where"}}),
    )
    answer = explained(pod(*tolerated), bad, *policies)
    assert (answer.fate, answer.policy) == (Fate.LEAVES, "sla")
    (other,) = answer.claims
    assert (other.policy, other.mode, other.seconds_left) == ("cni", "Enforce", 7200)
    assert other.deadline == "2026-01-31T14:00:00Z"
    assert other.waits_for == "for its deadline, in 2h"
    assert "tolerated by cni Exists:NoExecute for 7200s only" in other.reason


@pytest.mark.parametrize("mode", NOT_ENFORCED)
def test_what_another_policy_would_do_comes_after_what_is_enforced(mode):
    """Though it would do it sooner."""
    bad = node(taint("940"), taint("1", "cni", timeAdded="2026-01-31T10:00:00Z"), recorded=FELL)
    answer = explained(pod(), bad, policy(), policy("cni", key="cni", **SPECS[mode]))
    (other,) = answer.claims
    assert (answer.fate, answer.policy, other.policy, other.mode) == (Fate.LEAVES, "sla", "cni", mode)
    assert other.waits_for == NOT_ENFORCED[mode].format("cni", "cni")


def test_a_budget_whose_controller_fails_is_not_one_that_is_waited_for():
    failed = budget()
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "SyncFailed",
        "message": "found no controllers",
    }
    failed["status"] = {"disruptionsAllowed": 0, "conditions": [condition]}
    answer = explained(pod(GT), BAD_NODE, policy(), failed)
    why = "it allows no disruption, as its controller cannot compute it (found no controllers)"
    assert answer.budgets[0].reason == why
