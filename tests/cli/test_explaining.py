"""Answers of `explain`, each case in a few lines. The rules themselves are tested with the engine."""

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
from taintwarden.controller.words.wording import guard_advice, why_held
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
    (found,) = answer.taints
    assert (found.added_at, found.since) == ("2026-01-31T11:00:00Z", "2026-01-31T11:59:00Z")
    assert (found.grace_seconds, found.deadline, found.seconds_left) == (300, "2026-01-31T12:04:00Z", 240)


@pytest.mark.parametrize(
    ("tolerations", "timing", "verdict", "grace"),
    [
        ((), {"violationGraceSeconds": 45}, "Violated", 45),
        ((toleration("Exists", tolerationSeconds=7200),), {}, "ToleratedFor", 7200),
    ],
)
def test_grace_of_the_policy_or_of_the_toleration_counts(tolerations, timing, verdict, grace):
    found = only_taint(pod(*tolerations), BAD_NODE, policy(timing=timing))
    assert (found.verdict, found.since, found.grace_seconds) == (verdict, "2026-01-31T11:00:00Z", grace)


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


@pytest.mark.parametrize(
    ("stored", "fate", "waits"),
    [
        (
            kept_from_enforcing(policy()),
            Fate.WOULD_LEAVE,
            "the operator runs with --dry-run, so the pod is not evicted",
        ),
        (kept_from_enforcing(policy(), generation=0), Fate.LEAVES, "it is due now"),  # of another version
        (
            kept_from_enforcing(policy(mode="DryRun")),
            Fate.WOULD_LEAVE,
            "policy sla is in mode DryRun, so the pod is not evicted",
        ),
    ],
)
def test_pod_would_leave_if_the_operator_did_not_rehearse(stored, fate, waits):
    answer = explained(pod(GT), BAD_NODE, stored)
    assert (answer.fate, answer.policy, answer.waits_for) == (fate, "sla", f"for nothing: {waits}")


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


def test_taints_of_every_effect_are_explained():
    effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
    answer = explained(pod(), node(*(taint(effect=effect) for effect in effects)), policy())
    assert [one.verdict for one in answer.taints] == ["NotSelected", "NotSelected", "Violated"]
    assert reasons(answer.taints[0]) == {"sla": "it selects this key only with effect NoExecute"}


def test_policy_for_other_nodes_gives_no_reason_by_its_effect():
    elsewhere = policy(name="elsewhere", nodeSelector={"matchLabels": {"pool": "a"}})
    answer = explained(pod(), node(taint(effect="NoSchedule")), policy(), elsewhere)
    assert reasons(answer.taints[0])["elsewhere"] == "nodeSelector does not select the node"
    assert "elsewhere" not in answer.reason


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
def test_policy_that_does_not_select_the_pod_says_why(spec, reason):
    answer = explained(pod(GT), BAD_NODE, policy(**spec), namespace(team="shop"))
    assert reasons(answer.taints[0]) == {"sla": reason}
    assert [(one.selects, one.reason) for one in answer.policies] == [(False, reason)]
    assert answer.fate is Fate.STAYS


@pytest.mark.parametrize(
    ("others", "acting", "told"),
    [
        ((policy("all", "*"), policy()), "sla", {"all": "policy sla selects the key more specifically"}),
        (
            (policy("a"), policy("b", created="2025-01-01T00:00:00Z")),
            "b",
            {"a": "policy b is older, or comes first by its name"},
        ),
    ],
)
def test_closer_key_or_older_policy_wins(others, acting, told):
    found = only_taint(pod(GT), BAD_NODE, *others)
    assert (found.policy, reasons(found)) == (acting, told)


def test_daemon_set_pod_stays():
    owners = [{"kind": "DaemonSet", "controller": True}]
    found = only_taint(pod(GT, metadata={"ownerReferences": owners}), BAD_NODE, policy())
    assert reasons(found) == {"sla": "it belongs to a DaemonSet and exclude.daemonSets is true"}


def test_namespace_label_that_the_server_adds_is_there():
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}
    assert explained(pod(GT), BAD_NODE, policy(namespaceSelector=selector), namespace()).fate is Fate.LEAVES


