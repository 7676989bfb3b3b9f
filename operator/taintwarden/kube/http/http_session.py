"""HTTP with the API server by aiohttp, and what aiohttp lacks: fences, paced streams, errors without secrets."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, closing, contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Final

import aiohttp
from yarl import URL

from taintwarden.fields.text import printable, without_userinfo
from taintwarden.kube.auth.connection import Connection
from taintwarden.kube.errors import Fenced, TooLong, Untrusted
from taintwarden.kube.http.messages import Answer, Request

CONNECT_SECONDS: Final = 5.0
IDLE_SECONDS: Final = 60.0
"""Seconds until an unused connection is closed. The API server closes it after 90 s."""
LOOKUP_SECONDS: Final = 10
"""Seconds for which the addresses of the host are reused, so that the connections of a wave share one look-up."""
NEXT_ADDRESS_SECONDS: Final = 0.25
"""Seconds until another address of the host is tried beside one that does not answer (RFC 8305)."""
READ_BYTES: Final = 2**18
"""Bytes of a body to read ahead, doubled by aiohttp. With its default a page of a list stops and starts fifty times."""

_WITHOUT_IDLE: Final = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)

_fence: ContextVar[Callable[[], bool] | None] = ContextVar("fence", default=None)


QUIET_SECONDS = 0.03
"""Seconds for which reading pauses after two chunks within this time. The next chunk has all that arrives meanwhile."""
BACKLOG_BYTES = 2**16
"""Size of a chunk from which it counts as part of a backlog, so that the next one is read at once."""


async def paced(
    chunks: AsyncIterator[bytes], paused: Callable[[], AbstractContextManager[None]]
) -> AsyncIterator[bytes]:
    """Yield the chunks of a body as they arrive. Small ones of a busy stream are joined, to at most 33 a second.

    Waking up for each of a thousand events a second takes twice the CPU. The scheduler extender does without it: it
    must know what kube-scheduler knows, which reads its watches at once.

    Args:
        chunks: the chunks as they arrive.
        paused: returns a context in which nothing is read from the connection.

    """
    now = asyncio.get_running_loop().time
    last = float("-inf")
    async for chunk in chunks:
        yield chunk
        if now() - last < QUIET_SECONDS and len(chunk) < BACKLOG_BYTES:
            with paused():
                await asyncio.sleep(QUIET_SECONDS)
        last = now()


class _FenceError(Exception):
    """A fence raised an exception. That is a fault of the program, not of the network."""


class _FencedRequest(aiohttp.ClientRequest):
    """Calls the fence of a request each time immediately before the request is written to a connection."""

    async def send(self, conn: Any) -> aiohttp.ClientResponse:
        fence = _fence.get()
        try:
            is_declined = fence is not None and not fence()
        except Exception as error:
            raise _FenceError from error
        if is_declined:
            raise Fenced
        return await super().send(conn)


class HttpSession:
    """Sends requests to the server of one connection. Needs a running event loop.

    Args:
        connection: address, proxy, TLS and server name.
        max_connections: maximum number of requests in progress, besides streams; others wait.
        is_paced: True to read busy streams in few chunks.

    """

    def __init__(self, connection: Connection, max_connections: int, *, is_paced: bool = False) -> None:
        self._connection = connection
        url = URL(connection.server)
        # Names in certificates do not end in a dot.
        self._tls_name = (connection.tls_server_name or url.host or "").rstrip(".") if url.scheme == "https" else None
        self._slots = asyncio.Semaphore(max_connections)
        self._is_paced, self._is_closed = is_paced, False
        connector = aiohttp.TCPConnector(
            limit=0,
            keepalive_timeout=IDLE_SECONDS,
            ttl_dns_cache=LOOKUP_SECONDS,
            happy_eyeballs_delay=NEXT_ADDRESS_SECONDS,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BYTES,
            request_class=_FencedRequest,
        )

    async def close(self) -> None:
        """Close all connections. Requests in progress, waiting requests and later ones fail."""
        self._is_closed = True
        await self._session.close()

    async def send(self, request: Request, timeout_seconds: float) -> Answer:
        """Send one request and return its answer, whatever its status.

        aiohttp sends an idempotent request a second time if the connection ended before the head of the answer was
        complete. The fence is called each time.

        Raises:
            Fenced: the fence declined, and nothing was sent.
            TooLong: the answer is longer than ``max_bytes``. The connection is closed.
            Untrusted: the certificate of the server is not trusted. Nothing was sent.
            OSError: connecting failed, or the connection broke or timed out.

        """
        with self._os_errors(timeout_seconds):
            async with asyncio.timeout(timeout_seconds), self._slots:
                with closing(await self._open_response(request, _WITHOUT_IDLE)) as response:
                    return await _read_answer(response, request.max_bytes)

    @asynccontextmanager
    async def stream(self, request: Request, idle_seconds: float) -> AsyncIterator[tuple[Answer, AsyncIterator[bytes]]]:
        """Send one request and yield its answer and the chunks of its body. Only a refusal has its body in the answer.

        Raises:
            TooLong, Untrusted, OSError: as for ``send``; OSError from the chunks if none arrives for ``idle_seconds``.

        """
        timeouts = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=idle_seconds)
        with self._os_errors(idle_seconds):
            response = await self._open_response(request, timeouts)
        async with response:
            answer, chunks = Answer(response.status, b""), self._chunks(response, idle_seconds)
            if not answer.is_success:
                with self._os_errors(idle_seconds):
                    answer = await _read_answer(response, request.max_bytes)
            try:
                yield answer, paced(chunks, lambda: _paused(response)) if self._is_paced else chunks
            finally:
                if not response.content.at_eof():
                    _abort(response)

    async def _open_response(self, request: Request, timeouts: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """Send the request and return its response, whose body is not read yet."""
        if self._is_closed:
            msg = "the client is closed"
            raise ConnectionError(msg)
        fence = _fence.set(request.fence)
        try:
            return await self._session.request(**self._aiohttp_parameters(request), timeout=timeouts)
        finally:
            _fence.reset(fence)

    def _aiohttp_parameters(self, request: Request) -> dict[str, Any]:
        return {
            "method": request.method,
            "url": URL(self._connection.server.rstrip("/") + request.target(), encoded=True),
            "data": None if request.body is None else aiohttp.BytesPayload(request.body),
            "headers": (*_check_headers(request.headers).items(), *self._connection.impersonation),
            "allow_redirects": False,
            # Read for each request: certificates are renewed before they expire.
            "ssl": self._connection.ssl,
            "proxy": self._connection.proxy,
            "server_hostname": self._tls_name,
        }

    def _os_errors(self, seconds: float, late: str = "no answer within") -> "_OsErrors":
        return _OsErrors(self._connection.server, seconds, late)

    async def _chunks(self, response: aiohttp.ClientResponse, idle_seconds: float) -> AsyncIterator[bytes]:
        with self._os_errors(idle_seconds, "nothing came for"):
            while not response.content.at_eof():
                async with asyncio.timeout(idle_seconds):  # aiohttp's own ends with a connection that it cannot parse
                    chunk = await response.content.readany()
                if chunk:
                    yield chunk


@contextmanager
def _paused(response: aiohttp.ClientResponse) -> Iterator[None]:
    """Stop reading from the socket, so that the kernel collects what arrives."""
    if (transport := _transport(response)) is None:
        yield
        return
    # A paused TLS transport reads from its socket up to a limit, which is lowered meanwhile.
    limit = getattr(transport, "set_read_buffer_limits", lambda *_: None)
    limit(1, 0)
    transport.pause_reading()
    try:
        yield
    finally:
        if not transport.is_closing():
            transport.resume_reading()
            limit()


def _transport(response: aiohttp.ClientResponse) -> asyncio.Transport | None:
    """Return the transport of its connection; None if it is closed or closing."""
    connection = response.connection
    transport = None if connection is None else connection.transport
    return None if transport is None or transport.is_closing() else transport


class _OsErrors:
    """Turns errors of aiohttp into an OSError or an error of this package. A class is faster than a generator."""

    __slots__ = ("_late", "_seconds", "_server")

    def __init__(self, server: str, seconds: float, late: str) -> None:
        self._server, self._seconds, self._late = server, seconds, late

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        match error:
            case None:
                return
            case TimeoutError() if not isinstance(error, aiohttp.ConnectionTimeoutError):
                msg = f"{self._late} {self._seconds:g} s"
                raise TimeoutError(msg) from error
            case aiohttp.ClientConnectorCertificateError():
                raise Untrusted(printable(_describe(error), 200)) from None
            case aiohttp.ClientError():
                raise ConnectionError(_describe(error)) from None
            case RuntimeError():  # from uvloop or aiohttp, if the connection was closed meanwhile
                msg = f"the connection is closed: {error}"
                raise ConnectionError(msg) from error
            case UnicodeError():
                msg = f"cannot connect to {URL(self._server).host_port_subcomponent}: {error}"
                raise ConnectionError(msg) from error


def _check_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    if not all(map(_is_sendable, headers.values())):
        msg = "a header contains a control character, or one outside ASCII"  # do not quote it: it may be a token
        raise OSError(msg)
    return headers


@lru_cache(16)
def _is_sendable(value: str) -> bool:
    """Return True if a header may have this value. Cached: every request repeats the token, a thousand characters."""
    return value.isascii() and value.isprintable()


def _describe(error: aiohttp.ClientError) -> str:
    match error:
        case aiohttp.ClientHttpProxyError():
            return f"the proxy answers {error.status} {printable(error.message, 100)}".rstrip()
        case aiohttp.ClientConnectorCertificateError():
            return f"cannot connect to {error.host}:{error.port}: {error.certificate_error}"
        case aiohttp.ClientConnectorError():
            return f"cannot connect to {error.host}:{error.port}: {_reason(error.os_error)}"
        case aiohttp.ConnectionTimeoutError():
            return f"cannot connect: {_reason(error)}"
        case aiohttp.ClientResponseError():
            return f"the answer is not HTTP/1.1: {printable(error.message, 100)}"
        case aiohttp.ClientPayloadError() | aiohttp.ClientOSError() | aiohttp.ServerDisconnectedError():
            return f"the connection ended before the end of the answer: {_reason(error)}"
    return _reason(error)


def _reason(error: Exception) -> str:
    return without_userinfo(str(error)) or type(error).__name__


async def _read_answer(response: aiohttp.ClientResponse, max_bytes: int) -> Answer:
    parts, size = [], 0
    content = response.content
    while not content.at_eof():
        part = await content.readany()
        parts.append(part)
        size += len(part)
        if size > max_bytes:
            _abort(response)
            msg = f"the answer has more than {max_bytes} bytes"
            raise TooLong(msg)
    headers = response.headers
    return Answer(response.status, b"".join(parts), headers.get("Retry-After", ""), headers.get("Date", ""))


def _abort(response: aiohttp.ClientResponse) -> None:
    """End the connection without the closing messages of TLS, which could outlast the event loop."""
    if (transport := _transport(response)) is not None:
        transport.abort()
