"""A pod is the same for the engine in JSON, on a page in protobuf, and as a change in protobuf."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from controller import Clock
from kube.wire_format import enveloped, framed, message, pod_message, read
from taintwarden.controller.decoding.decoding import Decoder, PodIssue
from taintwarden.kube.watch.frames import FrameDecoder
from taintwarden.kube.wire.kinds import PodObject
from taintwarden.kube.wire.resources import PODS

LATEST = 253_402_300_799


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Any of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


def text_at(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


words = st.sampled_from(["", "a", "b", "ü"])
moments = st.sampled_from([0, 1_600_000_000, 1_600_000_009, LATEST]).map(text_at)
extended = st.sampled_from(
    ["[]", '[{"key": "a", "operator": "Gt", "value": "950"}]', '[{"key": "a", "operator": "Gt"}]']
)
annotations = {
    "taintwarden.io/tolerations": extended,
    "taintwarden.io/do-not-evict": st.sampled_from(["true", "yes"]),
    "karpenter.sh/do-not-disrupt": st.sampled_from(["true", "4h"]),
    "kubernetes.io/config.mirror": words,
    "other": words,
}
owners = some(
    apiVersion=st.sampled_from(["apps/v1", "example.com/v1"]),
    kind=st.sampled_from(["ReplicaSet", "DaemonSet"]),
    name=words,
    uid=words,
    controller=st.booleans(),
)
volumes = st.one_of(
    st.just({"name": "a"}),
    st.just({"name": "b", "hostPath": {"path": "/"}}),
    st.sampled_from(["", "Memory"]).map(lambda medium: {"name": "c", "emptyDir": {"medium": medium}}),
)
tolerations = some(
    key=words,
    operator=st.sampled_from(["", "Equal", "Exists"]),
    value=words,
    effect=st.sampled_from(["", "NoExecute"]),
    tolerationSeconds=st.sampled_from([-1, 0, 300, 2**40]),
)
conditions = some(
    type=st.sampled_from(["PodScheduled", "Ready", "Readyness", ""]),
    status=st.sampled_from(["True", "False", ""]),
    lastTransitionTime=moments,
)
pods = st.fixed_dictionaries(
    {
        "metadata": some(
            namespace=words,
            resourceVersion=st.sampled_from(["1", "99"]),
            creationTimestamp=moments,
            deletionTimestamp=moments,
            labels=st.dictionaries(words, words),
            annotations=some(**annotations),
            ownerReferences=st.lists(owners, max_size=2),
        ),
        "spec": some(
            volumes=st.lists(volumes, max_size=3),
            terminationGracePeriodSeconds=st.sampled_from([0, 30, 90]),
            nodeName=words,
            tolerations=st.lists(tolerations, max_size=3),
            priority=st.sampled_from([-5, 0, 2_000_000_000]),
        ),
        "status": some(
            phase=st.sampled_from(["Pending", "Running", "Failed"]), conditions=st.lists(conditions, max_size=3)
        ),
    }
)


@st.composite
def alike(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Pods that differ in a few fields."""
    base, other = draw(pods), draw(pods)
    found = []
    for number in range(draw(st.integers(1, 4))):
        pod = {section: dict(fields) for section, fields in base.items()}
        for section, fields in other.items():
            pod[section] |= {name: fields[name] for name in fields if draw(st.integers(0, 3)) == 0}
        pod["metadata"] |= {"name": f"pod-{number}", "uid": f"uid-{number}"}
        found.append(pod)
    return found


def seen_by_the_engine(objects: list[PodObject]) -> list[Any]:
    """The pods that the engine receives, and the issues that one decoder reports about them."""
    issues: list[PodIssue] = []
    decoder = Decoder(Clock(), issues.append)
    values = [(decoder.pod(one), decoder.bound(one)) for one in objects]
    return [*([plain(one) for one in pair] for pair in values), *issues]


def plain(pod: Any) -> Any:
    """A pod in values that compare equal."""
    return pod and (
        msgspec.structs.astuple(pod.shared),
        msgspec.structs.astuple(msgspec.structs.replace(pod, shared=None)),
    )


@settings(max_examples=200)
@given(alike())
def test_a_pod_is_the_same_in_each_encoding(found: list[dict[str, Any]]) -> None:
    frames, encoded = FrameDecoder(PODS), [pod_message(one) for one in found]
    in_json = read(frames.page(json.dumps({"metadata": {"resourceVersion": "9"}, "items": found}).encode()))
    on_a_page = read(frames.page(enveloped(message({1: {2: "9"}, 2: encoded}))))
    watch = b"".join(framed("MODIFIED", one) for one in encoded)
    encoding = frames.watch_format(watch)
    as_changes = [encoding.change(one).found for one in encoding.split(watch)[0]]
    assert in_json[1] == on_a_page[1] == []
    assert seen_by_the_engine(in_json[0]) == seen_by_the_engine(on_a_page[0]) == seen_by_the_engine(as_changes)
