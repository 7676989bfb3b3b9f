"""The session on a real connection: what is sent, and every way of getting no answer."""

import asyncio
import contextlib
import socket
import ssl
import traceback
from collections.abc import AsyncIterator, Callable
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import cast

import pytest
from aiohttp import web
from kmock import RawHandler

from kube import wire
from localcluster import LocalCluster
from taintwarden.kube.auth.connection import Connection
from taintwarden.kube.auth.kubeconfig import ClusterSource
from taintwarden.kube.errors import ApiError, TooLong, Unreachable
from taintwarden.kube.http.client import MERGE_PATCH, Client
from taintwarden.kube.http.http_session import paced

BODY = b'{"kind":"Node"}'

pytestmark = pytest.mark.kmock(cls=RawHandler)


Connect = Callable[[object], Connection]


@pytest.fixture(params=[wire.connection, wire.proxied], ids=["direct", "proxied"])
def connect(request: pytest.FixtureRequest) -> Connect:
    """How to connect to the server at an address: requests and watches of both ways end alike."""
    return cast("Connect", request.param)


@pytest.fixture
async def client(kmock: RawHandler, connect: Connect) -> AsyncIterator[Client]:
    async with Client(connect(kmock.url)) as made:
        yield made


async def test_a_request_answers_with_the_body(kmock: RawHandler, client: Client) -> None:
    kmock["get /a"] << BODY
    assert await client.request("GET", "/a") == BODY


async def test_a_body_is_sent_as_json_with_its_type(kmock: RawHandler, client: Client) -> None:
    kmock["/a"] << {}
    await client.request("PATCH", "/a", body={"x": [1]}, content_type=MERGE_PATCH)
    [request] = kmock
    assert request.data == {"x": [1]}
    assert request.headers["Content-Type"] == MERGE_PATCH


async def test_parameters_are_quoted(kmock: RawHandler, client: Client) -> None:
    kmock["/a"] << {}
    await client.request("GET", "/a", params={"fieldSelector": "spec.nodeName!=,status.phase!=Failed"})
    [request] = kmock
    assert request.params == {"fieldSelector": "spec.nodeName!=,status.phase!=Failed"}


async def test_nothing_compressed_is_asked_for(kmock: RawHandler, client: Client) -> None:
    kmock["/a"] << {}
    await client.request("GET", "/a")
    [request] = kmock
    assert request.headers["Accept-Encoding"] == "identity"
    assert request.headers["User-Agent"] == "taintwarden"


@pytest.mark.parametrize("status", [200, 429])
async def test_the_time_of_the_server_is_passed_on(kmock: RawHandler, status: int) -> None:
    kmock["/a"] << status << {}
    dates: list[str] = []
    async with Client(wire.connection(kmock.url), on_date=dates.append) as client:
        with contextlib.suppress(ApiError):
            await client.request("GET", "/a")
    [date] = dates
    assert parsedate_to_datetime(date).tzinfo is not None


async def test_a_refusal_is_an_error_with_its_code(kmock: RawHandler, client: Client) -> None:
    kmock["/a"] << 403 << {"message": "no", "reason": "Forbidden"}
    with pytest.raises(ApiError, match="403 Forbidden: no"):
        await client.request("GET", "/a")


async def test_a_refused_stream_is_an_error_with_its_code(kmock: RawHandler, client: Client) -> None:
    kmock["/a"] << 410 << {"message": "too old resource version"}
    with pytest.raises(ApiError, match="410: too old"):
        async with client.stream("/a", {}, 5.0):
            pass


async def test_a_stream_comes_as_it_is_sent(kmock: RawHandler, client: Client) -> None:
    kmock["/a"] << (b"one\n", b"two\n")
    async with client.stream("/a", {"watch": "true"}, 5.0) as chunks:
        assert b"".join([chunk async for chunk in chunks]) == b"one\ntwo\n"


@pytest.mark.parametrize("is_paced", [True, False])
async def test_only_a_client_that_is_paced_joins_chunks(
    kmock: RawHandler, monkeypatch: pytest.MonkeyPatch, is_paced: bool
) -> None:
    joined: list[object] = []
    monkeypatch.setattr("taintwarden.kube.http.http_session.paced", lambda *body: joined.append(body) or paced(*body))
    kmock["/a"] << (b"one\n", b"two\n")
    async with Client(wire.connection(kmock.url), is_paced=is_paced) as client, client.stream("/a", {}, 5.0) as chunks:
        assert b"".join([chunk async for chunk in chunks]) == b"one\ntwo\n"
    assert bool(joined) == is_paced


async def read(client: Client, path: str, idle_timeout_seconds: float) -> None:
    async with client.stream(path, {}, idle_timeout_seconds) as chunks:
        async for _ in chunks:
            pass


async def test_a_silent_stream_is_given_up(kmock: RawHandler, client: Client) -> None:
    kmock["/a"] << (b"one\n", lambda: asyncio.sleep(5), b"two\n")
    with pytest.raises(Unreachable):
        await read(client, "/a", idle_timeout_seconds=0.05)


