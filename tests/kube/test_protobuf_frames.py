"""Lists and watches in protobuf: fields that are read, and errors in what is not as specified."""

import json
from typing import Any

import pytest

from kube.wire_format import enveloped, framed, labels, message, read
from taintwarden.kube.calls.own_kinds import POLICIES
from taintwarden.kube.errors import Unreachable
from taintwarden.kube.watch.frames import FrameDecoder
from taintwarden.kube.wire.formats import ExpiredError, Undecodable
from taintwarden.kube.wire.json_frames import JsonFrames
from taintwarden.kube.wire.kinds import (
    MAX_NODE_LABELS,
    NODE_INFO,
    Identity,
    NodeConditionObject,
    NodeObject,
    ObjectCondition,
    OwnerReference,
    PodAnnotations,
    ShapedPod,
)
from taintwarden.kube.wire.protobuf_kinds import MAX_SHAPE_BYTES
from taintwarden.kube.wire.resources import BUDGETS, JOBS, NAMESPACES, NODES, PODS, REPLICA_SETS

BAD_TEXT = b"\xff\xfe"
SECONDS = 1_767_323_045
MOMENT = {1: SECONDS}
CONDITIONS = [{1: "PodScheduled", 2: "True", 3: {}, 4: MOMENT}, {1: "Ready", 2: "False", 3: {}, 4: MOMENT}]


def pod(name: Any = "web-1", *, meta: Any = (), spec: Any = (), status: Any = ()) -> dict[int, Any]:
    return {
        1: {1: name, 3: "shop", 5: f"uid-{name}", 6: "7", 8: MOMENT} | dict(meta),
        2: {2: "a container", 4: 30, 10: "n1"} | dict(spec),
        3: {1: "Running"} | dict(status),
    }


def page(*items: Any, version: str = "9", more: str = "") -> bytes:
    return enveloped(message({1: {2: version, 3: more}, 2: list(items)}))


def decoded(*items: Any, resource: Any = PODS) -> list[Any]:
    good, bad = read(FrameDecoder(resource).page(page(*items)))
    assert not bad
    return good


def test_the_head_of_a_page() -> None:
    head = FrameDecoder(PODS).page(page(pod(), version="12", more="token")).head
    assert (head.resource_version, head.continue_) == ("12", "token")


def test_identity_and_place_of_a_pod() -> None:
    [found] = decoded(pod())
    meta = found.metadata
    assert (meta.name, meta.namespace, meta.uid, meta.resource_version) == ("web-1", "shop", "uid-web-1", "7")
    assert found.spec.node_name == "n1"
    assert found.status.phase == "Running"
    assert (meta.creation_timestamp, meta.deletion_timestamp) == (SECONDS, None)


def test_a_terminating_pod() -> None:
    [found] = decoded(pod(meta={9: MOMENT}))
    assert found.metadata.deletion_timestamp == SECONDS


@pytest.mark.parametrize(("spec", "seconds"), [({}, 30), ({4: 0}, 0), ({4: 60}, 60)])
def test_grace_period(spec: Any, seconds: int) -> None:
    whole = pod(spec=spec)
    if not spec:
        del whole[2][4]
    assert decoded(whole)[0].spec.termination_grace_period_seconds == seconds


def test_only_the_annotations_that_are_used() -> None:
    text = {"taintwarden.io/tolerations": "[]", "taintwarden.io/tolerations-old": "x", "other": "y" * 200}
    [found] = decoded(pod(meta={12: labels(**text)}))
    assert found.metadata.annotations == PodAnnotations(tolerations="[]")


def test_an_annotation_whose_length_takes_two_bytes_is_read() -> None:
    [found] = decoded(pod(meta={12: labels(**{"taintwarden.io/tolerations": "x" * 1000})}))
    assert found.metadata.annotations.tolerations == "x" * 1000


