"""The client on a real connection: requests that it sends, answers, and failures without an answer."""

import asyncio
import contextlib
import json
import socket
import ssl
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest

from kube import wire
from kube.answering import Server
from taintwarden.kube.auth.connection import Connection
from taintwarden.kube.auth.kubeconfig import ClusterSource
from taintwarden.kube.errors import ApiError, Unreachable
from taintwarden.kube.http.client import MERGE_PATCH, Client
from taintwarden.kube.http.http_session import paced

Connect = Callable[[object], Connection]
both_ways = pytest.mark.parametrize("connect", [wire.connection, wire.proxied], ids=["direct", "proxied"])
"""Connections whose requests and watches end in the same way."""
BODY = b'{"kind":"Node"}'
CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n4\r\ntwo\n\r\n"


def answer(code: int = 200, body: bytes = BODY, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {code} Said", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@asynccontextmanager
async def served(serve: Callable[..., Any]) -> AsyncIterator[str]:
    """Serve, and yield the address of the server."""
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"


@asynccontextmanager
async def answered(
    *answers: bytes, connect: Connect = wire.connection, **more: Any
) -> AsyncIterator[tuple[Client, Server]]:
    """A client and a server that gives these answers."""
    server = Server(*answers)
    async with served(server.serve) as url, Client(connect(url), **more) as client:
        yield client, server


async def read(client: Client, path: str = "/a", idle_timeout_seconds: float = 5.0) -> bytes:
    async with client.stream(path, {}, idle_timeout_seconds) as chunks:
        return b"".join([chunk async for chunk in chunks])


def headers(request: bytes) -> dict[str, str]:
    lines = request.decode().split("\r\n")[1:-2]
    return dict(line.split(": ", 1) for line in lines)


# -- what is sent -----------------------------------------------------------------------------------------------------


async def test_a_body_is_sent_as_json_with_its_type() -> None:
    sent: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent.append(await reader.readuntil(b"\r\n\r\n"))
        sent.append(await reader.readexactly(int(headers(sent[0])["Content-Length"])))
        writer.write(answer())
        writer.close()

    async with served(serve) as url, wire.client(url) as client:
        assert await client.request("PATCH", "/a", body={"x": [1]}, content_type=MERGE_PATCH) == BODY
    assert headers(sent[0])["Content-Type"] == MERGE_PATCH
    assert json.loads(sent[1]) == {"x": [1]}


@both_ways
async def test_parameters_are_quoted_and_no_compression_is_requested(connect: Connect) -> None:
    async with answered(answer(), connect=connect) as (client, server):
        await client.request("GET", "/a b", params={"fieldSelector": "spec.nodeName!=,status.phase!=Failed"})
    [request] = server.requests
    assert b"/a%20b?fieldSelector=spec.nodeName%21%3D%2Cstatus.phase%21%3DFailed HTTP/1.1\r\n" in request
    sent = headers(request)
    assert (sent["Accept-Encoding"], sent["User-Agent"]) == ("identity", "taintwarden")
    assert "Authorization" not in sent


async def test_every_request_and_watch_has_the_impersonation_headers() -> None:
    named = (("Impersonate-User", "jane"), ("Impersonate-Group", "dev"), ("Impersonate-Group", "ops"))

    def connect(url: object) -> Connection:
        return Connection(ClusterSource(str(url), impersonation=named))

    async with answered(answer(), answer(), connect=connect) as (client, server):
        await client.request("GET", "/a")
        await read(client)
    for request in server.requests:
        sent = [tuple(line.split(": ", 1)) for line in request.decode().split("\r\n")[1:-2]]
        assert [one for one in sent if one[0].startswith("Impersonate")] == list(named)


# -- what is answered -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [200, 429])
async def test_the_time_of_the_server_is_passed_on(code: int) -> None:
    dates: list[str] = []
    dated = answer(code, BODY, "Date: Wed, 25 Nov 2026 10:00:00 GMT")
    async with answered(dated, on_date=dates.append) as (client, _):
        with contextlib.suppress(ApiError):
            await client.request("GET", "/a")
    [date] = dates
    assert parsedate_to_datetime(date).tzinfo is not None


@both_ways
async def test_a_refusal_is_an_error_with_its_code_and_retry_time(connect: Connect) -> None:
    refused = answer(429, b'{"message":"later"}', "Retry-After: 3")
    async with answered(refused, refused, connect=connect) as (client, _):
        for asked in (client.request("GET", "/a"), read(client)):
            with pytest.raises(ApiError, match="429: later") as caught:
                await asked
            assert caught.value.retry_after == 3


@pytest.mark.parametrize("is_paced", [True, False])
async def test_chunks_of_a_stream_are_joined_only_by_a_paced_client(
    monkeypatch: pytest.MonkeyPatch, is_paced: bool
) -> None:
    joined: list[object] = []
    monkeypatch.setattr("taintwarden.kube.http.http_session.paced", lambda *body: joined.append(body) or paced(*body))
    async with answered(CHUNKS + b"0\r\n\r\n", is_paced=is_paced) as (client, _):
        assert await read(client) == b"one\ntwo\n"
    assert bool(joined) == is_paced


async def test_a_redirection_is_not_followed() -> None:
    """The client would send its credentials to another server."""
    async with answered(answer(302, b"", "Location: /b")) as (client, server):
        with pytest.raises(ApiError, match="302"):
            await client.request("GET", "/a")
    assert len(server.requests) == 1


@pytest.mark.parametrize("page", [b"<html>We will be back soon</html>", b"OK", b""])
async def test_a_page_of_a_load_balancer_is_no_answer(page: bytes) -> None:
    """A pod would count as evicted if such a page with code 200 were an answer."""
    async with answered(answer(200, page)) as (client, _):
        with pytest.raises(Unreachable, match=f"the answer is not JSON: {page[:20].decode()}"):
            await client.request("POST", "/a")


@both_ways
@pytest.mark.parametrize(
    "sent",
    [b"", b"SSH-2.0-OpenSSH_9.6\r\n", b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"items":', CHUNKS],
    ids=["cut", "not-http", "cut-short", "stream-cut"],
)
async def test_an_incomplete_answer_is_unreachable(connect: Connect, sent: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        writer.close()

    async with served(serve) as url, Client(connect(url)) as client:
        for asked in (client.request("POST", "/a"), read(client)):
            with pytest.raises(Unreachable, match=r"\w+"):
                await asked


@both_ways
async def test_a_silent_server_is_unreachable_after_the_timeout(connect: Connect) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if b"/watch" in await reader.readuntil(b"\r\n\r\n"):
            writer.write(CHUNKS)
        await reader.read()
        writer.close()

    async with served(serve) as url, Client(connect(url)) as client:
        with pytest.raises(Unreachable):
            await client.request("GET", "/a", timeout_seconds=0.05)
        with pytest.raises(Unreachable):
            await read(client, "/watch", idle_timeout_seconds=0.05)


@both_ways
async def test_a_refused_connection_is_unreachable(connect: Connect) -> None:
    async with Client(connect("http://127.0.0.1:1")) as client:
        with pytest.raises(Unreachable, match=r"127\.0\.0\.1"):
            await client.request("GET", "/a")


async def test_a_long_reason_is_cut() -> None:
    async with wire.client("http://" + "a" * 600 + ".example") as client:
        with pytest.raises(Unreachable) as caught:
            await client.request("GET", "/a")
    assert len(str(caught.value)) <= 200 + len("...")


async def test_a_client_outside_its_context_is_an_error() -> None:
    client = Client(wire.connection("http://127.0.0.1:1"))
    with pytest.raises(RuntimeError, match="outside its context"):
        await client.request("GET", "/a")
    await client.__aexit__()
    async with client:
        pass
    with pytest.raises(Unreachable, match="the client is closed"):
        await client.request("GET", "/a")


@pytest.mark.parametrize("is_proxied", [False, True])
async def test_a_watch_that_is_exited_ends_its_connection_at_once(tmp_path: Path, is_proxied: bool) -> None:
    """The end of TLS needs an answer, and the event loop of a command ends before it comes."""
    tls = wire.Tls(tmp_path)
    tls.context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF  # Python 3.11.2 sets it, and sees no end without TLS's

    def serve(listening: socket.socket) -> None:
        accepted, _ = listening.accept()
        with tls.context.wrap_socket(accepted, server_side=True, suppress_ragged_eofs=False) as connection:
            connection.settimeout(60)
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
            with pytest.raises((ssl.SSLError, ConnectionResetError)):
                connection.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = asyncio.create_task(asyncio.to_thread(serve, listening))
        async with (
            wire.tunnel() as proxy,
            Client(tls.connection(listening.getsockname()[1], proxy=proxy if is_proxied else None)) as client,
        ):
            async with client.stream("/a", {}, 5.0) as chunks:
                assert await anext(chunks) == b"abc"
            await serving


# -- credentials that are refused -------------------------------------------------------------------------------------


def of_file(file: Path) -> Connect:
    return lambda url: Connection(ClusterSource(str(url), token_file=str(file)))


async def test_a_401_is_tried_once_with_other_credentials(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")
    async with answered(answer(401, b""), answer(), connect=of_file(file)) as (client, server):
        answering = server.answer

        async def renewed(reader: asyncio.StreamReader) -> bytes:
            said = await answering(reader)
            file.write_text("new")  # as a kubelet renews it
            return said

        server.answer = renewed  # type: ignore[method-assign]
        assert await client.request("POST", "/a") == BODY
    assert [headers(request)["Authorization"] for request in server.requests] == ["Bearer old", "Bearer new"]


async def test_a_401_without_other_credentials_is_an_error() -> None:
    async with answered(answer(401), connect=lambda url: wire.connection(url, "old")) as (client, server):
        with pytest.raises(ApiError):
            await client.request("GET", "/a")
    assert len(server.requests) == 1


async def test_a_401_of_a_stream_reads_the_credentials_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")
    connections: list[Connection] = []

    def connect(url: object) -> Connection:
        connections.append(of_file(file)(url))
        return connections[0]

    async with answered(answer(401, b""), answer(401, b""), connect=connect) as (client, server):
        assert await connections[0].authorization() == "Bearer old"
        file.write_text("new")
        for _ in range(2):
            with pytest.raises(ApiError):
                await read(client)
    assert [headers(request)["Authorization"] for request in server.requests] == ["Bearer old", "Bearer new"]


async def test_an_empty_token_file_is_unreachable(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("")
    async with answered(connect=of_file(tmp_path / "token")) as (client, server):
        with pytest.raises(Unreachable, match="is empty"):
            await client.request("GET", "/a")
    assert server.connections == 0


@pytest.mark.parametrize("said", [b"HTTP/1.1 407 Who are you\r\n\r\n", b"HTTP/1.1 502 \r\n\r\n", b"SSH-2.0-x\r\n", b""])
async def test_no_error_shows_the_password_of_a_proxy(said: bytes) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        writer.close()

    async with served(refuse) as url:
        proxy = url.replace("//", "//me:hidden-word@")
        async with Client(Connection(ClusterSource("https://192.0.2.1:6443", proxy=proxy))) as client:
            for asked in (client.request("GET", "/a"), read(client)):
                with pytest.raises(Unreachable) as caught:
                    await asked
                assert "hidden-word" not in "".join(traceback.format_exception(caught.value))
