"""A web application on one port, within limits that no client can exceed."""

import logging
import ssl
import time
from collections.abc import Callable
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from taintwarden.kube.errors import ConfigError
from taintwarden.serving.listening import ConnectionLimits, Listener

MAX_HEADERS, MAX_FIELD_BYTES = 32, 4096
"""Of one request. aiohttp's own limits allow a megabyte of headers, which takes two of memory for each connection."""


LOG_SECONDS = 60.0
"""From one traceback of aiohttp to the next of the same kind of error."""


class StrangersFilter(logging.Filter):
    """What clients can make aiohttp log: nothing of what they send, and each other error once in a while.

    aiohttp writes a traceback of some kilobytes for each request that is no HTTP.

    Args:
        now: a clock that does not jump.

    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._next: dict[type[BaseException] | None, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log it."""
        kind = record.exc_info[0] if record.exc_info else None
        if kind is not None and issubclass(kind, HttpProcessingError):
            return False
        now = self._now()
        if now < self._next.get(kind, now):
            return False
        self._next[kind] = now + LOG_SECONDS
        return True


def _logger(name: str) -> logging.Logger:
    """aiohttp's, for one port."""
    logger = logging.getLogger(f"aiohttp.server.{name.strip('-')}")
    if not logger.filters:
        logger.addFilter(StrangersFilter())
    return logger


class HttpServer:
    """Serves the application.

    Args:
        app: what answers.
        port_flag: the flag that sets the port, for errors.
        tls: the certificate to serve with; None for plain HTTP.
        limits: what clients may take of the port.
        parameters: of ``aiohttp.web.AppRunner``, where its defaults do not suit.

    """

    def __init__(
        self,
        app: web.Application,
        port_flag: str,
        tls: ssl.SSLContext | None = None,
        limits: ConnectionLimits = ConnectionLimits(),  # noqa: B008 - it is frozen
        **parameters: Any,
    ) -> None:
        bounds = {"max_headers": MAX_HEADERS, "max_field_size": MAX_FIELD_BYTES, "max_line_size": MAX_FIELD_BYTES}
        self._runner = web.AppRunner(app, access_log=None, logger=_logger(port_flag), **(bounds | parameters))
        self._port_flag = port_flag
        self._listener = Listener(self._connection, tls, limits)

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._listener)

    async def start(self, host: str, port: int) -> None:
        """Listen, on every address of both families where ``host`` is empty.

        Raises:
            ConfigError: the port is not to be had.

        """
        await self._runner.setup()
        try:
            self._listener.start(host, port)
        except OSError as error:
            msg = f"cannot listen on {host or '*'}:{port} (--http-host, {self._port_flag}): {error.strerror}"
            raise ConfigError(msg) from error

    async def stop(self) -> None:
        """Wait for requests in progress, then close."""
        await self._listener.stop()
        await self._runner.cleanup()
        self._listener.close()

    def answered(self, request: web.Request) -> None:
        """Its connection is of use, and is kept while others are closed for new ones."""
        self._listener.answered(request.transport)

    def _connection(self) -> web.RequestHandler:
        serve = self._runner.server
        assert serve is not None  # noqa: S101 - it is set up before anything is accepted
        return serve()
