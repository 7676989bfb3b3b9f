"""Changes of a stored object or its subresource: a PATCH with preconditions and a fence."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from taintwarden.kube.http.client import APPLY_PATCH, MERGE_PATCH, REQUEST_TIMEOUT_SECONDS, Client
from taintwarden.kube.wire.answers import decoded
from taintwarden.kube.wire.kinds import Metadata

Fence = Callable[[], bool]
"""Called immediately before a request is sent. False prevents it, for example after leadership was lost."""


class _Patched(msgspec.Struct):
    metadata: Metadata = msgspec.field(default_factory=Metadata)


async def patch(
    client: Client,
    path: str,
    change: Mapping[str, Any],
    fence: Fence | None = None,
    *,
    uid: str = "",
    version: str = "",
    form: str = MERGE_PATCH,
    manager: str = "",
    timeout_seconds: float = REQUEST_TIMEOUT_SECONDS,
) -> str:
    """Change the object at ``path``. Return its new resourceVersion; empty if the answer has none.

    Args:
        client: sends the patch.
        path: path of the object or its subresource.
        change: the fields. An apply makes ``manager`` their owner, even if another wrote them.
        fence: returns True if the change may still be made.
        uid: precondition, which the API server ignores in the status of a custom resource.
        version: resourceVersion, as a precondition.
        form: content type of the patch.
        manager: field manager of the patch.
        timeout_seconds: maximum seconds for the request.

    Raises:
        Fenced: the fence declined, and nothing was sent.
        ApiError: ``is_object_gone`` with another UID or no object, ``is_conflict`` with another version.
        KubeError: the object was not changed, or the result is not known.

    """
    preconditions = ({"uid": uid} if uid else {}) | ({"resourceVersion": version} if version else {})
    metadata = {**change.get("metadata", {}), **preconditions}
    params = ({"fieldManager": manager} if manager else {}) | ({"force": "true"} if form == APPLY_PATCH else {})
    body = await client.request(
        "PATCH",
        path,
        params=params,
        body={**change, "metadata": metadata} if metadata else change,
        content_type=form,
        timeout_seconds=timeout_seconds,
        fence=fence,
    )
    return decoded(body, _Patched, "object").metadata.resource_version