def test_an_annotation_without_a_value_is_there() -> None:
    [found] = decoded(pod(meta={12: labels(**{"kubernetes.io/config.mirror": ""})}))
    assert found.metadata.annotations.mirror == ""


def test_owners() -> None:
    owner = {1: "ReplicaSet", 3: "web", 4: "uid", 5: "apps/v1", 6: True}
    [found] = decoded(pod(meta={13: [owner, {1: "Other", 3: "o", 4: "u", 5: "v1"}]}))
    assert found.metadata.owner_references == [
        OwnerReference("apps/v1", "ReplicaSet", "web", "uid", controller=True),
        OwnerReference("v1", "Other", "o", "u"),
    ]


@pytest.mark.parametrize(("more", "seconds"), [({}, None), ({5: 0}, 0), ({5: -1}, -1), ({5: 2**40}, 2**40)])
def test_toleration_seconds(more: Any, seconds: int | None) -> None:
    [found] = decoded(pod(spec={22: [{1: "sla", 2: "Exists", 3: "", 4: "NoExecute"} | more]}))
    [toleration] = found.spec.tolerations
    assert (toleration.key, toleration.operator, toleration.effect) == ("sla", "Exists", "NoExecute")
    assert toleration.toleration_seconds == seconds


def test_spread_constraints() -> None:
    selector = {1: labels(app="web"), 2: [{1: "tier", 2: "In", 3: ["a", "b"]}]}
    [found] = decoded(pod(spec={33: [{1: 1, 2: "zone", 3: "DoNotSchedule", 4: selector, 8: ["hash"]}, {2: "host"}]}))
    first, second = found.spec.topology_spread_constraints
    assert (first.topology_key, first.match_label_keys) == ("zone", ["hash"])
    assert first.label_selector.match_labels == {"app": "web"}
    assert first.label_selector.match_expressions[0].values == ("a", "b")
    assert (second.topology_key, second.label_selector) == ("host", None)


@pytest.mark.parametrize(
    ("volumes", "local"),
    [
        ([], False),
        ([{1: "data", 2: {2: {}}}], True),
        ([{1: "data", 2: {2: {1: "", 2: {1: "1Gi"}}}}], True),
        ([{1: "data", 2: {2: {1: "Memory"}}}], False),
        ([{1: "host", 2: {1: {1: "/var/lib/data", 2: "Directory"}}}], True),
        ([{1: "host", 2: {1: {1: "/" + "x" * 200}}}], True),
        ([{1: "token", 2: {26: {1: "x" * 200}}}], False),
        ([{1: "config", 2: {19: {1: "x" * 20_000}}}], False),
        ([{1: "config", 2: {19: {1: "web"}}}, {1: "data", 2: {2: {}}}], True),
        ([{2: {2: {}}}], True),
        ([{1: "nothing"}], False),
        ([{}], False),
    ],
)
def test_local_storage(volumes: Any, *, local: bool) -> None:
    [found] = decoded(pod(spec={1: volumes}))
    assert found.spec.has_local_storage is local


GROUPED = {"spec": {39: [{1: "gpu", 3: "shared"}, {1: "link", 4: "links"}], 43: {1: "training"}}}


def test_the_claims_of_a_pod_in_a_group() -> None:
    [found] = decoded(pod(**GROUPED, status={15: [{1: "link", 2: "training-link-x7"}, {1: "none"}]}))
    assert found.spec.scheduling_group.pod_group_name == "training"
    claims = [*found.spec.resource_claims, *found.status.resource_claim_statuses]
    assert [one.resource_claim_name for one in claims] == ["shared", None, "training-link-x7", None]


def test_of_a_pod_in_no_group_claims_do_not_matter() -> None:
    [found] = decoded(pod(spec={39: [{1: "gpu", 3: "shared"}]}, status={15: [{1: "gpu", 2: "c"}]}))
    assert (found.spec.scheduling_group, found.spec.resource_claims) == (None, ())


