"""Requests with short answers, over connections that are kept. Most are evictions, so they are made with little CPU.

aiohttp needs twice to three times as much for the same request. It serves what needs more: watches, and proxies.
"""

import asyncio
import socket
from collections.abc import Mapping
from typing import Final, cast
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
NEXT_ADDRESS_SECONDS: Final = 0.25
"""Until another address of the host is tried beside the one that does not answer (RFC 8305)."""
REPEATABLE: Final = frozenset({"GET", "PUT", "DELETE"})
"""Methods whose second request has the effect of one (RFC 9110, 9.2.2)."""

_PATH_CHARACTERS: Final = "/:@!$&'()*+,;=~%"  # what a path may contain as it is (RFC 3986)


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
        self._prefix = url.raw_path.rstrip("/")
        self._authority = url.host_port_subcomponent or ""
        self._slots = asyncio.Semaphore(max_connections)
        self._idle: list[_Wire] = []
        """The one used last is used first, so that those of a wave expire."""

    async def close(self) -> None:
        """Close what is not in use."""
        for wire in self._idle:
            wire.close()
        await asyncio.sleep(0)  # transports are closed in the next step of the event loop

    async def send(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_seconds: float,
    ) -> Answer:
        """One request and its answer, whatever its status.

        Raises:
            OSError: no connection, or it broke. TimeoutError is one.

        """
        request = self._request(method, path, params, headers, body)
        try:
            async with asyncio.timeout(timeout_seconds) as limit, self._slots:
                return await self._send(request, is_repeatable=method in REPEATABLE)
        except TimeoutError as error:
            if not limit.expired():
                raise
            msg = f"no answer within {timeout_seconds:g} s"
            raise TimeoutError(msg) from error

    async def _send(self, request: bytes, *, is_repeatable: bool) -> Answer:
        while True:
            wire = self._kept() or await self._connect()
            try:
                answer = await wire.round_trip(request)
            except _UnusedError:
                if not is_repeatable:
                    raise
            else:
                self._keep(wire)
                return answer

    def _request(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None,
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> bytes:
        target = quote(f"{self._prefix}{path}", safe=_PATH_CHARACTERS)
        if params:
            target = f"{target}?{urlencode(params)}"
        lines = [f"{method} {target} HTTP/1.1", f"Host: {self._authority}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        head = "\r\n".join(lines)
        if head.count("\n") + 1 != len(lines):
            msg = "a header contains a line break"
            raise OSError(msg)
        return f"{head}\r\n\r\n".encode("latin-1") + (body or b"")

    def _kept(self) -> "_Wire | None":
        while self._idle:
            wire = self._idle.pop()
            # The context of now: that of before may hold certificates that have expired.
            if wire.is_open and wire.context is self._connection.ssl:
                wire.resume()
                return wire
            wire.close()
        return None

    def _keep(self, wire: "_Wire") -> None:
        if wire.is_open:
            wire.rest()
            self._idle.append(wire)

    async def _connect(self) -> "_Wire":
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return await self._open()
        except TimeoutError as error:
            reason = str(error) or f"no answer within {CONNECT_SECONDS:g} s"
            msg = f"cannot connect to {self._authority}: {reason}"
            raise TimeoutError(msg) from error
        except (OSError, UnicodeError) as error:  # the latter for a host that cannot be a name
            msg = f"cannot connect to {self._authority}: {error}"
            raise ConnectionError(msg) from error

    async def _open(self) -> "_Wire":
        loop = asyncio.get_running_loop()
        addresses = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        sock = await aiohappyeyeballs.start_connection(addresses, happy_eyeballs_delay=NEXT_ADDRESS_SECONDS)
        context = self._connection.ssl
        name = self._connection.tls_server_name or self._host
        try:
            _, wire = await loop.create_connection(
                lambda: _Wire(context), sock=sock, ssl=context or None, server_hostname=name if context else None
            )
        except BaseException:
            sock.close()
            raise
        return wire


class _Wire(asyncio.Protocol):
    """One connection, with one request in progress at a time."""

    def __init__(self, context: object) -> None:
        self.context = context
        self.is_open = True
        self._transport = cast("asyncio.Transport", None)
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[Answer] | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._was_used = False
        self._received = 0
        self._is_head = True
        self._retry_after = ""
        self._body: list[bytes] = []

    async def round_trip(self, request: bytes) -> Answer:
        """Send this and wait for the answer. A connection whose answer is not awaited to its end is closed."""
        self._received, self._is_head = 0, True
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            answer = await self._answer
        except BaseException:
            self.close()
            raise
        finally:
            self._answer = None
        self._was_used = True
        return answer

    def rest(self) -> None:
        """Nothing is to be sent for now."""
        self._expiry = asyncio.get_running_loop().call_later(IDLE_SECONDS, self.close)

    def resume(self) -> None:
        """The next request follows."""
        if self._expiry is not None:
            self._expiry.cancel()

    def close(self) -> None:
        """At once: the API server needs no goodbye."""
        self.resume()
        self.is_open = False
        self._transport.abort()

    # -- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Can be written to."""
        self._transport = cast("asyncio.Transport", transport)

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
        self.resume()
        self.is_open = False
        if self._was_used and not self._received:
            self._fail(_UnusedError("the server closed the connection"))
        else:
            self._fail(ConnectionError(f"the connection ended before the answer: {error or 'closed by the server'}"))

    def _fail(self, error: ConnectionError) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)

    # -- called by the parser

    def on_message_begin(self) -> None:
        """An answer, which nobody may have requested."""
        if self._answer is None or self._answer.done():
            self.close()
        self._retry_after, self._body = "", []

    def on_header(self, name: bytes, value: bytes) -> None:
        """One field of its head."""
        if name.lower() == b"retry-after":
            self._retry_after = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Its body follows, if it has one."""
        self._is_head = False

    def on_body(self, part: bytes) -> None:
        """A part of its body."""
        self._body.append(part)

    def on_message_complete(self) -> None:
        """All of it. A status below 200 announces another answer."""
        status = self._parser.get_status_code()
        if status < 200 or self._answer is None or self._answer.done():
            return
        if not self._parser.should_keep_alive():
            self.close()
        self._answer.set_result(Answer(status, b"".join(self._body), self._retry_after))
