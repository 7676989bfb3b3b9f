"""An HTTP server of /livez, /readyz and /metrics, for the kubelet and Prometheus."""

from collections.abc import Callable

from aiohttp import web

from taintwarden.serving.exposition import Exposition
from taintwarden.serving.http_server import HttpServer
from taintwarden.serving.listening import ConnectionLimits
from taintwarden.settings import CommonSettings

LIMITS = ConnectionLimits(max_connections=64, accept_interval_seconds=0.005, accepts_bodies=False)
"""Limits for the kubelet and some Prometheus servers. A request takes half a millisecond of the time for evictions."""
STOP_SECONDS = 1.0


class ProbeServer(HttpServer):
    """The HTTP port of one process.

    Args:
        settings: host and port, and whether /metrics has a port of its own.
        unready: returns why this replica is not ready; empty if it is.
        dead: returns why the process must be restarted; empty if it need not be.
        metrics: returns the metrics.

    """

    def __init__(
        self,
        settings: CommonSettings,
        *,
        unready: Callable[[], str],
        dead: Callable[[], str],
        metrics: Callable[[], bytes],
    ) -> None:
        async def livez(_: web.Request) -> web.Response:
            return _answer(dead())

        async def readyz(_: web.Request) -> web.Response:
            return _answer(dead() or unready())

        app = web.Application(client_max_size=1)
        app.add_routes([web.get("/livez", livez), web.get("/readyz", readyz)])
        if not settings.metrics_port:
            exposition = Exposition(metrics)

            async def scrape(_: web.Request) -> web.Response:
                return await exposition.response()

            app.add_routes([web.get("/metrics", scrape)])
        super().__init__(
            app,
            settings.http_host,
            settings.http_port,
            "--http-port",
            limits=LIMITS,
            shutdown_timeout=STOP_SECONDS,
            lingering_time=0.0,  # do not wait for bodies
        )
        self.end_after_answers()  # with one request each, the limit on connections limits requests


def _answer(problem: str) -> web.Response:
    return web.Response(text=problem + "\n" if problem else "ok\n", status=503 if problem else 200)
