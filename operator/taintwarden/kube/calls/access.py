"""Who a token belongs to, and what they may do, as the API server says."""

from typing import Any

import msgspec

from taintwarden.kube.http.client import Client
from taintwarden.kube.wire.answers import decoded

TIMEOUT_SECONDS = 5.0
"""A client waits for the answer."""
_TOKEN_REVIEW = ("authentication.k8s.io/v1", "TokenReview", "tokenreviews")
_ACCESS_REVIEW = ("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews")


class User(msgspec.Struct, frozen=True):
    """Who a token belongs to."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class _ReviewStatus(msgspec.Struct, frozen=True):
    """What the server says of a token, or of a right."""

    authenticated: bool = False
    user: User = User()
    allowed: bool = False
    denied: bool = False


class _Review(msgspec.Struct, frozen=True):
    status: _ReviewStatus


async def review_token(client: Client, token: str) -> User | None:
    """Whose token it is; None if the API server does not know it.

    Raises:
        ApiError: the API server refused to say.
        Unreachable: it did not answer, or not with a review.

    """
    status = await _review(client, *_TOKEN_REVIEW, {"token": token})
    return status.user if status.authenticated and status.user.username else None


async def may_get(client: Client, user: User, path: str) -> bool:
    """Whether the user may ``get`` the path, which is no resource.

    Raises:
        ApiError: the API server refused to say.
        Unreachable: it did not answer, or not with a review.

    """
    asked = {
        "user": user.username,
        "uid": user.uid,
        "groups": user.groups,
        "extra": user.extra,
        "nonResourceAttributes": {"path": path, "verb": "get"},
    }
    status = await _review(client, *_ACCESS_REVIEW, asked)
    return status.allowed and not status.denied


async def _review(client: Client, version: str, kind: str, plural: str, spec: dict[str, Any]) -> _ReviewStatus:
    body = {"apiVersion": version, "kind": kind, "spec": spec}
    answer = await client.request("POST", f"/apis/{version}/{plural}", body=body, timeout_seconds=TIMEOUT_SECONDS)
    return decoded(answer, _Review, "review").status
