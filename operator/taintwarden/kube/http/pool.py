"""HTTP/1.1 with the API server over kept connections. Most requests are evictions, so they are made with little CPU.

A general client needs twice to three times as much for the same request.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from functools import lru_cache
from typing import Any, Final

import aiohappyeyeballs
from yarl import URL

from taintwarden.kube.auth.connection import Connection
from taintwarden.kube.errors import Fenced
from taintwarden.kube.http.exchange import Body, HttpConnection, UnusedError
from taintwarden.kube.http.messages import Answer, Request
from taintwarden.kube.http.pacing import paced

CONNECT_SECONDS: Final = 5.0
IDLE_SECONDS: Final = 60.0
"""After that an unused connection is closed; the API server closes it after 90 s."""
TIMER_SECONDS: Final = 0.001
"""So much too early a timer may be."""
LOOKUP_SECONDS: Final = 10.0
"""How long the addresses of the host are used, so that the connections of a wave share one look-up."""
NEXT_ADDRESS_SECONDS: Final = 0.25
"""Until another address of the host is tried beside the one that does not answer (RFC 8305)."""


class HttpPool:
    """Sends requests to the server of one connection, each on a kept connection that no other request uses.

    Args:
        connection: address, TLS and server name. Its proxy is not used.
        max_connections: so many are in progress at a time, apart from streams; others wait.
        is_paced: busy streams are read in few chunks.

    """

    def __init__(self, connection: Connection, max_connections: int, *, is_paced: bool = False) -> None:
        url = URL(connection.server)
        self._connection = connection
        self._host, self._port = url.host or "", url.port or 443
        self._tls_name = (connection.tls_server_name or self._host).rstrip(".")  # certificates have no root label
        self._prefix = url.raw_path.rstrip("/")
        self._authority = url.host_port_subcomponent or ""
        self._slots = asyncio.Semaphore(max_connections)
        self._idle: list[HttpConnection] = []
        """In the order of their last use. The one used last is used first, so that those of a wave expire."""
        self._expiry: asyncio.TimerHandle | None = None
        """Closes the first of them when it expires."""
        self._busy: set[HttpConnection] = set()
        self._is_paced, self._is_closed = is_paced, False
        self._lookup: asyncio.Future[Any] | None = None
        self._looked_up_at = 0.0

    async def close(self) -> None:
        """Close all connections. Requests in progress fail, and so do later ones."""
        self._is_closed = True
        for connection in [*self._idle, *self._busy]:
            connection.close()
        self._idle.clear()
        if self._expiry is not None:
            self._expiry.cancel()
        await asyncio.sleep(0)  # transports are closed in the next step of the event loop

    async def send(self, request: Request, timeout_seconds: float) -> Answer:
        """One request and its answer, whatever its status.

        Raises:
            Fenced: its reason is gone.
            OSError: no connection, or it broke. TimeoutError is one.

        """
        connection, answer = await self._answered(request, timeout_seconds)
        self._release(connection)
        return answer

    @asynccontextmanager
    async def stream(self, request: Request, idle_seconds: float) -> AsyncIterator[tuple[Answer, AsyncIterator[bytes]]]:
        """One request whose answer, if it is a success, is returned without its body, with the chunks of that.

        Raises:
            OSError: as of ``send``, also by the chunks, if none comes for so long or the connection breaks.

        """
        body = Body(idle_seconds)
        connection, answer = await self._answered(request, idle_seconds, body)
        try:
            yield answer, paced(body) if self._is_paced else body
        finally:
            if not body.is_read:
                connection.close()
            self._release(connection)

    async def _answered(
        self, request: Request, timeout_seconds: float, body: Body | None = None
    ) -> tuple[HttpConnection, Answer]:
        """The answer, and the connection that is still busy with it. Streams do not wait for other requests."""
        encoded = self._encoded(request)
        try:
            async with asyncio.timeout(timeout_seconds) as limit, self._slots if body is None else nullcontext():
                return await self._exchange(request, encoded, body)
        except TimeoutError as error:
            if not limit.expired():
                raise
            msg = f"no answer within {timeout_seconds:g} s"
            raise TimeoutError(msg) from error

    async def _exchange(self, request: Request, encoded: bytes, body: Body | None) -> tuple[HttpConnection, Answer]:
        self._check_open()
        if (kept := self._kept()) is not None:
            try:
                return kept, await self._round_trip(kept, request, encoded, body)
            except UnusedError:
                if not request.is_repeatable:
                    raise
        made = await self._connect()
        return made, await self._round_trip(made, request, encoded, body)

    async def _round_trip(
        self, connection: HttpConnection, request: Request, encoded: bytes, body: Body | None
    ) -> Answer:
        self._busy.add(connection)
        if request.fence is not None and not request.fence():
            self._release(connection)
            raise Fenced
        try:  # it is written in this step of the event loop
            return await connection.round_trip(encoded, body, max_bytes=request.max_bytes)
        except BaseException:  # also if it is cancelled: the connection has closed itself
            self._busy.remove(connection)
            raise

    def _release(self, connection: HttpConnection) -> None:
        self._busy.remove(connection)
        if connection.is_open:
            loop = asyncio.get_running_loop()
            connection.used_at = loop.time()
            self._idle.append(connection)
            if self._expiry is None:
                self._expiry = loop.call_later(IDLE_SECONDS, self._expire)

    def _check_open(self) -> None:
        if self._is_closed:
            msg = "the client is closed"
            raise ConnectionError(msg)

    def _encoded(self, request: Request) -> bytes:
        lines = [f"{request.method} {self._prefix}{request.target()} HTTP/1.1", f"Host: {self._authority}"]
        lines += [_field(name, value) for name, value in request.headers.items()]
        if request.body is not None:
            lines.append(f"Content-Length: {len(request.body)}")
        return "\r\n".join([*lines, "", ""]).encode("ascii") + (request.body or b"")

    def _kept(self) -> HttpConnection | None:
        while self._idle:
            kept = self._idle.pop()
            # The context of now: that of before may hold certificates that have expired.
            if kept.is_open and kept.context is self._connection.ssl:
                return kept
            kept.close()
        return None

    def _expire(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time() + TIMER_SECONDS
        while self._idle and self._idle[0].used_at + IDLE_SECONDS <= now:
            self._idle.pop(0).close()
        self._expiry = loop.call_at(self._idle[0].used_at + IDLE_SECONDS, self._expire) if self._idle else None

    async def _connect(self) -> HttpConnection:
        try:
            addresses = await self._addresses()
            async with asyncio.timeout(CONNECT_SECONDS):
                return await self._open(addresses)
        # RuntimeError: of uvloop, while the socket of another connection is being closed. ValueError: of a host that
        # cannot be a name.
        except (OSError, RuntimeError, ValueError) as error:
            if self._lookup is not None and self._lookup.done():
                self._lookup = None  # the server may have moved
            reason = str(error) or f"no answer within {CONNECT_SECONDS:g} s"
            msg = f"cannot connect to {self._authority}: {reason}"
            raise ConnectionError(msg) from error

    async def _open(self, addresses: Any) -> HttpConnection:
        sock = await aiohappyeyeballs.start_connection(addresses, happy_eyeballs_delay=NEXT_ADDRESS_SECONDS)
        connection = HttpConnection(context=self._connection.ssl)
        name = self._tls_name if connection.context else None
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: connection, sock=sock, ssl=connection.context or None, server_hostname=name
            )
            self._check_open()
        except BaseException:
            connection.close()  # not the socket: the event loop may still use it
            raise
        return connection

    async def _addresses(self) -> Any:
        loop = asyncio.get_running_loop()
        if self._lookup is None or loop.time() - self._looked_up_at > LOOKUP_SECONDS or _has_failed(self._lookup):
            self._lookup = asyncio.ensure_future(loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM))
            self._lookup.add_done_callback(_has_failed)  # its waiters may have been cancelled
            self._looked_up_at = loop.time()
        return await asyncio.shield(self._lookup)


@lru_cache(maxsize=64)
def _field(name: str, value: str) -> str:
    """A line of a head. Nearly all requests have the same ones."""
    line = f"{name}: {value}"
    if not line.isascii() or not line.isprintable():
        msg = "a header contains a control character, or one outside ASCII"  # not which: it may be a token
        raise OSError(msg)
    return line


def _has_failed(future: asyncio.Future[Any]) -> bool:
    return future.done() and (future.cancelled() or future.exception() is not None)
