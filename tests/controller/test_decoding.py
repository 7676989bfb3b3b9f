"""Objects of the API become values of the engine; pods that cannot be evicted become none."""

import json
import sys
import tracemalloc
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from controller import GT_950, NOW, Clock, budget_object, node_object, pod_object, workload_object
from taintwarden.controller.decoding import decoding
from taintwarden.controller.decoding.decoding import Decoder, PodIssue
from taintwarden.controller.handlers.keyed_handlers import DESIRED
from taintwarden.engine.model import Owner, SchedulingGroup, SpreadConstraint, Taint, Toleration
from taintwarden.engine.selectors import LabelSelector, Requirement, SelectorOperator
from taintwarden.kube.wire.kinds import version_number

TOLERATIONS = "taintwarden.io/tolerations"


@pytest.fixture
def issues() -> list[PodIssue]:
    return []


@pytest.fixture
def decoder(issues: list[PodIssue]) -> Decoder:
    return Decoder(Clock(), issues.append)


def annotated(**annotations: str) -> dict[str, dict[str, str]]:
    return {"annotations": annotations}


def extended(*entries: object, **metadata: str):
    return pod_object(metadata={"annotations": {TOLERATIONS: json.dumps(entries)}} | metadata)


# -- pods -------------------------------------------------------------------------------------------------------------


def test_a_running_pod_has_the_fields_that_decisions_need(decoder):
    tolerations = [{"key": "sla", "operator": "Gt", "value": "950"}]
    spec = {"tolerations": tolerations, "priority": 5}
    pod = decoder.pod(pod_object(metadata={"labels": {"app": "web"}}, spec=spec))
    assert (pod.uid, pod.name, pod.namespace, pod.node) == ("uid-web-1", "web-1", "shop", "n1")
    assert pod.resource_version == 7
    assert pod.shared.labels == {"app": "web"}
    assert pod.shared.priority == 5
    assert pod.shared.tolerations.native == (GT_950,)
    assert pod.shared.tolerations.extended == ()
    assert (pod.shared.daemon_set, pod.shared.do_not_evict, pod.shared.do_not_disrupt) == (False, False, False)


@pytest.mark.parametrize(
    "left_out",
    [
        {"spec": {"nodeName": ""}},
        {"metadata": {"deletionTimestamp": "2023-11-14T22:10:00Z"}},
        {"metadata": annotated(**{"kubernetes.io/config.mirror": "hash"})},
        {"metadata": annotated(**{"kubernetes.io/config.mirror": ""})},
        {"status": {"phase": "Succeeded"}},
        {"status": {"phase": "Failed"}},
    ],
    ids=["unbound", "terminating", "mirror", "mirror-empty", "succeeded", "failed"],
)
def test_pods_that_cannot_be_evicted_are_left_out(decoder, left_out):
    assert decoder.pod(pod_object(**left_out)) is None


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown", ""])
def test_bound_pods_of_every_other_phase_count(decoder, phase):
    assert decoder.pod(pod_object(status={"phase": phase})) is not None


@pytest.mark.parametrize(("value", "expected"), [("true", True), ("false", False), ("True", False), ("", False)])
def test_a_pod_opts_out_by_the_annotation_do_not_evict(decoder, value, expected):
    pod = decoder.pod(pod_object(metadata=annotated(**{"taintwarden.io/do-not-evict": value})))
    assert pod.shared.do_not_evict is expected
    assert not pod.shared.do_not_disrupt


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        ({"emptyDir": {}}, True),
        ({"emptyDir": {"medium": "Memory"}}, False),
        ({"hostPath": {"path": "/data"}}, True),
        ({"persistentVolumeClaim": {"claimName": "data"}}, False),
    ],
)
def test_volumes_on_the_disk_of_a_node_are_local_storage(decoder, volume, expected):
    volumes = [{"name": "token", "projected": {}}, {"name": "data"} | volume]
    assert decoder.pod(pod_object(spec={"volumes": volumes})).shared.local_storage is expected