async def test_a_request_without_an_answer_is_given_up(connect: Connect) -> None:
    cluster = LocalCluster()
    cluster.faults.hang()
    async with cluster.serve() as server, Client(connect(server.url)) as client:
        with pytest.raises(Unreachable):
            await client.request("GET", "/api/v1/nodes", timeout_seconds=0.05)
        cluster.faults.clear()


async def test_a_cut_connection_is_no_answer(connect: Connect) -> None:
    cluster = LocalCluster()
    cluster.faults.cut()
    async with cluster.serve() as server, Client(connect(server.url)) as client:
        with pytest.raises(Unreachable, match=r"\w+"):
            await client.request("POST", "/api/v1/nodes", body={})


async def test_an_answer_cut_short_is_no_answer(connect: Connect) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"items":')
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, Client(connect(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")) as client:
        with pytest.raises(Unreachable):
            await client.request("GET", "/a")


async def test_what_is_no_http_is_no_answer(connect: Connect) -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, Client(connect(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")) as client:
        with pytest.raises(Unreachable):
            await client.request("GET", "/a")


async def test_nobody_there_is_no_answer(connect: Connect) -> None:
    async with Client(connect("http://127.0.0.1:1")) as client:
        with pytest.raises(Unreachable, match=r"127\.0\.0\.1"):
            await client.request("GET", "/a")


async def test_a_long_reason_is_cut() -> None:
    async with wire.client("http://" + "a" * 600 + ".example") as client:
        with pytest.raises(Unreachable) as caught:
            await client.request("GET", "/a")
    assert len(str(caught.value)) <= 200 + len("...")


async def test_a_redirection_is_not_followed(kmock: RawHandler, client: Client) -> None:
    """It would send the credentials to another server."""
    kmock["/a"] << 302 << {"Location": f"{kmock.url}b"}
    with pytest.raises(ApiError, match="302"):
        await client.request("GET", "/a")
    assert len(list(kmock)) == 1


async def test_the_token_is_sent(kmock: RawHandler) -> None:
    kmock["/a"] << {}
    async with wire.client(kmock.url, token="secret") as client:
        await client.request("GET", "/a")
    [request] = kmock
    assert request.headers["Authorization"] == "Bearer secret"


async def test_without_a_token_nothing_is_sent(kmock: RawHandler, client: Client) -> None:
    kmock["/a"] << {}
    await client.request("GET", "/a")
    [request] = kmock
    assert "Authorization" not in request.headers


async def test_outside_its_context_a_client_is_of_no_use(kmock: RawHandler) -> None:
    with pytest.raises(RuntimeError, match="outside its context"):
        await Client(wire.connection(kmock.url)).request("GET", "/a")


async def test_leaving_without_having_entered_is_nothing(kmock: RawHandler) -> None:
    await Client(wire.connection(kmock.url)).__aexit__()


async def test_requests_do_not_queue_behind_watches() -> None:
    """A bound on connections that watches could use up would stop evictions."""
    opened = asyncio.Event()

    async def watch(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        opened.set()
        await asyncio.sleep(30)
        return response

    async def quick(_: web.Request) -> web.Response:
        return web.Response(body=BODY)

    app = web.Application()
    app.add_routes([web.get("/watch", watch), web.get("/quick", quick)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        connection = wire.connection(f"http://127.0.0.1:{runner.addresses[0][1]}")
        async with Client(connection, max_connections=2) as client, client.stream("/watch", {}, 5.0):
            await opened.wait()
            assert await client.request("GET", "/quick", timeout_seconds=2.0) == BODY
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("is_proxied", [False, True])
async def test_a_watch_that_is_left_ends_its_connection_at_once(tmp_path: Path, is_proxied: bool) -> None:
    """The end of TLS needs an answer, and the event loop of a command ends before it comes."""
    tls = wire.Tls(tmp_path)

    def serve(listening: socket.socket) -> None:
        accepted, _ = listening.accept()
        with tls.context.wrap_socket(accepted, server_side=True, suppress_ragged_eofs=False) as connection:
            connection.settimeout(5)
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
            with pytest.raises((ssl.SSLEOFError, ConnectionResetError)):
                connection.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        served = asyncio.create_task(asyncio.to_thread(serve, listening))
        async with (
            wire.tunnel() as proxy,
            Client(tls.connection(listening.getsockname()[1], proxy=proxy if is_proxied else None)) as client,
        ):
            async with client.stream("/a", {}, 5.0) as chunks:
                assert await anext(chunks) == b"abc"
            await served


async def test_a_401_is_tried_once_with_other_credentials(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")

    sent: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        sent.append(request.headers["Authorization"])
        file.write_text("new")  # as a kubelet renews it
        return web.Response(status=200 if sent[-1] == "Bearer new" else 401, body=BODY)

    app = web.Application()
    app.add_routes([web.post("/a", answer)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    source = ClusterSource(f"http://127.0.0.1:{runner.addresses[0][1]}", token_file=str(file))
    async with Client(Connection(source)) as client:
        assert await client.request("POST", "/a", body={}) == BODY
    await runner.cleanup()
    assert sent == ["Bearer old", "Bearer new"]


async def test_a_401_that_nothing_can_be_done_about_is_told(kmock: RawHandler) -> None:
    kmock["/a"] << 401
    async with wire.client(kmock.url, token="old") as client:
        with pytest.raises(ApiError):
            await client.request("GET", "/a")
    assert len(list(kmock)) == 1


async def test_an_empty_token_file_is_no_answer(kmock: RawHandler, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("")
    source = ClusterSource(str(kmock.url).rstrip("/"), token_file=str(tmp_path / "token"))
    async with Client(Connection(source)) as client:
        with pytest.raises(Unreachable, match="is empty"):
            await client.request("GET", "/a")
    assert list(kmock) == []


@pytest.mark.parametrize("token", ["a\nb", "a\0b", "\ufeffa"])
async def test_a_token_that_no_header_can_have_is_no_answer(kmock: RawHandler, token: str) -> None:
    async with wire.client(kmock.url, token=token) as client:
        with pytest.raises(Unreachable, match="the token contains"):
            await client.request("GET", "/a")
        with pytest.raises(Unreachable, match="the token contains"):
            await read(client, "/a", idle_timeout_seconds=5.0)
    assert list(kmock) == []


async def test_requests_and_watches_go_through_the_proxy(kmock: RawHandler) -> None:
    kmock["/a"] << BODY
    source = ClusterSource("http://192.0.2.1:6443", proxy=str(kmock.url))
    async with Client(Connection(source)) as client:
        assert await client.request("GET", "/a") == BODY
        async with client.stream("/a", {}, 5.0) as chunks:
            assert [chunk async for chunk in chunks] == [BODY]
    assert [request.headers["Host"] for request in kmock] == ["192.0.2.1:6443"] * 2


async def test_a_refusal_through_the_proxy_is_an_error_with_its_code(kmock: RawHandler) -> None:
    kmock["/a b"] << 429 << {"message": "later", "details": {"retryAfterSeconds": 7}}
    async with Client(Connection(ClusterSource("http://192.0.2.1:6443", proxy=str(kmock.url)))) as client:
        with pytest.raises(ApiError, match="429: later") as caught:
            await client.request("GET", "/a b", params={"x": "y z"})
    assert caught.value.retry_after == 7
    assert [dict(request.params) for request in kmock] == [{"x": "y z"}]


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 407 Who are you\r\n\r\n", b"HTTP/1.1 502 \r\n\r\n", b"SSH-2.0-x\r\n", b""]
)
async def test_the_password_of_a_proxy_is_in_no_error(answer: bytes) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as listening:
        proxy = f"http://me:hidden-word@127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        async with Client(Connection(ClusterSource("https://192.0.2.1:6443", proxy=proxy))) as client:
            with pytest.raises(Unreachable) as caught:
                await client.request("GET", "/a")
            with pytest.raises(Unreachable) as streamed:
                await read(client, "/a", idle_timeout_seconds=5.0)
    for error in (caught.value, streamed.value):
        assert "hidden-word" not in "".join(traceback.format_exception(error))


@pytest.mark.parametrize("is_proxied", [False, True])
async def test_an_answer_that_is_too_long_is_no_answer(kmock: RawHandler, *, is_proxied: bool) -> None:
    kmock["/a"] << b"x" * 100_000
    source = (
        ClusterSource("http://192.0.2.1:6443", proxy=str(kmock.url))
        if is_proxied
        else ClusterSource(str(kmock.url).rstrip("/"))
    )
    async with Client(Connection(source)) as client:
        with pytest.raises(TooLong, match="more than 50000 bytes"):
            await client.request("GET", "/a", max_bytes=50_000)


async def test_the_header_of_a_refusal_says_when_to_try_again(kmock: RawHandler, client: Client) -> None:
    kmock["/a"] << 429 << {"Retry-After": "3"} << b""
    with pytest.raises(ApiError) as caught:
        await client.request("GET", "/a")
    assert caught.value.retry_after == 3


async def test_a_stream_that_is_cut_is_no_answer(connect: Connect) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, Client(connect(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")) as client:
        with pytest.raises(Unreachable):
            await read(client, "/a", 5.0)


async def test_after_its_end_a_client_reaches_nothing(kmock: RawHandler, connect: Connect) -> None:
    async with Client(connect(kmock.url)) as client:
        pass
    with pytest.raises(Unreachable, match="the client is closed"):
        await client.request("GET", "/a")


async def test_a_401_of_a_stream_asks_for_other_credentials(kmock: RawHandler, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")
    kmock["/a"] << 401 << b""
    connection = Connection(ClusterSource(str(kmock.url).rstrip("/"), token_file=str(file)))
    assert await connection.authorization() == "Bearer old"
    file.write_text("new")  # as a kubelet renews it
    async with Client(connection) as client:
        for _ in range(2):
            with pytest.raises(ApiError):
                await read(client, "/a", 5.0)
    assert [request.headers["Authorization"] for request in kmock] == ["Bearer old", "Bearer new"]
