"""Requests with short answers, over connections that are kept. Most are evictions, so they are made with little CPU.

aiohttp needs twice to three times as much for the same request. It serves what needs more: watches, and proxies.
"""

import asyncio
import re
import socket
import ssl
from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.parse import quote, urlencode

import aiohappyeyeballs
import httptools
import msgspec
from yarl import URL

from taintwarden.kube.connection import Connection

CONNECT_SECONDS: Final = 5.0
IDLE_SECONDS: Final = 60.0
"""After that an unused connection is closed; the API server closes it after 90 s."""
MAX_HEAD_BYTES: Final = 64 * 1024
"""Of an answer, before its body. The API server sends less than 1 KiB."""
LOOKUP_SECONDS: Final = 10.0
"""How long the addresses of the host are used, so that the connections of a wave share one look-up."""
NEXT_ADDRESS_SECONDS: Final = 0.25
"""Until another address of the host is tried beside the one that does not answer (RFC 8305)."""
REPEATABLE: Final = frozenset({"GET", "PUT", "DELETE"})
"""Methods whose second request has the effect of one (RFC 9110, 9.2.2)."""

_CONTROL_CHARACTERS: Final = re.compile(r"[\x00-\x1f\x7f]")
_PATH_CHARACTERS: Final = "/:@!$&'()*+,;=~%"  # what a path may contain as it is (RFC 3986)


class Request(msgspec.Struct, frozen=True):
    """An HTTP request. The path is below that of the server."""

    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes | None = None

    def target(self) -> str:
        """Path and parameters as they are sent. A name from a command line may have any character."""
        path = quote(self.path, safe=_PATH_CHARACTERS, errors="surrogateescape")
        return f"{path}?{urlencode(self.params, errors='surrogateescape')}" if self.params else path


class Answer(msgspec.Struct, frozen=True):
    """An HTTP response that came completely. ``retry_after`` is the header, or empty."""

    status: int
    body: bytes
    retry_after: str = ""


class _UnusedError(ConnectionError):
    """A kept connection was closed at the other end before anything of an answer came."""


class RoundTrips:
    """Sends requests to the server of one connection, each on a kept connection that no other request uses.

    Args:
        connection: address, TLS and server name. Its proxy is not used.
        max_connections: so many requests are in progress at a time; others wait.

    """

    def __init__(self, connection: Connection, max_connections: int) -> None:
        url = URL(connection.server)
        self._connection = connection
        self._host, self._port = url.host or "", url.port or 443
        self._tls_name = (connection.tls_server_name or self._host).rstrip(".")  # certificates have no root label
        self._prefix = url.raw_path.rstrip("/")
        self._authority = url.host_port_subcomponent or ""
        self._slots = asyncio.Semaphore(max_connections)
        self._idle: list[_Wire] = []
        """The one used last is used first, so that those of a wave expire."""
        self._busy: set[_Wire] = set()
        self._is_closed = False
        self._lookup: asyncio.Future[Any] | None = None
        self._looked_up_at = 0.0

    async def close(self) -> None:
        """Close all connections. Requests in progress fail, and so do later ones."""
        self._is_closed = True
        for wire in [*self._idle, *self._busy]:
            wire.close()
        self._idle.clear()
        await asyncio.sleep(0)  # transports are closed in the next step of the event loop

    async def send(self, request: Request, timeout_seconds: float) -> Answer:
        """One request and its answer, whatever its status.

        Raises:
            OSError: no connection, or it broke. TimeoutError is one.

        """
        encoded = self._encoded(request)
        try:
            async with asyncio.timeout(timeout_seconds) as limit, self._slots:
                return await self._send(encoded, is_repeatable=request.method in REPEATABLE)
        except TimeoutError as error:
            if not limit.expired():
                raise
            msg = f"no answer within {timeout_seconds:g} s"
            raise TimeoutError(msg) from error

    async def _send(self, encoded: bytes, *, is_repeatable: bool) -> Answer:
        self._check_open()
        if (wire := self._kept()) is not None:
            try:
                return await self._round_trip(wire, encoded)
            except _UnusedError:
                if not is_repeatable:
                    raise
        return await self._round_trip(await self._connect(), encoded)

    async def _round_trip(self, wire: "_Wire", encoded: bytes) -> Answer:
        self._busy.add(wire)
        try:
            answer = await wire.round_trip(encoded)
        finally:
            self._busy.remove(wire)
        if wire.is_open:
            wire.expiry = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._expire, wire)
            self._idle.append(wire)
        return answer

    def _check_open(self) -> None:
        if self._is_closed:
            msg = "the client is closed"
            raise ConnectionError(msg)

    def _encoded(self, request: Request) -> bytes:
        lines = [f"{request.method} {self._prefix}{request.target()} HTTP/1.1", f"Host: {self._authority}"]
        lines += [f"{name}: {value}" for name, value in request.headers.items()]
        if request.body is not None:
            lines.append(f"Content-Length: {len(request.body)}")
        head = "\r\n".join(lines)
        if not head.isascii() or len(_CONTROL_CHARACTERS.findall(head)) != 2 * (len(lines) - 1):
            msg = "a header contains a control character, or one outside ASCII"  # not which: it may be a token
            raise OSError(msg)
        return f"{head}\r\n\r\n".encode("ascii") + (request.body or b"")

    def _kept(self) -> "_Wire | None":
        while self._idle:
            wire = self._idle.pop()
            # The context of now: that of before may hold certificates that have expired.
            if wire.is_open and wire.context is self._connection.ssl:
                wire.stay()
                return wire
            wire.close()
        return None

    def _expire(self, wire: "_Wire") -> None:
        wire.close()
        self._idle.remove(wire)

    async def _connect(self) -> "_Wire":
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

    async def _open(self, addresses: Any) -> "_Wire":
        sock = await aiohappyeyeballs.start_connection(addresses, happy_eyeballs_delay=NEXT_ADDRESS_SECONDS)
        wire = _Wire(context=self._connection.ssl)
        name = self._tls_name if wire.context else None
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: wire, sock=sock, ssl=wire.context or None, server_hostname=name
            )
            self._check_open()
        except BaseException:
            wire.close()  # not the socket: the event loop may still use it
            raise
        return wire

    async def _addresses(self) -> Any:
        loop = asyncio.get_running_loop()
        if self._lookup is None or loop.time() - self._looked_up_at > LOOKUP_SECONDS or _has_failed(self._lookup):
            self._lookup = asyncio.ensure_future(loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM))
            self._lookup.add_done_callback(_has_failed)  # its waiters may have been cancelled
            self._looked_up_at = loop.time()
        return await asyncio.shield(self._lookup)


