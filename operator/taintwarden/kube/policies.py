"""TaintEvictionPolicies beside kopf: one list at the start, and the status."""

from typing import Any

import msgspec

from taintwarden.kube.client import MERGE_PATCH, Client
from taintwarden.kube.errors import ApiError, MissingDefinitionError, decoded
from taintwarden.kube.objects import ListMeta

PATH = "/apis/taintwarden.io/v1alpha1/taintevictionpolicies"


class _PolicyList(msgspec.Struct):
    items: list[dict[str, Any]]
    metadata: ListMeta


async def list_policies(client: Client) -> tuple[list[dict[str, Any]], str]:
    """All policies as they are stored, and the resourceVersion of the list.

    Raises:
        MissingDefinitionError: the CustomResourceDefinition is not there.
        KubeError: the list failed.

    """
    try:
        body = await client.request("GET", PATH)
    except ApiError as error:
        if error.code == 404:
            msg = "it does not know TaintEvictionPolicy (taintwarden.io/v1alpha1): kubectl apply -f crds/ first"
            raise MissingDefinitionError(msg) from error
        raise
    answer = decoded(body, _PolicyList, "list")
    return answer.items, answer.metadata.resource_version


async def patch_status(client: Client, name: str, status: dict[str, Any]) -> None:
    """Merge ``status`` into the policy's.

    Raises:
        KubeError: it was not written.

    """
    await client.request("PATCH", f"{PATH}/{name}/status", body={"status": status}, content_type=MERGE_PATCH)
