"""The HTTP application: authentication, faults, the request log, and the handler of each path.

Forbidden here: what an operation does.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from localcluster.errors import ApiError, no_such_path
from localcluster.faults import Fault, Faults, Request
from localcluster.http import media
from localcluster.http.handlers import Handlers, method_not_allowed
from localcluster.http.paths import group_version, parse
from localcluster.http.streams import Streams
from localcluster.kinds.registry import Registry
from localcluster.kubectl import discovery, openapi

_BODY_BYTES_MAX = 3 * 1024 * 1024
_EMPTY_OPENAPI_V2 = b"\x0a\x032.0"  # protobuf: swagger "2.0", and nothing else


@dataclass
class Application:
    """Answers requests. One instance for the lifetime of a cluster."""

    registry: Registry
    handlers: Handlers
    streams: Streams
    faults: Faults
    token: str | None
    version: str

    def build(self) -> web.Application:
        """A new aiohttp application (aiohttp binds each to one event loop)."""
        app = web.Application(client_max_size=_BODY_BYTES_MAX)
        app.router.add_route("*", "/{path:.*}", self._answer)
        return app

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        agent = request.headers.get("User-Agent", "")
        record = Request(request.method, request.path, request.query_string, agent=agent)
        self.faults.requests.append(record)
        response = await self._guarded(request)
        record.status = 0 if response is None else response.status
        return web.Response() if response is None else response

    async def _guarded(self, request: web.Request) -> web.StreamResponse | None:
        """The response; None if the connection was cut."""
        try:
            if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
                raise ApiError(401, "Unauthorized", "Unauthorized")
            for fault in self.faults.strike(request.method, request.path):
                if not await _suffer(fault, request):
                    return None
            return await self._route(request)
        except ApiError as error:
            return media.refuse(error)

    async def _route(self, request: web.Request) -> web.StreamResponse:
        path = request.path.rstrip("/")
        top = path.split("/")[1] if path else ""
        if top in {"api", "apis"} and len(path.split("/")) > (3 if top == "api" else 4):
            target = parse(path, self.registry)
            if request.method == "GET" and not target.name and request.query.get("watch") in {"true", "1"}:
                return await self.streams.handle(request, target)
            return await self.handlers.handle(request, target)
        if request.method != "GET":
            raise method_not_allowed()
        return self._document(path, top, request.headers.get("Accept", ""))

    def _document(self, path: str, top: str, accept: str) -> web.Response:
        simple: dict[str, Callable[[], object]] = {
            "": lambda: {"paths": ["/api", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]},
            "/version": lambda: discovery.version_info(self.version),
            "/api": discovery.api_versions,
            "/apis": lambda: discovery.group_list(self.registry),
            "/openapi/v2": openapi.document_v2,
            "/openapi/v3": lambda: openapi.index(self.registry),
        }
        if path == "/openapi/v2" and "protobuf" in accept:
            return web.Response(body=_EMPTY_OPENAPI_V2, content_type="application/octet-stream")
        if path in simple:
            return media.respond(simple[path]())
        if path in {"/healthz", "/livez", "/readyz"}:
            return web.Response(text="ok")
        if path.startswith("/openapi/v3/"):
            return media.respond(openapi.document(self.registry, path.removeprefix("/openapi/v3/")))
        if top == "apis" and path.count("/") == 2:
            return media.respond(discovery.group(self.registry, path.removeprefix("/apis/")))
        if top in {"api", "apis"}:
            group, version, _ = group_version(path)
            return media.respond(discovery.resource_list(self.registry, group, version))
        raise no_such_path()


async def _suffer(fault: Fault, request: web.Request) -> bool:
    """Apply a fault. False if the connection is closed; raises the error with which it answers."""
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
