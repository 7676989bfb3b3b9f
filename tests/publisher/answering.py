"""A server in the place of Prometheus that gives the answers of a test."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def vector(values: Mapping[str, float | str], *, at: float | None = None, label: str = "node") -> dict[str, Any]:
    """A result in the format of Prometheus."""
    moment = time.time() if at is None else at
    found = [{"metric": {label: name, "job": "node"}, "value": [moment, str(value)]} for name, value in values.items()]
    return {"status": "success", "data": {"resultType": "vector", "result": found}}


class Answers:
    """The answers of the server, and the requests that it received."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[web.Request] = []
        self.handler: Handler = self._json
        self.content: object = vector({})
        self.status = 200

    def says(self, content: object, status: int = 200) -> None:
        """Give this answer from now on."""
        self.content, self.status, self.handler = content, status, self._json

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        return await self.handler(request)

    async def _json(self, _: web.Request) -> web.Response:
        text = self.content if isinstance(self.content, str) else json.dumps(self.content)
        return web.Response(text=text, status=self.status, content_type="application/json")


@asynccontextmanager
async def answering() -> AsyncIterator[Answers]:
    """Serve the answers on loopback."""
    answers = Answers()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answers.answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    answers.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield answers
    finally:
        await runner.cleanup()


async def never(_: web.Request) -> web.StreamResponse:
    """Answer nothing for as long as the client waits."""
    await asyncio.Event().wait()
    raise AssertionError


async def endless(request: web.Request) -> web.StreamResponse:
    """Answer with a gigabyte, as far as the client reads it."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    for _ in range(1024):
        await response.write(b" " * 2**20)
    return response


async def trickling(request: web.Request) -> web.StreamResponse:
    """Answer with a byte now and then."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.01)
