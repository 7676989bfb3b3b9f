"""Calls about one node: a fresh read, and the taint history in its annotation."""

from taintwarden.engine.machine.commands import SaveHistory
from taintwarden.kube.calls.patching import Fence, patch
from taintwarden.kube.errors import ApiError
from taintwarden.kube.http.client import APPLY_PATCH, Client
from taintwarden.kube.wire.answers import decoded
from taintwarden.kube.wire.kinds import NodeObject, version_number

FIELD_MANAGER = "taintwarden"
HISTORY_ANNOTATION = "taintwarden.io/taint-history"
PATH = "/api/v1/nodes"


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


async def save_history(client: Client, order: SaveHistory, fence: Fence) -> int:
    """Apply the annotation as its only field manager; an empty text removes it. Return the new version of the node.

    UID and resourceVersion are preconditions: neither another node of this name nor a later write is overwritten.

    Raises:
        KubeError: the history was not saved.

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
