"""The HTTPS server of the webhooks. Every replica serves, whether it leads or not.

It is not kopf's: kopf's life begins again when its watch ends, and no call of an API server may fail because of that.
"""

import asyncio
import os
import ssl
import tempfile
from collections.abc import Callable

import structlog
from aiohttp import web

from taintwarden.admission.door import Door
from taintwarden.certificates.pairs import Pair
from taintwarden.controller.certificates import CertificateKeeper
from taintwarden.controller.clock import Clock
from taintwarden.handlers.reviews import review_app
from taintwarden.kube.client import Client
from taintwarden.kube.errors import ConfigError
from taintwarden.settings import Settings
from taintwarden.telemetry.metrics import Metrics

KEEP_ALIVE_SECONDS = 300.0
"""API servers close idle connections after 90 s. If we were first, a call could meet a closing connection."""
LINGER_SECONDS = 3.0
"""How long a replica that stops answers on, until everybody has heard that the Service leads elsewhere."""
STOP_SECONDS = 2.0
"""For calls under way when the operator stops: longer than that no API server waits."""

log = structlog.get_logger()


class WebhookServer:
    """The webhooks of one replica.

    Args:
        settings: the host to listen on, and where the certificates come from.
        port: to listen on.
        client: the session to use.
        door: answers.
        leads: whether this replica may write the certificates.
        metrics: of requests, and of the certificate.
        clock: both clocks.

    """

    def __init__(
        self,
        settings: Settings,
        port: int,
        client: Client,
        door: Door,
        *,
        leads: Callable[[], bool],
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        self._host, self._port = settings.http_host, port
        self._metrics = metrics
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # API servers resume no session (Go's client does not unless told to), and tickets are a fifth of a handshake.
        self._tls.num_tickets = 0
        self.keeper = CertificateKeeper(
            client,
            namespace=settings.namespace,
            service=settings.webhook_service,
            makes_own=settings.webhook_certificates == "own",
            leads=leads,
            serve=self._serve,
            metrics=metrics,
            clock=clock,
        )
        judges = {"validate": door.validate, "mutate": door.mutate}
        self._runner = web.AppRunner(
            review_app(judges, self._observe),
            access_log=None,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            shutdown_timeout=STOP_SECONDS,
        )

    async def start(self) -> None:
        """Listen. Calls fail until there is a certificate, which the keeper brings.

        Raises:
            ConfigError: the port is not to be had.

        """
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port, ssl_context=self._tls).start()
        except OSError as error:
            where = f"{self._host}:{self._port} (--http-host, --webhook-port)"
            msg = f"cannot listen on {where}: {error.strerror}"
            raise ConfigError(msg) from error

    async def linger(self) -> None:
        """Answer on for a while, so that no call is lost in an upgrade."""
        await asyncio.sleep(LINGER_SECONDS)

    async def stop(self) -> None:
        """Let calls under way end, then close."""
        await self._runner.cleanup()

    def unready(self) -> str:
        """Why API servers should not call yet; empty if they may."""
        return "" if self.keeper.served else "no certificate for the webhooks yet"

    def _serve(self, pair: Pair) -> None:
        """Use the certificate for every connection from now on; those that are open stay."""
        load(self._tls, pair)

    def _observe(self, webhook: str, result: str, seconds: float) -> None:
        self._metrics.admission_requests.labels(webhook, result).inc()
        self._metrics.admission_duration.labels(webhook).observe(seconds)


def load(context: ssl.SSLContext, pair: Pair) -> None:
    """Load a pair from memory. OpenSSL reads files only, and the file system of a pod is read-only and on a disk."""
    content = pair.certificate.rstrip() + b"\n" + pair.key
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("certificate"), "wb") as file:
            file.write(content)
            file.flush()
            context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            context.load_cert_chain(file.name)
