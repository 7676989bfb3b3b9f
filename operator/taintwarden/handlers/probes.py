"""/livez, /readyz and /metrics, for the kubelet and Prometheus."""

from collections.abc import Callable

from aiohttp import web


def probe_app(
    *, unready: Callable[[], str], dead: Callable[[], str], metrics: Callable[[], bytes] | None
) -> web.Application:
    """Build the web application.

    Args:
        unready: why this replica does not serve yet, empty if it does.
        dead: why it should be restarted, empty if it should not.
        metrics: the exposition; None where it is served elsewhere.

    """

    async def answer(problem: str) -> web.Response:
        return web.Response(text=problem + "\n" if problem else "ok\n", status=503 if problem else 200)

    async def livez(_: web.Request) -> web.Response:
        return await answer(dead())

    async def readyz(_: web.Request) -> web.Response:
        return await answer(dead() or unready())

    app = web.Application()
    app.add_routes([web.get("/livez", livez), web.get("/readyz", readyz)])
    if metrics is not None:
        read = metrics

        async def scrape(_: web.Request) -> web.Response:
            return exposition(read)

        app.add_routes([web.get("/metrics", scrape)])
    return app


def exposition(metrics: Callable[[], bytes]) -> web.Response:
    """What Prometheus reads."""
    return web.Response(body=metrics(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})
