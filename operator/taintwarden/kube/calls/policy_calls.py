"""What is written of TaintEvictionPolicies: their status, and what a guard needs."""

from typing import Any

import msgspec

from taintwarden.engine.model import Int64
from taintwarden.kube.calls.evictor import Fence
from taintwarden.kube.calls.own_kinds import GROUP_PATH, merge_status
from taintwarden.kube.errors import ApiError, KubeError
from taintwarden.kube.http.client import MERGE_PATCH, Client
from taintwarden.kube.wire.answers import decoded

PATH = f"{GROUP_PATH}/taintevictionpolicies"
GUARD_RESET_ANNOTATION = "taintwarden.io/guard-reset"
GUARD_TIMEOUT_SECONDS = 10.0
"""Evictions wait for the record to be stored: rather begin again than wait for an answer that will not come."""


class _PolicyMeta(msgspec.Struct, rename="camel"):
    uid: str
    resource_version: str


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


async def patch_status(client: Client, name: str, status: dict[str, Any], fence: Fence) -> None:
    """Merge ``status`` into the policy's.

    Raises:
        KubeError: it was not written.

    """
    await merge_status(client, f"{PATH}/{name}", status, fence)


async def save_guard(client: Client, name: str, uid: str, guard: dict[str, Any], fence: Fence) -> bool:
    """Merge ``guard`` into ``status.guard``; False: the policy of this UID is gone.

    The API server ignores a UID in a patch of a status. So the version is named that was just read: neither a namesake
    is written, nor does a write that was late undo one that was not. What a leader of a later term has written stays.

    Raises:
        ApiError: 409: the policy was written meanwhile.
        EarlierTermError: a leader of a later term has written it.
        KubeError: it was not saved, or the result is not known.

    """
    try:
        body = await client.request("GET", f"{PATH}/{name}", timeout_seconds=GUARD_TIMEOUT_SECONDS)
        stored = decoded(body, _StoredPolicy, "policy")
        found, written = stored.metadata, stored.status.guard if stored.status else None
        if found.uid != uid:
            return False
        if written is not None and written.term > guard["term"]:
            raise EarlierTermError(guard["term"], written.term)
        await client.request(
            "PATCH",
            f"{PATH}/{name}/status",
            body={"metadata": {"resourceVersion": found.resource_version}, "status": {"guard": guard}},
            content_type=MERGE_PATCH,
            timeout_seconds=GUARD_TIMEOUT_SECONDS,
            fence=fence,
        )
    except ApiError as error:
        if error.is_not_found:
            return False
        raise
    return True


async def clear_guard_reset(client: Client, name: str, uid: str, fence: Fence) -> None:
    """Remove the annotation that requested a reset. If it does not exist any more, nothing is written.

    Raises:
        KubeError: it was not taken off; ``is_about_another`` if the policy of this UID is gone.

    """
    metadata = {"uid": uid, "annotations": {GUARD_RESET_ANNOTATION: None}}
    body = {"metadata": metadata}
    await client.request("PATCH", f"{PATH}/{name}", body=body, content_type=MERGE_PATCH, fence=fence)
