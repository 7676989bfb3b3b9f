"""The HTTP server bounds the log lines, memory and time that its clients can cause."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.http_exceptions import BadStatusLine, HttpProcessingError

from patience import until
from serving.uncollected import uncollected
from taintwarden.serving.http_server import HttpServer
from taintwarden.serving.listening import ConnectionLimits

HOST = "127.0.0.1"
NO_HTTP = {
    "a line that is none": b"\xff\xfe\xfd\r\n\r\n",
    "a method that is none": b"G@T / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a version that is none": b"GET / HTTP/9\r\nHost: x\r\n\r\n",
    "a header that is none": b"GET / HTTP/1.1\r\nHost x\r\n\r\n",
    "a name of a header that is none": b"GET / HTTP/1.1\r\nA b: x\r\n\r\n",
    "a line that is too long": b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\n\r\n",
    "too many headers": b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 100 + b"\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "a length that is none": b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    "a length and chunks": b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    "a chunk that is none": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n",
    "a second request that is none": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n\xff\xff\r\n\r\n",
    "an encoding that is none": b"POST / HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
    "a path that is none": b"GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n",
    "a host that is none": b"GET / HTTP/1.1\r\nHost: [::\r\n\r\n",
    "a promise": b"POST / HTTP/1.1\r\nHost: x\r\nExpect: something\r\nContent-Length: 3\r\n\r\n",
}


async def _read(request: web.Request) -> web.Response:
    await request.content.readany()
    return web.Response(text=f"{request.host} {request.url.path}")


@pytest.fixture
async def server(port: int) -> AsyncIterator[HttpServer]:
    app = web.Application()
    app.add_routes([web.get("/", _read), web.post("/", _read)])
    made = HttpServer(app, HOST, port, "--http-port")
    await made.start()
    yield made
    await made.stop()


async def sent(port: int, what: bytes) -> None:
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(what)
    writer.write_eof()
    async with asyncio.timeout(60):
        with contextlib.suppress(ConnectionError):
            await reader.read()
    writer.transport.abort()


@pytest.mark.parametrize("what", NO_HTTP.values(), ids=NO_HTTP)
async def test_malformed_requests_are_logged_at_most_once(server, port, caplog, what):
    for _ in range(5):
        await sent(port, what)
    assert len([one for one in caplog.records if one.levelno > logging.DEBUG]) <= 1


REFUSED = {
    "a path that is not there": b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n",
    "a method that is not there": b"PUT / HTTP/1.1\r\nHost: x\r\n\r\n",
    "another protocol": b"GET /x HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    "a proxy": b"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    "a path that is not there, of an old client": b"GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
}


@pytest.mark.parametrize("what", REFUSED.values(), ids=REFUSED)
async def test_a_refusal_ends_the_connection(server, port, what):
    """A connection would otherwise allow any number of requests, on ports that answer one for each."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(what * 3)
    async with asyncio.timeout(60):
        answer = await reader.read()
    writer.transport.abort()
    assert answer.count(b"HTTP/1.") == answer.count(b"HTTP/1.1 40") + answer.count(b"HTTP/1.0 404") == 1


async def test_refused_requests_leave_no_memory_for_the_collector(server, port):
    """The operator's collector runs after thousands of connections: 16 KiB for each are half a gigabyte."""

    async def send_each(times: int) -> None:
        for what in (NO_HTTP | REFUSED).values():
            for _ in range(times):
                await sent(port, what)

    with uncollected() as number_of:
        await send_each(1)
        first = number_of(web.RequestHandler)
        await send_each(2)
        await until(lambda: not len(server._listener))
        assert number_of(web.RequestHandler) <= first


@pytest.mark.parametrize("said", [b"\0" * 3_000_000, b"GET / HTTP/1.1\r\n\r\n" + b"\0" * 3_000_000])
async def test_bytes_after_a_malformed_request_do_not_stay_in_memory(server, port, said):
    """Each piece would be refused again, and stay in memory."""
    with uncollected() as number_of:
        for _ in range(3):
            _, writer = await asyncio.open_connection(HOST, port)
            writer.write(said)
            with contextlib.suppress(ConnectionError):
                await writer.drain()
            writer.transport.abort()
        await until(lambda: not len(server._listener))
        assert number_of(HttpProcessingError) == 0


@pytest.mark.parametrize("what", ["a line that is none", "a header that is none", "a path that is none"])
async def test_a_malformed_request_is_not_quoted_in_the_answer(port, server, what):
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(NO_HTTP[what])
    async with asyncio.timeout(60):
        answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.0 400 ")
    assert answer.endswith(b"\r\n\r\nno HTTP\n")


async def test_headers_that_do_not_end_end_the_connection(port):
    server = HttpServer(web.Application(), HOST, port, "--http-port", limits=ConnectionLimits(first_answer_seconds=0.2))
    await server.start()
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(b"GET / HTTP/1.1\r\nX-A: ")
    async with asyncio.timeout(60):
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
    writer.transport.abort()
    await server.stop()


# -- internal errors ---------------------------------------------------------------------------------------------------


async def test_each_kind_of_internal_error_is_logged_once_in_a_while(port, caplog):
    async def fail(request: web.Request) -> web.Response:
        raise {"key": KeyError, "value": ValueError, "http": BadStatusLine}[request.query["error"]]("x")

    app = web.Application()
    app.add_routes([web.get("/", fail)])
    server = HttpServer(app, HOST, port, "--http-port")
    await server.start()
    for error in ("key", "key", "value", "http"):
        await sent(port, f"GET /?error={error} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    await server.stop()
    assert [one.exc_info[0] for one in caplog.records if one.exc_info] == [KeyError, ValueError]
