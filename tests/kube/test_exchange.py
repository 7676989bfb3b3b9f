"""One connection whose bytes the test gives."""

import asyncio
from collections.abc import Sequence
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.answering import BUSY, CHUNKED, EARLY, ENDLESS, LARGE, OK
from taintwarden.kube.http.exchange import MAX_UNREAD_BYTES, MAX_WITHOUT_BODY_BYTES, Body, HttpConnection
from taintwarden.kube.http.messages import MAX_ANSWER_BYTES, Answer, TooLongError


class Unconnected(asyncio.Transport):
    """Of a connection whose bytes the test gives."""

    def __init__(self) -> None:
        super().__init__()
        self.is_aborted, self._is_reading = False, True

    def write(self, _: bytes | bytearray | memoryview) -> None:
        pass

    def abort(self) -> None:
        self.is_aborted = True

    def is_closing(self) -> bool:
        return self.is_aborted

    def is_reading(self) -> bool:
        return self._is_reading

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True


def cut(text: bytes, ends: Sequence[int]) -> list[bytes]:
    return [text[begin:end] for begin, end in zip([0, *ends], [*ends, len(text)], strict=True)]


def test_a_connection_that_was_given_up_is_closed_when_it_is_made() -> None:
    protocol, transport = HttpConnection(context=False), Unconnected()
    protocol.close()
    protocol.connection_made(transport)
    assert transport.is_aborted


async def test_a_connection_whose_end_is_not_announced_yet_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """uvloop's transports raise RuntimeError then."""
    protocol, transport = HttpConnection(context=False), Unconnected()
    protocol.connection_made(transport)
    monkeypatch.setattr(transport, "write", Mock(side_effect=RuntimeError("the handler is closed")))
    with pytest.raises(ConnectionError):
        await protocol.round_trip(b"")
    assert not protocol.is_open


async def test_a_stream_that_is_opened_again_is_not_ended_by_its_first_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = Streamed(), Streamed()
    monkeypatch.setattr(first.transport, "write", Mock(side_effect=RuntimeError("the handler is closed")))
    first.body = second.body
    first.answer = asyncio.create_task(first.protocol.round_trip(b"", second.body))
    with pytest.raises(ConnectionError):
        await first.answer
    await second.receive(CHUNKED[:-5])
    first.protocol.connection_lost(None)
    await second.receive(CHUNKED[-5:])
    assert await second.read() == b"abcdefg"


@given(answer=st.sampled_from([OK, CHUNKED, BUSY, EARLY + OK]), cuts=st.sets(st.integers(0, 120)))
async def test_the_parts_in_which_an_answer_comes_change_nothing(answer: bytes, cuts: set[int]) -> None:
    async def read(ends: list[int]) -> Answer:
        protocol = HttpConnection(context=False)
        protocol.connection_made(Unconnected())
        reading = asyncio.create_task(protocol.round_trip(b""))
        await asyncio.sleep(0)
        for part in cut(answer, ends):
            protocol.data_received(part)
        return await reading

    assert await read(sorted(cuts)) == await read([])


class Streamed:
    """A request whose answer is read while it comes."""

    def __init__(self) -> None:
        self.transport = Unconnected()
        self.protocol = HttpConnection(context=False)
        self.protocol.connection_made(self.transport)
        self.body = Body(5.0)
        self.answer = asyncio.create_task(self.protocol.round_trip(b"", self.body))

    async def receive(self, *parts: bytes) -> None:
        await asyncio.sleep(0)
        for part in parts:
            self.protocol.data_received(part)

    async def read(self) -> bytes:
        return b"".join([chunk async for chunk in self.body])


@given(answer=st.sampled_from([OK, CHUNKED, LARGE, EARLY + CHUNKED]), cuts=st.sets(st.integers(0, 120)))
async def test_the_parts_in_which_a_streamed_answer_comes_change_nothing(answer: bytes, cuts: set[int]) -> None:
    async def streamed(ends: list[int]) -> tuple[Answer, bytes]:
        made = Streamed()
        await made.receive(*cut(answer, ends))
        return await made.answer, await made.read()

    assert await streamed(sorted(cuts)) == await streamed([])


async def test_the_head_of_a_stream_is_an_answer() -> None:
    made = Streamed()
    await made.receive(CHUNKED[: CHUNKED.index(b"3\r\n")])
    assert await made.answer == Answer(200, b"")


async def test_parts_that_are_there_come_in_one() -> None:
    made = Streamed()
    await made.receive(CHUNKED)
    assert await anext(made.body) == b"abcdefg"


