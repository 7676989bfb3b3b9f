"""Values of sources: what of a node is read, and how it becomes the value of a taint."""

import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller import NOW, Clock, node_object
from kube.wire_format import enveloped, labels, message, read
from taintwarden.controller.decoding.decoding import Decoder
from taintwarden.controller.decoding.node_values import MAX_TEXT_LENGTH, as_value, values_of
from taintwarden.engine.history import MAX_VALUE_LENGTH
from taintwarden.engine.model import NodeCondition, NodeInfo, SourceKind, SourceValue, ValueSource
from taintwarden.engine.policy import Policy, TaintSelector
from taintwarden.kube.calls.node_calls import DRAINED_CONDITION
from taintwarden.kube.watch.frames import FrameDecoder as Frames
from taintwarden.kube.wire.kinds import NODE_INFO, NodeObject
from taintwarden.kube.wire.resources import NODES

RUNTIME = ValueSource(SourceKind.NODE_INFO, NodeInfo.CONTAINER_RUNTIME_VERSION)
HEALTHY = ValueSource(SourceKind.CONDITION, "GPUHealthy")
RACK = ValueSource(SourceKind.LABEL, "example.com/rack")
TEAM = ValueSource(SourceKind.ANNOTATION, "example.com/team")
ALL = (RUNTIME, HEALTHY, RACK, TEAM)
AT = "2023-11-14T22:13:00Z"
NUMBERS = {"kernelVersion": 4, "osImage": 5, "containerRuntimeVersion": 6, "kubeletVersion": 7, "kubeProxyVersion": 8}
NUMBERS |= {"operatingSystem": 9, "architecture": 10}


def node(info: Any = (), conditions: Any = (), **metadata: Any) -> NodeObject:
    status = {"nodeInfo": dict(info), "conditions": list(conditions)}
    return msgspec.convert({"metadata": {"name": "n1", **metadata}, "status": status}, NodeObject)


def reading(*sources: ValueSource) -> Policy:
    return Policy(name="p", taints=tuple(TaintSelector(f"k{number}", source=one) for number, one in enumerate(sources)))


def test_a_node_without_values():
    assert values_of(node_object(), ALL) == {}


def test_a_field_of_the_system_info():
    kernel = ValueSource(SourceKind.NODE_INFO, NodeInfo.KERNEL_VERSION)
    assert values_of(node({"kernelVersion": "6.1.0"}), [kernel]) == {kernel: SourceValue("6.1.0")}


def test_each_field_that_a_policy_can_name_is_read():
    assert {*NODE_INFO} == {*NodeInfo}


def test_an_empty_field_is_no_value():
    assert values_of(node({"containerRuntimeVersion": ""}), [RUNTIME]) == {}


@pytest.mark.parametrize("text", ["containerd://2.1.4", "cri-o://2.1.4", "2.1.4"])
def test_the_scheme_of_the_runtime_is_removed(text):
    assert values_of(node({"containerRuntimeVersion": text}), [RUNTIME])[RUNTIME].text == "2.1.4"


def test_the_scheme_of_other_values_is_not():
    assert values_of(node(annotations={"example.com/team": "git://blue"}), [TEAM])[TEAM].text == "git_blue"


def test_a_condition_with_its_time():
    found = values_of(node(conditions=[{"type": "GPUHealthy", "status": "False", "lastTransitionTime": AT}]), [HEALTHY])
    assert found == {HEALTHY: SourceValue("False", NOW - 19)}, "the end of the second"


@pytest.mark.parametrize("time", [None, "yesterday"])
def test_a_condition_without_a_time_has_its_value(time):
    conditions = [{"type": "GPUHealthy", "status": "Unknown", "lastTransitionTime": time}]
    assert values_of(node(conditions=conditions), [HEALTHY]) == {HEALTHY: SourceValue("Unknown")}


def test_another_condition_has_no_value():
    assert values_of(node(conditions=[{"type": "GPUHealthyToo", "status": "True"}]), [HEALTHY]) == {}


def test_labels_and_annotations_may_be_empty():
    found = values_of(node(labels={"example.com/rack": ""}, annotations={"example.com/team": ""}), ALL)
    assert found == {RACK: SourceValue(""), TEAM: SourceValue("")}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("v1.31.2+k3s1", "v1.31.2+k3s1"),
        ("Ubuntu 24.04.3 LTS", "Ubuntu_24.04.3_LTS"),
        ("Debian GNU/Linux 12 (bookworm)", "Debian_GNU_Linux_12_bookworm"),
        ("-5", "-5"),
        ("1.7.12-0ubuntu2~22.04.1", "1.7.12-0ubuntu2~22.04.1"),
        ("_XL_", "XL"),
        ("_~1~", "1~"),
        ("a\nb\x1b[31m", "a_b_31m"),
        ("größer", "gr_er"),
        ("", ""),
        ("a" * 63, "a" * 63),
        ("a" * 64, None),
    ],
)
def test_a_text_is_converted_to_a_valid_taint_value(text, value):
    assert as_value(text) == value


