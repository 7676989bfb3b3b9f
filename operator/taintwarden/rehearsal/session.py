"""Requests to a cluster with the rights of the user. Every failure becomes one line of text."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from taintwarden.kube.client import MERGE_PATCH, Client
from taintwarden.kube.errors import ApiError, KubeError, Unreachable
from taintwarden.kube.objects import ListMeta, Object
from taintwarden.kube.resources import PAGE_SIZE, Resource

TIMEOUT_SECONDS = 10.0

T = TypeVar("T")


class ClusterError(Exception):
    """A request to the cluster failed; the message is one line and names the request."""


class ChangedMeanwhileError(ClusterError):
    """Another client has written the object since it was read."""


class UndefinedKindError(ClusterError):
    """The cluster does not serve a kind of our API group."""


class Session:
    """Requests to one cluster.

    Args:
        client: an open client.
        server: its address, for messages.
        origin: what selected this cluster, for messages.
        namespace: the namespace of objects for which none is given.

    """

    def __init__(self, client: Client, server: str, origin: str = "", namespace: str = "") -> None:
        self.server = server
        self.cluster = f"{server}, {origin}" if origin else server
        self.namespace = namespace or "default"
        self._client = client

    async def read(self, path: str, wanted: type[T], what: str, params: Mapping[str, str] | None = None) -> T | None:
        """One object, or one page of a list; None if it is not found.

        Raises:
            ClusterError: it cannot be read.

        """
        try:
            return msgspec.json.decode(await self._request("GET", path, f"read {what}", params=params), type=wanted)
        except _NothingThereError:
            return None
        except msgspec.DecodeError as error:
            msg = f"cannot read {what}: {one_line(error)}"
            raise ClusterError(msg) from error

    async def list_all(self, resource: Resource[Object]) -> list[Object]:
        """Every object of a resource, page by page.

        Raises:
            ClusterError: they cannot be read, or the cluster does not serve the resource.

        """
        kind: Any = resource.type
        pages = self.pages(resource.path, kind, resource.name, resource.field_selector)
        return [one async for page in pages for one in page]

    async def pages(
        self, path: str, kind: type[T], what: str, field_selector: str = "", label_selector: str = ""
    ) -> AsyncIterator[list[T]]:
        """A list, page by page, so that a large one is never in memory as a whole.

        Raises:
            ClusterError: it cannot be read, or the cluster does not serve the resource.

        """
        params = {"limit": str(PAGE_SIZE)}
        if field_selector:
            params["fieldSelector"] = field_selector
        if label_selector:
            params["labelSelector"] = label_selector
        wanted: Any = kind
        while True:
            page = await self.read(path, _Page[wanted], what, params)
            if page is None:
                msg = f"the cluster at {self.server} does not serve {path}"
                raise ClusterError(msg)
            yield page.items
            if not page.metadata.continue_:
                return
            params["continue"] = page.metadata.continue_

    async def review(
        self, path: str, body: Mapping[str, Any], wanted: type[T], action: str, params: Mapping[str, str] | None = None
    ) -> T:
        """POST a request that stores nothing, such as a review; ``action`` is a verb with its object.

        Raises:
            ClusterError: the request fails.

        """
        answer = await self._request("POST", path, action, body=body, params=params)
        try:
            return msgspec.json.decode(answer, type=wanted)
        except msgspec.DecodeError as error:
            msg = f"cannot {action}: {one_line(error)}"
            raise ClusterError(msg) from error

    async def patch(self, path: str, body: Mapping[str, Any], what: str) -> None:
        """Merge ``body`` into an object. A ``resourceVersion`` in it has to be that of the stored object.

        Raises:
            ChangedMeanwhileError: it differs.
            ClusterError: the object is not changed, or the outcome is unknown.

        """
        await self._request("PATCH", path, f"change {what}", body=body, content_type=MERGE_PATCH)

    async def _request(self, method: str, path: str, action: str, **more: Any) -> bytes:
        try:
            return await self._client.request(method, path, timeout_seconds=TIMEOUT_SECONDS, **more)
        except ApiError as error:
            if error.code == 404 and method == "GET":
                raise _NothingThereError from error
            verb = "you may not" if error.code in (401, 403) else "cannot"
            kind = ChangedMeanwhileError if error.code == 409 else ClusterError
            msg = f"{verb} {action}: {one_line(error)}"
            raise kind(msg) from error
        except Unreachable as error:
            msg = f"cannot reach the cluster at {self.server}: {one_line(error)}"
            raise ClusterError(msg) from error
        except KubeError as error:
            msg = f"cannot {action}: {one_line(error)}"
            raise ClusterError(msg) from error


class _Page(msgspec.Struct, Generic[T]):
    items: list[T] = []
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)


class _NothingThereError(Exception):
    """404."""


def one_line(error: BaseException) -> str:
    """The text of an error without its line breaks."""
    return " ".join(str(error).split())
