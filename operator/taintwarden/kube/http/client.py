"""Requests to the API server. Refusals are not retried, except once after a 401: only callers know what they mean."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from taintwarden.fields.text import printable, quoted
from taintwarden.kube.auth.connection import Connection
from taintwarden.kube.errors import Unreachable
from taintwarden.kube.http.http_session import HttpSession
from taintwarden.kube.http.messages import MAX_ANSWER_BYTES, Request
from taintwarden.kube.wire.answers import read_refusal

REQUEST_TIMEOUT_SECONDS = 30.0
"""Maximum seconds for a whole request. The API server itself ends most requests after 60 s."""
JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"  # JSON is YAML

# Compressing lists costs both sides more than it saves on the network of a cluster.
_HEADERS = {"Accept-Encoding": "identity", "User-Agent": "taintwarden"}


class Client:
    """Requests to one API server. Use as an async context manager.

    Args:
        connection: address and credentials.
        max_connections: maximum number of requests in progress, besides streams; others wait.
        is_paced: True to read busy streams in few chunks, each up to 30 ms later.
        on_date: called with the header ``Date`` of each answer, which is the time of the API server.

    """

    def __init__(
        self,
        connection: Connection,
        max_connections: int = 100,
        *,
        is_paced: bool = False,
        on_date: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._connection = connection
        self._max_connections = max_connections
        self._is_paced = is_paced
        self._on_date = on_date
        self._http: HttpSession | None = None

    async def __aenter__(self) -> "Client":
        self._http = HttpSession(self._connection, self._max_connections, is_paced=self._is_paced)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._http is not None:
            await self._http.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
        accept: str = JSON,
        timeout_seconds: float = REQUEST_TIMEOUT_SECONDS,
        fence: Callable[[], bool] | None = None,
        max_bytes: int = MAX_ANSWER_BYTES,
    ) -> bytes:
        """Send one request and return the body of a 2xx answer.

        ``fence`` is called immediately before the request is written to the socket. That may be long after this call,
        which may wait for credentials or a connection first.

        Raises:
            Fenced: the fence declined, and nothing was sent.
            ApiError: the server refused.
            TooLong: the answer is longer than ``max_bytes``.
            Unreachable: no complete answer came, or not that of an API server.

        """
        headers = {"Accept": accept} if body is None else {"Accept": accept, "Content-Type": content_type}
        data = None if body is None else msgspec.json.encode(body)
        try:
            for _ in range(2):
                authorization = await self._connection.authorization()
                request = Request(method, path, params or {}, _headers(headers, authorization), data, fence, max_bytes)
                answer = await self._open_session().send(request, timeout_seconds)
                if answer.status != 401 or not await self._connection.renew_after_401(authorization):
                    break  # otherwise the server did nothing, and there are other credentials to try
        except OSError as error:
            raise _unreachable(error) from error
        if answer.date:
            self._on_date(answer.date)
        if not answer.is_success:
            raise read_refusal(answer.status, answer.body, answer.retry_after)
        if accept == JSON and not answer.body.lstrip().startswith(b"{"):  # a page of a load balancer, perhaps
            msg = f"the answer is not JSON: {quoted(answer.body)}"
            raise Unreachable(msg)
        return answer.body

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], idle_timeout_seconds: float, *, accept: str = JSON
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a GET whose body is read in chunks as they arrive. A connection that is silent for the idle time ends.

        Raises:
            ApiError: the server refused.
            Unreachable: the connection failed, broke, or was silent for too long.

        """
        try:
            authorization = await self._connection.authorization()
            request = Request("GET", path, params, _headers({"Accept": accept}, authorization))
            async with self._open_session().stream(request, idle_timeout_seconds) as (answer, chunks):
                if answer.status == 401:
                    await self._connection.renew_after_401(authorization)
                if not answer.is_success:
                    raise read_refusal(answer.status, answer.body, answer.retry_after)
                yield chunks
        except OSError as error:
            raise _unreachable(error) from error

    def _open_session(self) -> HttpSession:
        if self._http is None:
            msg = "the client is used outside its context"
            raise RuntimeError(msg)
        return self._http


def _headers(headers: dict[str, str], authorization: str | None) -> dict[str, str]:
    given = {} if authorization is None else {"Authorization": authorization}
    return _HEADERS | headers | given


def _unreachable(error: OSError) -> Unreachable:
    return Unreachable(printable(str(error) or type(error).__name__, 200))
