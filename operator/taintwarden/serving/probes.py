"""/livez, /readyz and /metrics over plain HTTP, for the kubelet and Prometheus."""

from collections.abc import Callable

from aiohttp import web

from taintwarden.serving.exposition import Exposition
from taintwarden.serving.http_server import HttpServer
from taintwarden.serving.listening import ConnectionLimits
from taintwarden.settings import CommonSettings

LIMITS = ConnectionLimits(most=64, accept_interval_seconds=0.005, takes_bodies=False)
"""The kubelet, and some Prometheus servers. Each connection has one request, and ten seconds for it, which costs half a
millisecond of the event loop that evicts.
"""
STOP_SECONDS = 1.0


class ProbeServer(HttpServer):
    """The plain port of one process.

    Args:
        settings: where to listen, and whether /metrics has a port of its own.
        unready: why this replica does not serve yet, empty if it does.
        dead: why it should be restarted, empty if it should not.
        metrics: the exposition.

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
            lingering_time=0.0,  # no body is waited for
        )
        self.end_after_answers()  # one request each: the limit on connections is one on requests


def _answer(problem: str) -> web.Response:
    return web.Response(text=problem + "\n" if problem else "ok\n", status=503 if problem else 200)
