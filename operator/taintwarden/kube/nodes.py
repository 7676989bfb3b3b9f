"""The calls about one node: a fresh read, the durable clock in its annotation, and labels that repeat its taints."""

from collections.abc import Mapping

from taintwarden.kube.client import APPLY_PATCH, MERGE_PATCH, Client
from taintwarden.kube.errors import ApiError, decoded
from taintwarden.kube.objects import NodeObject

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
        if error.code == 404:
            return None
        raise
    return decoded(body, NodeObject, "node")


async def save_history(client: Client, name: str, uid: str, text: str) -> None:
    """Apply the annotation as its only owner; an empty text removes it. The UID is a precondition.

    Raises:
        KubeError: it was not saved.

    """
    metadata = {"name": name, "uid": uid} | ({"annotations": {HISTORY_ANNOTATION: text}} if text else {})
    await client.request(
        "PATCH",
        f"/api/v1/nodes/{name}",
        params={"fieldManager": FIELD_MANAGER, "force": "true"},
        body={"apiVersion": "v1", "kind": "Node", "metadata": metadata},
        content_type=APPLY_PATCH,
    )


async def save_labels(client: Client, name: str, uid: str, labels: Mapping[str, str | None]) -> None:
    """Write labels of a node, and remove those that are None, whichever client wrote them.

    The UID is a precondition, since a new node may have the same name.

    Raises:
        KubeError: they were not written.

    """
    body = {"metadata": {"uid": uid, "labels": labels}}
    path, params = f"/api/v1/nodes/{name}", {"fieldManager": FIELD_MANAGER}
    await client.request("PATCH", path, params=params, body=body, content_type=MERGE_PATCH)
