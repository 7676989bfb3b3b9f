"""Targets: functions of bytes that may raise nothing, each with the inputs that a search begins with."""

import asyncio
import base64
import contextlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from admission.workloads import extended, gt, pod, review
from api import policy_cases, profile_cases
from kube.scripted import ScriptedClient
from kube.wire_format import enveloped, framed, labels, message
from scheduling.scene import ABOVE, NEWER, Scene, node, pod_json, preferred, required, sla, terms
from taintwarden.api.node_affinity import parse_node_affinity
from taintwarden.api.policies import parse_policy
from taintwarden.api.profiles import parse_profile
from taintwarden.api.tolerations import parse_tolerations
from taintwarden.controller.decoding.decoding import Decoder
from taintwarden.controller.stores import guard_record
from taintwarden.engine import events
from taintwarden.engine.history import decode_histories, encode_histories, until_now
from taintwarden.engine.machine import Machine
from taintwarden.engine.model import Instant, MonotonicTime, WallTime
from taintwarden.engine.natural import explain_natural, parse_natural
from taintwarden.engine.operators import ALL_GATES
from taintwarden.engine.policy import Policy, TaintSelector
from taintwarden.engine.versions import explain_text, explain_text_order
from taintwarden.fields.field_errors import FieldError, InvalidObject
from taintwarden.kube.auth.kubeconfig import from_files
from taintwarden.kube.calls.access import review_token
from taintwarden.kube.errors import NOT_JSON, KubeError
from taintwarden.kube.watch import frames
from taintwarden.kube.wire.kinds import Identity, NodeObject, PodObject
from taintwarden.kube.wire.resources import BUDGETS, DAEMON_SETS, JOBS, NAMESPACES, NODES, PODS
from taintwarden.serving.key_pairs import make_authority, make_key_pair, trusts
from taintwarden_placement.admission.cluster_state import ClusterState
from taintwarden_placement.node_labels.encoding import encode_natural
from taintwarden_placement.rotation import AUTHORITY, AUTHORITY_KEY, CERTIFICATE, KEY, TRUSTED, plan
from taintwarden_placement.scheduling.extender import ExtenderArgs
from taintwarden_placement.serving import reviews as handler
from taintwarden_placement.webhook_calls import ConfigurationKind, read_configurations, read_secret
from taintwarden_placement.webhook_process import admission_webhooks

NOW = Instant(WallTime(1_800_000_000.0), MonotonicTime(0.0))
PAIR = make_key_pair(["hook.ns.svc"], NOW.wall)
MAX_FAULT_CHARACTERS = 20_000
"""Maximum length of all faults of one object, since they are queued, logged and stored."""
POLICY = Policy(name="fuzz", taints=(TaintSelector("*"),))


def annotation(data: bytes) -> None:
    """The annotation with tolerations."""
    _, faults = parse_tolerations(data.decode("utf-8", "surrogateescape"))
    check_texts(faults)


def versions(data: bytes) -> None:
    """Two versions in the natural order, and beside it the semantic one."""
    one, _, other = data.decode("utf-8", "surrogateescape").partition("\n")
    first, second = parse_natural(one), parse_natural(other)
    assert (first is None) is bool(explain_natural(one))
    check_texts([FieldError("", "", explain_text_order(one, other)), FieldError("", "", explain_text(one))])
    if first is None or second is None:
        return
    assert [first < second, first == second, first > second].count(True) == 1
    numbers = encode_natural(first)[0], encode_natural(second)[0]
    assert numbers[0] <= numbers[1] if first < second else numbers[0] >= numbers[1]


def affinities(data: bytes) -> None:
    """The annotation with node affinity."""
    _, faults = parse_node_affinity(data.decode("utf-8", "surrogateescape"))
    check_texts(faults)


