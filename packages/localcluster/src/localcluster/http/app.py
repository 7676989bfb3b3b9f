"""The HTTP application: faults, the request log, and the handler of each path.

Forbidden here: the operations themselves.
"""

import asyncio
import time
from dataclasses import dataclass

from aiohttp import web

from localcluster.errors import ApiError
from localcluster.faults import Fault, Faults, Request
from localcluster.http import media
from localcluster.http.documents import document
from localcluster.http.handlers import Handlers, method_not_allowed
from localcluster.http.paths import parse_path
from localcluster.http.streams import Streams
from localcluster.kinds.registry import Registry

_BODY_BYTES_MAX = 3 * 1024 * 1024


@dataclass
class Application:
    """Answers requests. One instance for the lifetime of a cluster."""

    registry: Registry
    handlers: Handlers
    streams: Streams
    faults: Faults

    def build(self) -> web.Application:
        """Return a new aiohttp application. aiohttp binds each to one event loop."""
        app = web.Application(client_max_size=_BODY_BYTES_MAX)
        app.router.add_route("*", "/{path:.*}", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        record = Request(request.method, request.path, request.query_string, token=token)
        self.faults.requests.append(record)
        response = await self._respond(request)
        record.status = 0 if response is None else response.status
        record.completed = time.time()
        return web.Response() if response is None else response

    async def _respond(self, request: web.Request) -> web.StreamResponse | None:
        """Return the response; None if a fault cut the connection."""
        try:
            for fault in self.faults.take_faults(request.method, request.path):
                if not await _apply_fault(fault, request):
                    return None
            return await self._route(request)
        except ApiError as error:
            return media.refuse(error)

    async def _route(self, request: web.Request) -> web.StreamResponse:
        path = request.path.rstrip("/")
        top = path.split("/")[1] if path else ""
        if top in {"api", "apis"} and len(path.split("/")) > (3 if top == "api" else 4):
            target = parse_path(path, self.registry)
            if request.method == "GET" and not target.name and request.query.get("watch") in {"true", "1"}:
                return await self.streams.handle(request, target)
            return await self.handlers.handle(request, target)
        if request.method != "GET":
            raise method_not_allowed()
        return media.respond(document(path, self.registry))


async def _apply_fault(fault: Fault, request: web.Request) -> bool:
    """Apply a fault. Returns False if it closed the connection; raises the error of the response."""
    if fault.seconds:
        await asyncio.sleep(fault.seconds)
    if fault.hang:
        await fault.lifted.wait()
    if fault.error is not None:
        raise fault.error
    if fault.cut:
        if request.transport is not None:
            request.transport.close()
        return False
    return True
