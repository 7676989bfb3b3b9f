"""The calls about one node: a fresh read, the durable clock in its annotation, and labels that repeat its taints."""

from typing import Any

from taintwarden.engine.machine.commands import SaveHistory, SaveLabels
from taintwarden.kube.calls.evictor import Fence
from taintwarden.kube.errors import ApiError
from taintwarden.kube.http.client import APPLY_PATCH, MERGE_PATCH, Client
from taintwarden.kube.wire.answers import decoded
from taintwarden.kube.wire.kinds import NodeObject, version_number

FIELD_MANAGER = "taintwarden"
HISTORY_ANNOTATION = "taintwarden.io/taint-history"


async def read_node(client: Client, name: str) -> NodeObject | None:
    """Read past every cache; None if there is no such node.

    Raises:
        KubeError: the read failed.

    """
    try:
        body = await client.request("GET", f"/api/v1/nodes/{name}")
    except ApiError as error:
        if error.is_not_found:
            return None
        raise
    return decoded(body, NodeObject, "node")


async def save_history(client: Client, order: SaveHistory, fence: Fence) -> int:
    """Apply the annotation as its only owner; an empty text removes it. Returns the version of the node after that.

    UID and resourceVersion are preconditions: neither a namesake is written, nor what another leader has written since.

    Raises:
        KubeError: it was not saved.

    """
    metadata = {"name": order.node, "uid": order.uid} | _based_on(order.version)
    if order.text:
        metadata["annotations"] = {HISTORY_ANNOTATION: order.text}
    body = await client.request(
        "PATCH",
        f"/api/v1/nodes/{order.node}",
        params={"fieldManager": FIELD_MANAGER, "force": "true"},
        body={"apiVersion": "v1", "kind": "Node", "metadata": metadata},
        content_type=APPLY_PATCH,
        fence=fence,
    )
    return _version(body)


async def save_labels(client: Client, order: SaveLabels, fence: Fence) -> int:
    """Write labels of a node, and remove those that are None, whichever client wrote them.

    Returns the version of the node after that. What else of the node changed meanwhile is no obstacle.

    Raises:
        KubeError: they were not written.

    """
    metadata = {"uid": order.uid, "labels": order.labels}
    body = await client.request(
        "PATCH",
        f"/api/v1/nodes/{order.node}",
        params={"fieldManager": FIELD_MANAGER},
        body={"metadata": metadata},
        content_type=MERGE_PATCH,
        fence=fence,
    )
    return _version(body)


def _based_on(version: int) -> dict[str, Any]:
    return {"resourceVersion": str(version)} if version >= 0 else {}


def _version(body: bytes) -> int:
    return version_number(decoded(body, NodeObject, "node").metadata.resource_version, unreadable=-1)