def schedulers(data: bytes) -> None:
    """Requests of schedulers to the extender."""
    scene = Scene()
    scene.nodes["a"] = node(sla(940), kubelet="1.31.0")
    try:
        args = msgspec.json.decode(data, type=ExtenderArgs)
    except NOT_JSON:
        return
    msgspec.json.encode(scene.extender.prioritize(args))
    demand = scene.demands.of(args.pod)
    refused = scene.filters.for_demand(demand).refusal(scene.nodes["a"].taints, scene.nodes["a"].labels)
    assert refused is None or len(refused.reason) < MAX_FAULT_CHARACTERS


def objects(data: bytes) -> None:
    """Policies and profiles."""
    try:
        found = msgspec.json.decode(data)
    except NOT_JSON:
        return
    for parse in (parse_policy, parse_profile):
        try:
            parse(found)
        except InvalidObject as error:
            check_texts([error])


def reviews(data: bytes) -> None:
    """Requests of API servers, and of any client that reaches the port, to the webhooks."""
    try:
        request = msgspec.json.decode(data, type=handler.Review).request
    except NOT_JSON:
        return
    webhook = admission_webhooks(ClusterState(), lambda: NOW, ALL_GATES)
    for answer in (webhook.validate, webhook.mutate):
        msgspec.json.decode(handler.encode(request, answer(request)))


def watches(data: bytes) -> None:
    """Lists and watches, through to the machine."""
    machine, decoder = Machine(), Decoder(lambda: NOW)
    machine.step(events.PoliciesChanged((POLICY,)), NOW)
    machine.step(events.Synced(), NOW)
    found: list[Any] = []
    for resource in (PODS, NODES, NAMESPACES, BUDGETS, DAEMON_SETS, JOBS):
        reader: frames.FrameDecoder[Any] = frames.FrameDecoder(resource)
        try:
            page = reader.page(data)
            found += map(page.read, page.items)
        except KubeError as error:
            check_texts([error])
        encoding = reader.watch_format(data)
        for frame in encoding.split(data)[0]:
            try:
                found.append(encoding.change(frame).found)
            except KubeError as error:
                check_texts([error])
    for one in found:
        try:
            if isinstance(one, PodObject) and (seen := decoder.pod(one)) is not None:
                machine.step(events.PodSeen(seen), NOW)
            elif isinstance(one, NodeObject):
                machine.step(events.NodeSeen(decoder.node(one)), NOW)
            elif isinstance(one, Identity) and one.node_name:
                machine.step(events.PodGone(one.uid, one.node_name), NOW)
        except ValueError as error:  # not a timestamp: the object is reported and left out
            check_texts([error])


def histories(data: bytes) -> None:
    """The annotation of a node, which its kubelet may write, and the record of a guard."""
    try:
        found = until_now(decode_histories(data.decode("utf-8", "replace")), NOW.wall)
    except ValueError:
        pass
    else:
        for history in found.values():
            history.with_value("1", NOW.wall)
        assert until_now(decode_histories(encode_histories(found)), NOW.wall) == found
    with contextlib.suppress(ValueError, *NOT_JSON):
        guard_record.decode_guard(msgspec.json.decode(data))


def answers(data: bytes) -> None:
    """The Secret with the certificate, webhook configurations, reviews of tokens: answers that something else wrote."""
    calls: tuple[Callable[[Any], Any], ...] = (
        lambda client: read_secret(client, "ns", "hook"),
        lambda client: read_configurations(client, ConfigurationKind.VALIDATING, "ns", "hook"),
        lambda client: review_token(client, "t"),
    )
    for call in calls:
        try:
            found = asyncio.run(call(ScriptedClient(data)))
        except KubeError as error:
            check_texts([error])
        else:
            if hasattr(found, "content"):
                plan(found.content, ["hook.ns.svc"], NOW.wall)


def certificates(data: bytes) -> None:
    """The bytes in that Secret."""
    first, _, second = data.partition(b"\0")
    served = {CERTIFICATE: first, KEY: second, TRUSTED: first}
    authority = {AUTHORITY: first, AUTHORITY_KEY: second}
    for stored in ({CERTIFICATE: data, KEY: data, TRUSTED: data}, served, served | authority):
        check_texts([plan(stored, ["hook.ns.svc"], NOW.wall).reason])
    trusts(data, PAIR.certificate)


