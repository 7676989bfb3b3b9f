"""HTTPS for the API servers: from an empty Secret to an answer, and from one certificate to the next without a gap."""

import asyncio
import datetime
import gzip
import json
import socket
import ssl
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from structlog.testing import capture_logs

from admission.workloads import extended, gt, pod, review
from controlplane.certificates import Authority
from kube.scripted import ScriptedClient
from kube.stored_webhooks import StoredWebhooks
from patience import until
from serving.uncollected import uncollected
from taintwarden.controller.clock import system_clock
from taintwarden.engine.operators import ALL_GATES
from taintwarden.kube.errors import ConfigError
from taintwarden.serving import listening
from taintwarden.serving.key_pairs import make_authority, make_key_pair
from taintwarden.serving.listening import ConnectionLimits
from taintwarden.telemetry.metrics import Metrics, observer
from taintwarden_placement.admission.cluster_state import ClusterState
from taintwarden_placement.serving.https_server import HttpsServer
from taintwarden_placement.serving.reviews import RESULTS, review_app
from taintwarden_placement.settings import WebhookSettings
from taintwarden_placement.webhook_calls import ConfigurationKind
from taintwarden_placement.webhook_process import admission_webhooks

LIMITS = ConnectionLimits()
HOST, NAME = "127.0.0.1", "webhook.home.svc"
POD = {"group": "", "version": "v1", "kind": "Pod"}


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def make_server(
    api: StoredWebhooks, port: int, metrics: Metrics, limits: ConnectionLimits = LIMITS, **more: str
) -> HttpsServer:
    settings = WebhookSettings(http_host=HOST, namespace="home", webhook_service="webhook", webhook_port=port, **more)
    webhook = admission_webhooks(ClusterState(), system_clock, ALL_GATES)
    client = ScriptedClient(default=api)
    judges = {"validate": webhook.validate, "mutate": webhook.mutate}
    observe = observer(metrics.admission_requests, metrics.admission_duration, judges, RESULTS)
    make_app = partial(review_app, judges, observe)
    return HttpsServer(
        settings,
        client,
        make_app,
        report_expiry=metrics.webhook_certificate_expiry.set,
        clock=system_clock,
        limits=limits,
        kinds=tuple(ConfigurationKind),
    )


@pytest.fixture
def api() -> StoredWebhooks:
    return StoredWebhooks()


@pytest.fixture
async def server(
    request: pytest.FixtureRequest, api: StoredWebhooks, port: int, metrics: Metrics
) -> AsyncIterator[HttpsServer]:
    started = make_server(api, port, metrics, getattr(request, "param", LIMITS))
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


def test_every_result_is_counted_from_zero(api, port, metrics):
    make_server(api, port, metrics)
    for webhook in ("validate", "mutate"):
        for result in RESULTS:
            labels = {"webhook": webhook, "result": result}
            assert metrics.registry.get_sample_value("taintwarden_admission_requests_total", labels) == 0


async def test_both_webhooks_answer_and_are_counted(server, api, port, metrics):
    await server.keeper.check()
    tls = trusting(api.secret["ca.crt"])
    await ask(port, tls)
    await ask(port, tls, "/mutate")
    for labels in ({"webhook": "validate", "result": "refused"}, {"webhook": "mutate", "result": "allowed"}):
        assert metrics.registry.get_sample_value("taintwarden_admission_requests_total", labels) == 1
    assert metrics.registry.get_sample_value("taintwarden_admission_duration_seconds_count", {"webhook": "mutate"}) == 1


async def test_a_new_certificate_is_served_without_a_restart_and_open_connections_stay(server, api, port):
    await server.keeper.check()
    tls = trusting(api.secret["ca.crt"])
    _, writer = await asyncio.open_connection(HOST, port, ssl=tls, server_hostname=NAME)
    authority = make_authority("webhook", time.time())
    following = make_key_pair((NAME, "webhook.home", "webhook"), time.time(), authority)
    api.put(tls_crt=following.certificate, tls_key=following.key, ca_crt=authority.certificate)
    api.put(authority_crt=authority.certificate, authority_key=authority.key)
    await server.keeper.check()
    assert (await ask(port, trusting(authority.certificate)))["allowed"] is False
    with pytest.raises(aiohttp.ClientError):
        await ask(port, tls)
    assert not writer.transport.is_closing()
    writer.close()


def short_key() -> tuple[bytes, bytes]:
    """A certificate and its key, as another program may write them into the Secret."""
    key, name = rsa.generate_private_key(65537, 1024), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(5).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=9))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
    form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    return builder.sign(key, hashes.SHA256()).public_bytes(pem), key.private_bytes(pem, form, none)


def other_key() -> tuple[bytes, bytes]:
    """A certificate that is followed by the key of another one."""
    first, second = (make_key_pair([NAME], time.time()) for _ in range(2))
    return first.certificate + second.key, first.key


@pytest.mark.parametrize("made", [short_key, other_key])
async def test_a_certificate_that_openssl_refuses_leaves_the_last_in_use(api, port, metrics, made):
    """The certificate before it remains in use, and the process does not crash repeatedly."""
    first = make_key_pair([NAME], time.time())
    server = make_server(api, port, metrics, webhook_certificates="external")
    api.put(tls_crt=first.certificate, tls_key=first.key)
    await server.keeper.check()
    await server.start()
    certificate, key = made()
    api.put(tls_crt=certificate, tls_key=key)
    with capture_logs() as logs:
        for _ in range(2):
            await server.keeper.check()
    assert [one["event"] for one in logs] == ["certificate-unusable"]
    assert (await ask(port, trusting(first.certificate)))["allowed"] is False
    assert server.keeper.served == first
    await server.stop()


