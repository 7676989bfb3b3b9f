"""The HTTPS server that API servers call for the webhooks, and schedulers for the extender."""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

import structlog
from aiohttp import web

from taintwarden.controller.clock import Clock
from taintwarden.kube.auth.pem import load_chain
from taintwarden.kube.errors import ConfigError
from taintwarden.kube.http.client import Client
from taintwarden.serving.http_server import HttpServer
from taintwarden.serving.key_pairs import KeyPair, UnusableKeyPair
from taintwarden.serving.listening import ConnectionLimits
from taintwarden.serving.tls_stream import server_context
from taintwarden_placement.certificate_keeper import CertificateKeeper
from taintwarden_placement.serving.bounded_handlers import Answered, Refuse
from taintwarden_placement.settings import ServedSettings

KEEP_ALIVE_SECONDS = 300.0
"""Seconds until an idle connection is closed. Callers close theirs after 90 s, so no call meets a closing one."""
LINGER_SECONDS = 3.0
"""Seconds for which a stopping replica still answers, until all nodes have removed it from the Service."""
UNREAD_BODY_SECONDS = 1.0
"""Maximum seconds to read the rest of a body after an early answer."""
READ_BYTES = 2**16
"""Maximum size of the unread part of a body in memory, for each connection."""
STOP_SECONDS = 2.0
"""Seconds for calls in progress when the process stops. API servers and schedulers do not wait longer."""

log = structlog.get_logger()


class HttpsServer(HttpServer):
    """The HTTPS server of one replica, with the keeper of its certificate.

    Args:
        settings: where to listen, the source of the certificate, and which clients are accepted.
        client: the session with the API server.
        make_app: creates the web application, from ``refuse`` and ``answered`` (see ``BoundedHandlers``).
        report_expiry: called with the end of the served certificate, in seconds since 1970.
        clock: wall and monotonic time.
        limits: limits on connections.
        keeping: further arguments of the ``CertificateKeeper``.

    """

    def __init__(
        self,
        settings: ServedSettings,
        client: Client,
        make_app: Callable[[Refuse, Answered], web.Application],
        *,
        report_expiry: Callable[[float], None],
        clock: Clock,
        limits: ConnectionLimits = ConnectionLimits(),  # noqa: B008 - it is frozen
        **keeping: Any,
    ) -> None:
        self._names = frozenset(filter(None, (name.strip() for name in settings.webhook_client_names.split(","))))
        self._tls = server_context()
        if settings.webhook_client_ca is not None:
            self._require_certificates(settings.webhook_client_ca)
        elif self._names:
            msg = "--webhook-client-names needs --webhook-client-ca: without it callers show no certificate"
            raise ConfigError(msg)
        self.keeper = CertificateKeeper(
            client,
            namespace=settings.namespace,
            service=settings.webhook_service,
            makes_own=settings.webhook_certificates == "own",
            serve=self._serve,
            report_expiry=report_expiry,
            clock=clock,
            **keeping,
        )
        super().__init__(
            make_app(self._refuse, self.mark_answered),
            settings.http_host,
            settings.webhook_port,
            "--webhook-port",
            self._tls,
            limits,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            shutdown_timeout=STOP_SECONDS,
            lingering_time=UNREAD_BODY_SECONDS,
            read_bufsize=READ_BYTES,
            auto_decompress=False,  # callers compress nothing, and a small body may decompress to gigabytes
        )

    async def linger(self) -> None:
        """Answer for a while longer, so that an upgrade loses no call. Each connection ends with its next answer."""
        self.end_after_answers()
        await asyncio.sleep(LINGER_SECONDS)

    def unready(self) -> str:
        """Return why this replica is not ready for calls yet; empty if it is."""
        return "" if self.keeper.served else "no certificate yet"

    def _require_certificates(self, authority: str) -> None:
        """Require a client certificate that ``authority`` has signed."""
        try:
            self._tls.load_verify_locations(cafile=authority)
        except OSError as error:  # an SSLError is one
            msg = f"cannot use {authority} (--webhook-client-ca): {error.strerror or error}"
            raise ConfigError(msg) from error
        self._tls.verify_mode = ssl.CERT_REQUIRED

    def _refuse(self, request: web.Request) -> str:
        """Return why a caller gets no answer; empty if it gets one. The handshake has checked its certificate."""
        if not self._names:
            return ""
        shown = request.get_extra_info("peercert") or {}
        names = {value for part in shown.get("subject", ()) for field, value in part if field == "commonName"}
        return "" if names & self._names else "the certificate is not one of --webhook-client-names"

    def _serve(self, pair: KeyPair) -> None:
        """Use the certificate for new connections. Open ones continue.

        Raises:
            UnusableKeyPair: OpenSSL rejects the certificate, for example because of a short key.

        """
        try:
            load_chain(self._tls, pair.certificate.rstrip() + b"\n" + pair.key)
        except ssl.SSLError as error:
            msg = f"OpenSSL rejects it: {error.reason or error}"
            raise UnusableKeyPair(msg) from error
