"""One HTTP/1.1 connection with one request in progress at a time. ``httptools`` parses the answers."""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, cast

import httptools

from taintwarden.kube.http.messages import MAX_ANSWER_BYTES, Answer, TooLongError

MAX_HEAD_BYTES: Final = 64 * 1024
"""Of an answer, before its body. The API server sends less than 1 KiB."""
MAX_UNREAD_BYTES: Final = 2**20
"""Of a body that is read while it comes. With more, nothing is read from the socket."""
MAX_WITHOUT_BODY_BYTES: Final = 2**20
"""Of an answer, without anything of its body: what a chunk or the end of a body may say beside it."""


class UnusedError(ConnectionError):
    """The connection was closed before anything of an answer came."""


class Body:
    """The body of an answer that is read while it comes: an async iterator of its parts, those that are there in one.

    Args:
        idle_seconds: how long to wait for the next part.

    """

    def __init__(self, idle_seconds: float) -> None:
        self._is_ended = False
        self._idle_seconds = idle_seconds
        self._transport: asyncio.Transport | None = None
        self._parts: list[bytes] = []
        self._unread = 0
        self._error: ConnectionError | None = None
        self._has_news = asyncio.Event()

    def __aiter__(self) -> "Body":
        return self

    async def __anext__(self) -> bytes:
        """What came since the last call.

        Raises:
            ConnectionError: the connection ended before the body.
            TimeoutError: nothing came for too long.

        """
        if not self._parts and not self._is_ended:
            self._has_news.clear()
            await self._wait()
        if self._parts:
            return self._taken()
        if self._error is not None:
            raise self._error
        raise StopAsyncIteration

    @property
    def is_read(self) -> bool:
        """Nothing of it is left, and nothing more comes."""
        return self._is_ended and not self._parts

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Read nothing from the socket, so that the kernel collects what comes."""
        self._pause()
        try:
            yield
        finally:
            self._resume()

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(self._idle_seconds):
                await self._has_news.wait()
        except TimeoutError as error:
            msg = f"nothing came for {self._idle_seconds:g} s"
            raise TimeoutError(msg) from error

    def _taken(self) -> bytes:
        taken = b"".join(self._parts)
        self._parts.clear()
        if self._unread > MAX_UNREAD_BYTES:
            self._resume()
        self._unread = 0
        return taken

    def _pause(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            _limit_reading(self._transport, 1, 0)
            self._transport.pause_reading()

    def _resume(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
            _limit_reading(self._transport)

    # -- called by the connection

    def begin(self, transport: asyncio.Transport) -> None:
        """The head of the answer has come, over this transport."""
        self._transport = transport

    def add(self, part: bytes) -> None:
        """More of it."""
        self._parts.append(part)
        self._unread += len(part)
        self._has_news.set()
        if self._unread > MAX_UNREAD_BYTES:
            self._pause()

    def end(self, error: ConnectionError | None = None) -> None:
        """Nothing more comes: with an error, although it is not complete."""
        self._is_ended, self._error = True, error
        self._has_news.set()


def _limit_reading(transport: asyncio.Transport, *limits: int) -> None:
    """A TLS transport that is paused continues to read from its socket, up to a limit; without one, to its default."""
    if hasattr(transport, "set_read_buffer_limits"):
        transport.set_read_buffer_limits(*limits)


class HttpConnection(asyncio.Protocol):
    """The event loop calls it as a protocol, and the parser with what it finds.

    Args:
        context: of TLS; False without.

    """

    def __init__(self, *, context: ssl.SSLContext | bool) -> None:
        self.context = context
        self.is_open = True
        self.used_at = 0.0
        """When its last request ended, by the clock of the event loop."""
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[Answer] | None = None
        self._body: Body | None = None
        """Of the request in progress, if its answer is to be read while it comes."""
        self._was_used = False
        self._max_bytes = MAX_ANSWER_BYTES
        self._received = 0
        """Bytes of this answer."""
        self._bodiless = 0
        """Of these, since the last part of its body."""
        self._is_head, self._has_length = True, False
        self._retry_after = ""
        self._parts: list[bytes] = []

    async def round_trip(
        self, encoded: bytes, body: Body | None = None, *, max_bytes: int = MAX_ANSWER_BYTES
    ) -> Answer:
        """Send this request and wait for the answer. A connection whose answer is not awaited to its end is closed.

        If a body is given, a success is returned as soon as its head has come, and its body goes there.

        Raises:
            TooLongError: the answer is longer than ``max_bytes``.
            ConnectionError: there is no whole answer.

        """
        if self._transport is None:
            msg = "the connection is not made yet"
            raise RuntimeError(msg)
        self._received, self._bodiless, self._is_head, self._has_length = 0, 0, True, False
        self._max_bytes = max_bytes
        self._answer, self._body = asyncio.get_running_loop().create_future(), body
        try:
            self._transport.write(encoded)
            answer = await self._answer
        except RuntimeError as error:  # of uvloop: it is closed, and connection_lost follows
            self._body = None  # another connection may continue with it
            self.close()
            msg = "the connection is closed"
            raise UnusedError(msg) from error
        except BaseException:
            self.close()  # the rest of the answer may come later
            raise
        finally:
            self._answer = None
        self._was_used = True
        return answer

    def close(self) -> None:
        """At once, without the messages that end TLS."""
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
        self._bodiless += len(data)
        if self._body is None and self._received > self._max_bytes:
            self._fail(TooLongError(self._max_bytes))
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(ConnectionError(f"the answer is not HTTP/1.1: {error}"))
            self.close()
        if self._is_head and self._received > MAX_HEAD_BYTES:
            self._fail(ConnectionError(f"the head of the answer has more than {MAX_HEAD_BYTES} bytes"))
            self.close()
        elif self._bodiless > MAX_WITHOUT_BODY_BYTES:
            self._fail(TooLongError(MAX_WITHOUT_BODY_BYTES))
            self.close()

    def connection_lost(self, error: Exception | None) -> None:
        """The other end closed it, or it broke."""
        was_open, self.is_open = self.is_open, False
        if was_open and error is None and self._is_body_open():
            self._finish()
        elif self._was_used and not self._received:
            self._fail(UnusedError("the server closed the connection"))
        else:
            reason = error or f"closed by the {'server' if was_open else 'client'}"
            self._fail(ConnectionError(f"the connection ended before the end of the answer: {reason}"))

    def _is_body_open(self) -> bool:
        """Whether the body ends with the connection, as of Go's server for a request that it cannot read."""
        return not self._is_head and not self._has_length and self._parser.get_status_code() >= 200

    def _fail(self, error: ConnectionError) -> None:
        if (awaited := self._awaited()) is not None:
            awaited.set_exception(error)
        elif self._body is not None:
            self._body.end(error)
            self._body = None

    def _awaited(self) -> asyncio.Future[Answer] | None:
        return None if self._answer is None or self._answer.done() else self._answer

    # -- called by the parser

    def on_message_begin(self) -> None:
        """An answer. Without a request that waits for it, the connection is closed."""
        if self._awaited() is None:
            self.close()
        self._is_head, self._has_length = True, False
        self._retry_after, self._parts = "", []

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
        status = self._parser.get_status_code()
        if self._body is None or self._transport is None or status < 200:
            return
        if status < 300:
            self._body.begin(self._transport)
            self._resolve(Answer(status, b"", self._retry_after))
        else:
            self._body.end()
            self._body = None

    def on_body(self, part: bytes) -> None:
        """A part of its body."""
        self._bodiless = 0
        if self._body is None:
            self._parts.append(part)
        else:
            self._body.add(part)

    def on_message_complete(self) -> None:
        """All of it. A status below 200 announces another answer."""
        if self._parser.get_status_code() >= 200:
            if not self._parser.should_keep_alive():
                self.close()
            self._finish()

    def _finish(self) -> None:
        if self._body is not None:
            self._body.end()
            self._body = None
        else:
            body, self._parts = b"".join(self._parts), []  # a kept connection keeps no page of a list
            self._resolve(Answer(self._parser.get_status_code(), body, self._retry_after))

    def _resolve(self, answer: Answer) -> None:
        if (awaited := self._awaited()) is not None:
            awaited.set_result(answer)
