"""Probes over HTTP: liveness, readiness and metrics."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families

from patience import until
from serving.clients import count_open
from taintwarden.kube.errors import ConfigError
from taintwarden.serving.probes import LIMITS, ProbeServer
from taintwarden.settings import CommonSettings
from taintwarden.telemetry.metrics import Metrics

HOST = "127.0.0.1"


class State:
    unready = ""
    dead = ""


@pytest.fixture
def state() -> State:
    return State()


@pytest.fixture
async def server(state: State, port: int) -> AsyncIterator[ProbeServer]:
    metrics = Metrics()
    metrics.evictions.labels("p", "evicted").inc(3)
    made = make(port, state, metrics)
    await made.start()
    yield made
    await made.stop()


def make(port: int, state: State, metrics: Metrics) -> ProbeServer:
    settings = CommonSettings(http_host=HOST, http_port=port)
    return ProbeServer(settings, unready=lambda: state.unready, dead=lambda: state.dead, metrics=metrics.exposition)


@pytest.fixture
async def get(server: ProbeServer, port: int) -> AsyncIterator[Any]:
    async with aiohttp.ClientSession(f"http://{HOST}:{port}") as session:

        async def ask(path: str) -> tuple[int, str]:
            async with session.get(path) as response:
                return response.status, await response.text()

        yield ask


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
async def test_a_ready_replica_answers_both_probes_with_ok(get, path):
    assert await get(path) == (200, "ok\n")


async def test_a_replica_that_is_not_ready_is_alive(get, state):
    state.unready = "the cluster is not fully known yet"
    assert await get("/livez") == (200, "ok\n")
    assert await get("/readyz") == (503, "the cluster is not fully known yet\n")


async def test_a_dead_replica_is_neither_alive_nor_ready(get, state):
    state.dead = "a task failed"
    assert await get("/livez") == (503, "a task failed\n")
    assert await get("/readyz") == (503, "a task failed\n")


async def test_metrics_have_the_format_of_prometheus(get):
    status, text = await get("/metrics")
    assert status == 200
    families = {family.name: family for family in text_string_to_metric_families(text)}
    [sample] = [one for one in families["taintwarden_evictions"].samples if one.name.endswith("_total")]
    assert (sample.labels, sample.value) == ({"policy": "p", "outcome": "evicted"}, 3.0)


async def test_a_port_that_is_taken_is_named_with_its_flag(server, state, port):
    second = make(port, state, Metrics())
    with pytest.raises(ConfigError, match=f"{HOST}:{port} .*--http-port"):
        await second.start()
    await second.stop()


# -- bounds on the resources that clients can take --------------------------------------------------------------------


async def test_idle_connections_end_for_a_probe(server, get, port):
    idle = [await asyncio.open_connection(HOST, port) for _ in range(LIMITS.max_connections + 20)]
    assert await get("/livez") == (200, "ok\n")
    await until(lambda: count_open(idle) <= LIMITS.max_connections)
    assert count_open(idle) >= LIMITS.max_connections - 1
    for _, writer in idle:
        writer.transport.abort()


async def test_a_megabyte_of_headers_is_refused_before_it_is_stored(server, port):
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n" + (b"X-A: " + b"a" * 4_000 + b"\r\n") * 40)
    async with asyncio.timeout(60):
        assert b" 400 " in await reader.readline()
    writer.transport.abort()


@pytest.mark.parametrize("asked", ["GET /livez", "GET /x", "OPTIONS *"])
async def test_a_connection_is_for_one_request(server, port, asked):
    """The limit on connections is the limit on requests, for every request."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(f"{asked} HTTP/1.1\r\nHost: x\r\n\r\n".encode() * 2)
    async with asyncio.timeout(60):
        assert (await reader.read()).count(b"HTTP/1.1 ") == 1
    writer.close()


async def test_a_body_is_not_read(server, port, monkeypatch):
    """200 kB may decompress to 200 MB, of which the loop that evicts would decompress 16 MB at a time."""
    read, receive = bytearray(), web.RequestHandler.data_received

    def record(self: web.RequestHandler, data: bytes) -> None:
        read.extend(data)
        receive(self, data)

    monkeypatch.setattr(web.RequestHandler, "data_received", record)
    head = b"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 1000000000\r\n\r\n"
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(head + b"\0" * 200_000)
    async with asyncio.timeout(60):
        with contextlib.suppress(ConnectionError):  # of what was sent and is not read
            await reader.read()
    writer.close()
    assert read == head
