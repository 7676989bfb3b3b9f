"""A web application on one port, within limits that no client can exceed."""

import asyncio
import ssl
from typing import Any

from aiohttp import web
from aiohttp.hdrs import CONNECTION
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError

from taintwarden.kube.errors import ConfigError
from taintwarden.serving.listening import ConnectionLimits, Listener
from taintwarden.serving.seldom import Seldom

MAX_HEADERS, MAX_FIELD_BYTES = 32, 4096
"""Of one request. aiohttp's own limits allow a megabyte of headers, which takes two of memory for each connection."""
SHUTDOWN_SECONDS = 60.0
REFUSED_SECONDS = 0.01
"""For a refusal of some hundred bytes to be sent."""
NO_HTTP = "no HTTP\n"
"""The answer to what cannot be parsed. aiohttp's own repeats what was sent, four times as long."""


class _Handler(web.RequestHandler):
    """One connection, which ends with the first refusal. What cannot be answered is neither kept nor repeated.

    The frames that an error has passed through refer to it, and it to them: a cycle that keeps the connection and what
    was read of it until the collector runs. The operator's runs seldom.
    """

    ends_at_once = False
    """Whether it ends without a goodbye of TLS: what a client sends is decrypted until it has said one, too."""
    is_logged: Seldom
    """Whether an error of this kind is logged now: clients cause them as often as they like."""
    _is_refused = False
    """Whether something could not be parsed. The parser would refuse what follows again, once for each piece of it."""

    def data_received(self, data: bytes) -> None:
        """Parse it, unless what came before could not be."""
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
        """Send the response. aiohttp raises the one that says that there is no such path or method, and keeps it."""
        if isinstance(resp, web.HTTPException):
            resp.__traceback__ = None
            resp = web.Response(status=resp.status, text=resp.text, headers=resp.headers)
        if resp.status >= 400:  # a retry has to connect again, and the number of connections is limited
            resp.force_close()
        if resp.status >= 400 and self.ends_at_once and self.transport is not None:
            asyncio.get_running_loop().call_later(REFUSED_SECONDS, self.transport.abort)
        return await super().finish_response(request, resp, start_time)

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Log an error of ours once in a while, and nothing of what clients send: a traceback has some kilobytes."""
        error = kw.get("exc_info")
        if not isinstance(error, HttpProcessingError) and self.is_logged(type(error)):
            super().log_exception(*args, **kw)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to a request that failed."""
        try:
            return super().handle_error(request, status, exc, NO_HTTP if status == 400 else message)
        finally:
            if exc is not None:
                exc.__traceback__ = None


class HttpServer:
    """Serves the application.

    Args:
        app: what answers.
        host: address to listen on; empty for every address of both families.
        port: the port.
        port_flag: the flag that sets the port, for errors.
        tls: the certificate to serve with; None for plain HTTP.
        limits: what clients may take of the port.
        shutdown_timeout: seconds for requests in progress when it stops.
        parameters: of ``aiohttp.web.RequestHandler``, where its defaults do not suit.

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
        self._takes_bodies = limits.takes_bodies
        self._is_ending = False
        self._is_logged = Seldom()
        app.on_response_prepare.append(self._say_whether_it_is_the_last)
        self._listener = Listener(self._connection, tls, limits)

    async def start(self) -> None:
        """Listen.

        Raises:
            ConfigError: the port is not to be had.

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
        """End each connection with its next answer, and say so: a client sends the next request to another replica.

        One that is sent while we end the connection would be lost.
        """
        self._is_ending = True

    async def stop(self) -> None:
        """Wait for requests in progress, then close."""
        await self._listener.stop()
        await self._runner.cleanup()
        self._listener.close()

    def answered(self, request: web.Request) -> None:
        """Its connection is of use, and is kept while others are closed for new ones."""
        self._listener.answered(request.transport)

    async def _say_whether_it_is_the_last(self, _: web.BaseRequest, response: web.StreamResponse) -> None:
        if self._is_ending:
            response.force_close()
            response.headers[CONNECTION] = "close"  # aiohttp has written the headers about it before

    def _connection(self) -> web.RequestHandler:
        serve = self._runner.server
        assert serve is not None  # noqa: S101 - it is set up before anything is accepted
        made = _Handler(serve, loop=asyncio.get_running_loop(), **self._parameters)
        made.ends_at_once, made.is_logged = not self._takes_bodies, self._is_logged
        return made
