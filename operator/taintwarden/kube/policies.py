"""TaintEvictionPolicies beside kopf: lists, the status, and what a guard needs written."""

from typing import Any

import msgspec

from taintwarden.kube.client import MERGE_PATCH, Client
from taintwarden.kube.custom import GROUP_PATH, Stored, list_stored, merge_status
from taintwarden.kube.errors import ApiError, decoded

PATH = f"{GROUP_PATH}/taintevictionpolicies"
GUARD_RESET_ANNOTATION = "taintwarden.io/guard-reset"
GUARD_TIMEOUT_SECONDS = 10.0
"""Evictions wait for the record to be stored: rather begin again than wait for an answer that will not come."""


class _PolicyMeta(msgspec.Struct, rename="camel"):
    uid: str
    resource_version: str


class _StoredPolicy(msgspec.Struct):
    metadata: _PolicyMeta


async def list_policies(client: Client) -> Stored:
    """All policies.

    Raises:
        MissingDefinitionError: the CustomResourceDefinition is not there.
        KubeError: the list failed.

    """
    return await list_stored(client, PATH, "TaintEvictionPolicy")


async def patch_status(client: Client, name: str, status: dict[str, Any]) -> None:
    """Merge ``status`` into the policy's.

    Raises:
        KubeError: it was not written.

    """
    await merge_status(client, f"{PATH}/{name}", status)


async def save_guard(client: Client, name: str, uid: str, guard: dict[str, Any]) -> bool:
    """Merge ``guard`` into ``status.guard``; False: the policy of this UID is gone.

    The API server ignores a UID in a patch of a status. So the version is named that was just read: neither a namesake
    is written, nor does a write that was late undo one that was not.

    Raises:
        ApiError: 409: the policy was written meanwhile.
        KubeError: it was not saved, or the result is not known.

    """
    try:
        body = await client.request("GET", f"{PATH}/{name}", timeout_seconds=GUARD_TIMEOUT_SECONDS)
        found = decoded(body, _StoredPolicy, "policy").metadata
        if found.uid != uid:
            return False
        await client.request(
            "PATCH",
            f"{PATH}/{name}/status",
            body={"metadata": {"resourceVersion": found.resource_version}, "status": {"guard": guard}},
            content_type=MERGE_PATCH,
            timeout_seconds=GUARD_TIMEOUT_SECONDS,
        )
    except ApiError as error:
        if error.code == 404:
            return False
        raise
    return True


async def clear_guard_reset(client: Client, name: str, uid: str) -> None:
    """Remove the annotation that requested a reset. If it does not exist any more, nothing is written.

    Raises:
        KubeError: it was not taken off; ``is_about_another`` if the policy of this UID is gone.

    """
    metadata = {"uid": uid, "annotations": {GUARD_RESET_ANNOTATION: None}}
    await client.request("PATCH", f"{PATH}/{name}", body={"metadata": metadata}, content_type=MERGE_PATCH)
