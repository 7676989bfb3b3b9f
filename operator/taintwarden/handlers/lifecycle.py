"""The operator's start, stop and login, as kopf sees them."""

import dataclasses
import itertools
import ssl
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Protocol

import kopf

from taintwarden.kube.connection import Connection
from taintwarden.kube.errors import KubeError


class Runnable(Protocol):
    """What kopf starts and stops."""

    connection: Connection

    async def start(self) -> None:
        """Begin to work, in tasks of its own."""

    async def stop(self) -> None:
        """Stop without leaving anything half done."""


class _Forever:
    """An API server may be away for long; kopf would end the operator when its list of back-offs ends."""

    def __iter__(self) -> Iterator[float]:
        return itertools.chain((0.5, 1, 2, 4), itertools.repeat(5))


def run_with_kopf(registry: kopf.OperatorRegistry, make_app: Callable[[], Awaitable[Runnable]] | None = None) -> None:
    """Register start, login and stop.

    ``make_app`` serves plain ``kopf run``. Without it the memo holds an ``app``, which its owner starts and stops.
    """

    @kopf.on.startup(registry=registry)
    async def start(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
        settings.posting.enabled = False
        settings.scanning.disabled = True
        settings.peering.standalone = True
        settings.networking.error_backoffs = _Forever()
        settings.watching.server_timeout = 300
        settings.watching.client_timeout = 360
        settings.process.ultimate_exiting_timeout = 30
        if make_app is None:
            return
        try:
            memo.app = memo.own_app = await make_app()
            await memo.app.start()
        except KubeError as error:
            raise kopf.PermanentError(str(error)) from error

    @kopf.on.login(registry=registry)
    def login(memo: kopf.Memo, **_: Any) -> kopf.ConnectionInfo:
        return connection_info(memo.app.connection)

    @kopf.on.cleanup(registry=registry)
    async def stop(memo: kopf.Memo, **_: Any) -> None:
        if "own_app" in memo:
            await memo.own_app.stop()


@dataclasses.dataclass(frozen=True)
class Login(kopf.ConnectionInfo):
    """Our own connection in kopf's form."""

    tls: ssl.SSLContext | None = None

    def as_ssl_context(self) -> ssl.SSLContext:
        """The context that our own requests use: kopf's would verify more than API servers' certificates have."""
        return self.tls or super().as_ssl_context()


def connection_info(connection: Connection) -> kopf.ConnectionInfo:
    """The same credentials in kopf's form, requested again whenever the server rejects them."""
    scheme, _, token = (connection.renew().authorization or "").partition(" ")
    return Login(
        server=connection.server,
        scheme=scheme or None,
        token=token or None,
        proxy_url=connection.proxy,
        tls=connection.ssl if isinstance(connection.ssl, ssl.SSLContext) else None,
    )
