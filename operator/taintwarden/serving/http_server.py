"""An HTTP server on one port, with limits that no client can exceed."""

import asyncio
import ssl
from typing import Any

from aiohttp import web
from aiohttp.hdrs import CONNECTION
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError

from taintwarden.kube.errors import ConfigError
from taintwarden.serving.listening import ConnectionLimits, Listener
from taintwarden.serving.log_limiter import LogLimiter

MAX_HEADERS, MAX_FIELD_BYTES = 32, 4096
"""Maximum number of headers of a request, and size of one. aiohttp's limits allow 1 MB, which takes 2 MB of memory."""
SHUTDOWN_SECONDS = 60.0
REFUSED_SECONDS = 0.01
"""Seconds for sending a refusal of some hundred bytes."""
NO_HTTP = "no HTTP\n"
"""Answer to a request that cannot be parsed. aiohttp's own repeats the request, four times as long."""


class _Handler(web.RequestHandler):
    """One connection, which ends with the first refusal. Data that cannot be parsed is neither kept nor repeated.

    An error and the frames that it has passed through refer to each other. This cycle keeps the connection and its data
    in memory until garbage is collected, which is seldom in the operator.
    """

    ends_at_once = False
    """True to end a refused connection without TLS's closing message: data are decrypted until the client sends one."""
    may_log: LogLimiter
    """Returns True if an error of this kind is logged now: clients cause errors as often as they like."""
    _is_refused = False
    """True after data that could not be parsed. The parser would refuse each following piece again."""

    def data_received(self, data: bytes) -> None:
        """Parse data, unless earlier data could not be parsed."""
        if self._is_refused:
            return
        super().data_received(data)
        last = self._messages[-1][0] if self._messages else None
        if last is not None and not isinstance(last, RawRequestMessage):
            self._is_refused = True
            if self.ends_at_once and self.transport is not None:
                self.transport.pause_reading()
            last.exc.__traceback__ = None

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send the response. aiohttp raises and keeps the one for an unknown path or method, so that one is copied."""
        if isinstance(resp, web.HTTPException):
            resp.__traceback__ = None
            resp = web.Response(status=resp.status, text=resp.text, headers=resp.headers)
        if resp.status >= 400:  # a retry has to connect again, and the number of connections is limited
            resp.force_close()
        if resp.status >= 400 and self.ends_at_once and self.transport is not None:
            asyncio.get_running_loop().call_later(REFUSED_SECONDS, self.transport.abort)
        return await super().finish_response(request, resp, start_time)

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Log errors of the server, at most one of a type each minute. Errors that clients cause are not logged."""
        error = kw.get("exc_info")
        if not isinstance(error, HttpProcessingError) and self.may_log(type(error)):
            super().log_exception(*args, **kw)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the answer to a request that failed."""
        try:
            return super().handle_error(request, status, exc, NO_HTTP if status == 400 else message)
        finally:
            if exc is not None:
                exc.__traceback__ = None


class HttpServer:
    """Serves a web application.

    Args:
        app: the application.
        host: address to listen on; empty for all addresses of the families that the machine has.
        port: the port.
        port_flag: the flag that sets the port, for errors.
        tls: the certificate to serve with; None for plain HTTP.
        limits: limits on the connections of the port.
        shutdown_timeout: maximum seconds for requests in progress when the server stops.
        parameters: arguments of ``aiohttp.web.RequestHandler``.

    """

    def __init__(
        self,
        app: web.Application,
        host: str,
        port: int,
        port_flag: str,
        tls: ssl.SSLContext | None = None,
        limits: ConnectionLimits = ConnectionLimits(),  # noqa: B008 - it is frozen
        *,
        shutdown_timeout: float = SHUTDOWN_SECONDS,
        **parameters: Any,
    ) -> None:
        bounds = {"max_headers": MAX_HEADERS, "max_field_size": MAX_FIELD_BYTES, "max_line_size": MAX_FIELD_BYTES}
        self._parameters = {"access_log": None, **bounds, **parameters}
        self._runner = web.AppRunner(app, shutdown_timeout=shutdown_timeout)
        self._host, self._port, self._port_flag = host, port, port_flag
        self._accepts_bodies = limits.accepts_bodies
        self._is_ending = False
        self._may_log = LogLimiter()
        app.on_response_prepare.append(self._set_connection_header)
        self._listener = Listener(self._connection, tls, limits)

    async def start(self) -> None:
        """Listen.

        Raises:
            ConfigError: the server cannot listen on the port.

        """
        await self._runner.setup()
        try:
            self._listener.start(self._host, self._port)
        except OSError as error:
            msg = (
                f"cannot listen on {self._host or '*'}:{self._port} (--http-host, {self._port_flag}): {error.strerror}"
            )
            raise ConfigError(msg) from error

    def end_after_answers(self) -> None:
        """End each connection with its next answer, which says so: a client sends the next request to another replica.

        A request that is sent while the server ends the connection would be lost.
        """
        self._is_ending = True

    async def stop(self) -> None:
        """Wait for requests in progress, then close."""
        await self._listener.stop()
        await self._runner.cleanup()
        self._listener.close()

    def mark_answered(self, request: web.Request) -> None:
        """Mark the connection of a request as useful, so that others are closed first for new connections."""
        self._listener.mark_answered(request.transport)

    async def _set_connection_header(self, _: web.BaseRequest, response: web.StreamResponse) -> None:
        if self._is_ending:
            response.force_close()
            response.headers[CONNECTION] = "close"  # aiohttp has already set this header

    def _connection(self) -> web.RequestHandler:
        serve = self._runner.server
        assert serve is not None  # noqa: S101 - it is set up before anything is accepted
        made = _Handler(serve, loop=asyncio.get_running_loop(), **self._parameters)
        made.ends_at_once, made.may_log = not self._accepts_bodies, self._may_log
        return made