def test_the_group_and_its_claims_are_part_of_the_shape() -> None:
    alone, first, second, other = decoded(
        pod(),
        pod(**GROUPED),
        pod(**GROUPED),
        pod(**GROUPED, status={15: [{1: "link", 2: "c"}]}),
    )
    assert first.shape is second.shape
    assert len({id(one.shape) for one in (alone, first, other)}) == 3


def test_the_conditions_that_are_used() -> None:
    others = [{1: "ReadyToServe", 2: "True", 3: {}, 4: MOMENT}, {1: "Initialized", 2: "True", 3: {}, 4: MOMENT}]
    [found] = decoded(pod(status={2: [*others, *CONDITIONS]}))
    assert found.status.conditions == [
        ObjectCondition("PodScheduled", "True", SECONDS),
        ObjectCondition("Ready", "False", SECONDS),
    ]


@pytest.mark.parametrize(
    "condition",
    [
        {1: "Ready", 2: "Unknown", 3: {}, 4: MOMENT},
        {1: "Ready", 2: "Unknown", 3: MOMENT, 4: MOMENT},
        {1: "Ready", 2: "Unknown", 3: {1: 34}, 4: MOMENT, 5: '\x1a\x00"', 6: "text"},
        {1: "Ready", 2: "Unknown", 4: MOMENT},
    ],
)
def test_a_condition_in_an_unusual_encoding(condition: Any) -> None:
    [found] = decoded(pod(status={2: [condition]}))
    assert found.status.conditions == [ObjectCondition("Ready", "Unknown", SECONDS)]


def test_a_condition_without_a_time() -> None:
    [found] = decoded(pod(status={2: [{1: "Ready", 2: "True", 3: {}, 4: {}}]}))
    assert found.status.conditions == [ObjectCondition("Ready", "True", None)]


# -- shapes -----------------------------------------------------------------------------------------------------------


def test_pods_that_differ_in_identity_place_and_status_have_one_shape() -> None:
    token = {2: {26: {1: "x" * 200}}}
    first, second = decoded(
        pod("a", spec={1: [{1: "token-a"} | token]}),
        pod("b", spec={1: [{1: "token-b"} | token], 10: "n2"}, status={1: "Pending", 2: CONDITIONS}),
    )
    assert first.shape is second.shape


@pytest.mark.parametrize(
    "other",
    [
        pod(meta={3: "bar"}),
        pod(meta={11: labels(app="web")}),
        pod(meta={12: labels(**{"taintwarden.io/do-not-evict": "true"})}),
        pod(meta={13: [{1: "Job"}]}),
        pod(spec={4: 0}),
        pod(spec={22: [{1: "sla"}]}),
        pod(spec={25: 1000}),
        pod(spec={33: [{2: "zone"}]}),
        pod(spec={1: [{1: "data", 2: {2: {1: ""}}}]}),
    ],
)
def test_pods_that_differ_in_other_fields_have_different_shapes(other: Any) -> None:
    first, second = decoded(pod(), other)
    assert first.shape is not second.shape


def test_a_pod_that_is_larger_than_a_shape_may_be_has_none() -> None:
    text = {"taintwarden.io/tolerations": "x" * (MAX_SHAPE_BYTES + 1)}
    [large] = decoded(pod(meta={12: labels(**text)}))
    assert not isinstance(large, ShapedPod)
    assert large.metadata.annotations == PodAnnotations(tolerations=text["taintwarden.io/tolerations"])


def test_the_same_bytes_in_another_field_are_another_shape() -> None:
    """Both have one entry with field 1 only, one as a toleration, one as a spread constraint."""
    first, second = decoded(pod(spec={22: [{1: "zone"}]}), pod(spec={33: [{1: "zone"}]}))
    assert first.shape is not second.shape


# -- other kinds ------------------------------------------------------------------------------------------------------


