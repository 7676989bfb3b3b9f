"""The calls about one node: a fresh read, and the durable clock in its annotation."""

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
    """Read past every cache; None if there is no such node.

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
    """Apply the annotation as its only owner; an empty text removes it. Returns the version of the node after that.

    UID and resourceVersion are preconditions: neither a namesake is written, nor what another leader has written since.

    Raises:
        KubeError: it was not saved.

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