@pytest.mark.parametrize(
    ("group", "named", "made", "expected"),
    [
        ({"podGroupName": "g"}, ["b"], ["a"], SchedulingGroup("g", ("a", "b"))),
        ({"podGroupName": "g"}, [], [None], None),
        ({}, ["b"], [], None),
        (None, ["b"], ["a"], None),
    ],
)
def test_a_pod_of_a_group_has_the_names_of_its_claims(decoder, group, named, made, expected):
    spec = {"resourceClaims": [{"name": "x", "resourceClaimName": one} for one in named]}
    spec |= {} if group is None else {"schedulingGroup": group}
    status = {"resourceClaimStatuses": [{"name": "x", "resourceClaimName": one} for one in made]}
    assert decoder.pod(pod_object(spec=spec, status=status)).shared.group == expected


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("karpenter.sh/do-not-disrupt", "true", True),
        ("karpenter.sh/do-not-disrupt", "false", False),
        ("karpenter.sh/do-not-disrupt", "4h", False),
        ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false", True),
        ("cluster-autoscaler.kubernetes.io/safe-to-evict", "true", False),
        ("something.else/do-not-disrupt", "true", False),
    ],
)
def test_a_pod_opts_out_of_disruptions_by_annotations_of_others(decoder, key, value, expected):
    pod = decoder.pod(pod_object(metadata=annotated(**{key: value})))
    assert pod.shared.do_not_disrupt is expected
    assert not pod.shared.do_not_evict


def test_a_pod_may_opt_out_of_disruptions_for_a_time(decoder, issues):
    pod = decoder.pod(pod_object(metadata=annotated(**{"karpenter.sh/do-not-disrupt": "4h"})))
    assert pod.shared.protected_seconds == 4 * 3_600
    assert issues == []


def test_an_opt_out_with_an_unknown_value_is_reported_once(decoder, issues):
    for _ in range(2):
        decoder.pod(pod_object(metadata=annotated(**{"taintwarden.io/do-not-evict": "yes"})))
    [issue] = issues
    assert issue.errors == ()
    [fault] = issue.ignored
    assert str(fault).endswith('do-not-evict]: Invalid value: "yes": has no effect; write "true", in quotes')


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        ({"kind": "DaemonSet", "controller": True}, True),
        ({"kind": "DaemonSet", "controller": False}, False),
        ({"kind": "DaemonSet"}, False),
        ({"kind": "ReplicaSet", "controller": True}, False),
    ],
)
def test_daemon_set_pods_are_those_a_daemon_set_controls(decoder, owner, expected):
    assert decoder.pod(pod_object(metadata={"ownerReferences": [owner]})).shared.daemon_set is expected


OWNERS = [
    {"kind": "Machine", "name": "m", "uid": "uid-m"},
    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "uid-rs", "controller": True},
]


@pytest.mark.parametrize(("owners", "expected"), [(OWNERS, Owner("ReplicaSet", "web-1", "uid-rs")), (OWNERS[:1], None)])
def test_the_owner_is_the_controlling_one(decoder, owners, expected):
    assert decoder.pod(pod_object(metadata={"ownerReferences": owners})).shared.owner == expected


@pytest.mark.parametrize(("spec", "expected"), [({}, 30), ({"terminationGracePeriodSeconds": 5}, 5)])
def test_a_pod_has_its_grace_to_terminate(decoder, spec, expected):
    assert decoder.pod(pod_object(spec=spec)).shared.grace_seconds == expected


@pytest.mark.parametrize(("phase", "running"), [("Pending", False), ("Running", True), ("Unknown", True)])
def test_a_pod_runs_unless_it_is_pending(decoder, phase, running):
    assert decoder.pod(pod_object(status={"phase": phase})).running is running


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([{"type": "Ready", "status": "True"}], True),
        ([{"type": "Ready", "status": "False"}], False),
        ([{"type": "Ready", "status": "Unknown"}], False),
        ([{"type": "ContainersReady", "status": "True"}], False),
        ([], False),
    ],
)
def test_a_pod_is_ready_if_its_condition_says_so(decoder, conditions, expected):
    assert decoder.pod(pod_object(status={"conditions": conditions})).ready is expected


