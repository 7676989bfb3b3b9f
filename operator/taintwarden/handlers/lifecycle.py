"""The operator's start, stop and login, as kopf sees them."""

import itertools
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


def run_with_kopf(registry: kopf.OperatorRegistry, make_app: Callable[[], Awaitable[Runnable]]) -> None:
    """Register start, login and stop.

    ``make_app`` serves plain ``kopf run``; an ``app`` that the memo holds already is started and stopped by its owner.
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
        if "app" in memo:
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


def connection_info(connection: Connection) -> kopf.ConnectionInfo:
    """The same credentials in kopf's form, asked for again whenever the server refuses them."""
    configuration = connection.configuration
    scheme, _, token = (connection.authorization() or "").partition(" ")
    return kopf.ConnectionInfo(
        server=connection.server,
        ca_path=configuration.ssl_ca_cert,
        insecure=not configuration.verify_ssl,
        certificate_path=configuration.cert_file,
        private_key_path=configuration.key_file,
        scheme=scheme or None,
        token=token or None,
    )
