"""An HTTPS server of /metrics, for clients that the API server authorizes."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import structlog
from aiohttp import web

from taintwarden.controller.clock import Clock
from taintwarden.controller.scrapers import METRICS_PATH, Access, Scrapers
from taintwarden.kube.auth.pem import load_chain
from taintwarden.kube.errors import ConfigError
from taintwarden.kube.http.client import Client
from taintwarden.serving.exposition import Exposition
from taintwarden.serving.http_server import HttpServer
from taintwarden.serving.listening import ConnectionLimits
from taintwarden.serving.tls_stream import server_context
from taintwarden.settings import CommonSettings

LIMITS = ConnectionLimits(max_connections=16, accept_interval_seconds=0.02, accepts_bodies=False)
"""Limits for a few Prometheus servers with one connection each. A handshake blocks the event loop for about 1 ms."""
MAX_TOKEN_BYTES = 8190
"""Maximum bytes of the Authorization header. Some identity providers issue tokens of several kilobytes."""
RELOAD_SECONDS = 60.0
STOP_SECONDS = 1.0
SELF_SIGNED_SECONDS = 10 * 365 * 86400.0
"""Lifetime of the self-signed certificate. Clients cannot verify it, so rotating it has no benefit."""
CERTIFICATE, KEY = "tls.crt", "tls.key"
_STATUS = {Access.UNKNOWN: 401, Access.FORBIDDEN: 403, Access.BUSY: 429, Access.UNDECIDED: 503}

log = structlog.get_logger()


class MetricsServer(HttpServer):
    """Serves the metrics of one replica, if ``metrics_port`` is set.

    Args:
        settings: host, port and folder of the certificate.
        client: sends the access reviews.
        metrics: returns the metrics.
        clock: both clocks.
        reload_seconds: seconds between reads of the certificate.

    """

    def __init__(
        self,
        settings: CommonSettings,
        client: Client,
        metrics: Callable[[], bytes],
        clock: Clock,
        reload_seconds: float = RELOAD_SECONDS,
    ) -> None:
        self._folder = settings.metrics_certificate and Path(settings.metrics_certificate)
        self._exposition = Exposition(metrics)
        self._clock = clock
        self._reload_seconds = reload_seconds
        self._scrapers = Scrapers(client, lambda: clock().monotonic)
        self._tls = server_context()
        self._reloading: asyncio.Task[None] | None = None
        app = web.Application(client_max_size=1)
        app.add_routes([web.get(METRICS_PATH, self._scrape)])
        super().__init__(
            app,
            settings.http_host,
            settings.metrics_port,
            "--metrics-port",
            self._tls,
            LIMITS,
            shutdown_timeout=STOP_SECONDS,
            lingering_time=0.0,  # do not wait for bodies
            max_field_size=MAX_TOKEN_BYTES,
        )

    async def start(self) -> None:
        """Listen on the port, if one is set.

        Raises:
            ConfigError: the certificate or the port cannot be used.

        """
        if not self._port:
            return
        try:
            self._load()
        except OSError as error:  # an SSLError is one
            msg = f"cannot use {self._folder} (--metrics-certificate): {error.strerror or error}"
            raise ConfigError(msg) from error
        await super().start()
        if self._folder:
            self._reloading = asyncio.create_task(self._reload())

    async def stop(self) -> None:
        """Stop reloading the certificate, and close the server."""
        if self._reloading is not None:
            self._reloading.cancel()
            await asyncio.gather(self._reloading, return_exceptions=True)
        await super().stop()

    async def _scrape(self, request: web.Request) -> web.Response:
        access = await self._scrapers.check_access(request.headers.get("Authorization", ""))
        if access is Access.ALLOWED:
            self.mark_answered(request)
            return await self._exposition.response()
        refusal = web.Response(status=_STATUS[access], text=access.value + "\n")
        if access is Access.UNKNOWN:
            refusal.headers["WWW-Authenticate"] = "Bearer"
        return refusal

    async def _reload(self) -> None:
        """Load the certificate periodically, so that a renewed one is served."""
        while True:
            await asyncio.sleep(self._reload_seconds)
            try:
                self._load()
            except OSError as error:
                log.warning("metrics-certificate-unusable", folder=str(self._folder), reason=str(error))

    def _load(self) -> None:
        if not self._folder:
            # The import loads cryptography, which the operator needs for nothing else.
            from taintwarden.serving.key_pairs import make_key_pair  # noqa: PLC0415

            pair = make_key_pair(["taintwarden"], self._clock().wall, lifetime_seconds=SELF_SIGNED_SECONDS)
            load_chain(self._tls, pair.certificate + pair.key)
            return
        pem = (self._folder / CERTIFICATE).read_bytes().rstrip() + b"\n" + (self._folder / KEY).read_bytes()
        load_chain(self._tls, pem)
