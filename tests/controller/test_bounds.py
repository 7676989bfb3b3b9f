"""Memory that one pod or budget can take is bounded, however many labels, tolerations and values a tenant writes."""

import json
import tracemalloc
from typing import Any

import msgspec
import pytest

from controller import Clock, budget_object, pod_object
from kube.wire_format import enveloped, labels, message, read
from taintwarden.controller.decoding import decoding
from taintwarden.controller.decoding.bounds import TOLERATES_ALL
from taintwarden.controller.decoding.decoding import Decoder, PodIssue
from taintwarden.engine.evaluate import judge
from taintwarden.engine.model import SharedTolerations, Taint, Toleration
from taintwarden.engine.policy import TolerationSecondsMode
from taintwarden.kube.watch.frames import FrameDecoder as Frames
from taintwarden.kube.wire.kinds import MAX_POD_ENTRIES, MAX_SPREAD_CONSTRAINTS
from taintwarden.kube.wire.resources import PODS

MANY = 3_000


@pytest.fixture
def issues() -> list[PodIssue]:
    return []


@pytest.fixture
def decoder(issues: list[PodIssue]) -> Decoder:
    return Decoder(Clock(), issues.append)


def ignored_fields(issues: list[PodIssue]) -> list[str]:
    return [str(error) for issue in issues for error in issue.ignored]


MANY_KEYS = [f"k{number:04}" for number in range(MAX_POD_ENTRIES + 1)]
SELECTOR: dict[str, Any] = {"matchExpressions": [{"key": "a", "operator": "In", "values": MANY_KEYS}]}
LONG = json.dumps(
    [{"key": f"example.com/{'k' * 60}{n}", "operator": "In", "values": ["v" * 63] * 3} for n in range(64)]
)
TOO_LARGE: dict[str, dict[str, Any]] = {
    "metadata.labels": {"metadata": {"labels": dict.fromkeys(MANY_KEYS, "")}},
    "spec.tolerations": {"spec": {"tolerations": [{"key": key, "operator": "Exists"} for key in MANY_KEYS]}},
    "metadata.annotations[taintwarden.io/tolerations]": {
        "metadata": {"annotations": {"taintwarden.io/tolerations": LONG}}
    },
    "spec.topologySpreadConstraints": {
        "spec": {"topologySpreadConstraints": [{"topologyKey": "host", "labelSelector": SELECTOR}]}
    },
    "spec.resourceClaims": {
        "spec": {
            "schedulingGroup": {"podGroupName": "g"},
            "resourceClaims": [{"name": key, "resourceClaimName": key} for key in MANY_KEYS],
        }
    },
}


@pytest.mark.parametrize("field", TOO_LARGE)
def test_a_pod_that_is_too_large_is_reported_and_tolerates_every_taint(decoder, issues, field):
    shared = decoder.pod(pod_object(**TOO_LARGE[field])).shared
    assert (shared.tolerations, shared.labels, shared.spread, shared.group) == (TOLERATES_ALL, {}, (), None)
    [fault] = ignored_fields(issues)
    assert fault.startswith(f"{field}: Invalid value: ")
    assert "at most 16000 characters of" in fault
    assert "the pod counts as one that has none of these and tolerates every taint" in fault
    assert fault.endswith("shorten this field")


def test_no_profile_narrows_a_pod_that_is_too_large():
    """The profiles of its namespace would evict it, although its own tolerations were not read."""
    above = Toleration("sla", "Gt", "950")
    tolerations = msgspec.structs.replace(TOLERATES_ALL, shared=SharedTolerations((above,)))
    found = judge(tolerations.relevant_to("sla"), Taint("sla", "900"), TolerationSecondsMode.AFTER_VIOLATION)
    assert found.tolerated


