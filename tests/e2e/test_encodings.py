"""Objects of a real API server decode from protobuf to the same values as from JSON."""

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from controlplane import Json, Target
from kube.wire_format import enveloped, message, read
from taintwarden.controller.decoding.decoding import Decoder as Translator
from taintwarden.engine import events
from taintwarden.engine.model import Instant
from taintwarden.kube.auth.connection import Connection
from taintwarden.kube.http.client import JSON, Client
from taintwarden.kube.watch.frames import FrameDecoder
from taintwarden.kube.wire.formats import PROTOBUF
from taintwarden.kube.wire.kinds import WorkloadObject
from taintwarden.kube.wire.protobuf_frames import MAGIC
from taintwarden.kube.wire.resources import (
    NODES,
    PODS,
    REPLICA_SETS,
    Resource,
)

LATER = 4e9
"""Times are not later than now."""
NODE = "encodings-n"
KINDS = (NODES, PODS, REPLICA_SETS)
"""Those that are read in protobuf wherever there are many of them."""
SELECTOR = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["front", "back"]},
        {"key": "old", "operator": "DoesNotExist"},
    ],
}
CONTAINERS = [{"name": "main", "image": "example/none", "env": [{"name": "TEXT", "value": "ü" * 200}]}]
TOLERATIONS = [
    {"key": "sla", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0},
    {"key": "sla", "operator": "Equal", "value": "1", "effect": "NoSchedule"},
    {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 2**40},
    {"key": "half", "operator": "Exists"},
]
EXTENDED = '[{"key":"sla","operator":"Gt","value":"950","effect":"NoExecute","tolerationSeconds":30}]'
SPREAD = [
    {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": SELECTOR},
    {
        "maxSkew": 2,
        "topologyKey": "host",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["label-1"],
    },
    {"maxSkew": 3, "topologyKey": "row", "whenUnsatisfiable": "ScheduleAnyway"},
]


def pod(name: str, **more: Any) -> Json:
    spec = {"nodeName": "n", "containers": CONTAINERS} | more.pop("spec", {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name} | more, "spec": spec}


def owner(kind: str, api_version: str = "apps/v1", **more: Any) -> Json:
    return {"apiVersion": api_version, "kind": kind, "name": "own", "uid": f"uid-{kind}"} | more


def template(**spec: Any) -> Json:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": CONTAINERS} | spec}


def workload(api_version: str, kind: str, name: str, **spec: Any) -> Json:
    whole = {"selector": {"matchLabels": {"app": "web"}}, "template": template()} | spec
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": whole}


OBJECTS = (
    pod("bare"),
    pod("twin-1", labels={"app": "twin"}, spec={"tolerations": TOLERATIONS}),
    pod("twin-2", labels={"app": "twin"}, spec={"tolerations": TOLERATIONS}),
    pod("rich", labels={"app": "web"}, annotations={"taintwarden.io/tolerations": EXTENDED, "other": "ü" * 300}),
    pod("marked", annotations={"taintwarden.io/do-not-evict": "true", "karpenter.sh/do-not-disrupt": "true"}),
    pod("safe", annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}),
    pod("spread", labels={"app": "web", "label-1": "1"}, spec={"topologySpreadConstraints": SPREAD}),
    pod("owned", ownerReferences=[owner("Other", "example.com/v1"), owner("ReplicaSet", controller=True)]),
    pod("foreign", ownerReferences=[owner("StatefulSet", "example.com/v1", controller=True)]),
    pod("disk", spec={"volumes": [{"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}]}),
    pod("memory", spec={"volumes": [{"name": "data", "emptyDir": {"medium": "Memory"}}]}),
    pod("host", spec={"volumes": [{"name": "data", "hostPath": {"path": "/" + "x" * 200}}]}),
    pod("config", spec={"volumes": [{"name": "data", "configMap": {"name": "none"}}]}),
    pod("at-once", spec={"terminationGracePeriodSeconds": 0}),
    pod("important", spec={"priorityClassName": "system-node-critical"}),
    workload("apps/v1", "ReplicaSet", "none", replicas=0),
    workload("apps/v1", "ReplicaSet", "default"),
)


@pytest.fixture(scope="module")
def populated(control_plane: Target) -> Iterator[Target]:
    """A namespace with objects of every kind, and a node with taints of every form."""
    client, name = control_plane.client, "encodings"
    client.create_namespace(name)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "labels": {"zone": "a"}}}
    node["metadata"]["annotations"] = {"taintwarden.io/taint-history": "{}", "other": "1"}
    taints = [
        {"key": "sla", "value": "950", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"},
        {"key": "spot", "effect": "NoExecute"},
        {"key": "tier", "value": "b", "effect": "PreferNoSchedule"},
    ]
    client.apply(node | {"spec": {"taints": taints}})
    for each in OBJECTS:
        found = {**each, "metadata": {**each["metadata"], "namespace": name}}
        if each["kind"] == "Pod":
            found["spec"] = found["spec"] | {"nodeName": NODE}
        client.apply(found)
    status = {
        "phase": "Running",
        "conditions": [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"},
            {"type": "ReadyToServe", "status": "False", "lastTransitionTime": "2026-01-02T03:04:06Z"},
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:07Z"},
        ],
    }
    client.patch("pods", "rich", {"status": status}, name, subresource="status")
    create_with_odd_text(control_plane, name)
    yield control_plane
    client.delete("nodes", NODE)
    client.remove_namespace(name)


def create_with_odd_text(target: Target, namespace: str) -> None:
    """A pod with text that is not UTF-8, which only a client that sends protobuf can create."""
    owner = {1: b"Set\xff", 3: b"\xfe", 4: "uid", 5: "apps/v1", 6: True}
    annotation = {1: "taintwarden.io/tolerations", 2: b'[{"key":"\xff"}]'}
    pod = {1: {1: "odd", 3: namespace, 12: [annotation], 13: [owner]}, 2: {2: {1: "main", 2: "example/none"}, 10: NODE}}
    path = f"/api/v1/namespaces/{namespace}/pods"
    target.client.send(path, enveloped(message(pod), "v1", "Pod"), "application/vnd.kubernetes.protobuf")


async def listed(target: Target, resource: Resource[Any], accept: str, version: str = "") -> bytes:
    async with Client(Connection.load(str(target.admin_kubeconfig))) as client:
        exact = {"resourceVersion": version, "resourceVersionMatch": "Exact"} if version else {}
        return await client.request("GET", resource.path, params=resource.selection | exact, accept=accept)


async def watched(
    target: Target, resource: Resource[Any], accept: str, version: str = "0", last: str = ""
) -> list[tuple[str, Any]]:
    """A watch from version 0 begins with everything, and the server ends it after a second.

    `last`: instead it is read up to the deletion of the object with this UID.
    """
    decoder, changes, buffer = FrameDecoder(resource), [], b""
    seconds = "15" if last else "1"
    params = {"watch": "true", "resourceVersion": version, "timeoutSeconds": seconds} | resource.selection
    async with (
        Client(Connection.load(str(target.admin_kubeconfig))) as client,
        client.stream(resource.path, params, 20.0, accept=accept) as chunks,
    ):
        async for chunk in chunks:
            encoding = decoder.watch_format(buffer + chunk)
            frames, buffer = encoding.split(buffer + chunk)
            changes += [(one.type, one.found) for one in map(encoding.change, frames)]
            if last and any(kind == "DELETED" and each.uid == last for kind, each in changes):
                return changes
    assert not buffer
    return changes


def workload_seen(one: WorkloadObject) -> events.WorkloadSeen:
    """The engine's event for a controller while a policy names the label `app`."""
    labels = (("app", one.template_label("app")),)
    return events.WorkloadSeen((one.metadata.namespace, one.metadata.uid), one.spec.replicas, labels)


def compared(resource: Resource[Any], *lists: list[Any]) -> list[Any]:
    """The lists by version, as the engine sees the objects.

    Equal classes of pods are one object, as one translator makes them.
    """
    translator = Translator(lambda: Instant(LATER, 0.0))
    seen = {PODS: translator.pod, NODES: translator.node, REPLICA_SETS: workload_seen}[resource]
    ordered = (sorted(each, key=lambda one: one.metadata.resource_version) for each in lists)
    return [[msgspec.structs.astuple(made) for one in each if (made := seen(one))] for each in ordered]


@pytest.mark.parametrize("resource", KINDS, ids=lambda each: each.name)
def test_a_list_holds_the_same(populated: Target, resource: Resource[Any]) -> None:
    body = asyncio.run(listed(populated, resource, PROTOBUF))
    binary = FrameDecoder(resource).page(body)
    text = FrameDecoder(resource).page(asyncio.run(listed(populated, resource, JSON, binary.head.resource_version)))
    assert body.startswith(MAGIC)
    assert binary.head == text.head
    (found, bad), (expected, _) = read(binary), read(text)
    assert found
    assert not bad
    found, expected = compared(resource, found, expected)
    assert found == expected


@pytest.mark.parametrize("resource", KINDS, ids=lambda each: each.name)
def test_a_watch_brings_the_same(populated: Target, resource: Resource[Any]) -> None:
    binary, text = (asyncio.run(watched(populated, resource, accept)) for accept in (PROTOBUF, JSON))
    assert "ADDED" in {kind for kind, _ in binary}
    found, expected = (
        {each.metadata.resource_version: each for kind, each in changes if kind != "DELETED"}
        for changes in (binary, text)
    )
    both = found.keys() & expected.keys()  # in a cluster that others use, they write and delete meanwhile
    assert both
    found, expected = compared(resource, *([each[version] for version in both] for each in (found, expected)))
    assert found == expected


def test_a_watch_brings_the_same_deletion(populated: Target) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "doomed", "namespace": "encodings"}}
    populated.client.apply(pod | {"spec": {"containers": CONTAINERS, "nodeName": NODE}})
    before = populated.client.get("pods", "doomed", "encodings")["metadata"]
    populated.client.delete("pods", "doomed", "encodings", grace_seconds=0)
    version = before["resourceVersion"]
    binary, text = (
        asyncio.run(watched(populated, PODS, accept, version, before["uid"])) for accept in (PROTOBUF, JSON)
    )
    [found], [expected] = (
        [each for kind, each in changes if kind == "DELETED" and each.uid == before["uid"]]
        for changes in (binary, text)
    )
    assert found == expected
    assert (found.name, found.namespace, found.node_name) == ("doomed", "encodings", NODE)
