"""A busy stream is read in few chunks, a quiet one at once. Time is looptime's."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from math import ceil

import pytest

from taintwarden.kube.http.http_session import BACKLOG_BYTES, QUIET_SECONDS, paced

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime(start=0)]


class Body:
    """A body that keeps received chunks while it is paused, as the kernel does."""

    def __init__(self) -> None:
        self.waiting: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.kept = b""
        self.is_paused = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (chunk := await self.waiting.get()) is not None:
            yield chunk

    @contextmanager
    def paused(self) -> Iterator[None]:
        self.is_paused = True
        try:
            yield
        finally:
            self.is_paused = False
            if self.kept:
                self.waiting.put_nowait(self.kept)
                self.kept = b""

    def receive(self, chunk: bytes) -> None:
        if self.is_paused:
            self.kept += chunk
        else:
            self.waiting.put_nowait(chunk)


async def read(*sent: tuple[float, bytes]) -> list[tuple[float, bytes]]:
    """The chunks that arrive with their times, for the chunks sent at these times."""
    loop, body = asyncio.get_running_loop(), Body()
    for at, chunk in sent:
        loop.call_at(at, body.receive, chunk)
    loop.call_at(10, body.waiting.put_nowait, None)
    return [(round(loop.time(), 3), chunk) async for chunk in paced(aiter(body), body.paused)]


async def test_chunks_of_a_quiet_stream_arrive_at_once():
    sent = [(0.0, b"a"), (0.04, b"b"), (0.08, b"c")]
    assert await read(*sent) == sent


async def test_chunks_of_a_busy_stream_are_joined():
    sent = [(0.0, b"a"), (0.01, b"b"), (0.015, b"c"), (0.025, b"d")]
    assert await read(*sent) == [(0.0, b"a"), (0.01, b"b"), (0.01 + QUIET_SECONDS, b"cd")]


async def test_nothing_is_lost_of_a_long_busy_stream():
    sent = [(number / 1000, bytes([number % 250])) for number in range(1_000)]
    found = await read(*sent)
    assert b"".join(chunk for _, chunk in found) == b"".join(chunk for _, chunk in sent)
    assert len(found) <= 2 + ceil(1 / QUIET_SECONDS)  # the first two came at once


async def test_a_backlog_is_read_without_a_pause():
    large = b"x" * BACKLOG_BYTES
    sent = [(0.0, large), (0.001, large), (0.002, b"a")]
    assert await read(*sent) == sent


async def test_a_reader_that_is_cancelled_leaves_the_connection_reading():
    body = Body()
    body.receive(b"a")
    body.receive(b"b")
    reader = asyncio.create_task(anext(_second(paced(aiter(body), body.paused))))
    await asyncio.sleep(QUIET_SECONDS / 2)
    assert body.is_paused
    reader.cancel()
    await asyncio.wait([reader])
    assert not body.is_paused


async def _second(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the third chunk."""
    await anext(chunks)
    await anext(chunks)
    yield await anext(chunks)
