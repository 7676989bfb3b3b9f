"""Requests on kept connections, to servers that send the bytes of the test."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop

from kube import wire
from kube.answering import BUSY, CHUNKED, EMPTY, OK, Server, send, serving
from taintwarden.kube.errors import Fenced, TooLong, Untrusted
from taintwarden.kube.http.http_session import HttpSession
from taintwarden.kube.http.messages import Answer, Request


async def test_more_requests_than_connections_wait() -> None:
    server = Server(*[OK] * 6)
    async with serving(server.serve, most=2) as made:
        answers = await asyncio.gather(*[send(made) for _ in range(6)])
    assert (len(answers), server.connections) == (6, 2)


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (CHUNKED, Answer(200, b"abcdefg")),
        (EMPTY, Answer(204, b"")),
        (BUSY, Answer(429, b"", "7")),
    ],
)
async def test_an_answer_is_read_to_its_end(sent: bytes, answer: Answer) -> None:
    server = Server(sent, OK)
    async with serving(server.serve) as made:
        assert await send(made) == answer
        assert await send(made) == Answer(200, b"ok")
    assert server.connections == 1


async def test_a_put_is_sent_again_once() -> None:
    server = Server(*[OK] * 3, *[b""] * 4)
    async with serving(server.serve) as made:
        await asyncio.gather(*[send(made) for _ in range(3)])
        with pytest.raises(ConnectionError, match="before the end of the answer"):
            await send(made, "PUT")
    assert len(server.requests) == 5


async def test_a_post_is_not_sent_again() -> None:
    """The server may have processed the request."""
    server = Server(OK, b"", OK)
    async with serving(server.serve) as made:
        await send(made)
        with pytest.raises(ConnectionError, match="before the end of the answer"):
            await send(made, "POST")
    assert len(server.requests) == 2


async def test_a_late_answer_is_not_that_of_another_request() -> None:
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


async def test_a_head_without_an_end_is_an_error() -> None:
    async with serving(Server(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000).serve) as made:
        with pytest.raises(ConnectionError, match="not HTTP"):
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
    ],
    ids=["no length", "length", "error", "chunks"],
)
async def test_an_answer_without_an_end_is_given_up(head: bytes, part: bytes) -> None:
    """A hostile server or proxy may send such an answer."""
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
        with pytest.raises(TooLong, match=r"more than \d+ bytes"):
            await made.send(Request("GET", "/a", {}, {}, max_bytes=2**20), 9.0)
    assert sent < 16 * 2**20  # most of it is in the buffers of the kernel


async def test_a_timeout_names_its_seconds() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with serving(silent) as made:
        with pytest.raises(TimeoutError, match=r"no answer within 0\.01 s"):
            await send(made, seconds=0.01)


@pytest.mark.parametrize("url", ["127.0.0.1:1", "does-not-exist.invalid:1", "a" * 64 + ".example:1"])
async def test_a_server_that_cannot_be_reached_is_named(url: str) -> None:
    made = HttpSession(wire.connection(f"http://{url}"), 1)
    with pytest.raises(ConnectionError, match=f"cannot connect to {url}"):
        await send(made)
    await made.close()


async def test_a_connection_with_older_certificates_is_not_reused() -> None:
    server = Server(OK, OK)
    async with serving(server.serve) as made:
        await send(made)
        made._connection.ssl = None  # type: ignore[assignment]
        await send(made)
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
async def test_a_path_is_sent_below_the_path_of_the_server(path: str, sent: bytes) -> None:
    server = Server(OK)
    async with serving(server.serve, "/k8s/clusters/c-1") as made:
        await send(made, path=path)
    assert server.requests[0].startswith(sent)


async def test_bytes_of_a_name_that_are_no_text_are_quoted() -> None:
    """Python decodes such bytes of a command line as surrogates."""
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


async def test_at_the_end_requests_in_progress_fail_and_later_ones_too() -> None:
    asked = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            asked.set()
            await reader.read()
        writer.close()

    async with serving(silent) as made:
        waiting = asyncio.create_task(send(made))
        await asked.wait()
        await made.close()
        with pytest.raises(ConnectionError, match="closed"):
            await waiting
        with pytest.raises(ConnectionError, match="the client is closed"):
            await send(made)


async def test_at_the_end_requests_that_wait_are_not_sent() -> None:
    asked, requests = asyncio.Event(), []

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            requests.append(await reader.readuntil(b"\r\n\r\n"))
            asked.set()
            await reader.read()
        writer.close()

    async with serving(silent, most=1) as made:
        waiting = [asyncio.create_task(send(made)) for _ in range(3)]
        await asked.wait()
        await made.close()
        assert all(isinstance(end, ConnectionError) for end in await asyncio.gather(*waiting, return_exceptions=True))
    assert len(requests) == 1


# -- TLS


@pytest.fixture
def tls(tmp_path: Path) -> wire.Tls:
    return wire.Tls(tmp_path)


@asynccontextmanager
async def serving_tls(
    serve: Callable[..., Awaitable[None]], tls: wire.Tls, name: str | None = "localhost"
) -> AsyncIterator[HttpSession]:
    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls.context)
    async with asyncio.timeout(60), listening:
        made = HttpSession(tls.connection(listening.sockets[0].getsockname()[1], name), 8)
        yield made
        await made.close()


@pytest.mark.parametrize("name", ["localhost", "localhost."])
async def test_a_server_with_the_right_name_is_trusted(tls: wire.Tls, name: str) -> None:
    async with serving_tls(Server(OK).serve, tls, name) as made:
        assert await send(made) == Answer(200, b"ok")


async def test_a_server_of_another_name_is_not_trusted(tls: wire.Tls) -> None:
    async with serving_tls(Server(OK).serve, tls, None) as made:
        with pytest.raises(Untrusted, match="certificate verify failed"):
            await send(made)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_request_that_is_cancelled_at_any_step_blocks_no_other(tls: wire.Tls, run: Callable[..., None]) -> None:
    """The steps are the look-up of the host, the connection, the TLS handshake and the wait for the answer."""

    async def story() -> None:
        async with serving_tls(Server(*[OK] * 200).serve, tls) as made:
            for steps in range(40):
                cancelled = asyncio.create_task(made.send(Request("POST", f"/{steps}", {}, {}), 5.0))
                for _ in range(steps):
                    await asyncio.sleep(0)
                cancelled.cancel()
                await asyncio.wait([cancelled])
                assert await send(made) == Answer(200, b"ok")

    run(story())


async def test_the_fence_is_checked_once_there_is_a_connection() -> None:
    """A request may wait a long time for a connection."""
    server, asked = Server(OK, OK), []
    fence = lambda: bool(asked.append(server.connections)) or True  # noqa: E731 - what it saw is the point
    async with serving(server.serve) as made:
        for _ in range(2):
            await made.send(Request("POST", "/a", {}, {}, b"{}", fence), 5.0)
    assert len(asked) == 2


async def test_a_request_that_is_fenced_is_not_sent() -> None:
    server = Server(OK, OK)
    async with serving(server.serve) as made:
        await send(made)
        with pytest.raises(Fenced):
            await made.send(Request("POST", "/b", {}, {}, b"{}", lambda: False), 5.0)
        await send(made)
    assert [request.split()[1] for request in server.requests] == [b"/a", b"/a"]


async def test_the_fence_is_checked_again_before_a_request_is_repeated() -> None:
    server, answers = Server(OK, b"", OK), [True, False]
    async with serving(server.serve) as made:
        await send(made)
        with pytest.raises(Fenced):
            await made.send(Request("PUT", "/b", {}, {}, b"{}", lambda: answers.pop(0)), 5.0)
    assert len(server.requests) == 2


@pytest.mark.parametrize("fault", [RuntimeError("a fault"), OSError("a fault"), TimeoutError("a fault")])
async def test_a_fault_of_a_fence_is_no_error_of_the_network(fault: Exception) -> None:
    """An error of the network would be retried indefinitely and never reported."""

    def fence() -> bool:
        raise fault

    server = Server(OK)
    async with serving(server.serve) as made:
        with pytest.raises(Exception, check=lambda error: error.__cause__ is fault) as caught:
            await made.send(Request("POST", "/a", {}, {}, b"{}", fence), 5.0)
        assert not isinstance(caught.value, OSError)
        assert await send(made) == Answer(200, b"ok")
    assert len(server.requests) == 1
