"""The one way to change a stored object, or a subresource of it: a PATCH with its preconditions and its fence."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from taintwarden.kube.http.client import APPLY_PATCH, MERGE_PATCH, REQUEST_TIMEOUT_SECONDS, Client
from taintwarden.kube.wire.answers import decoded
from taintwarden.kube.wire.kinds import Metadata

Fence = Callable[[], bool]
"""Asked immediately before a request is sent: whether its reason still stands, for example the leadership."""


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
    """Change what is stored at ``path``. Returns its resourceVersion after that; empty if the answer has none.

    Args:
        client: the session to use.
        path: of the object or its subresource.
        change: the fields. An apply owns them, and takes them from other managers.
        fence: whether the change may still be made.
        uid: of the object, as precondition. In the status of a custom resource the API server ignores it.
        version: the resourceVersion that the object has to have.
        form: the content type of the patch.
        manager: its field manager.
        timeout_seconds: for the request.

    Raises:
        Fenced: the fence declined, and nothing was sent.
        ApiError: ``is_about_another`` with another UID or no object, ``is_conflict`` with another version.
        KubeError: it was not changed, or the result is not known.

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
