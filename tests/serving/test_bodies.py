"""Answers to bodies, over TLS: how long a client may leave one unread."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from patience import until
from taintwarden.certificates.pairs import make_pair
from taintwarden.controller.clock import system_clock
from taintwarden.kube.auth.pem import load_chain
from taintwarden.placement.serving import bodies
from taintwarden.placement.serving.bodies import Bodies
from taintwarden.serving.http_server import HttpServer

HOST = "127.0.0.1"
REQUEST = b"POST /ask HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
ANSWER = b"x" * 20_000_000


@pytest.fixture
async def connection(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter, HttpServer]]:
    """To a server with a large answer, and that server."""

    async def answer(_: bytearray) -> tuple[web.Response, str]:
        return web.Response(body=ANSWER), "answered"

    pair = make_pair(["localhost"], system_clock().wall)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_chain(tls, pair.certificate + pair.key)
    app = web.Application()
    made = Bodies(lambda _name, _result, _seconds: None, lambda _: "", lambda _: None)
    app.add_routes([web.post("/ask", made.handler("ask", answer))])
    server = HttpServer(app, "--port", tls)
    await server.start(HOST, port)
    trusting = ssl.create_default_context(cadata=pair.certificate.decode())
    reader, writer = await asyncio.open_connection(HOST, port, ssl=trusting, server_hostname="localhost")
    yield reader, writer, server
    writer.transport.abort()
    await server.stop()


async def received_bytes(reader: asyncio.StreamReader) -> int:
    received = 0
    with contextlib.suppress(ConnectionError):
        while received < len(ANSWER) and (chunk := await reader.read(2**20)):
            received += len(chunk)
    return received


async def test_a_large_answer_arrives(connection):
    reader, writer, _ = connection
    writer.write(REQUEST)
    assert b" 200 " in await reader.readline()
    assert await received_bytes(reader) >= len(ANSWER)


async def test_an_answer_that_is_not_read_is_given_up(connection, monkeypatch):
    """It would stay in memory for as long as the client wants."""
    monkeypatch.setattr(bodies, "REQUEST_SECONDS", 0.3)
    reader, writer, server = connection
    writer.transport.pause_reading()
    writer.write(REQUEST)
    await until(lambda: server.connections == 0)
    writer.transport.resume_reading()
    assert await received_bytes(reader) < len(ANSWER)
