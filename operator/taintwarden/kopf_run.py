"""The module for ``kopf run -A -m taintwarden.kopf_run``: the operator, with settings from the environment.

kopf is the host: it starts and stops the operator, and handles signals. It follows no objects, and writes none.
"""

import dataclasses
import itertools
import os
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import kopf

from taintwarden.app import App
from taintwarden.kube.auth.connection import Connection
from taintwarden.kube.errors import KubeError
from taintwarden.settings import load_settings
from taintwarden.telemetry.logs import configure_logs

BACK_OFFS = itertools.repeat(2)
"""Seconds between kopf's attempts to reach the API server. Endless: kopf stops the operator after the last attempt."""


def host(registry: kopf.OperatorRegistry, make_app: Callable[[], Awaitable[App]]) -> None:
    """Register the handlers for start, login and stop."""

    @kopf.on.startup(registry=registry)
    async def start(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
        settings.posting.enabled = False
        settings.scanning.disabled = True
        settings.peering.standalone = True
        settings.networking.error_backoffs = BACK_OFFS
        settings.process.ultimate_exiting_timeout = 30
        try:
            memo.app = await make_app()
            await memo.app.start()
        except KubeError as error:
            raise kopf.PermanentError(str(error)) from error

    @kopf.on.login(registry=registry)
    def login(memo: kopf.Memo, **_: Any) -> kopf.ConnectionInfo:
        return connection_info(memo.app.connection)

    @kopf.on.cleanup(registry=registry)
    async def stop(memo: kopf.Memo, **_: Any) -> None:
        if "app" in memo:
            await memo.app.stop()


@dataclasses.dataclass(frozen=True)
class Login(kopf.ConnectionInfo):
    """The operator's connection in kopf's format. At its start kopf requests the groups of the API server, even if it
    follows nothing.
    """

    tls: ssl.SSLContext | None = None

    def as_ssl_context(self) -> ssl.SSLContext:
        """Return the context of the operator's requests. kopf's own rejects the certificates of many API servers."""
        return self.tls or super().as_ssl_context()


def connection_info(connection: Connection) -> kopf.ConnectionInfo:
    """Return the operator's credentials in kopf's format. kopf requests them again whenever the server rejects them."""
    scheme, _, token = (connection.renew().authorization or "").partition(" ")
    return Login(
        server=connection.server,
        scheme=scheme or None,
        token=token or None,
        proxy_url=connection.proxy,
        tls=connection.ssl if isinstance(connection.ssl, ssl.SSLContext) else None,
    )


async def _from_environment() -> App:
    settings = load_settings(os.environ)
    configure_logs(settings.log_format, settings.log_level)
    return await App.connect(settings)


host(kopf.get_default_registry(), _from_environment)
