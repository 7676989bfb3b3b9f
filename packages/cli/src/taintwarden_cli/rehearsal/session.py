"""Requests to a cluster with the rights of the user. Every failure becomes one line of text."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from taintwarden.kube.calls.own_kinds import POLICIES
from taintwarden.kube.errors import NOT_JSON, ApiError, KubeError, TooLong, Unreachable
from taintwarden.kube.http.client import MERGE_PATCH, Client
from taintwarden.kube.watch.paging import PageLimit
from taintwarden.kube.wire.answers import decoded_flat
from taintwarden.kube.wire.kinds import ListMeta

TIMEOUT_SECONDS = 10.0
"""Maximum seconds for one request."""
RETRY_SECONDS = 30.0

T = TypeVar("T")


class ClusterError(Exception):
    """A request to the cluster failed; the message is one line and names the request."""


class ChangedMeanwhileError(ClusterError):
    """Another client has written the object since it was read."""


class NotServedError(ClusterError):
    """The cluster does not serve a kind."""


class Session:
    """Requests to one cluster. In its methods ``what`` names the objects, for messages.

    Args:
        server: the address of the cluster, for messages.
        origin: what selected this cluster, for messages.
        namespace: the namespace of objects for which none is given.
        retry_seconds: maximum time for which a request is retried, if the server asks for that.
        page_limit: creates the size limit of the pages of a list.

    """

    def __init__(
        self,
        client: Client,
        server: str,
        origin: str = "",
        namespace: str = "",
        *,
        retry_seconds: float = RETRY_SECONDS,
        page_limit: Callable[[], PageLimit] = PageLimit,
    ) -> None:
        self.server = server
        self.cluster = f"{server}, {origin}" if origin else server
        self.namespace = namespace or "default"
        self._client = client
        self._retry_seconds = retry_seconds
        self._page_limit = page_limit

    async def read(self, path: str, wanted: type[T], what: str, params: Mapping[str, str] | None = None) -> T | None:
        """Read one object, or one page of a list; None if it is not found. Raises ClusterError if it cannot be read."""
        try:
            body = await self._request("GET", path, f"read {what}", params=params)
        except _NotFoundError:
            return None
        return _decoded(body, wanted, what)

    async def items(self, path: str, kind: type[T], what: str, field_selector: str = "") -> list[T]:
        """Read a list. Raises NotServedError if the cluster does not serve it, ClusterError if it cannot be read."""
        return [one async for page in self.pages(path, kind, what, field_selector) for one in page]

    async def policies(self, kind: type[T]) -> list[T]:
        """Read all TaintEvictionPolicies. Raises as :func:`items`."""
        try:
            return await self.items(POLICIES.path, kind, POLICIES.name)
        except NotServedError as error:
            msg = f"the cluster at {self.server} does not know TaintEvictionPolicies: apply the CRDs first"
            raise NotServedError(msg) from error

    async def pages(
        self, path: str, kind: type[T], what: str, field_selector: str = "", label_selector: str = ""
    ) -> AsyncIterator[list[T]]:
        """Read a list page by page, so that a large one is never in memory as a whole. Raises as :func:`items`."""
        params = {"fieldSelector": field_selector, "labelSelector": label_selector, "continue": ""}
        wanted: Any = kind
        limit = self._page_limit()
        while True:
            asked = {name: value for name, value in params.items() if value}
            body = await self._page(path, what, asked, limit)
            page = _decoded(body, Page[wanted], what)
            limit.adapt(len(body))
            yield page.items
            if not page.metadata.continue_:
                return
            params["continue"] = page.metadata.continue_

    async def _page(self, path: str, what: str, params: Mapping[str, str], limit: PageLimit) -> bytes:
        while True:
            asked = {"limit": str(limit.objects), **params}
            try:
                return await self._request("GET", path, f"read {what}", params=asked, max_bytes=limit.max_bytes)
            except _NotFoundError as error:
                raise NotServedError(f"the cluster at {self.server} does not serve {path}") from error
            except _TooLongError:
                if not limit.shrink():
                    raise

    async def review(self, path: str, body: Mapping[str, Any], action: str) -> Mapping[str, Any]:
        """POST a review, which stores nothing, and return its status; ``action`` is a verb with its object.
        Raises ClusterError if the request fails.
        """
        answer = await self._request("POST", path, action, body=body)
        try:
            return msgspec.json.decode(answer, type=_Review).status
        except NOT_JSON as error:
            raise ClusterError(f"cannot {action}: {one_line(error)}") from error

    async def patch(self, path: str, body: Mapping[str, Any], what: str, manager: str) -> None:
        """Merge ``body`` into an object. A ``resourceVersion`` in it has to be that of the stored object.
        Raises ChangedMeanwhileError if it differs, ClusterError if nothing is changed or the outcome is unknown.
        """
        params = {"fieldManager": manager}
        await self._request("PATCH", path, f"change {what}", body=body, params=params, content_type=MERGE_PATCH)

    async def _request_with_retries(self, method: str, path: str, **more: Any) -> bytes:
        """Retry while the server asks for it, for example since its storage is initializing, as kubectl does.

        The server has not carried out such a request.
        """
        give_up_at = time.monotonic() + self._retry_seconds
        while True:
            try:
                return await self._client.request(method, path, timeout_seconds=TIMEOUT_SECONDS, **more)
            except ApiError as error:
                wait = error.retry_after if error.retry_after is not None else 1.0
                is_asked = error.code == 429 or (error.code == 503 and error.retry_after is not None)
                if not is_asked or time.monotonic() + wait > give_up_at:
                    raise
                await asyncio.sleep(wait)

    async def _request(self, method: str, path: str, action: str, **more: Any) -> bytes:
        try:
            return await self._request_with_retries(method, path, **more)
        except ApiError as error:
            if method == "GET" and error.is_unserved:
                raise _NotFoundError from error
            verb = "you may not" if error.code == 403 else "cannot"
            kind = ChangedMeanwhileError if error.code == 409 else ClusterError
            who = "; the credentials of the kubeconfig are not accepted" if error.code == 401 else ""
            raise kind(f"{verb} {action}: {one_line(error)}{who}") from error
        except TooLong as error:
            raise _TooLongError(f"cannot {action}: {one_line(error)}") from error
        except Unreachable as error:
            raise ClusterError(f"cannot reach the cluster at {self.server}: {one_line(error)}") from error
        except KubeError as error:
            raise ClusterError(f"cannot {action}: {one_line(error)}") from error


class _Review(msgspec.Struct):
    status: dict[str, Any] = {}


class Page(msgspec.Struct, Generic[T]):
    """Objects of a list."""

    items: list[T] = []
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)


class _NotFoundError(Exception):
    """The server answered 404."""


class _TooLongError(ClusterError):
    """An answer is longer than it may be."""


def _decoded(body: bytes, wanted: type[T], what: str) -> T:
    try:
        return decoded_flat(msgspec.json.Decoder(wanted).decode, body)
    except NOT_JSON as error:
        raise ClusterError(f"cannot read {what}: {one_line(error)}") from error


def one_line(error: BaseException) -> str:
    """The text of an error without its line breaks."""
    return " ".join(str(error).split())