def test_pods_of_one_workload_share_one_class(decoder):
    first, second = (decoder.pod(pod_object(name)) for name in ("web-1", "web-2"))
    assert first.shared is second.shared
    assert first.node is second.node


@pytest.mark.parametrize(
    "other",
    [
        {"metadata": {"ownerReferences": [OWNERS[1] | {"uid": "uid-next"}]}},
        {"spec": {"terminationGracePeriodSeconds": 7}},
        {"spec": {"topologySpreadConstraints": [{"topologyKey": "zone", "labelSelector": {}}]}},
    ],
    ids=["owner", "grace", "spread"],
)
def test_pods_that_differ_in_a_field_of_the_class_share_none(decoder, other):
    assert decoder.pod(pod_object("a")).shared is not decoder.pod(pod_object("b", **other)).shared


# -- how a pod is spread ----------------------------------------------------------------------------------------------


LABELS = {"app": "web", "pod-template-hash": "abc"}
IS_WEB = Requirement("app", SelectorOperator.IN, ("web",))
OF_REVISION = Requirement("pod-template-hash", SelectorOperator.IN, ("abc",))


def spread(decoder: Decoder, **constraint: object) -> list[tuple[str, tuple[Requirement, ...]]]:
    constraints = [{"maxSkew": 1, "topologyKey": "zone"} | constraint]
    pod = decoder.pod(pod_object(metadata={"labels": LABELS}, spec={"topologySpreadConstraints": constraints}))
    return [(one.topology_key, one.selector.requirements) for one in pod.shared.spread]


def test_constraints_come_in_order(decoder):
    keys = ["zone", "host"]
    constraints = [{"topologyKey": key, "labelSelector": {"matchLabels": {"app": "web"}}} for key in keys]
    pod = decoder.pod(pod_object(spec={"topologySpreadConstraints": constraints}))
    assert pod.shared.spread == tuple(SpreadConstraint(key, LabelSelector((IS_WEB,))) for key in keys)


WEB = {"matchLabels": {"app": "web"}}
NOT_IN = {"key": "tier", "operator": "NotIn", "values": ["a", "b"]}
MERGED = {"key": "pod-template-hash", "operator": "In", "values": ["abc"]}


@pytest.mark.parametrize(
    ("selector", "keys", "counts"),
    [
        (WEB | {"matchExpressions": [NOT_IN]}, [], (IS_WEB, Requirement("tier", SelectorOperator.NOT_IN, ("a", "b")))),
        (WEB, ["pod-template-hash"], (IS_WEB, OF_REVISION)),
        (WEB, ["revision"], (IS_WEB,)),
        (WEB | {"matchExpressions": [MERGED]}, ["pod-template-hash"], (IS_WEB, OF_REVISION)),
        ({}, [], ()),
        (None, ["pod-template-hash"], None),
    ],
    ids=["all", "the pod's own value", "one that it lacks", "merged by the API server", "every pod", "no pod"],
)
def test_a_constraint_selects_pods_by_selector_and_match_label_keys(decoder, selector, keys, counts):
    found = spread(decoder, labelSelector=selector, matchLabelKeys=keys)
    assert found == ([] if counts is None else [("zone", counts)])


# -- the time of a pod's binding --------------------------------------------------------------------------------------