@given(st.text())
def test_a_value_is_short_and_plain(text):
    value = as_value(text)
    if value is not None:
        assert len(value) <= MAX_VALUE_LENGTH
        assert all(one.isascii() and (one.isalnum() or one in "._+~-") for one in value)
        assert as_value(value) == value


TEXTS = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=200)
NAMES = st.sampled_from(["GPUHealthy", "Ready", "GPUHealthyToo", "a" * 150, "a" * 300])
CONDITIONS = st.lists(st.tuples(NAMES, TEXTS, st.none() | st.integers(0, 2**31), TEXTS), max_size=4)
INFO = st.dictionaries(st.sampled_from(list(NUMBERS)), TEXTS)


@given(INFO, CONDITIONS, st.dictionaries(st.sampled_from(["example.com/team", "other"]), TEXTS))
def test_both_encodings_have_the_same_values(info, conditions, annotations):
    """Also where a heartbeat's own time is there or not, and where texts are long."""
    wanted = [*ALL, *(ValueSource(SourceKind.NODE_INFO, field) for field in NodeInfo)]
    wanted += [ValueSource(SourceKind.CONDITION, name) for name in ("Ready", "a" * 150, "a" * 300)]
    encoded = [
        {1: kind, 2: status, **({} if at is None else {3: {1: at}, 4: {1: at}}), 6: told}
        for kind, status, at, told in conditions
    ]
    body = {
        1: {1: "n1", 12: labels(**annotations)},
        3: {4: encoded, 7: {NUMBERS[name]: text for name, text in info.items()}},
    }
    [found], _ = read(Frames(NODES).page(enveloped(message({1: {2: "9"}, 2: [body]}))))
    times = [None if at is None else _rfc(at) for _, _, at, _ in conditions]
    listed = [
        {"type": kind, "status": status, "lastTransitionTime": at}
        for (kind, status, _, _), at in zip(conditions, times, strict=True)
    ]
    assert values_of(found, wanted) == values_of(node(info, listed, annotations=annotations), wanted)


def _rfc(seconds: int) -> str:
    from datetime import UTC, datetime  # noqa: PLC0415

    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


# -- the decoder ------------------------------------------------------------------------------------------------------


def test_the_decoder_reads_the_sources_that_policies_name():
    decoder = Decoder(Clock())
    assert decoder.node(node(labels={"example.com/rack": "7"})).values == {}
    assert decoder.follow([reading(RACK)])
    assert decoder.node(node(labels={"example.com/rack": "7"})).values == {RACK: SourceValue("7")}


def test_only_more_has_nodes_read_again():
    decoder = Decoder(Clock())
    assert decoder.follow([reading(RACK), reading(TEAM)])
    assert not decoder.follow([reading(RACK)])
    assert not decoder.follow([])
    assert decoder.follow([reading(TEAM)])


def test_text_that_is_too_long_is_no_value_even_if_it_would_become_short():
    assert values_of(node(labels={RACK.name: "a" + "/" * MAX_TEXT_LENGTH}), [RACK]) == {}


def test_texts_that_a_kubelet_changes_at_each_report_are_not_kept():
    """A megabyte of ``osImage``, another one each time: the memory of every replica would be its own."""
    source = ValueSource(SourceKind.NODE_INFO, NodeInfo.OS_IMAGE)
    tracemalloc.start()
    try:
        for number in range(20):
            info = message({NUMBERS["osImage"]: f"{number}" + "x" * 200_000})
            body = message({1: {1: "n1", 6: "7"}, 3: {7: info}})
            [found], _ = read(Frames(NODES).page(enveloped(message({1: {2: "9"}, 2: [body]}))))
            assert values_of(found, [source]) == {}
        del found, body, info
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000


# -- the condition of drained nodes -----------------------------------------------------------------------------------

SAID = NodeCondition("False", "Blocked", "1 pod has to leave")


def test_both_encodings_have_the_condition_of_drained_nodes():
    said = {1: DRAINED_CONDITION, 2: SAID.status, 5: SAID.reason, 6: SAID.message}
    body = {1: {1: "n1", 6: "7"}, 3: {4: [{1: "Ready", 2: "True"}, said]}}
    [encoded], _ = read(Frames(NODES).page(enveloped(message({1: {2: "9"}, 2: [body]}))))
    written = {"type": DRAINED_CONDITION, "status": SAID.status, "reason": SAID.reason, "message": SAID.message}
    plain = node(conditions=[{"type": "Ready"}, written], resourceVersion="7")
    decoder = Decoder(Clock(), reads_drained=True)
    assert [decoder.node(one).drained for one in (encoded, plain, node(resourceVersion="7"))] == [SAID, SAID, None]


def test_the_drained_condition_is_not_read_unless_the_operator_writes_it():
    written = {"type": DRAINED_CONDITION, "status": "True"}
    assert Decoder(Clock()).node(node(conditions=[written], resourceVersion="7")).drained is None
