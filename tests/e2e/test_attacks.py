"""Attacks of tenants and strangers on the operator while it evicts: on the real API server, with the shipped rights.

One story, played once: pods that are due one after the other, and four attacks meanwhile. A tenant creates pods with
hundreds of thousands of tolerations, and pods with hostile annotations; a stranger floods the webhook's port, and sends
to the operator's what is no HTTP.
"""

import asyncio
import contextlib
import json
import ssl
import threading
import time
import uuid
from dataclasses import dataclass, field

import pytest

from admission.workloads import ANNOTATION
from controlplane import ApiError, Cluster, ControlPlane, Json, Operator, Webhook, webhook_setup
from controlplane.api_server import LOOPBACK, free_port
from e2e.answered import MOST_BYTES, TAINT, Seen, Unharmed, peak_bytes
from e2e.stories import policy

pytestmark = pytest.mark.timeout(600)  # the first test waits for the whole story

NAMESPACE, NODE, QUIET = "tenant", "attacked", "quiet"
VICTIMS, EVERY_SECONDS = 20, 1.0
HOSTILE_PODS = 150
IDLE, UNFINISHED, STRANGE = 600, 60, 200


@dataclass
class Story(Seen):
    tolerations: list[str] = field(default_factory=list)
    """How pods with many tolerations were answered."""
    invalid: list[Json] = field(default_factory=list)
    """Log lines about annotations."""
    tracebacks: int = 0
    webhook_bytes: int = 0
    is_useful_after: bool = False


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """The story, played on a control plane of its own, since it stores too much to delete."""
    played, folder, port = Story(), tmp_path_factory.mktemp("attacks"), free_port()
    with ControlPlane(folder) as target:
        target.apply_crds()
        target.apply_manifests()
        cluster = target.client
        cluster.create_namespace(NAMESPACE, labels={"taintwarden.io/inject": "true"})
        for node in (NODE, QUIET):
            cluster.create_node(node)
        cluster.create("taintevictionpolicies", policy("attacked", nodeSelector={}))
        webhook_setup.install(cluster, port)
        with (
            Webhook(target.webhook_kubeconfig(), folder, port) as webhook,
            Operator(target.operator_kubeconfig(), folder) as operator,
        ):
            operator.wait_leading()
            webhook_setup.trust(target)
            webhook_setup.wait_asked(cluster, webhook)
            play(played, target, operator, port)
            lines = played.judge(operator)
            played.webhook_bytes = peak_bytes(webhook)
            played.tracebacks = sum("Traceback" in json.dumps(line) for line in lines)
            played.invalid = [line for line in lines if line.get("event") == "toleration-invalid"]
    return played


def play(played: Story, target: ControlPlane, operator: Operator, port: int) -> None:
    cluster = target.client
    played.make_due(cluster, NAMESPACE, NODE, VICTIMS, EVERY_SECONDS)
    cluster.set_taints(NODE, [TAINT])
    ended = threading.Event()
    prober = threading.Thread(target=played.probe, args=(operator, ended))
    prober.start()
    try:
        many_tolerations(played, cluster)
        asyncio.run(flood(port))
        hostile_annotations(cluster)
        asyncio.run(no_http(operator))
        while cluster.find("pods", f"victim-{VICTIMS - 1}", NAMESPACE) and operator.process.is_running:
            time.sleep(1)  # the operator may end instead, which the story tells
        with contextlib.suppress(TimeoutError):
            webhook_setup.wait_completed(cluster, NAMESPACE)
            played.is_useful_after = True
    finally:
        ended.set()
        prober.join()


def many_tolerations(played: Story, cluster: Cluster) -> None:
    """A pod of 2.4 MB, ten times, and nothing of it is stored."""
    body = {
        "metadata": {"name": "large", "annotations": {ANNOTATION: "[]"}},
        "spec": {"containers": [{"name": "main", "image": "x"}], "tolerations": [{"key": "a"}] * 200_000},
    }
    for _ in range(10):
        try:
            cluster.create("pods", body, NAMESPACE, dryRun="All")
            played.tolerations.append("allowed")
        except ApiError as error:
            played.tolerations.append(str(error)[:100])


async def flood(port: int) -> None:
    """Large bodies, bodies that do not end, and connections on which nothing is said."""
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    writers = []
    for number in range(IDLE):
        with_tls = {"ssl": tls} if number % 2 else {}
        try:
            _, writer = await asyncio.wait_for(asyncio.open_connection(LOOPBACK, port, **with_tls), 5)
        except (OSError, TimeoutError):
            continue
        writers.append(writer)
        if number < UNFINISHED * 2 and number % 2:
            writer.write(b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n" + b" " * 2_900_000)
        elif number % 200 == 1:
            writer.write(b"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Length: 6500000\r\n\r\n" + b" " * 6_500_000)
    await asyncio.sleep(2)  # what is unfinished has to burden the server for a while
    for writer in writers:
        writer.transport.abort()
    await asyncio.sleep(0.1)  # nothing tells that the loop has closed the transports


async def no_http(operator: Operator) -> None:
    """Send bytes that no HTTP parser accepts to the plain port."""
    port = int(operator.url.rpartition(":")[2])
    for _ in range(STRANGE):
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
        writer.write(b"GET / HTTP/1.1\r\nno header\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.close()


def hostile_annotations(cluster: Cluster) -> None:
    """The webhook refuses them, unless they seem to be a controller's: those must not be kept from running."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": str(uuid.uuid4())}
    for number in range(HOSTILE_PODS):
        entries = [{f"tolerationSecond{n}x{number}": 1 for n in range(22)} for _ in range(100)]
        text = json.dumps(entries, separators=(",", ":"))[:65_000]
        annotations = {ANNOTATION: text}
        cluster.create_pod(f"hostile-{number}", NAMESPACE, QUIET, annotations=annotations, owner=owner, grace_seconds=0)


class TestOthers(Unharmed):
    pass


def test_memory_of_the_webhook_is_bounded(story):
    assert story.webhook_bytes < MOST_BYTES


def test_a_pod_costs_one_short_line_of_the_log(story):
    assert len(story.invalid) == HOSTILE_PODS
    assert sum(len(json.dumps(line)) for line in story.invalid) / HOSTILE_PODS < 1_500


def test_invalid_http_requests_are_not_logged(story):
    assert story.tracebacks == 0


def test_the_webhook_still_answers_after_the_attacks(story):
    assert story.is_useful_after
