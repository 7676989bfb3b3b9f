"""A busy stream is read in few chunks, a quiet one at once. Time is looptime's."""

import asyncio
from collections.abc import AsyncIterator
from math import ceil

import pytest

from taintwarden.kube.pacing import BACKLOG_BYTES, QUIET_SECONDS, paced

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime(start=0)]


class Connection:
    """Of a response: keeps what comes while it is paused, as the kernel does."""

    def __init__(self, *, tls: bool = True) -> None:
        self.protocol = self
        self.transport = Transport() if tls else object()
        self.waiting: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.kept = b""
        self.is_paused = False

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False
        if self.kept:
            self.waiting.put_nowait(self.kept)
            self.kept = b""

    def receive(self, chunk: bytes) -> None:
        if self.is_paused:
            self.kept += chunk
        else:
            self.waiting.put_nowait(chunk)


class Transport:
    def __init__(self) -> None:
        self.limits: list[tuple[int, ...]] = []

    def set_read_buffer_limits(self, *limits: int) -> None:
        self.limits.append(limits)


class Response:
    def __init__(self, *, tls: bool = True) -> None:
        self.connection: Connection | None = Connection(tls=tls)
        self.content = self
        self._waiting = self.connection.waiting

    async def iter_any(self) -> AsyncIterator[bytes]:
        while (chunk := await self._waiting.get()) is not None:
            yield chunk


async def read(response: Response, *sent: tuple[float, bytes]) -> list[tuple[float, bytes]]:
    """What arrives when, of what is sent when."""
    loop, connection = asyncio.get_running_loop(), response.connection
    assert connection is not None
    for at, chunk in sent:
        loop.call_at(at, connection.receive, chunk)
    loop.call_at(10, connection.waiting.put_nowait, None)
    return [(round(loop.time(), 3), chunk) async for chunk in paced(response)]  # type: ignore[arg-type]


async def test_chunks_of_a_quiet_stream_arrive_at_once():
    sent = [(0.0, b"a"), (0.04, b"b"), (0.08, b"c")]
    assert await read(Response(), *sent) == sent


async def test_chunks_of_a_busy_stream_are_joined():
    sent = [(0.0, b"a"), (0.01, b"b"), (0.015, b"c"), (0.025, b"d")]
    assert await read(Response(), *sent) == [(0.0, b"a"), (0.01, b"b"), (0.01 + QUIET_SECONDS, b"cd")]


async def test_a_busy_stream_becomes_quiet():
    sent = [(0.0, b"a"), (0.01, b"b"), (1.0, b"c"), (1.04, b"d")]
    assert await read(Response(), *sent) == sent


async def test_nothing_is_lost_of_a_long_busy_stream():
    sent = [(number / 1000, bytes([number % 250])) for number in range(1_000)]
    found = await read(Response(), *sent)
    assert b"".join(chunk for _, chunk in found) == b"".join(chunk for _, chunk in sent)
    assert len(found) <= 2 + ceil(1 / QUIET_SECONDS)  # the first two came at once


async def test_a_backlog_is_read_without_a_pause():
    large = b"x" * BACKLOG_BYTES
    sent = [(0.0, large), (0.001, large), (0.002, b"a")]
    assert await read(Response(), *sent) == sent


async def test_a_paused_tls_connection_does_not_read_ahead():
    response = Response()
    await read(response, (0.0, b"a"), (0.01, b"b"))
    assert response.connection is not None
    assert response.connection.transport.limits == [(1, 0), ()]


async def test_a_connection_without_tls_needs_no_limit():
    sent = [(0.0, b"a"), (0.01, b"b"), (0.02, b"c")]
    assert await read(Response(tls=False), *sent) == [(0.0, b"a"), (0.01, b"b"), (0.01 + QUIET_SECONDS, b"c")]


async def test_the_end_of_a_body_has_no_connection():
    response = Response()
    connection = response.connection
    assert connection is not None
    connection.receive(b"a")
    connection.receive(b"b")
    connection.waiting.put_nowait(None)
    response.connection = None
    assert [chunk async for chunk in paced(response)] == [b"a", b"b"]  # type: ignore[arg-type]


async def test_a_reader_that_is_cancelled_leaves_the_connection_reading():
    response = Response()
    connection = response.connection
    assert connection is not None
    connection.receive(b"a")
    connection.receive(b"b")
    reader = asyncio.create_task(anext(_second(paced(response))))  # type: ignore[arg-type]
    await asyncio.sleep(QUIET_SECONDS / 2)
    assert connection.is_paused
    reader.cancel()
    await asyncio.wait([reader])
    assert not connection.is_paused


async def _second(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """What follows the second chunk."""
    await anext(chunks)
    await anext(chunks)
    yield await anext(chunks)