def test_a_node() -> None:
    meta = {1: "n1", 5: "uid", 6: "7", 11: labels(zone="a"), 12: labels(**{"taintwarden.io/taint-history": "{}"})}
    taints = [{1: "sla", 2: "950", 3: "NoExecute", 4: MOMENT}, {1: "spot", 3: "NoExecute"}]
    [found] = decoded({1: meta, 2: {5: taints}}, resource=NODES)
    assert (found.metadata.name, found.metadata.uid, found.metadata.labels) == ("n1", "uid", {"zone": "a"})
    assert [(one.key, one.value, one.time_added) for one in found.spec.taints] == [
        ("sla", "950", SECONDS),
        ("spot", "", None),
    ]


@pytest.mark.parametrize("more", [0, 1])
def test_a_node_with_more_labels_than_any_has_is_not_read(more: int) -> None:
    meta = {1: "n1", 11: labels(**{f"k{number}": "v" for number in range(MAX_NODE_LABELS + more)})}
    good, bad = read(FrameDecoder(NODES).page(page({1: meta})))
    assert [len(one.metadata.labels) for one in good] == [MAX_NODE_LABELS] * (1 - more)
    assert bad == [Undecodable(Identity("n1"), f"has more than {MAX_NODE_LABELS} labels")] * more


@pytest.mark.parametrize("more", [0, 1])
def test_a_node_with_more_labels_than_any_has_is_not_read_in_json(more: int) -> None:
    meta = {"name": "n1", "labels": {f"k{number}": "v" for number in range(MAX_NODE_LABELS + more)}}
    found = JsonFrames(NodeObject).read(json.dumps({"metadata": meta}).encode())
    assert isinstance(found, Undecodable) is bool(more)


def test_the_annotations_of_a_node() -> None:
    meta = {1: "n1", 12: labels(**{"taintwarden.io/do-not-evict": "true", "other.example.com/x": "y"})}
    [found] = decoded({1: meta}, resource=NODES)
    assert found.metadata.annotation("taintwarden.io/do-not-evict") == "true"
    assert found.metadata.annotation("other") is None
    assert len(found.metadata.annotations) == 2, "looking for one adds none"


def test_the_conditions_of_a_node() -> None:
    ready = {1: "Ready", 2: "True", 3: MOMENT, 4: MOMENT, 5: "KubeletReady", 6: "kubelet is ready"}
    ready_too = {1: "ReadyToo", 2: "Unknown"}
    [found] = decoded({1: {1: "n1"}, 3: {4: [ready_too, ready]}}, resource=NODES)
    message = "kubelet is ready"
    assert found.status.condition("Ready") == NodeConditionObject("Ready", "True", SECONDS, "KubeletReady", message)
    assert found.status.condition("ReadyToo") == NodeConditionObject("ReadyToo", "Unknown", None)
    assert found.status.condition("GPUHealthy") is None


def test_the_system_info_of_a_node() -> None:
    info = {1: "machine", 4: "6.1.0-28-amd64", 5: "Debian GNU/Linux 12", 6: "containerd://2.1.4", 7: "v1.36.0"}
    more = {8: "v1.35.0", 9: "linux", 10: "arm64"}
    [found] = decoded({1: {1: "n1"}, 3: {7: info | more}}, resource=NODES)
    assert {field: found.status.info(field) for field in NODE_INFO} == {
        "architecture": "arm64",
        "containerRuntimeVersion": "containerd://2.1.4",
        "kernelVersion": "6.1.0-28-amd64",
        "kubeProxyVersion": "v1.35.0",
        "kubeletVersion": "v1.36.0",
        "operatingSystem": "linux",
        "osImage": "Debian GNU/Linux 12",
    }


def test_a_node_without_status() -> None:
    [found] = decoded({1: {1: "n1"}}, resource=NODES)
    assert (found.status.condition("Ready"), found.status.info("kubeletVersion")) == (None, "")


def test_a_condition_with_a_time_beyond_the_calendar_is_not_there() -> None:
    for seconds in (2**62, -(2**62), 2**40):
        [found] = decoded({1: {1: "n1"}, 3: {4: [{1: "Ready", 2: "True", 4: {1: seconds}}]}}, resource=NODES)
        assert found.status.condition("Ready") is None


