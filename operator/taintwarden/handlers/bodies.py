"""Bodies of requests, received within bounds that no client can exceed."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext

from aiohttp import web

MAX_BODY_BYTES = 3 * 2**20
"""As much as an API server takes of a client. A review of a change has two objects, but what is stored has 1.5 MiB."""
SMALL_BODY_BYTES = 64 * 2**10
MAX_LARGE_BODIES = 4
"""Bodies above the small size that are in memory at once. Of small ones there are as many as connections."""
BODY_SECONDS = 3.0
"""For a body to arrive. No API server waits for an answer for longer than its webhook's timeoutSeconds, which is 2."""

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

    """

    def __init__(self, observe: Observe, refuse: Refuse, answered: Answered) -> None:
        self._observe = observe
        self._refuse = refuse
        self._answered = answered
        self._large = asyncio.Semaphore(MAX_LARGE_BODIES)

    def handler(self, name: str, answer: Answer) -> Handler:
        """What receives the requests that metrics count as ``name``."""

        async def handle(http: web.Request) -> web.Response:
            if reason := self._refuse(http):
                self._observe(name, "stranger", 0.0)
                return declined(403, reason)
            length = http.content_length
            if length is None:
                return declined(411, "Content-Length is required")
            if length > MAX_BODY_BYTES:
                self._observe(name, "too-large", 0.0)
                return declined(413, f"at most {MAX_BODY_BYTES} bytes are read")
            slot = self._large if length > SMALL_BODY_BYTES else nullcontext()
            try:
                async with asyncio.timeout(BODY_SECONDS), slot:
                    return await self._give(name, answer, http, await _read(http))
            except TimeoutError:
                self._observe(name, "late", BODY_SECONDS)
                return declined(408, f"the body did not arrive within {BODY_SECONDS:g} s")
            except ConnectionError:
                self._observe(name, "broken-off", 0.0)
                return declined(400, "the connection ended before the body")

        return handle

    async def _give(self, name: str, answer: Answer, http: web.Request, body: bytearray) -> web.Response:
        began = time.perf_counter()
        response, result = await answer(body)
        self._observe(name, result, time.perf_counter() - began)
        if response.status == 200:
            self._answered(http)
        return response


async def _read(http: web.Request) -> bytearray:
    """The body. aiohttp's own ``read`` copies it, and lets a connection buffer as much as the largest body has."""
    body = bytearray()
    try:
        while chunk := await http.content.readany():
            body += chunk
    except BaseException:
        body.clear()  # the error may be kept with this frame, and so with what had arrived
        raise
    return body


def declined(status: int, reason: str) -> web.Response:
    """An answer after which the connection is closed: what was sent on it is not read."""
    answer = web.Response(status=status, text=reason + "\n")
    answer.force_close()
    return answer
