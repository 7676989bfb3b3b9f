"""Calls about one node: fresh reads, the taint history in its annotation, and its condition."""

from typing import Any, NamedTuple

import msgspec
from msgspec.structs import asdict

from taintwarden.engine import rfc3339
from taintwarden.engine.commands import SaveCondition, SaveHistory
from taintwarden.engine.model import StoredPod
from taintwarden.fields.text import printable
from taintwarden.kube.calls.patching import Fence, patch
from taintwarden.kube.errors import ApiError
from taintwarden.kube.http.client import APPLY_PATCH, STRATEGIC_PATCH, Client
from taintwarden.kube.wire.answers import decoded
from taintwarden.kube.wire.kinds import FINISHED, NodeObject, PodObject, version_number
from taintwarden.kube.wire.resources import PODS

FIELD_MANAGER = "taintwarden"
HISTORY_ANNOTATION = "taintwarden.io/taint-history"
DRAINED_CONDITION = "taintwarden.io/Drained"
PATH = "/api/v1/nodes"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
"""Header ``Accept`` for the metadata of pods alone: their specs may have 9 MB of JSON each."""
MAX_PODS_BYTES = 32 * 2**20
"""Maximum bytes of the metadata of the pods of a node, of which each has up to 1.5 MB of annotations."""
MAX_MANAGER_LENGTH = 128
"""Maximum length of the name of a manager: that of the API server."""


class Writer(NamedTuple):
    """The manager of ``spec.taints`` of a node, how it wrote (Update or Apply), and when it wrote to the node last."""

    manager: str
    operation: str
    at: str


class _ManagedFields(msgspec.Struct, rename="camel"):
    manager: str = ""
    operation: str = ""
    time: str = ""
    fields_v1: dict[str, Any] = {}

    @property
    def has_taints(self) -> bool:
        spec = self.fields_v1.get("f:spec")
        return isinstance(spec, dict) and "f:taints" in spec


class _ManagedMeta(msgspec.Struct, rename="camel"):
    managed_fields: tuple[_ManagedFields, ...] = ()


class _ManagedNode(msgspec.Struct):
    metadata: _ManagedMeta


class _PodList(msgspec.Struct):
    items: list[PodObject] | None
    """None: the API server writes null in place of an empty list of metadata."""


async def read_node(client: Client, name: str) -> NodeObject | None:
    """Read the node past every cache. Return None if it does not exist.

    Raises:
        KubeError: the read failed.

    """
    try:
        body = await client.request("GET", f"{PATH}/{name}")
    except ApiError as error:
        if error.is_not_found:
            return None
        raise
    return decoded(body, NodeObject, "node")


async def last_writer(client: Client, name: str) -> Writer | None:
    """Return the last writer of the taints of a node, which are one field; None if the node does not record it.

    Raises:
        KubeError: the read failed.

    """
    body = await client.request("GET", f"{PATH}/{name}")
    managed = decoded(body, _ManagedNode, "node").metadata.managed_fields
    writers = [(entry.time, entry.manager, entry.operation) for entry in managed if entry.has_taints]
    if not writers:
        return None
    at, manager, operation = (printable(text, MAX_MANAGER_LENGTH) for text in max(writers))
    return Writer(manager, operation, at)


async def save_history(client: Client, order: SaveHistory, fence: Fence) -> int:
    """Apply the annotation, or remove it if its text is empty. Return the new version of the node; -1 if unreadable.

    UID and resourceVersion are preconditions: neither another node of this name nor a later write is overwritten.

    Raises:
        KubeError: the history was not saved, or the result is not known.

    """
    annotations = {"annotations": {HISTORY_ANNOTATION: order.text}} if order.text else {}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": order.node} | annotations}
    version = str(order.version) if order.version >= 0 else ""
    saved = await patch(
        client,
        f"{PATH}/{order.node}",
        node,
        fence,
        uid=order.uid,
        version=version,
        form=APPLY_PATCH,
        manager=FIELD_MANAGER,
    )
    return version_number(saved, unreadable=-1)


async def read_pods(client: Client, node: str) -> list[StoredPod]:
    """Read the pods of a node past every cache, without static and finished ones.

    Raises:
        KubeError: the read failed.

    """
    # Finished pods are excluded by the server, because there may be any number of them.
    selector = ",".join([f"spec.nodeName={node}", *(f"status.phase!={phase}" for phase in FINISHED)])
    params = {"fieldSelector": selector}
    body = await client.request("GET", PODS.path, params=params, accept=METADATA, max_bytes=MAX_PODS_BYTES)
    return [
        StoredPod(
            pod.metadata.uid,
            version_number(pod.metadata.resource_version),
            terminates=pod.metadata.deletion_timestamp is not None,
        )
        for pod in decoded(body, _PodList, "list of pods").items or ()
        if not pod.is_mirror
    ]


async def save_condition(client: Client, order: SaveCondition, fence: Fence) -> int:
    """Write or remove ``Drained``, and change no other condition. Return the new version of the node; -1 if unreadable.

    A patch without ``lastTransitionTime`` keeps the stored one.

    Raises:
        KubeError: the condition was not saved, or the result is not known.

    """
    change: dict[str, str] = {"type": DRAINED_CONDITION, "lastHeartbeatTime": (now := rfc3339.at(order.at))}
    if order.condition is None:
        change = {"type": DRAINED_CONDITION, "$patch": "delete"}
    else:
        change |= asdict(order.condition) | ({"lastTransitionTime": now} if order.changes_status else {})
    saved = await patch(
        client,
        f"{PATH}/{order.node}/status",
        {"status": {"conditions": [change]}},
        fence,
        uid=order.uid,
        version=str(order.version),
        form=STRATEGIC_PATCH,
        manager=FIELD_MANAGER,
    )
    return version_number(saved, unreadable=-1)