def test_the_size_of_all_fields_counts_together(decoder):
    half = dict.fromkeys(MANY_KEYS[: MAX_POD_ENTRIES // 2], "")
    constraints = [{"topologyKey": f"key-{number}", "labelSelector": {"matchLabels": half}} for number in range(3)]
    assert decoder.pod(pod_object(metadata={"labels": half})).shared.labels == half
    pod = decoder.pod(pod_object(metadata={"labels": half}, spec={"topologySpreadConstraints": constraints}))
    assert pod.shared.tolerations == TOLERATES_ALL


def test_labels_within_the_limit_are_kept_without_an_issue(decoder, issues):
    many = {f"k{number:04}": "" for number in range(MAX_POD_ENTRIES)}
    assert decoder.pod(pod_object(metadata={"labels": many})).shared.labels == many
    assert issues == []


def test_the_fields_of_an_owner_are_cut(decoder):
    owner = {"apiVersion": "v1", "controller": True} | dict.fromkeys(("kind", "name", "uid"), "x" * 100_000)
    found = decoder.pod(pod_object(metadata={"ownerReferences": [owner]})).shared.owner
    assert max(map(len, (found.kind, found.name, found.uid))) < 500


def test_control_characters_of_an_owner_are_escaped(decoder):
    owner = {"apiVersion": "v1", "controller": True, "uid": "u", "kind": "Pod\x1b[2J", "name": "x\nforged"}
    found = decoder.pod(pod_object(metadata={"ownerReferences": [owner]})).shared.owner
    assert str(found) == r"Pod\x1b[2J.v1 x\nforged"


def test_of_too_many_spread_constraints_the_first_count(decoder):
    many = [{"topologyKey": f"k{number}", "labelSelector": {}} for number in range(100)]
    pod = decoder.pod(pod_object(spec={"topologySpreadConstraints": many}))
    assert len(pod.shared.spread) == MAX_SPREAD_CONSTRAINTS


LARGE: dict[str, Any] = {"matchExpressions": [{"key": "a", "operator": "In", "values": [str(n) for n in range(2_000)]}]}


def test_a_requirement_that_a_label_exists_counts_as_one_entry(decoder):
    many = [{"key": f"k{number}", "operator": "Exists"} for number in range(MAX_POD_ENTRIES - 1)]
    constraint = {"topologyKey": "zone", "labelSelector": {"matchExpressions": many}}
    pod = decoder.pod(pod_object(spec={"topologySpreadConstraints": [constraint]}))
    assert [one.topology_key for one in pod.shared.spread] == ["zone"]


def test_a_budget_with_a_large_selector_cannot_be_read():
    with pytest.raises(ValueError, match="its selector has more than 1000 labels and values"):
        decoding.budget(budget_object(selector=LARGE))


SELECTS_MANY: dict[int, Any] = {2: "In", 3: [f"value-{n}-{'x' * 20}" for n in range(999)]}
HEAVY: dict[str, dict[int, Any]] = {
    "labels": {1: {11: labels(**{f"example.com/{n}": "v" * 40 for n in range(MANY)})}},
    "tolerations that are kept": {2: {22: [{1: f"example.com/{n}", 2: "Exists"} for n in range(MAX_POD_ENTRIES)]}},
    "tolerations": {2: {22: [{1: f"example.com/{n}", 2: "Exists"} for n in range(MANY)]}},
    "owners": {1: {13: [{1: "Pod", 3: "n" * 40, 4: f"uid-{n}", 5: "v1"} for n in range(MANY)]}},
    "an annotation": {1: {12: labels(**{"taintwarden.io/tolerations": "x" * 250_000})}},
    "constraints": {2: {33: [{1: 1, 2: f"key-{n}", 4: {1: labels(app="web")}} for n in range(MANY)]}},
    "selectors": {2: {33: [{1: 1, 2: f"key-{n}", 4: {2: [SELECTS_MANY | {1: f"key-{n}"}]}} for n in range(32)]}},
    "keys": {1: {11: labels(app="web")}, 2: {33: [{1: 1, 2: "key", 4: {1: labels(a="b")}, 8: ["app"] * 30_000}]}},
}


@pytest.mark.parametrize("what", HEAVY)
def test_heavy_pods_are_light_in_memory(decoder, what):
    """The pods come from the API server: up to a megabyte each, and all differ."""
    frames, pages = Frames(PODS), []
    for number in range(2):
        meta = {1: f"web-{number}", 3: "shop", 5: f"uid-{number}", 6: "7", 8: {1: 1_700_000_000}}
        spec = {4: 30, 10: "n1", 25: number}
        body = {1: meta | HEAVY[what].get(1, {}), 2: spec | HEAVY[what].get(2, {}), 3: {1: "Running"}}
        pages.append(enveloped(message({1: {2: "9"}, 2: [body]})))
    tracemalloc.start()
    pods = [decoder.pod(read(frames.page(page))[0][0]) for page in pages]
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept / len(pods) < 100_000