def test_a_condition_whose_type_is_long() -> None:
    """The length of the type takes two bytes."""
    name = f"{'a' * 200}/b"
    [found] = decoded({1: {1: "n1"}, 3: {4: [{1: name, 2: "True"}]}}, resource=NODES)
    assert found.status.condition(name) == NodeConditionObject(name, "True", None)


@pytest.mark.parametrize(("spec", "replicas"), [({}, 1), ({1: 0}, 0), ({1: 3}, 3)])
def test_a_replica_set(spec: Any, replicas: int) -> None:
    [found] = decoded({1: {5: "uid"}, 2: spec}, resource=REPLICA_SETS)
    assert (found.metadata.uid, found.spec.replicas) == ("uid", replicas)


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ({1: {11: labels(app="db", tier="")}, 2: {1: {1: "volume"}}}, "db"),
        ({1: {11: [{1: "app", 2: b"\xff"}]}}, "\ufffd"),
        ({1: {11: labels(tier="x")}}, ""),
        ({}, ""),
    ],
)
def test_a_label_of_the_pods_of_a_replica_set(template: Any, value: str) -> None:
    [found] = decoded({1: {5: "uid", 11: labels(app="own")}, 2: {1: 3, 3: template}}, resource=REPLICA_SETS)
    assert (found.spec.replicas, found.template_label("app"), found.template_label("tier2")) == (3, value, "")


# -- malformed lists and watches --------------------------------------------------------------------------------------


def test_text_that_clients_choose_freely_need_not_be_utf_8() -> None:
    """The API server takes it from clients that send protobuf, and replaces it when it writes JSON."""
    owner, entry = (
        {1: b"Set\xff", 3: b"\xfe", 4: "uid", 5: "v1", 6: True},
        {1: "taintwarden.io/tolerations", 2: BAD_TEXT},
    )
    [found] = decoded(pod(meta={11: [{1: "app", 2: BAD_TEXT}], 12: [entry], 13: [owner]}))
    assert found.metadata.labels == {"app": "\ufffd\ufffd"}
    assert found.metadata.annotations.tolerations == "\ufffd\ufffd"
    assert found.metadata.owner_references[0].kind == "Set\ufffd"


def test_an_item_with_invalid_text_does_not_hide_the_others() -> None:
    good, bad = read(FrameDecoder(PODS).page(page(pod("a"), pod("b", spec={22: [{1: BAD_TEXT}]}), pod("c"))))
    assert [one.metadata.name for one in good] == ["a", "c"]
    assert [one.identity for one in bad] == [Identity("b", "shop", "uid-b", "7", "n1")]


def test_an_item_that_is_no_message_does_not_hide_the_others() -> None:
    found = FrameDecoder(PODS).page(page(pod("a"), b"\x0a\xff", pod("c")))
    good, bad = read(found)
    assert found.head.resource_version == "9"
    assert [one.metadata.name for one in good] == ["a", "c"]
    assert [one.identity for one in bad] == [Identity()]


@pytest.mark.parametrize("seconds", [2**62, -(2**62), 2**40])
def test_a_time_beyond_the_calendar(seconds: int) -> None:
    _, bad = read(FrameDecoder(PODS).page(page(pod("a", meta={8: {1: seconds}}))))
    assert [one.identity.name for one in bad] == ["a"]


def test_an_operator_of_a_selector_that_is_none() -> None:
    spread = {2: "zone", 4: {2: [{1: "tier", 2: "Like"}]}}
    _, bad = read(FrameDecoder(PODS).page(page(pod(spec={33: [spread]}))))
    assert "Like" in bad[0].reason


@pytest.mark.parametrize("body", [b"k8s\0\xff", b"k8s\0", enveloped(b"\xff"), enveloped(b""), page(version="")])
def test_a_body_that_is_no_list_is_an_error(body: bytes) -> None:
    with pytest.raises(Unreachable):
        FrameDecoder(PODS).page(body)


