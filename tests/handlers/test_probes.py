"""Probes over HTTP: alive, ready, and what Prometheus scrapes."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families

from taintwarden.handlers.probes import probe_app
from taintwarden.telemetry.metrics import Metrics


class State:
    unready = ""
    dead = ""


@pytest.fixture
def state() -> State:
    return State()


@pytest.fixture
async def get(state: State) -> AsyncIterator[Any]:
    metrics = Metrics()
    metrics.evictions.labels("p", "evicted").inc(3)
    app = probe_app(unready=lambda: state.unready, dead=lambda: state.dead, metrics=metrics.exposition)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with aiohttp.ClientSession(f"http://127.0.0.1:{runner.addresses[0][1]}") as session:

        async def ask(path: str) -> tuple[int, str]:
            async with session.get(path) as response:
                return response.status, await response.text()

        yield ask
    await runner.cleanup()


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
async def test_all_is_well(get, path):
    assert await get(path) == (200, "ok\n")


async def test_a_replica_that_is_not_ready_is_alive(get, state):
    state.unready = "the cluster is not fully known yet"
    assert await get("/livez") == (200, "ok\n")
    assert await get("/readyz") == (503, "the cluster is not fully known yet\n")


async def test_a_dead_replica_is_neither(get, state):
    state.dead = "a task failed"
    assert await get("/livez") == (503, "a task failed\n")
    assert await get("/readyz") == (503, "a task failed\n")


async def test_metrics_are_what_prometheus_reads(get):
    status, text = await get("/metrics")
    assert status == 200
    families = {family.name: family for family in text_string_to_metric_families(text)}
    [sample] = [one for one in families["taintwarden_evictions"].samples if one.name.endswith("_total")]
    assert (sample.labels, sample.value) == ({"policy": "p", "outcome": "evicted"}, 3.0)


async def test_other_paths_are_not_there(get):
    assert (await get("/"))[0] == 404