def scheduled(at: str | None, status: str = "True"):
    condition = {"type": "PodScheduled", "status": status, "lastTransitionTime": at}
    return pod_object(status={"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}, condition]})


@pytest.mark.parametrize(
    ("at", "status", "seconds"),
    [
        pytest.param("2023-11-14T22:05:00Z", "True", 499, id="since it was scheduled"),
        pytest.param("2020-01-01T00:00:00Z", "True", 799, id="not before it was created, whoever writes its status"),
        pytest.param("2023-11-14T22:05:00Z", "False", 799, id="not scheduled"),
        pytest.param(None, "True", 799, id="no time"),
        pytest.param("2024-01-01T00:00:00Z", "True", 0, id="in the future"),
    ],
)
def test_a_pod_is_bound_since_it_was_scheduled(decoder, at, status, seconds):
    assert decoder.pod(scheduled(at, status)).bound_at == NOW - seconds


def test_a_pod_without_any_time_is_bound_now(decoder):
    assert decoder.pod(pod_object(metadata={"creationTimestamp": None})).bound_at == NOW


@pytest.mark.parametrize("time", ["yesterday", "2023-11-14", "2023-11-14T22:05:00", "12:00Z"])
def test_a_time_that_cannot_be_parsed_is_an_error(decoder, time):
    with pytest.raises(ValueError, match=r"\w"):
        decoder.pod(scheduled(time))


# -- the annotation ---------------------------------------------------------------------------------------------------


def test_extended_tolerations_come_from_the_annotation(decoder, issues):
    pod = decoder.pod(extended({"key": "sla", "operator": "Gt", "value": "950", "violationGraceSeconds": 30}))
    expected = Toleration(key="sla", operator="Gt", value="950", violation_grace_seconds=30)
    assert pod.shared.tolerations.extended == (expected,)
    assert issues == []


def test_invalid_entries_count_as_absent_and_are_reported(decoder, issues):
    good = {"key": "sla", "operator": "Gt", "value": "950"}
    pod = decoder.pod(extended({"key": "sla", "operator": "Gt", "value": "0950"}, good))
    assert pod.shared.tolerations.extended == (GT_950,)
    [issue] = issues
    assert (issue.name, issue.namespace, issue.uid) == ("web-1", "shop", "uid-web-1")
    assert "leading zeros" in str(issue.errors[0])


@pytest.mark.parametrize("text", ["", "not json", "{}", "7", "null", '{"key":"sla"}', "[[]]"])
def test_an_annotation_that_is_no_list_of_tolerations_is_reported(decoder, issues, text):
    pod = decoder.pod(pod_object(metadata=annotated(**{TOLERATIONS: text})))
    assert pod.shared.tolerations.extended == ()
    assert len(issues) == 1


def test_an_empty_list_is_fine(decoder, issues):
    decoder.pod(extended())
    assert issues == []


def test_a_fault_is_reported_once_however_often_the_pod_is_seen(decoder, issues):
    for _ in range(5):
        decoder.pod(extended({"key": 7}))
    assert len(issues) == 1


def test_a_fault_of_several_pods_is_reported_for_each(decoder, issues):
    for uid in "ab":
        decoder.pod(extended({"key": 7}, uid=uid))
    assert [issue.uid for issue in issues] == ["a", "b"]


def test_another_fault_of_the_same_pod_is_reported_too(decoder, issues):
    decoder.pod(extended({"key": 7}))
    decoder.pod(extended({"key": 8}))
    assert len(issues) == 2


def test_the_end_of_a_fault_is_passed_on(decoder, issues):
    for entry in ({"key": 7}, {"key": "sla", "operator": "Exists"}, {"key": "sla", "operator": "Exists"}):
        decoder.pod(extended(entry))
    assert [bool(issue.errors) for issue in issues] == [True, False]


def test_a_fault_of_a_terminating_pod_is_not_reported(decoder, issues):
    decoder.pod(extended({"key": 7}, deletionTimestamp="2023-11-14T22:10:00Z"))
    assert issues == []


def test_the_same_fault_in_another_annotation_is_not_reported_again(decoder, issues):
    decoder.pod(extended({"key": 7}))
    decoder.pod(extended({"key": 7}, {"key": "sla", "operator": "Exists"}))
    assert len(issues) == 1


def test_hostile_annotations_leave_little_behind(decoder, issues):
    tracemalloc.start()
    for number in range(15):
        entries = [{f"field{n}-{number}": "x" * 20 for n in range(15)} for _ in range(100)]
        assert decoder.pod(extended(*entries, uid=str(number))) is not None
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 2**20
    assert len(issues) == 15
    assert max(len(issue.errors) for issue in issues) <= 10


@pytest.mark.parametrize(
    ("version", "kind", "known_as"),
    [
        ("apps/v1", "ReplicaSet", "ReplicaSet"),
        ("batch/v1", "Job", "Job"),
        ("v1", "ReplicationController", "ReplicationController"),
        ("apps/v999", "ReplicaSet", "ReplicaSet.apps"),
        ("batch/v1", "ReplicaSet", "ReplicaSet.batch"),
        ("apps/v1", "Job", "Job.apps"),
        ("apps.kruise.io/v1beta1", "StatefulSet", "StatefulSet.apps.kruise.io"),
    ],
)
def test_an_owner_that_kubernetes_does_not_serve_is_not_kubernetes_own(decoder, version, kind, known_as):
    """No controller removes such a pod, and the operator would wait for a ReplicaSet that it never sees."""
    owner = {"apiVersion": version, "kind": kind, "name": "o", "uid": "u", "controller": True}
    assert decoder.pod(pod_object(metadata={"ownerReferences": [owner]})).shared.owner.kind == known_as


def test_memory_of_the_kinds_of_owners_is_released(decoder):
    before = sys.getallocatedblocks()
    for number in range(2_000):
        owner = {"apiVersion": "v1", "kind": f"Kind{number}" * 10, "name": "o", "uid": "u", "controller": True}
        decoder.pod(pod_object(metadata={"ownerReferences": [owner]}))
    assert sys.getallocatedblocks() - before < 1_000


# -- workloads and budgets --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("spec", "expected"), [({"replicas": 4}, 4), ({"replicas": 0}, 0), ({}, 1)])
def test_a_replica_set_wants_its_replicas(spec, expected):
    assert DESIRED["replicasets"](workload_object(status={"desiredNumberScheduled": 9}, **spec)) == expected


@pytest.mark.parametrize(("status", "expected"), [({"desiredNumberScheduled": 9}, 9), ({}, 0)])
def test_a_daemon_set_wants_a_pod_on_each_node_that_fits(status, expected):
    assert DESIRED["daemonsets"](workload_object(status=status)) == expected


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        ({"parallelism": 5, "completions": 20}, {"succeeded": 3}, 5),
        ({"parallelism": 5, "completions": 20}, {"succeeded": 18}, 2),
        ({"parallelism": 5, "completions": 20}, {"succeeded": 25}, 0),
        ({"parallelism": 0, "completions": 20}, {}, 0),
        ({"completions": 20}, {}, 1),
        ({"parallelism": 5}, {"active": 2}, 5),
        ({"parallelism": 5}, {"active": 2, "succeeded": 1}, 2),
        ({"parallelism": 5, "completions": 20, "suspend": True}, {"active": 5}, 0),
        ({}, {}, 1),
        ({"parallelism": 9, "completions": 9}, {"succeeded": 1, "failedIndexes": "0,3-5,8"}, 3),
        ({"parallelism": 3, "completions": 9}, {"succeeded": 1, "failedIndexes": "0,3-5,8"}, 3),
        ({"parallelism": 9, "completions": 9}, {"succeeded": 5, "failedIndexes": "0-8"}, 0),
        ({"parallelism": 9, "completions": 9}, {"failedIndexes": "1,x,-,5-,7-6,2"}, 7),
    ],
    ids=[
        "many",
        "last",
        "overdone",
        "none",
        "one",
        "queue",
        "queue-ends",
        "suspended",
        "default",
        "indexes-failed",
        "indexes-failed-many",
        "all-indexes-failed",
        "no-indexes",
    ],
)
def test_a_job_wants_its_remaining_completions_up_to_its_parallelism(spec, status, expected):
    assert decoding.desired_parallelism(workload_object(status=status, **spec)) == expected