async def test_a_refusal_of_a_stream_is_a_whole_answer() -> None:
    made = Streamed()
    await made.receive(b"HTTP/1.1 410 Gone\r\nContent-Length: 4\r\n\r\ngo", b"ne")
    assert await made.answer == Answer(410, b"gone")
    assert await made.read() == b""


async def test_a_stream_may_end_with_its_connection() -> None:
    made = Streamed()
    await made.receive(ENDLESS.replace(b"429 Too Many Requests", b"200 OK"))
    made.protocol.connection_lost(None)
    assert await made.read() == b"busy"


@pytest.mark.parametrize("error", [None, ConnectionResetError("reset by peer")])
async def test_a_stream_that_breaks_gives_what_came_first(error: Exception | None) -> None:
    made = Streamed()
    await made.receive(CHUNKED[:-5])
    made.protocol.connection_lost(error)
    assert await anext(made.body) == b"abcdefg"
    with pytest.raises(ConnectionError, match=r"before the end of the answer: (closed by the server|reset by peer)"):
        await anext(made.body)


async def test_a_stream_without_a_length_that_is_reset_is_not_complete() -> None:
    made = Streamed()
    await made.receive(ENDLESS.replace(b"429 Too Many Requests", b"200 OK"))
    made.protocol.connection_lost(ConnectionResetError("reset by peer"))
    assert await anext(made.body) == b"busy"
    with pytest.raises(ConnectionError, match="reset by peer"):
        await anext(made.body)


async def test_what_is_no_http_ends_a_stream() -> None:
    made = Streamed()
    await made.receive(CHUNKED[: CHUNKED.index(b"4;x")], b"?")
    made.protocol.connection_lost(None)
    assert await anext(made.body) == b"abc"
    with pytest.raises(ConnectionError, match="not HTTP"):
        await anext(made.body)
    assert made.transport.is_aborted


async def test_the_answer_after_a_stream_is_not_part_of_it() -> None:
    made = Streamed()
    await made.receive(CHUNKED)
    await made.answer
    following = asyncio.create_task(made.protocol.round_trip(b""))
    await made.receive(OK)
    assert (await following, await made.read()) == (Answer(200, b"ok"), b"abcdefg")


async def test_an_answer_that_follows_a_stream_unasked_ends_the_connection() -> None:
    made = Streamed()
    await made.receive(CHUNKED + OK)
    assert await made.read() == b"abcdefg"
    assert made.transport.is_aborted


async def test_a_stream_that_is_not_read_is_not_received() -> None:
    made = Streamed()
    await made.receive(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * MAX_UNREAD_BYTES)
    assert made.transport.is_reading()
    await made.receive(b"x")
    assert not made.transport.is_reading()
    assert len(await anext(made.body)) == MAX_UNREAD_BYTES + 1
    await made.receive(b"x")
    assert made.transport.is_reading()


async def test_a_stream_that_says_everything_but_its_body_ends() -> None:
    made = Streamed()
    await made.receive(CHUNKED[: CHUNKED.index(b"3\r\n")], b"1;" + b"x" * MAX_WITHOUT_BODY_BYTES)
    with pytest.raises(TooLongError):
        await anext(made.body)
    assert made.transport.is_aborted


async def test_a_stream_may_be_longer_than_an_answer() -> None:
    made = Streamed()
    await made.receive(b"HTTP/1.1 200 OK\r\n\r\n")
    for _ in range(MAX_ANSWER_BYTES // MAX_UNREAD_BYTES + 2):
        await made.receive(b"x" * MAX_UNREAD_BYTES)
        assert len(await anext(made.body)) == MAX_UNREAD_BYTES


async def test_a_stream_that_is_paused_is_not_received() -> None:
    made = Streamed()
    await made.receive(CHUNKED)
    with made.body.paused():
        assert not made.transport.is_reading()
    assert made.transport.is_reading()


async def test_a_stream_whose_connection_is_closed_may_be_paused() -> None:
    """uvloop's transports raise RuntimeError then."""
    made = Streamed()
    await made.receive(CHUNKED)
    made.protocol.close()
    with made.body.paused():
        assert made.transport.is_reading()


async def test_a_paused_tls_transport_does_not_read_ahead() -> None:
    made = Streamed()
    made.transport.set_read_buffer_limits = limits = Mock()  # type: ignore[attr-defined]
    await made.receive(CHUNKED)
    with made.body.paused():
        limits.assert_called_once_with(1, 0)
    limits.assert_called_with()


async def test_a_tls_transport_that_is_closed_has_no_limits() -> None:
    made = Streamed()
    made.transport.set_read_buffer_limits = Mock(side_effect=AttributeError)  # type: ignore[attr-defined]
    await made.receive(CHUNKED)
    made.protocol.close()
    with made.body.paused():
        pass
