"""Requests on kept connections, to servers that answer what the test says, at the bytes."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop

from kube import wire
from kube.answering import BUSY, CHUNKED, EARLY, EMPTY, ENDLESS, LARGE, LAST, OK, Server, send, serving
from taintwarden.kube.http import pool
from taintwarden.kube.http.exchange import MAX_HEAD_BYTES, HttpConnection
from taintwarden.kube.http.messages import Answer, Request
from taintwarden.kube.http.pool import HttpPool


async def test_a_connection_is_kept() -> None:
    server = Server(OK, OK)
    async with serving(server.serve) as made:
        assert [await send(made), await send(made)] == [Answer(200, b"ok")] * 2
    assert server.connections == 1


async def test_each_request_in_progress_has_a_connection() -> None:
    server = Server(OK, OK)
    async with serving(server.serve) as made:
        await asyncio.gather(send(made), send(made))
    assert server.connections == 2


async def test_more_requests_than_connections_wait() -> None:
    server = Server(*[OK] * 6)
    async with serving(server.serve, most=2) as made:
        answers = await asyncio.gather(*[send(made) for _ in range(6)])
    assert (len(answers), server.connections) == (6, 2)


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (CHUNKED, Answer(200, b"abcdefg")),
        (LARGE, Answer(200, b"x" * 200_000)),
        (EMPTY, Answer(204, b"")),
        (BUSY, Answer(429, b"", "7")),
        (EARLY + OK, Answer(200, b"ok")),
    ],
)
async def test_an_answer_is_read_to_its_end(sent: bytes, answer: Answer) -> None:
    server = Server(sent, OK)
    async with serving(server.serve) as made:
        assert await send(made) == answer
        assert await send(made) == Answer(200, b"ok")
    assert server.connections == 1


async def test_a_connection_that_the_server_will_close_is_not_used_again() -> None:
    server = Server(LAST, LAST)
    async with serving(server.serve) as made:
        assert [await send(made), await send(made)] == [Answer(200, b"ok")] * 2
    assert server.connections == 2


async def test_an_answer_may_end_with_its_connection() -> None:
    async with serving(Server(ENDLESS).answer_once) as made:
        assert await send(made) == Answer(429, b"busy", "7")


async def test_a_get_is_sent_again_when_a_kept_connection_ends() -> None:
    server = Server(OK, b"", OK)
    async with serving(server.serve) as made:
        await send(made)
        assert await send(made) == Answer(200, b"ok")
    assert (server.connections, len(server.requests)) == (2, 3)


async def test_a_put_is_sent_again_once() -> None:
    server = Server(*[OK] * 3, *[b""] * 4)
    async with serving(server.serve) as made:
        await asyncio.gather(*[send(made) for _ in range(3)])
        with pytest.raises(ConnectionError, match="before the end of the answer"):
            await send(made, "PUT")
    assert len(server.requests) == 5


async def test_a_post_is_not_sent_again() -> None:
    """The server may have carried it out."""
    server = Server(OK, b"", OK)
    async with serving(server.serve) as made:
        await send(made)
        with pytest.raises(ConnectionError, match="closed"):
            await send(made, "POST")
    assert len(server.requests) == 2


async def test_a_new_connection_that_ends_is_an_error() -> None:
    async with serving(Server(b"").serve) as made:
        with pytest.raises(ConnectionError, match="before the end of the answer"):
            await send(made)


async def test_an_answer_without_a_body_is_not_the_next_one_too() -> None:
    async with serving(Server(EMPTY, b"").serve) as made:
        assert await send(made) == Answer(204, b"")
        with pytest.raises(ConnectionError, match="closed"):
            await send(made, "POST")


async def test_the_announcement_of_an_answer_is_none() -> None:
    async with serving(Server(EARLY).answer_once) as made:
        with pytest.raises(ConnectionError, match="before the end of the answer"):
            await send(made)


async def test_a_body_without_a_length_that_the_client_cuts_is_no_answer() -> None:
    async def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ENDLESS)
        await reader.read()
        writer.close()

    async with serving(begin) as made:
        waiting = asyncio.create_task(send(made))
        while not [busy for busy in made._busy if busy._parts]:
            await asyncio.sleep(0)
        await made.close()
        with pytest.raises(ConnectionError):
            await waiting


async def test_a_get_is_not_sent_again_when_its_answer_has_begun() -> None:
    server = Server(OK, b"HTTP/1.1 200 OK\r\n")

    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await server.answer(reader))
        writer.write(await server.answer(reader))
        writer.close()

    async with serving(cut) as made:
        await send(made)
        with pytest.raises(ConnectionError, match="before the end of the answer"):
            await send(made)
    assert len(server.requests) == 2


async def test_an_answer_that_is_late_belongs_to_no_other_request() -> None:
    released = asyncio.Event()
    asked = asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        if b"/slow" in request:
            asked.set()
            await released.wait()
        writer.write(OK.replace(b"ok", b"no") if b"/slow" in request else OK)
        writer.close()

    async with serving(slow) as made:
        cancelled = asyncio.create_task(send(made, path="/slow"))
        await asked.wait()
        cancelled.cancel()
        released.set()
        assert await send(made) == Answer(200, b"ok")


async def test_an_answer_that_was_not_requested_ends_the_connection() -> None:
    server = Server(OK + OK.replace(b"ok", b"no"), OK)
    async with serving(server.serve) as made:
        assert [await send(made), await send(made)] == [Answer(200, b"ok")] * 2
    assert server.connections == 2


@pytest.mark.parametrize("before", [b"", EARLY])
async def test_a_head_without_an_end_is_an_error(before: bytes) -> None:
    async with serving(Server(before + b"HTTP/1.1 200 OK\r\nX: " + b"x" * MAX_HEAD_BYTES).serve) as made:
        with pytest.raises(ConnectionError, match="head of the answer"):
            await send(made)


FLOOD = b"x" * 2**16
CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("head", "part"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", FLOOD),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n", FLOOD),
        (b"HTTP/1.1 500 Internal Server Error\r\n\r\n", FLOOD),
        (CHUNKED_HEAD, b"10000\r\n" + FLOOD + b"\r\n"),
        (CHUNKED_HEAD + b"1;", FLOOD),
        (CHUNKED_HEAD + b"0\r\nX: ", FLOOD),
        (b"", EARLY * 1_000),
    ],
    ids=["no length", "length", "error", "chunks", "extension of a chunk", "trailer", "announcements"],
)
async def test_an_answer_without_an_end_is_given_up(head: bytes, part: bytes) -> None:
    """A hostile server, or what answers in its place."""
    sent = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head)
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(part)
                await writer.drain()
                sent += len(part)
        writer.close()

    async with serving(serve) as made:
        with pytest.raises(ConnectionError, match=r"more than \d+ bytes"):
            await made.send(Request("GET", "/a", {}, {}, max_bytes=2**20), 9.0)
    assert sent < 16 * 2**20  # most of it is in the buffers of the kernel


async def test_another_protocol_is_an_error() -> None:
    async with serving(Server(b"SSH-2.0-OpenSSH_9.6\r\n").serve) as made:
        with pytest.raises(ConnectionError, match="not HTTP"):
            await send(made)


async def test_a_wait_that_is_too_long_says_how_long() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with serving(silent) as made:
        with pytest.raises(TimeoutError, match=r"no answer within 0\.01 s"):
            await send(made, seconds=0.01)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://" + "a" * 64 + ".example:1"])
async def test_a_server_that_cannot_be_reached_is_named(url: str) -> None:
    with pytest.raises(ConnectionError, match=f"cannot connect to {url[7:]}"):
        await send(HttpPool(wire.connection(url), 1))


async def test_an_unused_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.0)
    server = Server(OK)
    async with serving(server.serve) as made:
        await send(made)
        await server.ended.wait()
        assert made._idle == []


async def test_a_connection_that_is_used_again_does_not_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(OK, OK, OK)
    async with serving(server.serve) as made:
        await asyncio.gather(send(made), send(made))
        unused, used = made._idle
        monkeypatch.setattr(pool, "IDLE_SECONDS", 1000.0)
        unused.used_at -= 1000.0
        await send(made)
        made._expire()
        assert (unused.is_open, used.is_open) == (False, True)
        assert made._idle == [used]
        assert made._expiry is not None


async def test_a_closed_pool_waits_for_nothing() -> None:
    server = Server(OK)
    async with serving(server.serve) as made:
        await send(made)
        await made.close()
        assert made._expiry is not None
        assert made._expiry.cancelled()


async def test_a_connection_of_other_certificates_is_not_used() -> None:
    server = Server(OK, OK)
    async with serving(server.serve) as made:
        await send(made)
        made._connection.ssl = None  # type: ignore[assignment]
        await send(made)
        await server.ended.wait()
    assert server.connections == 2


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/api/v1/pods/a", b"GET /k8s/clusters/c-1/api/v1/pods/a HTTP/1.1\r\n"),
        ("/api/v1/pods/a b", b"GET /k8s/clusters/c-1/api/v1/pods/a%20b HTTP/1.1\r\n"),
        ("/pods/a HTTP/1.1\r\nX: y", b"GET /k8s/clusters/c-1/pods/a%20HTTP/1.1%0D%0AX:%20y HTTP/1.1\r\n"),
        ("/pods/a?b#c", b"GET /k8s/clusters/c-1/pods/a%3Fb%23c HTTP/1.1\r\n"),
    ],
)
async def test_a_path_is_below_that_of_the_server_and_nothing_else(path: str, sent: bytes) -> None:
    server = Server(OK)
    async with serving(server.serve, "/k8s/clusters/c-1") as made:
        await send(made, path=path)
    assert server.requests[0].startswith(sent)


async def test_bytes_of_a_name_that_are_no_text_are_quoted() -> None:
    """As Python has them of a command line."""
    server = Server(OK)
    async with serving(server.serve) as made:
        await made.send(Request("GET", "/pods/\udcff", {"fieldSelector": "metadata.name=\udcff"}, {}), 5.0)
    assert server.requests[0].startswith(b"GET /pods/%FF?fieldSelector=metadata.name%3D%FF HTTP/1.1\r\n")


@pytest.mark.parametrize("token", ["a\r\nX: y", "a\nb", "a\rb", "a\0b", "\ufeffa"])
async def test_a_token_that_no_header_can_have_is_an_error_that_does_not_show_it(token: str) -> None:
    server = Server(OK)
    async with serving(server.serve) as made:
        with pytest.raises(OSError, match="control character, or one outside ASCII") as caught:
            await made.send(Request("GET", "/a", {}, {"Authorization": token}), 5.0)
    assert token not in str(caught.value)
    assert server.connections == 0


async def test_a_kept_connection_keeps_no_answer() -> None:
    async with serving(Server(LARGE).serve) as made:
        await send(made)
        assert [kept._parts for kept in made._idle] == [[]]


async def test_new_connections_share_a_look_up() -> None:
    server = Server(*[OK] * 4)
    async with serving(server.serve) as made:
        await send(made)
        looked_up = made._lookup
        await asyncio.gather(*[send(made) for _ in range(3)])
        assert made._lookup is looked_up
    assert server.connections == 3


async def test_a_look_up_in_progress_is_kept_for_the_next_request() -> None:
    """A resolver may need longer than a request waits."""
    found: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    server = Server(OK)
    async with serving(server.serve) as made:
        made._lookup, made._looked_up_at = found, asyncio.get_running_loop().time()
        with pytest.raises(TimeoutError):
            await send(made, seconds=0.01)
        found.set_result(addresses(made))
        assert await send(made) == Answer(200, b"ok")


def addresses(made: HttpPool) -> list[Any]:
    """As getaddrinfo returns them."""
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (made._host, made._port))]


async def test_a_look_up_that_follows_a_failed_one_is_kept() -> None:
    loop = asyncio.get_running_loop()
    failed, following = loop.create_future(), loop.create_future()
    made = HttpPool(wire.connection("http://127.0.0.1:1"), 8)
    made._lookup, made._looked_up_at = failed, loop.time()
    waiting = [asyncio.create_task(send(made)) for _ in range(2)]
    await asyncio.sleep(0)
    failed.set_exception(OSError("no answer"))
    made._lookup = following
    await asyncio.gather(*waiting, return_exceptions=True)
    assert made._lookup is following


async def test_a_look_up_that_fails_is_an_error() -> None:
    made = HttpPool(wire.connection("http://does-not-exist.invalid:1"), 1)
    with pytest.raises(ConnectionError, match=r"cannot connect to does-not-exist\.invalid:1"):
        await send(made)


async def test_after_a_failed_connection_the_host_is_looked_up_again() -> None:
    made = HttpPool(wire.connection("http://127.0.0.1:1"), 1)
    with pytest.raises(ConnectionError):
        await send(made)
    assert made._lookup is None


async def test_at_the_end_requests_in_progress_fail_and_later_ones_too() -> None:
    asked = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await reader.read()
        writer.close()

    async with serving(silent) as made:
        waiting = asyncio.create_task(send(made))
        await asked.wait()
        await made.close()
        with pytest.raises(ConnectionError, match="closed by the client"):
            await waiting
        with pytest.raises(ConnectionError, match="the client is closed"):
            await send(made)


async def test_at_the_end_requests_that_wait_open_no_connection() -> None:
    asked = asyncio.Event()
    connections = []

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await reader.read()
        writer.close()

    async with serving(silent, most=1) as made:
        waiting = [asyncio.create_task(send(made)) for _ in range(3)]
        await asked.wait()
        await made.close()
        assert all(isinstance(end, ConnectionError) for end in await asyncio.gather(*waiting, return_exceptions=True))
    assert len(connections) == 1


async def test_a_connection_that_is_made_after_the_end_is_closed() -> None:
    server = Server(OK)
    async with serving(server.serve) as made:
        made._lookup, made._looked_up_at = asyncio.get_running_loop().create_future(), asyncio.get_running_loop().time()
        waiting = asyncio.create_task(send(made))
        await asyncio.sleep(0)
        await made.close()
        made._lookup.set_result(addresses(made))
        with pytest.raises(ConnectionError, match="the client is closed"):
            await waiting
        await server.ended.wait()
    assert server.requests == []


# -- TLS


@pytest.fixture
def tls(tmp_path: Path) -> wire.Tls:
    return wire.Tls(tmp_path)


@asynccontextmanager
async def serving_tls(
    serve: Callable[..., Awaitable[None]], tls: wire.Tls, name: str | None = "localhost"
) -> AsyncIterator[HttpPool]:
    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls.context)
    async with asyncio.timeout(10), listening:
        made = HttpPool(tls.connection(listening.sockets[0].getsockname()[1], name), 8)
        yield made
        await made.close()


@pytest.mark.parametrize("name", ["localhost", "localhost."])
async def test_the_server_proves_its_name(tls: wire.Tls, name: str) -> None:
    async with serving_tls(Server(OK).serve, tls, name) as made:
        assert await send(made) == Answer(200, b"ok")


async def test_a_server_of_another_name_is_not_trusted(tls: wire.Tls) -> None:
    async with serving_tls(Server(OK).serve, tls, None) as made:
        with pytest.raises(ConnectionError, match="certificate verify failed"):
            await send(made)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_request_that_is_cancelled_while_it_connects_hinders_no_other(
    tls: wire.Tls, monkeypatch: pytest.MonkeyPatch, run: Callable[..., None]
) -> None:
    """In the step of the event loop in which the connection is made."""
    connected = HttpConnection.connection_made
    cancelled: list[asyncio.Task[Answer]] = []

    def connect_and_cancel(self: HttpConnection, transport: asyncio.BaseTransport) -> None:
        connected(self, transport)
        if cancelled:
            cancelled.pop().cancel()

    async def story() -> None:
        async with serving_tls(Server(OK).serve, tls) as made:
            cancelled.append(asyncio.create_task(send(made)))
            with pytest.raises(asyncio.CancelledError):
                await cancelled[0]
            assert await send(made) == Answer(200, b"ok")

    monkeypatch.setattr(HttpConnection, "connection_made", connect_and_cancel)
    run(story())
