"""Requests to the API server, with no retries of their own: every caller knows best what an answer means."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from taintwarden.api.text import printable
from taintwarden.kube.connection import Connection
from taintwarden.kube.errors import ApiError, Unreachable
from taintwarden.kube.pacing import paced
from taintwarden.kube.round_trips import CONNECT_SECONDS, IDLE_SECONDS, Answer, Request, RoundTrips

REQUEST_TIMEOUT_SECONDS = 30.0
"""For a whole request. The API server ends most requests after 60 s; a mutating one that takes so long is lost."""
JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"  # JSON is YAML

# Compressing lists costs both sides more than a cluster's network does.
_HEADERS = {"Accept-Encoding": "identity", "User-Agent": "taintwarden"}
_NETWORK_ERRORS = (aiohttp.ClientError, OSError, TimeoutError)


class Client:
    """Requests to one API server. Use as an async context manager.

    Args:
        connection: address and credentials.
        max_connections: limits the requests in progress, and apart from them the streams.
        is_paced: busy streams are read in few chunks, each up to 30 ms later.

    """

    def __init__(self, connection: Connection, max_connections: int = 100, *, is_paced: bool = False) -> None:
        self._connection = connection
        self._max_connections = max_connections
        self._is_paced = is_paced
        self._round_trips = RoundTrips(connection, max_connections)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "Client":
        connector = aiohttp.TCPConnector(limit=self._max_connections, keepalive_timeout=IDLE_SECONDS)
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            try:
                await self._round_trips.close()
            finally:
                await self._session.close()

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
    ) -> bytes:
        """Send one request and return the body of a 2xx answer.

        Raises:
            ApiError: the server refused.
            Unreachable: there was no complete answer.

        """
        headers = {"Accept": accept} if body is None else {"Accept": accept, "Content-Type": content_type}
        data = None if body is None else msgspec.json.encode(body)
        try:
            authorization = await self._connection.authorization()
            request = Request(method, path, params or {}, _complete(headers, authorization), data)
            answer = await self._send(request, timeout_seconds)
            if answer.status == 401 and await self._connection.refused(authorization):
                # Nothing was done: the client was not authenticated. Now there are other credentials.
                authorization = await self._connection.authorization()
                request = Request(method, path, params or {}, _complete(headers, authorization), data)
                answer = await self._send(request, timeout_seconds)
        except _NETWORK_ERRORS as error:
            raise _unreachable(error) from error
        if answer.status >= 300:
            raise ApiError.from_response(answer.status, answer.body, answer.retry_after)
        return answer.body

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], idle_timeout_seconds: float, *, accept: str = JSON
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a GET whose body is read in chunks as they come; a silent connection ends after the idle time.

        Raises:
            ApiError: the server refused.
            Unreachable: the connection failed, broke, or was silent for too long.

        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=idle_timeout_seconds)
        try:
            authorization = await self._connection.authorization()
            request = Request("GET", path, params, _complete({"Accept": accept}, authorization))
            async with self._opened().request(**self._parameters(request), timeout=timeout) as response:
                if response.status == 401:
                    await self._connection.refused(authorization)
                if response.status >= 300:
                    raise ApiError.from_response(response.status, await response.read(), _retry_after(response))
                try:
                    yield paced(response) if self._is_paced else response.content.iter_any()
                finally:
                    _abort(response)
        except _NETWORK_ERRORS as error:
            raise _unreachable(error) from error

    async def _send(self, request: Request, timeout_seconds: float) -> Answer:
        session = self._opened()
        if self._connection.proxy is None:
            return await self._round_trips.send(request, timeout_seconds)
        timeout = aiohttp.ClientTimeout(total=timeout_seconds, sock_connect=CONNECT_SECONDS)
        async with session.request(**self._parameters(request), timeout=timeout) as response:
            return Answer(response.status, await response.read(), _retry_after(response))

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            msg = "the client is used outside its context"
            raise RuntimeError(msg)
        return self._session

    def _parameters(self, request: Request) -> dict[str, Any]:
        """Of aiohttp."""
        return {
            "method": request.method,
            "url": URL(self._connection.server + request.target(), encoded=True),
            "data": request.body,
            "headers": request.headers,
            "allow_redirects": False,
            # The context of now: that of before may hold certificates that have expired.
            "ssl": self._connection.ssl,
            "proxy": self._connection.proxy,
            "server_hostname": self._connection.tls_server_name,
        }


def _complete(headers: dict[str, str], authorization: str | None) -> dict[str, str]:
    given = {} if authorization is None else {"Authorization": authorization}
    return _HEADERS | headers | given


def _retry_after(response: aiohttp.ClientResponse) -> str:
    return response.headers.get("Retry-After", "")


def _abort(response: aiohttp.ClientResponse) -> None:
    """End the connection of a body that was not read to its end, without the messages that end TLS.

    aiohttp would send them, and the connection could still be open when the event loop ends.
    """
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()


def _unreachable(error: BaseException) -> Unreachable:
    text = str(error) or type(error).__name__
    return Unreachable(printable(text, 200))
