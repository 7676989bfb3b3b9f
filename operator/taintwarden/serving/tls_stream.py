"""TLS for a server, with a limit on records that contain no data of a request.

The TLS of the event loops has no such limit. In TLS 1.3 a client may request new keys as often as it likes, before its
first request: 27 bytes cost 50 µs, and OpenSSL processes all its input in one call.
"""

import asyncio
import contextlib
import ssl
from typing import Any, cast

import msgspec

READ_BYTES = 2**14
"""Maximum bytes of one read."""
HEADER_BYTES = 5
"""Size of the header of a record. Its last two bytes are the length of the rest."""
PLAIN_BYTES = 2**14
"""Maximum bytes of plaintext in a record. One read returns those of one record."""


def server_context() -> ssl.SSLContext:
    """Return a context for TLS 1.2 and 1.3, without a certificate yet.

    :class:`TlsStream` limits requests for new keys in 1.3. In 1.2 clients cannot begin another handshake.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.options |= ssl.OP_NO_RENEGOTIATION
    return made


class TlsLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on one connection."""

    handshake_seconds: float = 5.0
    closing_seconds: float = 1.0
    """Maximum seconds until the client confirms the end of the connection."""
    max_empty_records: int = 32
    """Maximum number of records without data of a request, until one is answered. A handshake has fewer than ten."""


class TlsStream(asyncio.BufferedProtocol, asyncio.Transport):
    """The protocol of a plain transport, and the transport of the protocol above it.

    Once it has ended it refers to nothing: its buffers would stay in memory until garbage is collected.

    Args:
        above: the protocol. Its connection is made after the handshake, and may be lost before it.
        tls: the certificate to serve with.
        limits: limits on the connection.

    """

    def __init__(self, above: asyncio.Protocol, tls: ssl.SSLContext, limits: TlsLimits) -> None:
        self._above: asyncio.Protocol | None = above
        self._limits = limits
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = tls.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._below: asyncio.Transport | None = None
        self._overdue: asyncio.TimerHandle | None = None
        self._is_open = self._is_paused = self._is_closing = False
        self._header = b""
        self._left = 0
        """Bytes of the current record that have not arrived yet, after its header."""
        self._empty_records = 0
        """Number of records without data of a request since the last answer."""

    def mark_answered(self) -> None:
        """Begin to count the records of the next request."""
        self._empty_records = 0

    # -- protocol of the plain transport -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the handshake of the client."""
        self._below = cast("asyncio.Transport", transport)  # uvloop's have other bases
        if self._is_closing:
            self.abort()
        else:
            self._end_after(self._limits.handshake_seconds)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next read."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Decrypt data record by record and pass it on, or end the connection at the limit."""
        data = self._buffer[:nbytes]
        while data and self._empty_records <= self._limits.max_empty_records:
            size = self._count_record_bytes(data)
            if not self._is_closing:
                self._incoming.write(data[:size])
                if not self._left or not self._is_open:
                    self._advance()
            data = data[size:]
        if data:
            self.abort()

    def _count_record_bytes(self, data: memoryview) -> int:
        """Return how many of these bytes belong to the header of the current record, or to the rest of it."""
        if self._left:
            size = min(len(data), self._left)
            self._left -= size
        else:
            size = min(len(data), HEADER_BYTES - len(self._header))
            self._header += data[:size]
            if len(self._header) < HEADER_BYTES:
                return size
            self._left = int.from_bytes(self._header[-2:])
            self._header = b""
        self._empty_records += not self._left  # at its end, until _read finds data in it
        return size

    def eof_received(self) -> bool | None:
        """End the connection after sending what was written, without the closing messages of TLS."""
        if self._is_open and not self._is_closing and self._above is not None:
            self._above.eof_received()
        self._is_closing = True
        return False

    def pause_writing(self) -> None:
        """Pass on that the buffer of the transport is full."""
        if self._is_open and self._above is not None:
            self._above.pause_writing()

    def resume_writing(self) -> None:
        """Pass on that the buffer of the transport is no longer full."""
        if self._is_open and self._above is not None:
            self._above.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything that the stream refers to."""
        self._is_closing = True
        if self._overdue is not None:
            self._overdue.cancel()
        above, self._above, self._below = self._above, None, None
        if above is not None:
            above.connection_lost(exc)

    # -- transport of the protocol above -----------------------------------------------------------------------------

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return information about the connection."""
        match name:
            case "peercert":
                return self._tls.getpeercert() if self._is_open else default
            case "sslcontext":
                return self._tls.context
            case _:
                return default if self._below is None else self._below.get_extra_info(name, default)

    def is_closing(self) -> bool:
        """Return True if nothing more can be sent."""
        return self._is_closing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt and send data."""
        if self._is_closing or not data:
            return
        rest = memoryview(data)
        while rest:
            rest = rest[self._tls.write(rest) :]  # one record
        self._flush()

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that wait for the client."""
        return 0 if self._below is None else self._below.get_write_buffer_size()

    def pause_reading(self) -> None:
        """Stop reading, so that data stay encrypted in the kernel."""
        self._is_paused = True
        if self._below is not None:
            self._below.pause_reading()

    def resume_reading(self) -> None:
        """Resume reading, beginning with data that have arrived."""
        self._is_paused = False
        if self._below is not None and not self._is_closing:
            self._below.resume_reading()
            asyncio.get_running_loop().call_soon(self._advance)

    def close(self) -> None:
        """Send what was written and the closing message, and end when the client confirms it or the time is over."""
        if self._is_closing:
            return
        with contextlib.suppress(ssl.SSLError):  # the client has not closed yet, or there was no handshake
            self._tls.unwrap()
        self._flush()
        self._is_closing = True
        if self._below is not None:
            self._below.write_eof()
            self._below.resume_reading()  # data before the confirmation are dropped
            self._end_after(self._limits.closing_seconds)

    def abort(self) -> None:
        """End the connection at once."""
        self._is_closing = True
        if self._below is not None:
            self._below.abort()

    # -- in between --------------------------------------------------------------------------------------------------

    def _end_after(self, seconds: float) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
        self._overdue = asyncio.get_running_loop().call_later(seconds, self.abort)

    def _advance(self) -> None:
        """Continue the handshake, or decrypt data."""
        try:
            if not self._is_open and not self._is_closing:
                self._tls.do_handshake()
                self._begin()
            self._read()
            self._flush()
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLError:  # the data are not TLS, or the certificate is not accepted
            self.close()

    def _begin(self) -> None:
        self._is_open = True
        if self._overdue is not None:
            self._overdue.cancel()
        self._flush()
        if self._above is not None:
            self._above.connection_made(self)

    def _read(self) -> None:
        """Pass on data that can be decrypted."""
        while not self._is_paused and not self._is_closing and self._above is not None:
            if not (data := self._tls.read(PLAIN_BYTES)):  # the closing message
                self._above.eof_received()
                self.close()
                return
            self._empty_records -= 1
            self._above.data_received(data)

    def _flush(self) -> None:
        """Send the output of OpenSSL."""
        if self._below is not None and (data := self._outgoing.read()):
            self._below.write(data)