async def test_a_replica_that_stops_closes_its_connections(server, api, port):
    """A call on a connection that ends meanwhile would be lost: Go sends no POST a second time."""
    await server.keeper.check()
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting(api.secret["ca.crt"])))
    told: list[str | None] = []

    async def call() -> None:
        body = json.dumps(review(kind=POD, object=pod())).encode()
        async with session.post(f"https://{HOST}:{port}/validate", data=body, server_hostname=NAME) as response:
            assert (await response.json())["response"]["allowed"]
            told.append(response.headers.get("Connection"))

    async with session:
        await call()
        lingering = asyncio.create_task(server.linger())
        await asyncio.sleep(0)
        await call()
        lingering.cancel()
        await until(lambda: not len(server._listener))
    assert told == [None, "close"]


async def test_a_port_that_is_taken_is_named_with_its_flag(server, api, port, metrics):
    second = make_server(api, port, metrics)
    with pytest.raises(ConfigError, match=f"{HOST}:{port} .*--webhook-port"):
        await second.start()
    await second.stop()


def folder(path: Path) -> Path:
    path.mkdir()
    return path


# -- allowed clients, and the memory that others can take --------------------------------------------------------------


async def test_a_client_without_a_certificate_of_the_right_authority_is_refused(api, port, metrics, tmp_path):
    ours, theirs = (Authority(folder(tmp_path / name)) for name in ("ours", "theirs"))
    friend, stranger = ours.client("api-server"), theirs.client("api-server")
    server = make_server(api, port, metrics, webhook_client_ca=str(ours.pair.certificate))
    await server.keeper.check()
    await server.start()
    answers = []
    for shown in (friend, stranger, None):
        tls = trusting(api.secret["ca.crt"])
        if shown is not None:
            tls.load_cert_chain(shown.certificate, shown.key)
        try:
            answers.append((await ask(port, tls))["allowed"])
        except aiohttp.ClientError:
            answers.append("refused")
    assert answers == [False, "refused", "refused"]
    await server.stop()


async def test_a_client_certificate_of_another_name_is_answered_403(api, port, metrics, tmp_path):
    authority = Authority(tmp_path)
    shown = authority.client("api-server")
    statuses = []
    for names in ("api-server", "other, api-server", "other"):
        more = {"webhook_client_ca": str(authority.pair.certificate), "webhook_client_names": names}
        server = make_server(api, port, metrics, **more)
        await server.keeper.check()
        await server.start()
        tls = trusting(api.secret["ca.crt"])
        tls.load_cert_chain(shown.certificate, shown.key)
        connector = aiohttp.TCPConnector(ssl=tls, force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session:
            url = f"https://{HOST}:{port}/validate"
            async with session.post(url, data=b"{}", server_hostname=NAME) as response:
                statuses.append(response.status)
        await server.stop()
    assert statuses == [400, 400, 403]


@pytest.mark.parametrize("more", [{"webhook_client_ca": "/nowhere"}, {"webhook_client_names": "a"}])
def test_client_names_without_a_usable_client_ca_are_a_config_error(api, port, metrics, more):
    with pytest.raises(ConfigError, match="--webhook-client-ca"):
        make_server(api, port, metrics, **more)


async def test_a_compressed_body_is_not_unpacked(server, api, port):
    await server.keeper.check()
    connector = aiohttp.TCPConnector(ssl=trusting(api.secret["ca.crt"]), force_close=True)
    bomb = gzip.compress(b" " * 5 * 2**20)
    async with aiohttp.ClientSession(connector=connector) as session:
        headers = {"Content-Encoding": "gzip"}
        url = f"https://{HOST}:{port}/validate"
        async with session.post(url, data=bomb, headers=headers, server_hostname=NAME) as response:
            assert response.status == 400


SAID = {
    "handshake": b"",
    "body": b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n" + b" " * 500_000,
    "path that is not there": b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n",
    "no HTTP": b"\0" * 100_000,
}


@pytest.mark.parametrize("said", ["nothing", *SAID])
async def test_a_connection_that_ended_holds_no_memory_until_the_collector_runs(server, api, port, said):
    """A flood of connections would otherwise accumulate a third of a megabyte each, in few objects."""
    await server.keeper.check()
    more = {} if said == "nothing" else {"ssl": trusting(api.secret["ca.crt"]), "server_hostname": NAME}
    with uncollected() as number_of:
        for _ in range(3):
            _, writer = await asyncio.open_connection(HOST, port, **more)
            await until(lambda: number_of(asyncio.BufferedProtocol) > 0)
            writer.write(SAID.get(said, b""))
            await asyncio.sleep(0.1)
            writer.transport.abort()
            await until(lambda: number_of(asyncio.BufferedProtocol) == 0)


async def test_a_body_that_is_broken_off_is_counted(server, api, port, metrics):
    await server.keeper.check()
    tls = trusting(api.secret["ca.crt"])
    reader, writer = await asyncio.open_connection(HOST, port, ssl=tls, server_hostname=NAME)
    writer.write(b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: 300\r\nExpect: 100-continue\r\n\r\n")
    assert await reader.readline() == b"HTTP/1.1 100 Continue\r\n"
    writer.transport.abort()
    labels = {"webhook": "validate", "result": "broken-off"}
    await until(lambda: metrics.registry.get_sample_value("taintwarden_admission_requests_total", labels) == 1)


async def test_both_address_families_are_served(api, metrics):
    try:
        sockets = listening.listen("", 0)
    except OSError:
        pytest.fail("no family at all")
    families = {one.family for one in sockets}
    for one in sockets:
        one.close()
    expected = {socket.AF_INET} | ({socket.AF_INET6} if has_ipv6() else set())
    assert families == expected


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True