def test_a_budget_has_its_selector_and_the_disruptions_that_it_allows():
    budget = decoding.budget(budget_object(status={"disruptionsAllowed": 2}))
    assert (budget.namespace, budget.name, budget.allowed) == ("shop", "web", 2)
    assert budget.selector == LabelSelector((IS_WEB,))


def test_a_budget_without_a_selector_is_left_out():
    assert decoding.budget(budget_object(selector=None)) is None


def test_a_budget_with_an_empty_selector_selects_every_pod():
    assert decoding.budget(budget_object(selector={})).selector == LabelSelector()


@pytest.mark.parametrize(("generation", "expected"), [(1, True), (2, False)])
def test_a_budget_with_a_newer_generation_than_its_status_is_not_observed(generation, expected):
    assert decoding.budget(budget_object(generation=generation)).observed is expected


def test_a_budget_without_a_status_allows_nothing_and_is_not_observed():
    obj = budget_object(generation=0)
    obj.status = None
    budget = decoding.budget(obj)
    assert (budget.allowed, budget.observed, budget.healthy_enough) == (0, False, False)


@pytest.mark.parametrize(
    ("healthy", "desired", "policy", "expected"),
    [
        (3, 3, "IfHealthyBudget", True),
        (2, 3, "IfHealthyBudget", False),
        (0, 0, "IfHealthyBudget", False),
        (2, 3, "AlwaysAllow", True),
        (3, 3, "Unheard", True),
        (2, 3, "Unheard", False),
    ],
)
def test_a_budget_allows_unready_pods_by_its_policy_and_health(healthy, desired, policy, expected):
    status = {"currentHealthy": healthy, "desiredHealthy": desired}
    assert decoding.budget(budget_object(status=status, unhealthyPodEvictionPolicy=policy)).healthy_enough is expected


