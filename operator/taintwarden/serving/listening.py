"""Connections on a port, with limits that no client can exceed.

A client costs memory before it is authenticated, with TLS some dozen kilobytes. So the number of connections is
limited, and at the limit the least useful one is closed for a new one.
"""

import asyncio
import errno
import socket
import ssl
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import cast

import msgspec

from taintwarden.serving.tls_stream import TlsLimits, TlsStream

ACCEPT_RETRY_SECONDS = 1.0
"""Seconds to wait after a failure to accept, for example without free file descriptors."""
BACKLOG = 128
HEAD_END = b"\r\n\r\n"
READ_BYTES = 2**14
"""Maximum bytes of one read. asyncio reads 256 KiB, and unparsed data stay in memory until garbage is collected."""

Factory = Callable[[], asyncio.Protocol]


class ConnectionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on the connections of one port."""

    max_connections: int = 128
    """Maximum number of connections. Three API servers keep some dozen each while hundreds of pods a second start."""
    accept_interval_seconds: float = 0.0
    """Minimum seconds between two accepted connections."""
    tls: TlsLimits = TlsLimits()
    first_answer_seconds: float = 10.0
    """Maximum seconds from the end of the handshake, if any, to the answer to the first request."""
    accepts_bodies: bool = True
    """True if bodies of requests are read. Parsing may be slow: a body may be compressed, or in chunks of one byte.
    """


class Listener:
    """Listens on one port, and limits the number of connections.

    Args:
        make: returns the protocol of a new connection.
        tls: the certificate to serve with; None for plain connections.
        limits: limits on the connections.

    """

    def __init__(
        self,
        make: Factory,
        tls: ssl.SSLContext | None,
        limits: ConnectionLimits = ConnectionLimits(),  # noqa: B008 - it is frozen
    ) -> None:
        self._make = make
        self._tls = tls
        self._limits = limits
        self._sockets: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._open: OrderedDict[int, _Connection] = OrderedDict()
        """Connections by number. Those with an answer are in the order of their last answers."""
        self._next = 0

    def __len__(self) -> int:
        return len(self._open)

    def start(self, host: str, port: int) -> None:
        """Listen on ``host``; if it is empty, on all addresses of the families that the machine has.

        Raises:
            OSError: the port cannot be used.

        """
        self._sockets = listen(host, port)
        self._accepting = [asyncio.create_task(self._accept(sock)) for sock in self._sockets]

    async def stop(self) -> None:
        """Accept no more connections. Open ones stay."""
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        for sock in self._sockets:
            sock.close()
        self._sockets, self._accepting = [], []

    def close(self) -> None:
        """End every connection."""
        for connection in tuple(self._open.values()):
            connection.end()

    def mark_answered(self, transport: asyncio.BaseTransport | None) -> None:
        """Mark a connection as useful, since a request on it was answered."""
        for key, connection in self._open.items():
            if connection.transport is transport:
                self._open.move_to_end(key)
                connection.mark_answered()
                return

    async def _accept(self, listening: socket.socket) -> None:
        loop, limits = asyncio.get_running_loop(), self._limits
        while True:
            try:
                accepted, _ = await loop.sock_accept(listening)
            except OSError:
                await asyncio.sleep(ACCEPT_RETRY_SECONDS)
                continue
            if len(self._open) >= limits.max_connections:
                self._least_useful().end()
            self._next += 1
            key = self._next
            self._open[key] = _Connection(accepted, self._make, self._tls, limits, partial(self._forget, key))
            if limits.accept_interval_seconds:
                await asyncio.sleep(limits.accept_interval_seconds)

    def _forget(self, key: int) -> None:
        self._open.pop(key, None)

    def _least_useful(self) -> "_Connection":
        """Return the oldest connection without an answer, else the one whose last answer is the oldest."""
        waiting = (connection for connection in self._open.values() if not connection.is_useful)
        return next(waiting, None) or next(iter(self._open.values()))


class _Connection(asyncio.BufferedProtocol):
    """One connection, from before its handshake to its end. Passes data to the protocol that ``make`` returned.

    Once it has ended it refers to nothing: its buffers would stay in memory until garbage is collected.
    """

    def __init__(
        self,
        accepted: socket.socket,
        make: Factory,
        tls: ssl.SSLContext | None,
        limits: ConnectionLimits,
        forget: Callable[[], None],
    ) -> None:
        self.transport: asyncio.Transport | None = None
        self.is_useful = False
        self._make = make
        self._inner = asyncio.Protocol()
        self._limits = limits
        self._buffer = memoryview(bytearray(READ_BYTES if tls is None else 0))
        self._head_tail = b""
        """Last bytes of headers that are not complete yet."""
        self._is_processing = False
        """True while a request is processed: its headers were passed on, and later data wait for its answer."""
        self._withheld = b""
        self._forget = forget
        self._overdue: asyncio.TimerHandle | None = None
        self._stream = None if tls is None else TlsStream(cast("asyncio.Protocol", self), tls, limits.tls)
        self._task = asyncio.create_task(self._begin(accepted, self._stream or self))

    async def _begin(self, accepted: socket.socket, lowest: asyncio.BaseProtocol) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: lowest, accepted)
        except (OSError, asyncio.CancelledError) as error:  # connection_lost is not called
            # asyncio's frames and the error refer to each other, and keep the buffers of the connection in memory.
            error.__traceback__ = None
            accepted.close()
            self._forget()

    def end(self) -> None:
        """End the connection at once."""
        self._forget()
        if self._stream is not None:
            self._stream.abort()
        elif self.transport is not None:
            self.transport.abort()
        self._task.cancel()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to pass on data, after the handshake, if any."""
        self.transport = cast("asyncio.Transport", transport)  # uvloop's have other bases
        self._overdue = asyncio.get_running_loop().call_later(self._limits.first_answer_seconds, self._give_up)
        self._inner = self._make()
        self._inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything that the connection refers to."""
        if self._overdue is not None:
            self._overdue.cancel()
        self._forget()
        self._inner.connection_lost(exc)
        self.transport = self._stream = None  # uvloop's transport refers to methods of this connection

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next read."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Pass on the data in the buffer."""
        self.data_received(bytes(self._buffer[:nbytes]))

    def data_received(self, data: bytes) -> None:
        """Pass on data, without bodies unless ``accepts_bodies``."""
        if self._limits.accepts_bodies:
            self._inner.data_received(data)
        elif self._is_processing:
            self._withheld += data  # data that the transport had read before it paused
        else:
            self._pass_head(data)

    def mark_answered(self) -> None:
        """Mark the connection as useful, and read the next request."""
        self.is_useful = True
        if self._stream is not None:
            self._stream.mark_answered()
        if self._is_processing and self.transport is not None and not self.transport.is_closing():
            self._is_processing = False
            withheld, self._withheld = self._withheld, b""
            self.transport.resume_reading()
            self._pass_head(withheld)

    def _pass_head(self, data: bytes) -> None:
        """Pass on data up to the end of the headers of one request."""
        known = len(self._head_tail)
        end = (self._head_tail + data).find(HEAD_END)
        if end < 0:
            self._head_tail = (self._head_tail + data)[1 - len(HEAD_END) :]
        else:
            self._head_tail, self._is_processing = b"", True
            cut = end + len(HEAD_END) - known
            data, self._withheld = data[:cut], data[cut:]
            if self.transport is not None:
                self.transport.pause_reading()
        if data:
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Pass on the end of the data."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """Pass on that the buffer of the transport is full."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass on that the buffer of the transport is no longer full."""
        self._inner.resume_writing()

    def _give_up(self) -> None:
        if not self.is_useful:
            self.end()


def listen(host: str, port: int) -> list[socket.socket]:
    """Return sockets that listen on ``host``; if it is empty, on all addresses of the families that the machine has.

    Raises:
        OSError: the port cannot be used.

    """
    found: list[socket.socket] = []
    flags = socket.AI_PASSIVE
    addresses = dict.fromkeys(socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=flags))
    missing: OSError | None = None
    for family, _, _, _, address in addresses:
        try:
            found.append(socket.create_server(address, family=family, backlog=BACKLOG))
        except OSError as error:
            if error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
                for sock in found:
                    sock.close()
                raise
            missing = error  # the machine has no IPv6, or no IPv4
    if missing is not None and not found:
        raise missing
    for sock in found:
        sock.setblocking(False)  # noqa: FBT003 - it takes no keyword
    return found
