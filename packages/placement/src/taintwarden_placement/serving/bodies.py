"""Bodies of requests and their answers, within bounds that no client can exceed."""

import asyncio
import io
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial

from aiohttp import web

SMALL_BODY_BYTES = 64 * 2**10
MAX_TRANSIT_BYTES = 12 * 2**20
"""Maximum of larger bodies that have arrived in part, and of larger answers that are sent in part. There are as many
small ones as connections.
"""
MAX_DECODED = 4
"""Maximum number of larger bodies that are decoded at once, which takes twenty times their size."""
REQUEST_SECONDS = 3.0
"""No API server waits for longer than its webhook's timeoutSeconds, which is 2."""

Answer = Callable[[bytearray], Awaitable[tuple[web.Response, str]]]
"""The response to a body, and the result as metrics count it."""
Observe = Callable[[str, str, float], None]
Refuse = Callable[[web.Request], str]
"""Why a caller is not answered; empty if it is."""
Answered = Callable[[web.Request], None]
Handler = Callable[[web.Request], Awaitable[web.Response]]


class Bodies:
    """Receives the bodies of one server.

    Args:
        observe: told of each request: name, result, seconds.
        refuse: says which callers are not answered.
        answered: told of each request that could be answered.
        max_bytes: of a body.
        request_seconds: for a body to arrive and its answer to be read.

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
        """The web application that answers what is sent to ``/<name>``, which metrics count by this name."""
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
                            response = await self._give(name, answer, http, body)
                    size = len(response.body) if isinstance(response.body, bytes) else 0
                    with self._transit.counted(until, size) as count:
                        count(size)
                        await _send(http, response)
            except TimeoutError:
                if response is None:
                    self._observe(name, "late", self._request_seconds)
                    return declined(408, "the body did not arrive in time")
                if http.transport is not None:
                    http.transport.abort()  # what is not sent yet is in memory until then
            except ConnectionError:
                if response is None:
                    self._observe(name, "broken-off", 0.0)
                    return declined(400, "the connection ended before the body")
            return response

        return handle

    async def _give(self, name: str, answer: Answer, http: web.Request, body: bytearray) -> web.Response:
        began = time.perf_counter()
        response, result = await answer(body)
        self._observe(name, result, time.perf_counter() - began)
        if response.status == 200:
            self._answered(http)
        return response


class _Transit:
    """The bytes of larger bodies and answers in memory. Beyond ``most`` of them, what began first is given up.

    A client that sends parts of many bodies loses its own, and a body that arrives at once never waits for them.
    """

    def __init__(self, most: int) -> None:
        self._most, self._total = most, 0
        self._sizes: dict[asyncio.Timeout, int] = {}
        """Ends of requests -> bytes, in the order in which they began."""

    @contextmanager
    def counted(self, until: asyncio.Timeout, length: int) -> Iterator[Callable[[int], None]]:
        """Count bytes of something of this length, if it is not small, until the end of the context."""
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
    """The body. aiohttp's own ``read`` copies it, and lets a connection buffer as much as the largest body has."""
    body = bytearray()
    try:
        while chunk := await http.content.readany():
            body += chunk
            count(len(chunk))
    except BaseException:
        body.clear()  # the error may be kept with this frame, and so with what had arrived
        raise
    return body


async def _send(http: web.Request, response: web.Response) -> None:
    """Send all of it. aiohttp would do so later, without a limit on the time or on the number of large answers.

    It is sent in pieces. asyncio encrypts and keeps whatever is written at once, and lets only the next piece wait for
    the client.
    """
    if isinstance(response.body, bytes) and len(response.body) > SMALL_BODY_BYTES:
        response.body = io.BytesIO(response.body)
    await response.prepare(http)
    await response.write_eof()


def declined(status: int, reason: str) -> web.Response:
    """An answer after which the connection is closed: what was sent on it is not read."""
    answer = web.Response(status=status, text=reason + "\n")
    answer.force_close()
    return answer