# -- nodes ------------------------------------------------------------------------------------------------------------


def test_a_node_has_its_taints_with_their_times(decoder):
    taints = [
        {"key": "sla", "value": "950", "effect": "NoExecute", "timeAdded": "2023-11-14T22:13:00Z"},
        {"key": "spot", "effect": "NoSchedule"},
    ]
    node = decoder.node(node_object(taints=taints, labels={"zone": "a"}))
    assert (node.name, node.uid, node.labels, node.resource_version) == ("n1", "uid-n1", {"zone": "a"}, 5)
    assert node.taints == ((Taint("sla", "950"), NOW - 20 + 1), (Taint("spot", "", "NoSchedule"), None))
    assert node.history == ""


def test_a_nodes_history_is_its_annotation(decoder):
    assert decoder.node(node_object(annotations={"taintwarden.io/taint-history": "{}"})).history == "{}"


def test_a_time_added_in_the_future_is_kept(decoder):
    """Another clock has written the time: it is only compared with times of that clock."""
    node = decoder.node(node_object(taints=[{"key": "k", "timeAdded": "2033-01-01T00:00:00Z"}]))
    assert node.taints[0][1] == datetime(2033, 1, 1, 0, 0, 1, tzinfo=UTC).timestamp()


@pytest.mark.parametrize("time", ["yesterday", "", "2023-11-14T22:13:00"])
def test_a_time_added_that_cannot_be_parsed_counts_as_not_set_and_is_logged(decoder, time):
    with capture_logs() as logs:
        node = decoder.node(node_object(taints=[{"key": "k", "timeAdded": time}]))
    assert node.taints[0][1] is None
    assert [(entry["event"], entry["node"], entry["value"]) for entry in logs] == [
        ("time-added-unreadable", "n1", time)
    ]


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("12345678901234567890", 12345678901234567890), ("", 2**63), ("x", 2**63), ("-1", 2**63), ("٣", 2**63)],
)
def test_a_version_that_is_no_number_is_newer_than_any_other(text, number):
    assert version_number(text) == number
