"""/metrics over HTTPS: allowed clients, certificates, and bounds on connections."""

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from kube.scripted import Call, ScriptedClient, refusal
from patience import until
from serving.clients import count_open
from taintwarden.controller.clock import system_clock
from taintwarden.kube.errors import ConfigError
from taintwarden.serving.key_pairs import KeyPair, make_key_pair
from taintwarden.serving.metrics_server import LIMITS, RELOAD_SECONDS, MetricsServer
from taintwarden.settings import CommonSettings

HOST, NAME = "127.0.0.1", "metrics.example"


def answer(call: Call) -> Any:
    spec = call.body["spec"]
    if call.path.endswith("tokenreviews"):
        if spec["token"] == "broken":
            raise refusal(500)
        return {"status": {"authenticated": spec["token"] != "strange", "user": {"username": spec["token"]}}}
    return {"status": {"allowed": spec["user"] == "good"}}


def make(port: int, reload_seconds: float = RELOAD_SECONDS, **more: Any) -> MetricsServer:
    settings = CommonSettings(http_host=HOST, metrics_port=port, **more)
    client = ScriptedClient(default=answer)
    return MetricsServer(settings, client, lambda: b"taintwarden_leader 1\n", system_clock, reload_seconds)


@pytest.fixture
async def server(port: int) -> AsyncIterator[MetricsServer]:
    started = make(port)
    await started.start()
    yield started
    await started.stop()


async def ask(port: int, token: str | None = None, path: str = "/metrics", tls: Any = False) -> tuple[int, str]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"https://{HOST}:{port}{path}", headers=headers, ssl=tls, server_hostname=NAME) as response,
    ):
        return response.status, await response.text()


async def test_an_allowed_client_gets_the_metrics(server, port):
    assert await ask(port, "good") == (200, "taintwarden_leader 1\n")


async def test_without_a_port_nothing_listens():
    started = make(0)
    await started.start()
    assert started._listener._sockets == []
    await started.stop()


@pytest.mark.parametrize(("token", "status"), [(None, 401), ("strange", 401), ("poor", 403), ("broken", 503)])
async def test_other_clients_get_no_metrics(server, port, token, status):
    found, body = await ask(port, token)
    assert found == status
    assert "taintwarden_leader" not in body


@pytest.mark.parametrize("path", ["/", "/livez", "/metrics/"])
async def test_other_paths_are_not_served(server, port, path):
    assert (await ask(port, "good", path))[0] == 404


def write(folder: Path, pair: KeyPair) -> ssl.SSLContext:
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)
    return ssl.create_default_context(cadata=pair.certificate.decode())


async def test_a_given_certificate_is_served_and_replaced_by_the_next(port, tmp_path):
    first = write(tmp_path, make_key_pair([NAME], time.time()))
    started = make(port, reload_seconds=0.01, metrics_certificate=str(tmp_path))
    await started.start()
    assert (await ask(port, "good", tls=first))[0] == 200
    following = write(tmp_path, make_key_pair([NAME], time.time()))
    async with asyncio.timeout(60):
        while True:
            try:
                assert (await ask(port, "good", tls=following))[0] == 200
                break
            except aiohttp.ClientConnectorCertificateError:
                await asyncio.sleep(0.01)
    await started.stop()


@pytest.mark.parametrize(
    "next_one",
    [lambda: b"nothing", lambda: make_key_pair([NAME], time.time()).certificate],
    ids=["unusable", "no key yet"],
)
async def test_a_new_certificate_that_cannot_be_served_is_ignored(port, tmp_path, next_one):
    first = write(tmp_path, make_key_pair([NAME], time.time()))
    started = make(port, reload_seconds=0.0, metrics_certificate=str(tmp_path))
    await started.start()
    (tmp_path / "tls.crt").write_bytes(next_one())
    for _ in range(10):
        await asyncio.sleep(0)
    assert (await ask(port, "good", tls=first))[0] == 200
    await started.stop()


@pytest.mark.parametrize("content", [None, "nothing"])
async def test_without_a_usable_certificate_the_server_does_not_start(port, tmp_path, content):
    if content is not None:
        (tmp_path / "tls.crt").write_text(content)
        (tmp_path / "tls.key").write_text(content)
    with pytest.raises(ConfigError, match="--metrics-certificate"):
        await make(port, metrics_certificate=str(tmp_path)).start()


async def test_a_port_that_is_taken_is_named(server, port):
    with pytest.raises(ConfigError, match="--metrics-port"):
        await make(port).start()


async def test_a_flood_of_connections_is_bounded_and_paced(server, port):
    began = asyncio.get_running_loop().time()
    clients = [await asyncio.open_connection(HOST, port) for _ in range(2 * LIMITS.max_connections)]
    await until(lambda: count_open(clients) <= LIMITS.max_connections)
    assert (
        asyncio.get_running_loop().time() - began > 0.9 * (LIMITS.max_connections - 1) * LIMITS.accept_interval_seconds
    )
    assert (await ask(port, "good"))[0] == 200
    for _, writer in clients:
        writer.close()


async def connect(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return await asyncio.open_connection(HOST, port, ssl=context)


@pytest.mark.parametrize(
    ("asked", "status"), [("GET /metrics", 401), ("GET /x", 404), ("POST /metrics", 405), ("G@T /", 400)]
)
@pytest.mark.parametrize("more", [b"", b"x" * 10_000_000])
async def test_a_refused_connection_ends(server, port, asked, status, more):
    """The connection ends at once, whatever else was sent on it."""
    reader, writer = await connect(port)
    writer.write(f"{asked} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\n".encode() + more)
    async with asyncio.timeout(LIMITS.first_answer_seconds / 2):
        with contextlib.suppress(ConnectionError):
            answer = await reader.readline()
            await reader.read()
    writer.transport.abort()
    assert f" {status} ".encode() in answer


async def test_tls_1_3_is_spoken(server, port):
    _, writer = await connect(port)
    assert writer.get_extra_info("ssl_object").version() == "TLSv1.3"
    writer.close()


async def test_an_allowed_client_keeps_its_connection(server, port):
    reader, writer = await connect(port)
    for _ in range(3):
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\n\r\n")
        async with asyncio.timeout(60):
            assert b" 200 " in await reader.readline()
            await reader.readuntil(b"taintwarden_leader 1\n")
    writer.close()
