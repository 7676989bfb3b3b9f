"""Answers that are read while they come, over the connections of a session."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from kube.answering import CHUNKED, OK, Server, send, serving
from taintwarden.kube.http.http_session import HttpSession
from taintwarden.kube.http.messages import Answer, Request

BEGUN = CHUNKED[: CHUNKED.index(b"4;x")]
"""A stream whose first part is abc."""
REFUSED = b"HTTP/1.1 410 Gone\r\nRetry-After: 1\r\nContent-Length: 4\r\n\r\ngone"
WATCH = Request("GET", "/watch", {}, {})


async def read(made: HttpSession, seconds: float = 5.0) -> bytes:
    async with made.stream(WATCH, seconds) as (_, chunks):
        return b"".join([chunk async for chunk in chunks])


async def first(chunks: AsyncIterator[bytes]) -> bytes:
    return await anext(aiter(chunks))


async def test_chunks_of_a_stream_are_delivered_as_they_arrive() -> None:
    async with serving(Server(BEGUN, b"").serve) as made, made.stream(WATCH, 5.0) as (answer, chunks):
        assert (answer, await first(chunks)) == (Answer(200, b""), b"abc")


async def test_a_stream_that_was_read_to_its_end_keeps_its_connection() -> None:
    server = Server(CHUNKED, OK)
    async with serving(server.serve) as made:
        assert await read(made) == b"abcdefg"
        assert await send(made) == Answer(200, b"ok")
    assert server.connections == 1


async def test_a_stream_that_is_exited_ends_its_connection() -> None:
    server = Server(BEGUN, OK)
    async with serving(server.serve) as made:
        async with made.stream(WATCH, 5.0) as (_, chunks):
            await first(chunks)
        await server.ended.wait()
        assert await send(made) == Answer(200, b"ok")


async def test_a_refusal_has_its_body_and_keeps_its_connection() -> None:
    server = Server(REFUSED, OK)
    async with serving(server.serve) as made:
        async with made.stream(WATCH, 5.0) as (answer, _):
            assert answer == Answer(410, b"gone", "1")
        await send(made)
    assert server.connections == 1


async def test_a_stream_over_a_kept_connection_that_ended_is_opened_again() -> None:
    server = Server(OK, b"", CHUNKED)
    async with serving(server.serve) as made:
        await send(made)
        assert await read(made) == b"abcdefg"
    assert server.connections == 2


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()
    writer.close()


async def test_a_silent_stream_is_given_up() -> None:
    async def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(BEGUN)
        await silent(reader, writer)

    async with serving(begin) as made:
        with pytest.raises(TimeoutError, match=r"nothing came for 0\.05 s"):
            await read(made, 0.05)


async def test_a_stream_that_becomes_unreadable_is_given_up() -> None:
    """A proxy may write its own error into the answer of the server."""

    async def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(BEGUN)
        await asyncio.sleep(0.01)
        writer.write(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")
        await silent(reader, writer)

    async with serving(begin) as made:
        with pytest.raises(OSError, match=r"\w"):
            await read(made, 0.05)


async def test_at_the_end_streams_fail() -> None:
    async with serving(Server(BEGUN, b"").serve) as made, made.stream(WATCH, 5.0) as (_, chunks):
        await first(chunks)
        await made.close()
        with pytest.raises(ConnectionError, match="closed"):
            await first(chunks)


async def test_streams_do_not_count_as_requests() -> None:
    async with serving(Server(BEGUN, OK).serve, most=1) as made, made.stream(WATCH, 5.0) as (_, chunks):
        await first(chunks)
        assert await send(made) == Answer(200, b"ok")


async def test_more_than_is_read_stays_at_the_server() -> None:
    size, part = 100_000_000, 100_000
    sent = 0

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        while sent < size:
            writer.write(b"x" * part)
            sent += part
            await writer.drain()
        writer.close()

    async with serving(flood) as made, made.stream(WATCH, 5.0) as (_, chunks):
        before = -1
        while sent != before:  # until no more fits into what lies between
            before = sent
            await asyncio.sleep(0.05)
        assert sent < size
        assert sum([len(chunk) async for chunk in chunks]) == size
