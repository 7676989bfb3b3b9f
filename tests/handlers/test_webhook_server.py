"""HTTPS for the API servers: from an empty Secret to an answer, and from one certificate to the next without a gap."""

import asyncio
import json
import socket
import ssl
import time
from collections.abc import AsyncIterator

import aiohttp
import pytest

from admission.workloads import extended, gt, pod, review
from kube.scripted import ScriptedClient
from kube.stored_webhooks import StoredWebhooks
from taintwarden.admission.door import Door
from taintwarden.certificates.pairs import Pair, make_pair
from taintwarden.controller.cache import Translator
from taintwarden.controller.clock import system_clock
from taintwarden.engine.machine import Machine
from taintwarden.engine.matching.tolerations import ALL_GATES
from taintwarden.handlers.webhook_server import WebhookServer, load
from taintwarden.kube.errors import ConfigError
from taintwarden.settings import Settings
from taintwarden.telemetry.metrics import Metrics

HOST, NAME = "127.0.0.1", "door.home.svc"
POD = {"group": "", "version": "v1", "kind": "Pod"}


@pytest.fixture
def port() -> int:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return listener.getsockname()[1]


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def make_server(api: StoredWebhooks, port: int, metrics: Metrics) -> WebhookServer:
    settings = Settings(http_host=HOST, namespace="home", webhook_service="door")
    door = Door(Machine(), Translator(system_clock), ALL_GATES)
    client = ScriptedClient(default=api)
    return WebhookServer(settings, port, client, door, leads=lambda: True, metrics=metrics, clock=system_clock)


@pytest.fixture
def api() -> StoredWebhooks:
    return StoredWebhooks()


@pytest.fixture
async def server(api: StoredWebhooks, port: int, metrics: Metrics) -> AsyncIterator[WebhookServer]:
    started = make_server(api, port, metrics)
    await started.start()
    yield started
    await started.stop()


def trusting(bundle: bytes) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=bundle.decode())


async def ask(port: int, tls: ssl.SSLContext, path: str = "/validate") -> dict:
    body = json.dumps(review(kind=POD, object=pod(extended(gt("0950"))))).encode()
    connector = aiohttp.TCPConnector(ssl=tls, force_close=True)
    async with aiohttp.ClientSession(connector=connector) as session:
        url = f"https://{HOST}:{port}{path}"
        async with session.post(url, data=body, server_hostname=NAME) as response:
            return (await response.json())["response"]


async def test_a_replica_without_a_certificate_is_not_ready(server, port):
    assert "certificate" in server.unready()
    with pytest.raises(aiohttp.ClientError):
        await ask(port, ssl.create_default_context())


async def test_from_an_empty_secret_to_an_answer(server, api, port):
    await server.keeper.look()
    assert server.unready() == ""
    response = await ask(port, trusting(api.bundles()["one"]))
    assert "write 950, not 0950" in response["status"]["message"]


async def test_both_webhooks_are_there_and_counted(server, api, port, metrics):
    await server.keeper.look()
    tls = trusting(api.bundles()["one"])
    await ask(port, tls)
    await ask(port, tls, "/mutate")
    for labels in ({"webhook": "validate", "result": "refused"}, {"webhook": "mutate", "result": "allowed"}):
        assert metrics.registry.get_sample_value("taintwarden_admission_requests_total", labels) == 1
    assert metrics.registry.get_sample_value("taintwarden_admission_duration_seconds_count", {"webhook": "mutate"}) == 1


async def test_another_certificate_is_served_without_a_restart_and_a_connection_that_is_open_stays(server, api, port):
    await server.keeper.look()
    tls = trusting(api.bundles()["one"])
    _, writer = await asyncio.open_connection(HOST, port, ssl=tls, server_hostname=NAME)
    following = make_pair((NAME, "door.home", "door"), time.time())
    api.put(tls_crt=following.certificate, tls_key=following.key, ca_crt=following.certificate)
    await server.keeper.look()
    assert (await ask(port, trusting(following.certificate)))["allowed"] is False
    with pytest.raises(aiohttp.ClientError):
        await ask(port, tls)
    assert not writer.transport.is_closing()
    writer.close()


async def test_a_port_that_is_taken_is_named_with_its_flag(server, api, port, metrics):
    second = make_server(api, port, metrics)
    with pytest.raises(ConfigError, match=f"{HOST}:{port} .*--webhook-port"):
        await second.start()
    await second.stop()


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_pair_is_loaded_with_and_without_files_in_memory(monkeypatch, in_memory):
    if not in_memory:
        monkeypatch.delattr("os.memfd_create")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load(context, make_pair((NAME,), time.time()))


def test_a_pair_that_does_not_fit_is_not_loaded():
    one, other = (make_pair((NAME,), time.time()) for _ in range(2))
    mixed = Pair(one.certificate, other.key, 0.0, 0.0, ())
    with pytest.raises(ssl.SSLError):
        load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), mixed)