def test_unknown_namespace_that_a_policy_asks_for_is_no_answer():
    with pytest.raises(
        BadInput, match="policy sla selects namespaces by their labels, and the files contain no Namespace"
    ):
        explained(pod(GT), BAD_NODE, policy(namespaceSelector={"matchLabels": {"team": "x"}}))


def test_invalid_policy_is_reported():
    answer = explained(pod(GT), BAD_NODE, policy(mode="Enforced"))
    assert answer.fate is Fate.STAYS
    assert 'supported values: "Enforce", "DryRun"' in answer.policies[0].reason
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


@pytest.mark.parametrize(
    ("extended", "profiles", "source", "who"),
    [([GT], (), "annotation", "the annotation"), (None, (profile("strict", GT, app="web"),), "profile strict", None)],
)
def test_annotation_or_profile_overrules_the_native_toleration(extended, profiles, source, who):
    found = only_taint(pod(toleration("Exists"), extended=extended), BAD_NODE, policy(), *profiles)
    assert [(one.source, one.holds, one.answer) for one in found.tolerations] == [
        ("spec", False, f"does not count, since {who or source} names this key"),
        (source, False, "does not hold"),
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


def test_profiles_of_the_namespace_are_listed_with_what_they_select():
    others = [profile("elsewhere", GT, space="bank"), profile("db", GT, app="db"), profile("wrong", {"key": "a b"})]
    answer = explained(pod(), BAD_NODE, policy(), profile("web", GT, app="web"), *others)
    assert [(one.name, one.selects) for one in answer.profiles] == [("db", False), ("web", True), ("wrong", None)]
    assert "spec.tolerations[0].key" in answer.profiles[-1].reason
    assert "profile wrong is not valid as stored; a running operator may still follow its last valid version" in (
        answer.notes
    )


def test_invalid_entries_of_the_annotation_are_reported():
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


NOON_TEXT, EARLIER = "2026-01-31T12:00:00Z", "2026-01-31T11:30:00Z"


@pytest.mark.parametrize(
    ("seen", "recorded", "since"),
    [
        (node(taint("940")), False, NOON_TEXT),
        (node(taint("940"), recorded=history(("980", 3600))), False, NOON_TEXT),  # the value is newer than the record
        (node(taint("940", timeAdded=EARLIER)), True, "2026-01-31T11:30:01Z"),  # some time in that second
    ],
)
def test_clock_without_a_record_starts_now_and_is_noted(seen, recorded, since):
    answer = explained(pod(GT), seen, policy())
    (found,), note = (
        answer.taints,
        "it is not recorded since when the node has sla=940:NoExecute: its time counts from now",
    )
    assert (found.clock_recorded, found.added_at is not None, found.since) == (recorded, recorded, since)
    assert answer.notes == ([] if recorded else [note])


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


def test_a_policy_for_other_nodes_is_no_reason_on_a_node_that_opts_out():
    elsewhere = policy("other", nodeSelector={"matchLabels": {"pool": "b"}})
    out = {**BAD_NODE, "metadata": BAD_NODE["metadata"] | OPTS_OUT}
    told = "taint sla=940:NoExecute: policy sla does not act: the node opts out with taintwarden.io/do-not-evict"
    assert explained(pod(GT), out, policy(), elsewhere).reason == told


# -- what it waits for -----------------------------------------------------------------------------------------------


SINCE = "2026-07-01T11:59:00Z"


def limited(*counts: tuple[str, int], **of) -> Json:
    """A policy whose operator says that these limits delay these numbers of pods."""
    limits = [{"limit": name, "pods": pods, "since": SINCE} | of for name, pods in counts]
    return policy() | {"status": {"limits": limits}}


def listed(says: str = "", spec: Json | None = None, observed: str | None = None, **of) -> Json:
    """A policy whose operator says what refuses this pod, and that a bounce delays most others."""
    reference = {"namespace": "shop", "name": "web", "node": "n1", "taint": "sla=1:NoExecute", "state": "Blocked"}
    status = limited(("bounce", 9))["status"] | {"nextPods": [reference | {"deadline": SINCE} | of]}
    status["conditions"] = [condition("GuardTripped", "True", f"{says}. {guard_advice('sla')}")] if says else []
    return policy(**spec or {}) | {"status": status | ({"observedAt": observed} if observed else {})}


def timed() -> Json:
    """A policy whose operator knows only for another pod of this node when the limit lets one go."""
    found, of = listed(limit="node", message="1 pod ends"), {"message": "1 pod ends"}
    limits = limited(("node", 2), **of, until="2026-01-31T12:00:40Z")["status"]["limits"]
    return found | {"status": found["status"] | {"limits": limits}}


def halted(grace: int = 0, action: str = "Halt", **spec) -> Json:
    """A policy whose guard has tripped, before the operator lists the pod as held."""
    stopped = policy(timing={"violationGraceSeconds": grace}, limits={"guard": {"action": action}}, **spec)
    guard = {"trippedAt": "2026-01-31T11:59:00Z"}
    return stopped | {"status": {"guard": guard, "nextPods": listed()["status"]["nextPods"]}}


def placed(*nodes: str) -> Json:
    """A policy of which these nodes have a place, and another one waits."""
    message = "node z9 waits for a place: a1, a2 lose pods now; 14 nodes wait"
    found = limited(("place", 9), ("bounce", 9), message=message)
    places = {"nodes": [{"node": node, "since": SINCE} for node in nodes], "term": 1}
    return found | {"status": found["status"] | {"places": places}}


DUE, CALLS, GUARD = (
    "for nothing: it is due now",
    "eviction calls fail or hang",
    "the guard of policy sla holds evictions",
)
RATE = "limit policy-rate of policy sla: the rate of the policy"
COUNTS = "since 2026-07-01T11:59:00Z no pod is evicted: 12 pods due, 3 are allowed. Still bad: node c1 sla=0"
SHOP = "it holds namespace shop only"
OTHER = 'pods "other" is forbidden'
PACES = f"since {SINCE} evictions continue at a pace of 5 in 10m, 9 left, until about 12:40 UTC: 9 pods due"
UNANSWERED = "requested at 2026-01-31T11:59:59Z, the API server has not answered"
FULL = "for PodDisruptionBudget web: it allows no disruption now: 1 pod is healthy, 1 has to be"
PATIENT = {"eviction": {"method": "EvictThenDelete", "pdbTimeoutSeconds": 900}}
WAITS: dict[str, tuple[tuple[Json, ...], str]] = {
    "due": ((policy(),), DUE),
    "rate": ((limited(("policy-rate", 3)),), RATE),
    "guard": ((limited(("guard", 3)),), f"{GUARD}: it has tripped"),
    "guard_counts_without_its_advice": ((listed(COUNTS, limit="guard"),), f"{GUARD}: {COUNTS}"),
    "namespace_of_a_guard_is_said_once": (
        (listed(f"since {SINCE} {SHOP}: 12 pods due", limit="guard", message=SHOP),),
        f"{GUARD}: since {SINCE} {SHOP}: 12 pods due",
    ),
    "pace_of_a_guard": ((listed(PACES, limit="guard"),), f"{GUARD.replace('holds', 'paces')}: {PACES}"),
    "guard_before_the_pod_is_listed": ((halted(),), f"{GUARD}: it has tripped"),
    "guard_before_the_deadline": ((halted(120),), f"for its deadline, in 1m; then {GUARD}: it has tripped"),
    "guard_that_paces": ((halted(action="Pace"),), f"{GUARD}: it has tripped"),
    "guard_that_only_reports": ((halted(action="Report"),), DUE),
    "node_without_a_place": (
        (placed("a1", "a2"),),
        "limit place of policy sla: node n1 waits for a place: a1, a2 lose pods now; 14 nodes wait",
    ),
    "guard_of_a_paused_policy": (
        (halted(paused=True),),
        f"policy sla is paused: taintwarden resume sla; then {GUARD}: it has tripped",
    ),
    "several_limits_blame_none": (
        (limited(("bounce", 9), ("per-node", 2), ("budget", 1)),),
        "one of the limits of policy sla (by the number of pods that each delays): bounce (9), per-node (2)",
    ),
    "budget_of_other_pods": ((limited(("budget", 1)),), DUE),
    "failing_call_and_the_next": (
        (listed(limit="failing", message="no", attempts=14, until="2026-01-31T12:00:40Z"),),
        f"{CALLS}: no; the next call is made in 40s",
    ),
    "next_call_that_is_past": (
        (listed(limit="failing", message="no", attempts=2, until="2026-01-31T11:59:58Z"),),
        f"{CALLS}: no",
    ),
    "report_says_its_age": (
        (listed(observed="2026-01-31T11:59:42Z", limit="failing", message="no", attempts=2),),
        f"{CALLS}: no (reported 18s ago)",
    ),
    "error_of_another_pod": (
        (listed(limit="failing", message=OTHER, attempts=0),),
        f"{CALLS}: of another pod of its namespace: {OTHER}",
    ),
    "error_of_another_pod_is_not_of_one_not_listed": ((limited(("failing", 9), message=OTHER),), CALLS),
    "next_of_a_limit_is_a_pod": (
        (listed(limit="policy-rate", until="2026-01-31T12:00:40Z"),),
        f"{RATE}; the next may be evicted in 40s",
    ),
    "pods_held_for_one_reason_wait_for_one_time": (
        (timed(),),
        f"limit node of policy sla: {why_held('node', '1 pod ends')}; the next may be evicted in 40s at the latest",
    ),
    "failing_deletion_waits_for_no_budget": (
        (listed(spec=PATIENT, limit="failing", message="no right to delete", attempts=2), budget()),
        f"{CALLS}: no right to delete",
    ),
    "budget_is_told_once": ((listed(limit="budget", message="allows no disruption now"), budget()), FULL),
    "listed_and_not_refused": ((listed(),), DUE),
    "call_without_an_answer": ((listed(message=UNANSWERED),), f"its eviction: {UNANSWERED}"),
    "budget_that_blocks": ((policy(), budget()), FULL),
    "budget_that_allows": ((policy(), budget(allowed=1)), DUE),
    "deleting_asks_no_budget": ((policy(eviction={"method": "Delete"}), budget()), DUE),
    "patience_with_a_budget": (
        (policy(**PATIENT), budget()),
        FULL.replace(":", ", 15m at most from this operator's first try on, then it is deleted:", 1),
    ),
    "deadline_before_the_budget": (
        (policy(timing={"violationGraceSeconds": 120}), budget()),
        f"for its deadline, in 1m; then {FULL}",
    ),
}


def test_a_pod_on_a_node_with_a_place_does_not_wait_for_one():
    assert explained(pod(GT), BAD_NODE, placed("n1")).waits_for.startswith("limit bounce")


@pytest.mark.parametrize("case", WAITS)
def test_what_a_pod_waits_for(case):
    objects, told = WAITS[case]
    assert explained(pod(GT), BAD_NODE, *objects).waits_for == told


def test_two_budgets_are_a_mistake():
    told = explained(pod(GT), BAD_NODE, policy(), budget("a", 1), budget("b", 1)).waits_for
    assert "refuses a pod with more than one PodDisruptionBudget (a, b)" in told


def test_budget_is_shown_once_in_text():
    answer = explained(pod(GT), BAD_NODE, policy(), budget())
    assert [(one.name, one.allows) for one in answer.budgets] == [("web", False)]
    assert render(*parts(answer)).count("it allows no disruption now") == 1


RECLAIMED = node(taint("1", timeAdded="2026-01-31T11:59:00Z"))


def test_the_end_of_a_node_of_which_the_operator_has_not_reported():
    answer = explained(pod(GT), RECLAIMED, policy(reclaim={"deadlineSeconds": 120}))
    assert answer.node_end == "node n1 is removed at 2026-01-31T12:01:01Z"
    rehearsed = policy(reclaim={"deadlineSeconds": 120}, mode="DryRun")
    assert explained(pod(GT), RECLAIMED, rehearsed).node_end is None


def test_a_due_pod_waits_for_an_operator_if_none_is_at_work():
    silent = snapshot(pod(GT), BAD_NODE, policy())
    silent.operator_problem = "the operator has not renewed its Lease for 29s"
    assert explain(silent, Gates()).waits_for == "for an operator"


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


def test_every_policy_that_evicts_the_pod_is_reported_enforcing_ones_first():
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
