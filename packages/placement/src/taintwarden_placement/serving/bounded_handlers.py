"""Reading of request bodies and sending of responses, within bounds of time and memory that no client can exceed."""

import asyncio
import io
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial

from aiohttp import web

SMALL_BODY_BYTES = 64 * 2**10
MAX_TRANSIT_BYTES = 12 * 2**20
"""Maximum bytes of bodies and responses in transit. Small ones do not count: the number of connections limits them."""
MAX_DECODED = 4
"""Maximum number of larger bodies decoded at once. Decoding takes twenty times their size in memory."""
REQUEST_SECONDS = 3.0
"""Maximum seconds for a request. API servers wait for 2 s, the webhooks' timeoutSeconds."""

Answer = Callable[[bytearray], Awaitable[tuple[web.Response, str]]]
"""Returns the response to a body, and the result as metrics count it."""
Observe = Callable[[str, str, float], None]
"""Takes the name, the result and the seconds of a request."""
Refuse = Callable[[web.Request], str]
"""Returns why a caller gets no answer; empty if it gets one."""
Answered = Callable[[web.Request], None]
Handler = Callable[[web.Request], Awaitable[web.Response]]


class BoundedHandlers:
    """Handlers of one server, which receive request bodies and send responses within bounds.

    Args:
        answered: called with each request that got status 200.
        max_bytes: maximum size of a body.
        request_seconds: maximum time until the body has arrived and the client has read the response.

    """

    def __init__(
        self,
        observe: Observe,
        refuse: Refuse,
        answered: Answered,
        *,
        max_bytes: int,
        request_seconds: float = REQUEST_SECONDS,
    ) -> None:
        self._observe = observe
        self._refuse = refuse
        self._answered = answered
        self._max_bytes = max_bytes
        self._request_seconds = request_seconds
        self._transit = _Transit(MAX_TRANSIT_BYTES)
        self._decoded = asyncio.Semaphore(MAX_DECODED)

    def app(self, answers: Mapping[str, Answer]) -> web.Application:
        """Return the web application that answers requests to ``/<name>``. Metrics use this name."""
        app = web.Application()
        app.add_routes([web.post(f"/{name}", self._handler(name, answer)) for name, answer in answers.items()])
        return app

    def _handler(self, name: str, answer: Answer) -> Handler:

        async def handle(http: web.Request) -> web.Response:
            if reason := self._refuse(http):
                self._observe(name, "stranger", 0.0)
                return declined(403, reason)
            length = http.content_length
            if length is None:
                return declined(411, "Content-Length is required")
            if length > self._max_bytes:
                self._observe(name, "too-large", 0.0)
                return declined(413, f"at most {self._max_bytes} bytes are read")
            slot = self._decoded if length > SMALL_BODY_BYTES else nullcontext()
            response: web.Response | None = None
            try:
                async with asyncio.timeout(self._request_seconds) as until:
                    with self._transit.counted(until, length) as count:
                        body = await _read(http, count)
                        async with slot:
                            response = await self._call_answer(name, answer, http, body)
                    size = len(response.body) if isinstance(response.body, bytes) else 0
                    with self._transit.counted(until, size) as count:
                        count(size)
                        await _send(http, response)
            except TimeoutError:
                if response is None:
                    self._observe(name, "late", self._request_seconds)
                    return declined(408, "the request took too long")
                if http.transport is not None:
                    http.transport.abort()  # frees the unsent part of the response
            except ConnectionError:
                if response is None:
                    self._observe(name, "broken-off", 0.0)
                    return declined(400, "the connection ended before the body")
            return response

        return handle

    async def _call_answer(self, name: str, answer: Answer, http: web.Request, body: bytearray) -> web.Response:
        began = time.perf_counter()
        response, result = await answer(body)
        self._observe(name, result, time.perf_counter() - began)
        if response.status == 200:
            self._answered(http)
        return response


class _Transit:
    """Number of bytes of larger bodies and responses in memory. Above ``most``, the oldest requests time out.

    A client that sends parts of many bodies loses these requests. A body that arrives at once never waits for them.
    """

    def __init__(self, most: int) -> None:
        self._most, self._total = most, 0
        self._sizes: dict[asyncio.Timeout, int] = {}
        """Timeout of a request -> its bytes, in the order in which the requests began."""

    @contextmanager
    def counted(self, until: asyncio.Timeout, length: int) -> Iterator[Callable[[int], None]]:
        """Return a function that counts bytes until the context ends. If ``length`` is small, it counts nothing."""
        try:
            yield partial(self._add, until) if length > SMALL_BODY_BYTES else lambda _: None
        finally:
            self._total -= self._sizes.pop(until, 0)

    def _add(self, until: asyncio.Timeout, size: int) -> None:
        self._sizes[until] = self._sizes.get(until, 0) + size
        self._total += size
        while self._total > self._most and len(self._sizes) > 1:
            first = next(iter(self._sizes))
            self._total -= self._sizes.pop(first)
            if not first.expired():
                first.reschedule(0.0)


async def _read(http: web.Request, count: Callable[[int], None]) -> bytearray:
    """Read the body. aiohttp's ``read`` would copy it, and would let each connection buffer the largest body's size."""
    body = bytearray()
    try:
        while chunk := await http.content.readany():
            body += chunk
            count(len(chunk))
    except BaseException:
        body.clear()  # frees the memory even if a caller keeps the error with this frame
        raise
    return body


async def _send(http: web.Request, response: web.Response) -> None:
    """Send the whole response here. aiohttp would send it later, without a limit on time or on large responses.

    A large response is sent in pieces: asyncio encrypts and buffers a whole write, and only the next one waits for the
    client.
    """
    if isinstance(response.body, bytes) and len(response.body) > SMALL_BODY_BYTES:
        response.body = io.BytesIO(response.body)
    await response.prepare(http)
    await response.write_eof()


def declined(status: int, reason: str) -> web.Response:
    """Return a response that closes the connection, so that the unread body is dropped."""
    response = web.Response(status=status, text=reason + "\n")
    response.force_close()
    return response
