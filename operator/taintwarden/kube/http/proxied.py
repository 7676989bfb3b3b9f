"""HTTP with the API server through a proxy, which aiohttp knows how to use."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import aiohttp
from yarl import URL

from taintwarden.api.text import printable, without_userinfo
from taintwarden.kube.auth.connection import Connection
from taintwarden.kube.errors import Fenced
from taintwarden.kube.http.messages import Answer, Request, TooLongError
from taintwarden.kube.http.pool import CONNECT_SECONDS, IDLE_SECONDS


class ProxiedHttp:
    """Sends requests through the proxy of a connection. Needs a running event loop.

    Args:
        connection: address, proxy, TLS and server name.
        max_connections: so many are in progress at a time, streams among them; others wait.

    """

    def __init__(self, connection: Connection, max_connections: int) -> None:
        self._connection = connection
        connector = aiohttp.TCPConnector(limit=max_connections, keepalive_timeout=IDLE_SECONDS)
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False)

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def send(self, request: Request, timeout_seconds: float) -> Answer:
        """One request and its answer, whatever its status. Its fence is asked before the proxy is connected to.

        Raises:
            Fenced: its reason is gone.
            OSError: no connection, or it broke. TimeoutError is one.

        """
        if request.fence is not None and not request.fence():
            raise Fenced
        timeout = aiohttp.ClientTimeout(total=timeout_seconds, sock_connect=CONNECT_SECONDS)
        with self._os_errors():
            async with self._session.request(**self._parameters(request), timeout=timeout) as response:
                return await _whole(response, request.max_bytes)

    @asynccontextmanager
    async def stream(self, request: Request, idle_seconds: float) -> AsyncIterator[tuple[Answer, AsyncIterator[bytes]]]:
        """One request whose answer, if it is a success, is returned without its body, with the chunks of that.

        Raises:
            OSError: as of ``send``, also by the chunks, if none comes for so long or the connection breaks.

        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=idle_seconds)
        with self._os_errors():
            async with self._session.request(**self._parameters(request), timeout=timeout) as response:
                answer = Answer(response.status, b"")
                if not answer.is_success:
                    answer = await _whole(response, request.max_bytes)
                try:
                    yield answer, response.content.iter_any()
                finally:
                    _abort(response)

    @contextmanager
    def _os_errors(self) -> Iterator[None]:
        if self._session.closed:
            msg = "the client is closed"
            raise ConnectionError(msg)
        try:
            yield
        except aiohttp.ClientError as error:
            raise ConnectionError(_described(error)) from None  # aiohttp's error has the proxy's password

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


def _described(error: aiohttp.ClientError) -> str:
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy answers {error.status} {printable(error.message, 100)}".rstrip()
    return without_userinfo(str(error)) or type(error).__name__


async def _whole(response: aiohttp.ClientResponse, max_bytes: int) -> Answer:
    body = bytearray()
    async for part in response.content.iter_any():
        body += part
        if len(body) > max_bytes:
            _abort(response)
            raise TooLongError(max_bytes)
    return Answer(response.status, bytes(body), response.headers.get("Retry-After", ""))


def _abort(response: aiohttp.ClientResponse) -> None:
    """End the connection of a body that was not read to its end, without the messages that end TLS.

    aiohttp would send them, and the connection could still be open when the event loop ends.
    """
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()
