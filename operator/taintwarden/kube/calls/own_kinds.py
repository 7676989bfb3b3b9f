"""Calls for custom resources of Taintwarden: the check of definitions, and writes of status and annotations."""

from functools import partial
from typing import Any

import msgspec

from taintwarden.kube.calls.patching import Fence, patch
from taintwarden.kube.errors import ApiError, KubeError, MissingDefinitionError
from taintwarden.kube.http.client import MERGE_PATCH, REQUEST_TIMEOUT_SECONDS, Client
from taintwarden.kube.wire.answers import decoded
from taintwarden.kube.wire.kinds import CustomObject
from taintwarden.kube.wire.resources import Resource

GROUP_PATH = "/apis/taintwarden.io/v1alpha1"
POLICIES = Resource(
    "taintevictionpolicies", f"{GROUP_PATH}/taintevictionpolicies", CustomObject, definition="TaintEvictionPolicy"
)
PROFILES = Resource(
    "tolerationprofiles", f"{GROUP_PATH}/tolerationprofiles", CustomObject, definition="TolerationProfile"
)
GUARD_RESET_ANNOTATION = "taintwarden.io/guard-reset"
NEW_FIELDS = ("population",)
"""Fields of a guard that definitions of earlier versions lack. Without them a guard only knows less after a restart."""
GUARD_TIMEOUT_SECONDS = 10.0
"""Maximum seconds for each request that stores a record. Evictions wait for it, so retrying beats a long wait."""


class _PolicyMeta(msgspec.Struct, rename="camel"):
    uid: str
    resource_version: str
    annotations: dict[str, str] = {}


class _Status(msgspec.Struct):
    guard: Any = None
    places: Any = None


class _StoredPolicy(msgspec.Struct):
    metadata: _PolicyMeta


class _WithStatus(msgspec.Struct):
    status: _Status | None = None

    def record(self, field: str) -> dict[str, Any]:
        """Return a record of the status, ``guard`` or ``places``; empty if there is none, or it is no object."""
        found = getattr(self.status, field) if self.status else None
        return found if isinstance(found, dict) else {}


class EarlierTermError(KubeError):
    """The record is of an earlier term than ``stored``, whose leader has already written."""

    def __init__(self, term: int, stored: int) -> None:
        super().__init__(f"the record is of term {term}, and one of term {stored} is stored")
        self.stored = stored


async def check_definition(client: Client, resource: Resource[CustomObject]) -> None:
    """Check that the API server serves this custom resource, by listing one object.

    Raises:
        MissingDefinitionError: there is no CustomResourceDefinition.
        KubeError: the list failed.

    """
    try:
        await client.request("GET", resource.path, params={"limit": "1"})
    except ApiError as error:
        if error.is_unserved:
            raise MissingDefinitionError(resource.missing) from error
        raise


async def patch_status(
    client: Client,
    resource: Resource[CustomObject],
    key: str,
    status: dict[str, Any],
    version: str = "",
    *,
    fence: Fence,
    timeout_seconds: float = REQUEST_TIMEOUT_SECONDS,
) -> None:
    """Merge ``status`` into that of the object with this key, which is a name or ``namespace/name``.

    Raises:
        KubeError: the status was not written; ApiError 409: the object does not have this ``version``, if one is given.

    """
    namespace, _, name = key.rpartition("/")
    path, change = f"{resource.path_in(namespace)}/{name}/status", {"status": status}
    await patch(client, path, change, fence, version=version, timeout_seconds=timeout_seconds)


async def save_record(
    client: Client, name: str, uid: str, record: dict[str, Any], fence: Fence, where: str = "guard"
) -> tuple[str, ...] | None:
    """Merge ``record`` into the field ``where`` of the status. Return the fields that the API server dropped.

    Return None if the policy with this UID is gone. An API server with an older definition drops ``NEW_FIELDS`` without
    an error. All other fields have to be stored as they were sent.

    The API server ignores a UID in a patch of a status. So the version that was just read is the precondition: neither
    another policy of this name is changed, nor does a late write undo a later one. A record of a later term is kept.

    Raises:
        ApiError: 409: the policy was written meanwhile.
        EarlierTermError: a leader of a later term has written a record.
        KubeError: the record was not saved, or the result is not known.

    """
    path, timeout = f"{POLICIES.path}/{name}", GUARD_TIMEOUT_SECONDS
    try:
        body = await client.request("GET", path, timeout_seconds=timeout)
        found = decoded(body, _StoredPolicy, "policy").metadata
        if found.uid != uid:
            return None
        term = decoded(body, _WithStatus, "policy").record(where).get("term")
        if isinstance(term, int) and term > record["term"]:
            raise EarlierTermError(record["term"], term)
        change = {"status": {where: record}, "metadata": {"resourceVersion": found.resource_version}}
        send = partial(client.request, content_type=MERGE_PATCH, timeout_seconds=timeout, fence=fence)
        answer = await send("PATCH", f"{path}/status", body=change)
    except ApiError as error:
        if error.is_not_found:
            return None
        raise
    stored = decoded(answer, _WithStatus, "policy").record(where)
    pruned = tuple(field for field in NEW_FIELDS if field in record and field not in stored)
    if lost := [field for field in record if field not in pruned and stored.get(field) != record[field]]:
        msg = (
            f"the API server does not store status.{where}.{lost[0]} as it was sent: a webhook changes it, or its "
            "CustomResourceDefinition is older (kubectl apply -f crds/)"
        )
        raise KubeError(msg)
    return pruned


async def clear_guard_reset(client: Client, name: str, uid: str, fence: Fence) -> bool:
    """Remove the annotation that requests a reset. Return False if the policy with this UID has none.

    Raises:
        ApiError: 404: there is no such policy; 409: it was written meanwhile.
        KubeError: the annotation was not removed, or the result is not known.

    """
    path = f"{POLICIES.path}/{name}"
    found = decoded(await client.request("GET", path), _StoredPolicy, "policy").metadata
    if found.uid != uid or GUARD_RESET_ANNOTATION not in found.annotations:
        return False
    change = {"metadata": {"annotations": {GUARD_RESET_ANNOTATION: None}}}
    await patch(client, path, change, fence, version=found.resource_version)
    return True
