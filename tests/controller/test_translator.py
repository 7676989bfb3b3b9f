"""Objects of the API as values of the engine, and what is left out."""

import json

import pytest
from structlog.testing import capture_logs

from controller import GT_950, NOW, Clock, node_object, pod_object
from taintwarden.controller import cache
from taintwarden.controller.cache import PodIssue, Translator, parse_version_number
from taintwarden.engine.model import Taint, Toleration

TOLERATIONS = "taintwarden.io/tolerations"


@pytest.fixture
def issues() -> list[PodIssue]:
    return []


@pytest.fixture
def translator(issues: list[PodIssue]) -> Translator:
    return Translator(Clock(), issues.append)


def annotated(**annotations: str) -> dict[str, dict[str, str]]:
    return {"annotations": annotations}


def extended(*entries: object, **metadata: str):
    return pod_object(metadata={"annotations": {TOLERATIONS: json.dumps(entries)}} | metadata)


# -- pods -------------------------------------------------------------------------------------------------------------


def test_a_running_pod_is_told_by_what_decides(translator):
    tolerations = [{"key": "sla", "operator": "Gt", "value": "950"}]
    spec = {"tolerations": tolerations, "priority": 5}
    pod = translator.pod(pod_object(metadata={"labels": {"app": "web"}}, spec=spec))
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
def test_there_is_nothing_to_evict_about(translator, left_out):
    assert translator.pod(pod_object(**left_out)) is None


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown", ""])
def test_bound_pods_of_every_other_phase_count(translator, phase):
    assert translator.pod(pod_object(status={"phase": phase})) is not None


@pytest.mark.parametrize(("value", "expected"), [("true", True), ("false", False), ("True", False), ("", False)])
def test_a_pod_opts_out_by_our_annotation(translator, value, expected):
    pod = translator.pod(pod_object(metadata=annotated(**{"taintwarden.io/do-not-evict": value})))
    assert pod.shared.do_not_evict is expected
    assert not pod.shared.do_not_disrupt


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("karpenter.sh/do-not-disrupt", "true", True),
        ("karpenter.sh/do-not-disrupt", "false", False),
        ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false", True),
        ("cluster-autoscaler.kubernetes.io/safe-to-evict", "true", False),
        ("something.else/do-not-disrupt", "true", False),
    ],
)
def test_a_pod_opts_out_of_disruptions_by_annotations_of_others(translator, key, value, expected):
    pod = translator.pod(pod_object(metadata=annotated(**{key: value})))
    assert pod.shared.do_not_disrupt is expected
    assert not pod.shared.do_not_evict


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        ({"kind": "DaemonSet", "controller": True}, True),
        ({"kind": "DaemonSet", "controller": False}, False),
        ({"kind": "DaemonSet"}, False),
        ({"kind": "ReplicaSet", "controller": True}, False),
    ],
)
def test_daemon_set_pods_are_those_a_daemon_set_controls(translator, owner, expected):
    assert translator.pod(pod_object(metadata={"ownerReferences": [owner]})).shared.daemon_set is expected


def test_pods_of_one_workload_share_one_class(translator):
    first, second = (translator.pod(pod_object(name)) for name in ("web-1", "web-2"))
    assert first.shared is second.shared
    assert first.node is second.node


# -- since when a pod is bound ----------------------------------------------------------------------------------------