def kubeconfig(data: bytes) -> None:
    """The user's kubeconfig."""
    CONFIG.write_bytes(data)
    try:
        from_files([CONFIG], None, {})
    except (OSError, ValueError, yaml.YAMLError) as error:
        str(error)


def check_texts(faults: Any) -> None:
    """Assert that the texts of faults are short, and printable."""
    texts = [str(fault) for fault in faults]
    assert sum(map(len, texts)) <= MAX_FAULT_CHARACTERS
    assert all(text.isprintable() for text in "".join(texts).split("\n"))


CONFIG = Path(tempfile.mkdtemp(prefix="fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)) / "config"


class Target(NamedTuple):
    """A function, and what it is tried on first."""

    run: Callable[[bytes], None]
    seeds: list[bytes]


def _encoded(*values: Any) -> list[bytes]:
    return [json.dumps(value).encode() for value in values]


def _watched() -> list[bytes]:
    metadata = {"name": "a", "namespace": "shop", "uid": "u", "resourceVersion": "7", "creationTimestamp": STAMP}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "o", "controller": True}
    spread = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}, "matchLabelKeys": ["app"]}
    a_pod = pod(extended(gt("950"), gt("0950")), {"key": "sla", "operator": "Exists"})
    a_pod["metadata"] |= metadata | {"ownerReferences": [owner], "labels": {"app": "a"}}
    a_pod["spec"] |= {"nodeName": "n", "topologySpreadConstraints": [spread], "priority": 5}
    a_pod["status"] = {
        "phase": "Running",
        "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": STAMP}],
    }
    history = {"taintwarden.io/taint-history": HISTORY}
    node = {
        "metadata": metadata | {"annotations": history, "labels": {"a": "b"}},
        "spec": {"taints": [{"key": "sla", "value": "940", "effect": "NoExecute", "timeAdded": STAMP}]},
    }
    budget = {
        "metadata": metadata | {"generation": 1},
        "spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}},
        "status": {"disruptionsAllowed": 1, "observedGeneration": 1, "conditions": []},
    }
    one_by_one = [{"type": "ADDED", "object": one} for one in (a_pod, node, budget)]
    gone = {"type": "ERROR", "object": {"kind": "Status", "status": "Failure", "code": 410, "message": "gone"}}
    page = {"metadata": {"resourceVersion": "9", "continue": "x"}, "items": [a_pod, node]}
    lines = [frame + b"\n" for frame in _encoded(*one_by_one, gone)]
    return [*lines, *_encoded(page), *_watched_in_protobuf()]


def _watched_in_protobuf() -> list[bytes]:
    metadata = {1: "a", 3: "shop", 5: "u", 6: "7", 8: {1: NOW_SECONDS}, 11: labels(app="a")}
    annotated = {12: labels(**{"taintwarden.io/tolerations": extended(gt("950"))})}
    owner = {1: "ReplicaSet", 3: "r", 4: "o", 5: "apps/v1", 6: True}
    selector = {1: labels(app="a"), 2: [{1: "tier", 2: "In", 3: ["a"]}]}
    spread = {1: 1, 2: "zone", 4: selector, 8: ["app"]}
    toleration = {1: "sla", 2: "Exists", 4: "NoExecute", 5: 30}
    scheduled = {1: "PodScheduled", 2: "True", 3: {}, 4: {1: NOW_SECONDS}}
    a_pod = {
        1: metadata | annotated | {13: [owner]},
        2: {4: 30, 10: "n", 22: [toleration], 25: 5, 33: [spread]},
        3: {1: "Running", 2: [scheduled]},
    }
    history = {12: labels(**{"taintwarden.io/taint-history": HISTORY})}
    node = {1: metadata | history, 2: {5: [{1: "sla", 2: "940", 3: "NoExecute", 4: {1: NOW_SECONDS}}]}}
    frames_of = [framed("ADDED", message(one)) for one in (a_pod, node)]
    gone = framed("ERROR", message({2: "Failure", 3: "gone", 4: "Expired", 6: 410}))
    page = enveloped(message({1: {2: "9", 3: "x"}, 2: [a_pod, node]}))
    return [*frames_of, frames_of[0] + gone, page]


