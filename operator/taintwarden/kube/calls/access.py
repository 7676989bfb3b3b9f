"""Reviews of tokens and of access by the API server."""

from typing import Any

import msgspec

from taintwarden.kube.http.client import Client
from taintwarden.kube.wire.answers import decoded

TIMEOUT_SECONDS = 5.0
"""Maximum seconds for a review. A client waits for the result."""
_TOKEN_REVIEW = ("authentication.k8s.io/v1", "TokenReview", "tokenreviews")
_ACCESS_REVIEW = ("authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews")


class User(msgspec.Struct, frozen=True):
    """The user to whom a token belongs."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class _ReviewStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: User = User()
    allowed: bool = False
    denied: bool = False


class _Review(msgspec.Struct, frozen=True):
    status: _ReviewStatus


async def review_token(client: Client, token: str) -> User | None:
    """Return the user of a token; None if the API server does not accept it.

    Raises:
        ApiError: the API server refused the review.
        Unreachable: it did not answer, or not with a review.

    """
    status = await _review(client, *_TOKEN_REVIEW, {"token": token})
    return status.user if status.authenticated and status.user.username else None


async def may_get(client: Client, user: User, path: str) -> bool:
    """Return True if the user may ``get`` a path that belongs to no resource, such as ``/metrics``.

    Raises:
        ApiError: the API server refused the review.
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