def _has_failed(future: asyncio.Future[Any]) -> bool:
    return future.done() and (future.cancelled() or future.exception() is not None)


class _Wire(asyncio.Protocol):
    """One connection, with one request in progress at a time."""

    def __init__(self, *, context: ssl.SSLContext | bool) -> None:
        self.context = context
        self.is_open = True
        self.expiry: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[Answer] | None = None
        self._was_used = False
        self._received = 0
        self._is_head, self._has_length = True, False
        self._retry_after = ""
        self._body: list[bytes] = []

    async def round_trip(self, encoded: bytes) -> Answer:
        """Send this request and wait for the answer. A connection whose answer is not awaited to its end is closed."""
        if self._transport is None:
            msg = "the connection is not made yet"
            raise RuntimeError(msg)
        self._received, self._is_head, self._has_length = 0, True, False
        self._answer = asyncio.get_running_loop().create_future()
        try:
            self._transport.write(encoded)
            answer = await self._answer
        except RuntimeError as error:  # of uvloop: it is closed, and connection_lost follows
            self.close()
            msg = "the connection is closed"
            raise _UnusedError(msg) from error
        except BaseException:
            self.close()  # the rest of the answer may come later
            raise
        finally:
            self._answer = None
        self._was_used = True
        return answer

    def stay(self) -> None:
        """It does not expire now."""
        if self.expiry is not None:
            self.expiry.cancel()

    def close(self) -> None:
        """At once, without the messages that end TLS."""
        self.stay()
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    # -- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Can be written to, unless it was given up meanwhile."""
        self._transport = cast("asyncio.Transport", transport)
        if not self.is_open:
            self.close()

    def data_received(self, data: bytes) -> None:
        """A part of an answer, or several."""
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(ConnectionError(f"the answer is not HTTP/1.1: {error}"))
            self.close()
        if self._is_head and self._received > MAX_HEAD_BYTES:
            self._fail(ConnectionError(f"the head of the answer has more than {MAX_HEAD_BYTES} bytes"))
            self.close()

    def connection_lost(self, error: Exception | None) -> None:
        """The other end closed it, or it broke."""
        was_open, self.is_open = self.is_open, False
        if was_open and error is None and self._is_body_open():
            self._finish()
        elif self._was_used and not self._received:
            self._fail(_UnusedError("the server closed the connection"))
        else:
            reason = error or f"closed by the {'server' if was_open else 'client'}"
            self._fail(ConnectionError(f"the connection ended before the answer: {reason}"))

    def _is_body_open(self) -> bool:
        """Whether the body ends with the connection, as of Go's server for a request that it cannot read."""
        return not self._is_head and not self._has_length and self._parser.get_status_code() >= 200

    def _fail(self, error: ConnectionError) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)

    # -- called by the parser

    def on_message_begin(self) -> None:
        """An answer. Without a request that waits for it, the connection is closed."""
        if self._answer is None or self._answer.done():
            self.close()
        self._is_head, self._has_length = True, False
        self._retry_after, self._body = "", []

    def on_header(self, name: bytes, value: bytes) -> None:
        """One field of its head."""
        name = name.lower()
        if name == b"retry-after":
            self._retry_after = value.decode("latin-1")
        elif name in (b"content-length", b"transfer-encoding"):
            self._has_length = True

    def on_headers_complete(self) -> None:
        """Its body follows, if it has one."""
        self._is_head = False

    def on_body(self, part: bytes) -> None:
        """A part of its body."""
        self._body.append(part)

    def on_message_complete(self) -> None:
        """All of it. A status below 200 announces another answer."""
        if self._parser.get_status_code() >= 200:
            if not self._parser.should_keep_alive():
                self.close()
            self._finish()

    def _finish(self) -> None:
        body, self._body = b"".join(self._body), []  # a kept connection keeps no page of a list
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(Answer(self._parser.get_status_code(), body, self._retry_after))
