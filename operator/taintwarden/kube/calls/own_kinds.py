"""Our own kinds: what is followed of them, whether the cluster knows them, and what is written of them."""

from typing import Any

import msgspec

from taintwarden.engine.model import Int64
from taintwarden.kube.calls.patching import Fence, patch
from taintwarden.kube.errors import ApiError, KubeError, MissingDefinitionError
from taintwarden.kube.http.client import Client
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
GUARD_TIMEOUT_SECONDS = 10.0
"""Evictions wait for the record to be stored: rather begin again than wait for an answer that will not come."""


class _PolicyMeta(msgspec.Struct, rename="camel"):
    uid: str
    resource_version: str
    annotations: dict[str, str] = {}


class _Guard(msgspec.Struct):
    term: Int64 = 0


class _Status(msgspec.Struct):
    guard: _Guard | None = None


class _StoredPolicy(msgspec.Struct):
    metadata: _PolicyMeta
    status: _Status | None = None


class EarlierTermError(KubeError):
    """A leader of the later term ``stored`` has written since."""

    def __init__(self, term: int, stored: int) -> None:
        super().__init__(f"the record is of term {term}, and one of term {stored} is stored")
        self.stored = stored


async def check_definition(client: Client, resource: Resource[CustomObject]) -> None:
    """See that the cluster serves one of our kinds to us, by a list of one object.

    Raises:
        MissingDefinitionError: the CustomResourceDefinition is not there.
        KubeError: the list failed.

    """
    try:
        await client.request("GET", resource.path, params={"limit": "1"})
    except ApiError as error:
        if error.is_unserved:
            raise MissingDefinitionError(resource.missing) from error
        raise


async def patch_status(
    client: Client, resource: Resource[CustomObject], key: str, status: dict[str, Any], fence: Fence
) -> None:
    """Merge ``status`` into that of the object with this name, or this ``namespace/name``.

    Raises:
        KubeError: it was not written.

    """
    namespace, _, name = key.rpartition("/")
    await patch(client, f"{resource.path_in(namespace)}/{name}/status", {"status": status}, fence)


async def save_guard(client: Client, name: str, uid: str, guard: dict[str, Any], fence: Fence) -> bool:
    """Merge ``guard`` into ``status.guard``; False: the policy of this UID is gone.

    The API server ignores a UID in a patch of a status. So the version is named that was just read: neither a namesake
    is written, nor does a write that was late undo one that was not. What a leader of a later term has written stays.

    Raises:
        ApiError: 409: the policy was written meanwhile.
        EarlierTermError: a leader of a later term has written it.
        KubeError: it was not saved, or the result is not known.

    """
    path, timeout = f"{POLICIES.path}/{name}", GUARD_TIMEOUT_SECONDS
    try:
        body = await client.request("GET", path, timeout_seconds=timeout)
        stored = decoded(body, _StoredPolicy, "policy")
        found, written = stored.metadata, stored.status.guard if stored.status else None
        if found.uid != uid:
            return False
        if written is not None and written.term > guard["term"]:
            raise EarlierTermError(guard["term"], written.term)
        change, version = {"status": {"guard": guard}}, found.resource_version
        await patch(client, f"{path}/status", change, fence, version=version, timeout_seconds=timeout)
    except ApiError as error:
        if error.is_not_found:
            return False
        raise
    return True


async def clear_guard_reset(client: Client, name: str, uid: str, fence: Fence) -> bool:
    """Remove the annotation that requests a reset; False: the policy of this UID has none.

    Raises:
        ApiError: 404: there is no such policy; 409: it was written meanwhile.
        KubeError: it was not removed, or the result is not known.

    """
    path = f"{POLICIES.path}/{name}"
    found = decoded(await client.request("GET", path), _StoredPolicy, "policy").metadata
    if found.uid != uid or GUARD_RESET_ANNOTATION not in found.annotations:
        return False
    change = {"metadata": {"annotations": {GUARD_RESET_ANNOTATION: None}}}
    await patch(client, path, change, fence, version=found.resource_version)
    return True
