"""TLS on a connection that was accepted, with a limit on records that carry nothing of a request.

That of the event loops has none. In TLS 1.3 a client may demand new keys as often as it likes, before it has asked for
anything: 27 bytes that cost 50 µs, and OpenSSL processes all that it is given in one call.
"""

import asyncio
import contextlib
import ssl
from typing import Any, cast

import msgspec

READ_BYTES = 2**14
"""At once."""
HEADER_BYTES = 5
"""Of a record. The last two are the length of the rest."""
PLAIN_BYTES = 2**14
"""That a record carries at most: a read returns those of one."""


def server_context() -> ssl.SSLContext:
    """A context without a certificate yet: TLS 1.2 and 1.3.

    In 1.3 a client may demand new keys without an end: :class:`TlsStream` cuts it. In 1.2 it cannot begin another
    handshake.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.options |= ssl.OP_NO_RENEGOTIATION
    return made


class TlsLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one client may take."""

    handshake_seconds: float = 5.0
    closing_seconds: float = 1.0
    """For the other side to agree to the end of a connection."""
    spare_records: int = 32
    """That carry nothing of a request, until one is answered. A handshake has fewer than ten."""


class TlsStream(asyncio.BufferedProtocol, asyncio.Transport):
    """The protocol of a plain transport, and the transport of what speaks above it.

    Once it is over it refers to nothing: its buffers would stay in memory until the collector runs.

    Args:
        above: what speaks. It is not made before the handshake is done, and may be lost before that.
        tls: the certificate to serve with.
        limits: what the client may take.

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
        """Bytes of the current record that are still to come after its header."""
        self._spare = 0
        """Records that have carried nothing of a request since the last answer."""

    def answered(self) -> None:
        """A request was answered. What comes now is of the next."""
        self._spare = 0

    # -- of the plain transport --------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The client may begin its handshake."""
        self._below = cast("asyncio.Transport", transport)  # those of uvloop have other bases
        if self._is_closing:
            self.abort()
        else:
            self._end_after(self._limits.handshake_seconds)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where to put what is read."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Decrypt it record by record, and pass on what they carry; or end the connection."""
        data = self._buffer[:nbytes]
        while data and self._spare <= self._limits.spare_records:
            size = self._of_record(data)
            if not self._is_closing:
                self._incoming.write(data[:size])
                if not self._left or not self._is_open:
                    self._advance()
            data = data[size:]
        if data:
            self.abort()

    def _of_record(self, data: memoryview) -> int:
        """How many of these bytes belong to the header of the current record, or to what follows it."""
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
        self._spare += not self._left
        return size

    def eof_received(self) -> bool | None:
        """Without a goodbye of TLS. The plain transport sends what was written, and ends."""
        if self._is_open and not self._is_closing and self._above is not None:
            self._above.eof_received()
        self._is_closing = True
        return False

    def pause_writing(self) -> None:
        """Pass on."""
        if self._is_open and self._above is not None:
            self._above.pause_writing()

    def resume_writing(self) -> None:
        """Pass on."""
        if self._is_open and self._above is not None:
            self._above.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._is_closing = True
        if self._overdue is not None:
            self._overdue.cancel()
        above, self._above, self._below = self._above, None, None
        if above is not None:
            above.connection_lost(exc)

    # -- of what speaks above it -------------------------------------------------------------------------------------

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What is known of the connection."""
        match name:
            case "peercert":
                return self._tls.getpeercert() if self._is_open else default
            case "sslcontext":
                return self._tls.context
            case _:
                return default if self._below is None else self._below.get_extra_info(name, default)

    def is_closing(self) -> bool:
        """Whether nothing more can be sent."""
        return self._is_closing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt and send it."""
        if self._is_closing or not data:
            return
        rest = memoryview(data)
        while rest:
            rest = rest[self._tls.write(rest) :]  # a record at a time
        self._flush()

    def get_write_buffer_size(self) -> int:
        """How many bytes wait for the client."""
        return 0 if self._below is None else self._below.get_write_buffer_size()

    def pause_reading(self) -> None:
        """Leave what comes where it is, encrypted."""
        self._is_paused = True
        if self._below is not None:
            self._below.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        self._is_paused = False
        if self._below is not None and not self._is_closing:
            self._below.resume_reading()
            asyncio.get_running_loop().call_soon(self._advance)

    def close(self) -> None:
        """Send what was written and a goodbye, and end it when the client has agreed or does not for a while."""
        if self._is_closing:
            return
        with contextlib.suppress(ssl.SSLError):  # the client has said none yet, or there was no handshake
            self._tls.unwrap()
        self._flush()
        self._is_closing = True
        if self._below is not None:
            self._below.write_eof()
            self._below.resume_reading()  # what comes until the client agrees is dropped
            self._end_after(self._limits.closing_seconds)

    def abort(self) -> None:
        """End it now."""
        self._is_closing = True
        if self._below is not None:
            self._below.abort()

    # -- in between --------------------------------------------------------------------------------------------------

    def _end_after(self, seconds: float) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
        self._overdue = asyncio.get_running_loop().call_later(seconds, self.abort)

    def _advance(self) -> None:
        """Continue the handshake, or decrypt what the client says."""
        try:
            if not self._is_open and not self._is_closing:
                self._tls.do_handshake()
                self._begin()
            self._read()
            self._flush()
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLError:  # what it sends is no TLS, or its certificate is not accepted
            self.close()

    def _begin(self) -> None:
        self._is_open = True
        if self._overdue is not None:
            self._overdue.cancel()
        self._flush()
        if self._above is not None:
            self._above.connection_made(self)

    def _read(self) -> None:
        """Pass on what can be decrypted."""
        while not self._is_paused and not self._is_closing and self._above is not None:
            if not (data := self._tls.read(PLAIN_BYTES)):  # a goodbye
                self._above.eof_received()
                self.close()
                return
            self._spare -= 1
            self._above.data_received(data)

    def _flush(self) -> None:
        """Send what OpenSSL has written."""
        if self._below is not None and (data := self._outgoing.read()):
            self._below.write(data)