def changes(buffer: bytes, resource: Any = PODS) -> tuple[list[tuple[str, Any]], bytes]:
    encoding = FrameDecoder(resource).watch_format(buffer)
    frames, rest = encoding.split(buffer)
    found = map(encoding.change, frames)
    return [(one.type, one.found) for one in found], rest


def test_frames_of_a_watch() -> None:
    whole = framed("ADDED", message(pod("a"))) + framed("DELETED", message(pod("b")))
    found, rest = changes(whole + b"\0\0")
    assert found[0][0] == "ADDED"
    assert found[0][1].metadata.name == "a"
    assert found[1] == ("DELETED", Identity("b", "shop", "uid-b", "7", "n1"))
    assert rest == b"\0\0"


@pytest.mark.parametrize("missing", [1, 10, 60])
def test_half_a_frame_is_left_for_later(missing: int) -> None:
    first, second = framed("ADDED", message(pod("a"))), framed("MODIFIED", message(pod("b")))
    found, rest = changes((first + second)[:-missing])
    assert len(found) == 1
    assert rest == second[:-missing]


def test_a_bookmark() -> None:
    [(kind, found)], _ = changes(framed("BOOKMARK", message({1: {6: "99"}})))
    assert (kind, found) == ("BOOKMARK", Identity(resource_version="99"))


def test_an_error_frame_ends_the_watch() -> None:
    status = message({2: "Failure", 3: "too old", 4: "Expired", 6: 410})
    with pytest.raises(ExpiredError, match=r"^410 Expired: too old$"):
        changes(framed("ERROR", status))


def test_an_unreadable_error_frame_is_an_error() -> None:
    with pytest.raises(ExpiredError):
        changes(framed("ERROR", b"\xff"))


def test_an_undecodable_object_of_a_watch_is_known_by_its_identity() -> None:
    broken = pod("a", spec={22: [{1: BAD_TEXT}]})
    [(kind, found)], _ = changes(framed("MODIFIED", message(broken)))
    assert kind == "MODIFIED"
    assert isinstance(found, Undecodable)
    assert found.identity == Identity("a", "shop", "uid-a", "7", "n1")


@pytest.mark.parametrize(
    ("meta", "spec", "expected"),
    [
        ({1: BAD_TEXT}, {}, Identity("", "shop", "uid-a", "7", "n1")),
        ({5: BAD_TEXT}, {}, Identity("a", "shop", "", "7", "n1")),
        ({}, {10: b""}, Identity("a", "shop", "uid-a", "7", "")),
        ({}, {10: BAD_TEXT}, Identity("a", "shop", "uid-a", "7", None)),
    ],
)
def test_a_deleted_object_has_the_fields_of_its_identity_that_decode(meta: Any, spec: Any, expected: Identity) -> None:
    assert changes(framed("DELETED", message(pod("a", meta=meta, spec=spec))))[0] == [("DELETED", expected)]


def test_a_deletion_without_an_object() -> None:
    assert changes(framed("DELETED", b"\xff"))[0] == [("DELETED", Identity())]


@pytest.mark.parametrize("event", [b"\xff", message({1: "ADDED", 2: {1: b"no magic"}})])
def test_an_event_that_is_no_frame_is_an_error(event: bytes) -> None:
    with pytest.raises(Unreachable):
        changes(len(event).to_bytes(4, "big") + event)


def test_protobuf_is_requested_with_json_as_fallback() -> None:
    assert FrameDecoder(PODS).accept == "application/vnd.kubernetes.protobuf,application/json"


@pytest.mark.parametrize("resource", [POLICIES, NAMESPACES, JOBS, BUDGETS])
def test_kinds_with_few_objects_are_asked_for_in_json_only(resource: Any) -> None:
    assert FrameDecoder(resource).accept == "application/json"
