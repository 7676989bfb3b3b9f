"""Bodies of requests and answers: bounds on the time of a client, and on the bytes in memory at once."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from patience import PATIENCE_SECONDS, until
from taintwarden.controller.clock import system_clock
from taintwarden.kube.auth.pem import load_chain
from taintwarden.serving.http_server import HttpServer
from taintwarden.serving.key_pairs import make_key_pair
from taintwarden_placement.serving.bounded_handlers import MAX_TRANSIT_BYTES, REQUEST_SECONDS, BoundedHandlers

HOST = "127.0.0.1"
ANSWER = b"x" * 20_000_000
MAX_BYTES = 3 * 2**20


def request(length: int = 2) -> bytes:
    """A request whose body has `length` bytes, of which the first two are sent."""
    return b"POST /ask HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n{}" % length


@pytest.fixture
async def connection(
    request: pytest.FixtureRequest, port: int
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter, HttpServer]]:
    """A connection to a server with a large answer, and that server."""

    async def answer(_: bytearray) -> tuple[web.Response, str]:
        return web.Response(body=ANSWER), "answered"

    pair = make_key_pair(["localhost"], system_clock().wall)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_chain(tls, pair.certificate + pair.key)
    seconds = getattr(request, "param", REQUEST_SECONDS)
    nobody = lambda *_: None  # noqa: E731
    made = BoundedHandlers(nobody, lambda _: "", nobody, max_bytes=MAX_BYTES, request_seconds=seconds)
    server = HttpServer(made.app({"ask": answer}), HOST, port, "--port", tls)
    await server.start()
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
    writer.write(request())
    assert b" 200 " in await reader.readline()
    assert await received_bytes(reader) >= len(ANSWER)


@pytest.mark.parametrize("connection", [0.3], indirect=True)
async def test_an_answer_that_is_not_read_is_dropped(connection):
    """An answer would otherwise stay in memory for as long as the client wants."""
    reader, writer, server = connection
    writer.transport.pause_reading()
    writer.write(request())
    await until(lambda: not len(server._listener))
    writer.transport.resume_reading()
    assert await received_bytes(reader) < len(ANSWER)


class Asked:
    """A server whose answers have this body, and its clients."""

    def __init__(self, port: int, body: bytes = b"") -> None:
        self.port = port
        self._body = body
        self.observed: list[str] = []
        self._clients: list[asyncio.StreamWriter] = []

    @contextlib.asynccontextmanager
    async def served(self, request_seconds: float) -> AsyncIterator[None]:
        async def answer(_: bytearray) -> tuple[web.Response, str]:
            return web.Response(body=self._body), "answered"

        made = BoundedHandlers(
            lambda _name, result, _seconds: self.observed.append(result),
            lambda _: "",
            lambda _: None,
            max_bytes=MAX_BYTES,
            request_seconds=request_seconds,
        )
        server = HttpServer(made.app({"ask": answer}), HOST, self.port, "--port")
        await server.start()
        try:
            yield
        finally:
            self.break_off(len(self._clients))
            await server.stop()

    def break_off(self, number: int) -> None:
        """End the first `number` connections."""
        for writer in self._clients[:number]:
            writer.transport.abort()

    async def send(self, data: bytes) -> asyncio.StreamReader:
        reader, writer = await asyncio.open_connection(HOST, self.port)
        self._clients.append(writer)
        writer.write(data)
        return reader


async def test_a_body_that_does_not_arrive_is_refused_with_408(port):
    asked = Asked(port)
    async with asked.served(request_seconds=0.1):
        assert b" 408 " in await (await asked.send(request(1_000_000))).readline()
    assert asked.observed == ["late"]


LARGE = request(70_000) + b" " * 69_998
"""A complete request of 70,000 bytes."""


async def test_bodies_that_never_end_delay_no_other_client(port):
    """If a complete body waited for them, the API server would store the pod without its affinity."""
    asked = Asked(port)
    async with asked.served(request_seconds=PATIENCE_SECONDS):
        for _ in range(24):
            await asked.send(LARGE[:-1])
        assert b" 200 " in await (await asked.send(LARGE)).readline()
        assert asked.observed == ["answered"]


async def test_the_oldest_of_too_many_large_bodies_is_refused(port):
    """The oldest is dropped, so that a client that sends many and ends none loses its own."""
    asked, part = Asked(port), request(3_000_000) + b" " * 2_000_000
    async with asked.served(request_seconds=PATIENCE_SECONDS):
        oldest = await asked.send(part)
        for _ in range(MAX_TRANSIT_BYTES // 2_000_000):
            await asked.send(part)
        assert b" 408 " in await oldest.readline()
        assert b" 200 " in await (await asked.send(LARGE)).readline()
        assert asked.observed == ["late", "answered"]


async def test_an_answer_that_is_not_read_is_dropped_for_another(port):
    asked = Asked(port, ANSWER)
    async with asked.served(request_seconds=PATIENCE_SECONDS):
        unread = await asked.send(request())
        unread._transport.pause_reading()
        await until(lambda: asked.observed)
        assert await received_bytes(await asked.send(request())) >= len(ANSWER)
        unread._transport.resume_reading()
        assert await received_bytes(unread) < len(ANSWER)