def scheduled(at: str | None, status: str = "True"):
    condition = {"type": "PodScheduled", "status": status, "lastTransitionTime": at}
    return pod_object(status={"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}, condition]})


def test_a_pod_is_bound_since_it_was_scheduled(translator):
    assert translator.pod(scheduled("2023-11-14T22:05:00Z")).bound_at == NOW - 500 + 1


@pytest.mark.parametrize("told", [("2023-11-14T22:05:00Z", "False"), (None, "True")])
def test_a_pod_is_else_bound_since_it_was_created(translator, told):
    assert translator.pod(scheduled(*told)).bound_at == NOW - 800 + 1


def test_a_pod_without_any_time_is_bound_now(translator):
    assert translator.pod(pod_object(metadata={"creationTimestamp": None})).bound_at == NOW


def test_a_pod_bound_in_the_future_is_bound_now(translator):
    assert translator.pod(scheduled("2024-01-01T00:00:00Z")).bound_at == NOW


@pytest.mark.parametrize("time", ["yesterday", "2023-11-14", "2023-11-14T22:05:00", "12:00Z"])
def test_a_time_that_is_none_is_an_error(translator, time):
    with pytest.raises(ValueError, match=r"\w"):
        translator.pod(scheduled(time))


# -- the annotation ---------------------------------------------------------------------------------------------------


def test_extended_tolerations_come_from_the_annotation(translator, issues):
    pod = translator.pod(extended({"key": "sla", "operator": "Gt", "value": "950", "violationGraceSeconds": 30}))
    expected = Toleration(key="sla", operator="Gt", value="950", violation_grace_seconds=30)
    assert pod.shared.tolerations.extended == (expected,)
    assert issues == []


def test_invalid_entries_count_as_absent_and_are_told(translator, issues):
    good = {"key": "sla", "operator": "Gt", "value": "950"}
    pod = translator.pod(extended({"key": "sla", "operator": "Gt", "value": "0950"}, good))
    assert pod.shared.tolerations.extended == (GT_950,)
    [issue] = issues
    assert (issue.name, issue.namespace, issue.uid) == ("web-1", "shop", "uid-web-1")
    assert "leading zeros" in str(issue.errors[0])


@pytest.mark.parametrize("text", ["", "not json", "{}", "7", "null", '{"key":"sla"}', "[[]]"])
def test_what_is_no_list_of_tolerations_is_told(translator, issues, text):
    pod = translator.pod(pod_object(metadata=annotated(**{TOLERATIONS: text})))
    assert pod.shared.tolerations.extended == ()
    assert len(issues) == 1


def test_an_empty_list_is_fine(translator, issues):
    translator.pod(extended())
    assert issues == []


def test_a_fault_is_told_once_however_often_the_pod_is_seen(translator, issues):
    for _ in range(5):
        translator.pod(extended({"key": 7}))
    assert len(issues) == 1


def test_a_fault_of_several_pods_is_told_for_each(translator, issues):
    for uid in "ab":
        translator.pod(extended({"key": 7}, uid=uid))
    assert [issue.uid for issue in issues] == ["a", "b"]


def test_another_fault_of_the_same_pod_is_told_too(translator, issues):
    translator.pod(extended({"key": 7}))
    translator.pod(extended({"key": 8}))
    assert len(issues) == 2


def test_a_pod_that_is_terminating_is_not_complained_about(translator, issues):
    translator.pod(extended({"key": 7}, deletionTimestamp="2023-11-14T22:10:00Z"))
    assert issues == []


def test_what_is_remembered_of_annotations_is_bounded(translator, issues, monkeypatch):
    monkeypatch.setattr(cache, "MAX_REMEMBERED_ANNOTATIONS", 3)
    for number in range(10):
        translator.pod(extended({"key": number}, uid=str(number)))
    assert len(issues) == 10
    assert len(translator._annotations) <= 3
    assert len(translator._reported) <= 3


# -- nodes ------------------------------------------------------------------------------------------------------------


def test_a_node_is_told_by_its_taints(translator):
    taints = [
        {"key": "sla", "value": "950", "effect": "NoExecute", "timeAdded": "2023-11-14T22:13:00Z"},
        {"key": "spot", "effect": "NoSchedule"},
    ]
    node = translator.node(node_object(taints=taints, labels={"zone": "a"}))
    assert (node.name, node.uid, node.labels, node.resource_version) == ("n1", "uid-n1", {"zone": "a"}, 5)
    assert node.taints == ((Taint("sla", "950"), NOW - 20 + 1), (Taint("spot", "", "NoSchedule"), None))
    assert node.history == ""


def test_a_nodes_history_is_its_annotation(translator):
    assert translator.node(node_object(annotations={"taintwarden.io/taint-history": "{}"})).history == "{}"


def test_annotations_of_others_are_no_history(translator):
    assert translator.node(node_object(annotations={"a": "b"})).history == ""


def test_a_time_added_in_the_future_is_now(translator):
    node = translator.node(node_object(taints=[{"key": "k", "timeAdded": "2033-01-01T00:00:00Z"}]))
    assert node.taints[0][1] == NOW


@pytest.mark.parametrize("time", ["yesterday", "", "2023-11-14T22:13:00"])
def test_a_time_added_that_is_none_counts_as_not_set_and_is_logged(translator, time):
    with capture_logs() as logs:
        node = translator.node(node_object(taints=[{"key": "k", "timeAdded": time}]))
    assert node.taints[0][1] is None
    assert [(entry["event"], entry["node"], entry["value"]) for entry in logs] == [
        ("time-added-unreadable", "n1", time)
    ]


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("12345678901234567890", 12345678901234567890), ("", 2**63), ("x", 2**63), ("-1", 2**63), ("٣", 2**63)],
)
def test_a_version_that_is_none_is_newer_than_anything(text, number):
    assert parse_version_number(text) == number
