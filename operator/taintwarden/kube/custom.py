"""Objects of our own kinds beside kopf: whole lists, and writes of their status."""

from typing import Any

import msgspec

from taintwarden.kube.client import MERGE_PATCH, Client
from taintwarden.kube.errors import ApiError, MissingDefinitionError, decoded
from taintwarden.kube.objects import CustomObject, ListMeta
from taintwarden.kube.resources import Resource

GROUP_PATH = "/apis/taintwarden.io/v1alpha1"
POLICIES = Resource("taintevictionpolicies", f"{GROUP_PATH}/taintevictionpolicies", CustomObject)
PROFILES = Resource("tolerationprofiles", f"{GROUP_PATH}/tolerationprofiles", CustomObject)

Stored = tuple[list[dict[str, Any]], str]
"""Objects as they are stored, and the resourceVersion of their list."""


class _Kind(msgspec.Struct):
    name: str = ""


class _Discovery(msgspec.Struct):
    resources: tuple[_Kind, ...] = ()


class _List(msgspec.Struct):
    items: list[dict[str, Any]]
    metadata: ListMeta


async def list_stored(client: Client, path: str, kind: str) -> Stored:
    """All objects of a kind.

    Raises:
        MissingDefinitionError: the CustomResourceDefinition is not there.
        KubeError: the list failed.

    """
    try:
        body = await client.request("GET", path)
    except ApiError as error:
        if error.code == 404:
            msg = f"it does not know {kind} (taintwarden.io/v1alpha1): kubectl apply -f crds/ first"
            raise MissingDefinitionError(msg) from error
        raise
    answer = decoded(body, _List, "list")
    return answer.items, answer.metadata.resource_version


async def served_kinds(client: Client) -> frozenset[str]:
    """The plurals of our kinds in the API server's discovery, where kopf looks for them. It may lag behind.

    Raises:
        KubeError: it did not answer.

    """
    try:
        body = await client.request("GET", GROUP_PATH)
    except ApiError as error:
        if error.code == 404:
            return frozenset()
        raise
    return frozenset(one.name for one in decoded(body, _Discovery, "discovery").resources)


async def merge_status(client: Client, path: str, status: dict[str, Any]) -> None:
    """Merge ``status`` into that of the object at ``path``.

    Raises:
        KubeError: it was not written.

    """
    await client.request("PATCH", f"{path}/status", body={"status": status}, content_type=MERGE_PATCH)
