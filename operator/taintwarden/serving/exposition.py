"""The metrics as text for Prometheus. Making it takes a bounded share of the time: it blocks evictions meanwhile."""

import asyncio
import time
from collections.abc import Callable

from aiohttp import web

SHARE = 0.2
"""Maximum share of the time that is spent on expositions."""
HEADERS = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}


class Exposition:
    """Answers with the metrics. Requests that come too soon after the last exposition wait, and share the next one.

    Args:
        make: returns the text.
        seconds: a monotonic clock, which measures how long that takes.

    """

    def __init__(self, make: Callable[[], bytes], seconds: Callable[[], float] = time.perf_counter) -> None:
        self._make = make
        self._seconds = seconds
        self._next: asyncio.Task[bytes] | None = None
        self._idle_until = 0.0

    async def response(self) -> web.Response:
        """Return the metrics, not older than the request."""
        if self._next is None:
            self._next = asyncio.create_task(self._make_next())
        return web.Response(body=await asyncio.shield(self._next), headers=HEADERS)

    async def _make_next(self) -> bytes:
        now = asyncio.get_running_loop().time
        await asyncio.sleep(self._idle_until - now())
        self._next = None
        began = self._seconds()
        try:
            return self._make()
        finally:
            self._idle_until = now() + (self._seconds() - began) * (1 / SHARE - 1)