STAMP = "2026-01-01T00:00:00Z"
NOW_SECONDS = 1_767_225_600
HISTORY = '{"sla:NoExecute":{"values":[[1700000000,["980","970",null]],[1700000100,["940"]]],"stamp":1700000000}}'
SECRET = {
    "metadata": {"resourceVersion": "1"},
    "data": {
        name: base64.b64encode(value).decode()
        for name, value in {CERTIFICATE: PAIR.certificate, KEY: PAIR.key, TRUSTED: PAIR.certificate}.items()
    },
}
HOOK = {"name": "a", "clientConfig": {"service": {"name": "hook", "namespace": "ns"}, "caBundle": "YQ=="}}
GUARD = {"open": True, "since": STAMP, "cause": "x", "accepted": 3, "spent": [{"until": STAMP, "pods": 2}]}
KUBECONFIG = {
    "current-context": "c",
    "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "n"}}],
    "clusters": [{"name": "k", "cluster": {"server": "https://a:1", "certificate-authority-data": "YQ=="}}],
    "users": [
        {"name": "u", "user": {"token": "t", "tokenFile": "f", "client-certificate-data": "YQ=="}},
        {"name": "e", "user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "c", "env": []}}},
    ],
}
POLICIES = [policy_cases.policy(spec) for spec in policy_cases.GOOD.values()]
PROFILES = [profile_cases.profile(spec) for spec in profile_cases.GOOD.values()]
POD_KIND = {"group": "", "version": "v1", "kind": "Pod"}
DEPLOYMENT_KIND = {"group": "apps", "version": "v1", "kind": "Deployment"}
PROFILE_KIND = {"group": "taintwarden.io", "version": "v1alpha1", "kind": "TolerationProfile"}
TARGETS = {
    "annotation": Target(
        annotation,
        [
            extended(gt(), gt("0950"), {"operator": "Exists"}).encode(),
            extended({"key": "v", "operator": "SemverGt", "value": "1.2.3-rc.1", "tolerationSeconds": 5}).encode(),
        ],
    ),
    "versions": Target(versions, [b"5.15.0-97-generic\n5.15.0-100-generic", b"v1.31.2+k3s1\ncontainerd://1.7~rc1"]),
    "affinities": Target(
        affinities,
        _encoded(required(NEWER) | preferred(5, NEWER), {"required": terms(NEWER, {"key": "a", "operator": "Exists"})}),
    ),
    "schedulers": Target(
        schedulers,
        _encoded({"Pod": pod_json(tolerations=[ABOVE], affinity=required(NEWER)), "NodeNames": ["a", "b"]}),
    ),
    "objects": Target(objects, _encoded(*POLICIES, *PROFILES)),
    "reviews": Target(
        reviews,
        _encoded(
            review(kind=POD_KIND, object=pod(extended(gt("0950"), gt()))),
            review(kind=DEPLOYMENT_KIND, object={"spec": {"template": pod(extended(gt()))}}, oldObject={}),
            review(kind=PROFILE_KIND, object=PROFILES[0]),
        ),
    ),
    "watches": Target(watches, _watched()),
    "histories": Target(histories, [HISTORY.encode(), *_encoded(GUARD)]),
    "answers": Target(
        answers,
        _encoded(
            SECRET,
            {"items": [{"metadata": {"name": "taintwarden"}, "webhooks": [HOOK]}]},
            {"status": {"authenticated": True, "user": {"username": "u"}}},
        ),
    ),
    "certificates": Target(
        certificates, [one.certificate + b"\0" + one.key for one in (PAIR, make_authority("hook", NOW.wall))]
    ),
    "kubeconfig": Target(kubeconfig, [*_encoded(KUBECONFIG), yaml.safe_dump(KUBECONFIG).encode()]),
}
