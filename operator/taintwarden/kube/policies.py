"""TaintEvictionPolicies beside kopf: one list at the start, and the status."""

from typing import Any

import msgspec

from taintwarden.kube.client import MERGE_PATCH, Client

PATH = "/apis/taintwarden.io/v1alpha1/taintevictionpolicies"


async def list_policies(client: Client) -> list[dict[str, Any]]:
    """All policies as they are stored.

    Raises:
        KubeError: the list failed.

    """
    items: list[dict[str, Any]] = msgspec.json.decode(await client.request("GET", PATH))["items"]
    return items


async def patch_status(client: Client, name: str, status: dict[str, Any]) -> None:
    """Merge ``status`` into the policy's.

    Raises:
        KubeError: it was not written.

    """
    await client.request("PATCH", f"{PATH}/{name}/status", body={"status": status}, content_type=MERGE_PATCH)
