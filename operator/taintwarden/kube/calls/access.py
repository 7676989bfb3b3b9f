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


class _TokenStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: User = User()


class _TokenReview(msgspec.Struct, frozen=True):
    status: _TokenStatus


class _AccessStatus(msgspec.Struct, frozen=True):
    allowed: bool = False
    denied: bool = False


class _AccessReview(msgspec.Struct, frozen=True):
    status: _AccessStatus


async def review_token(client: Client, token: str) -> User | None:
    """Whose token it is; None if the API server does not know it.

    Raises:
        ApiError: the API server refused to say.
        Unreachable: it did not answer, or not with a review.

    """
    status = decoded(await _create(client, *_TOKEN_REVIEW, {"token": token}), _TokenReview, "review").status
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
    status = decoded(await _create(client, *_ACCESS_REVIEW, asked), _AccessReview, "review").status
    return status.allowed and not status.denied


async def _create(client: Client, version: str, kind: str, plural: str, spec: dict[str, Any]) -> bytes:
    body = {"apiVersion": version, "kind": kind, "spec": spec}
    return await client.request("POST", f"/apis/{version}/{plural}", body=body, timeout_seconds=TIMEOUT_SECONDS)
