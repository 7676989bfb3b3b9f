"""The certificates of the webhooks on a real API server: from an empty Secret to a new key, without a call that fails.

One story, played once: two replicas fill an empty Secret; both answer; under load the certificate is followed by the
next, and then one of them is killed. Each test judges one thing about it.
"""

import base64
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from admission.workloads import ANNOTATION, extended, gt
from controlplane import ApiError, Cluster, ControlPlane, Webhook
from controlplane.api_server import free_port
from controlplane.waiting import wait_until
from e2e import webhook_setup
from taintwarden.certificates.pairs import LIFETIME_SECONDS, make_pair

pytestmark = pytest.mark.timeout(600)  # the first test waits for the whole story

NAMES = tuple(f"taintwarden-webhook{suffix}" for suffix in (".taintwarden-system.svc", ".taintwarden-system", ""))
ROTATION_SECONDS = 150
"""A minute of trust, two looks at the Secret, and patience."""


@dataclass
class Load:
    """A policy that has to be refused, sent again and again: one that is stored was not looked at."""

    cluster: Cluster
    refused: int = 0
    missed: list[str] = field(default_factory=list)
    slowest: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Load":
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        window = {"schedule": "0 25 * * *", "duration": "1h"}
        spec = {"taints": [{"key": "sla"}], "windows": [window]}
        body = {"apiVersion": "taintwarden.io/v1alpha1", "kind": "TaintEvictionPolicy", "metadata": {"name": "load"}}
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                self.cluster.create("taintevictionpolicies", {**body, "spec": spec}, dryRun="All")
                self.missed.append(time.strftime("%H:%M:%S"))
            except ApiError as error:
                self.refused += error.status == 422
            self.slowest = max(self.slowest, time.monotonic() - began)
            self._stop.wait(0.02)


@dataclass
class Story:
    """What was seen."""

    seconds_to_trust: float = 0.0
    asked_second: float = 0.0
    load: Load | None = None
    secrets: list[dict[str, bytes]] = field(default_factory=list)
    rotated: bool = False
    refused_after_kill: bool = False
    repaired: dict[str, bytes] = field(default_factory=dict)
    logs: dict[str, list[str]] = field(default_factory=dict)


def stored(cluster: Cluster) -> dict[str, bytes]:
    data = cluster.get("secrets", webhook_setup.NAME, webhook_setup.NAMESPACE).get("data") or {}
    return {key: base64.b64decode(value) for key, value in data.items()}


def store(cluster: Cluster, **content: bytes | None) -> None:
    data = {
        key.replace("_", "."): None if value is None else base64.b64encode(value).decode()
        for key, value in content.items()
    }
    cluster.patch("secrets", webhook_setup.NAME, {"data": data}, webhook_setup.NAMESPACE)


def carries(cluster: Cluster, certificate: bytes) -> bool:
    bundles = [webhook["clientConfig"].get("caBundle", "") for webhook in webhook_setup.webhooks(cluster)]
    return all(certificate in base64.b64decode(bundle) for bundle in bundles)


def is_refused(cluster: Cluster) -> bool:
    pod = {"metadata": {"name": "web", "annotations": {ANNOTATION: extended(gt("0950"))}}}
    spec = {"containers": [{"name": "main", "image": "x"}]}
    try:
        cluster.create("pods", {**pod, "spec": spec}, "default", dryRun="All")
    except ApiError as error:
        return error.status == 422
    return False


@pytest.fixture(scope="module")
def story(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    cluster, folder = own_control_plane.client, tmp_path_factory.mktemp("certificates")
    ports = {name: free_port() for name in ("first", "second")}
    replicas = {
        name: Webhook(own_control_plane.webhook_kubeconfig(), folder, port, name=name) for name, port in ports.items()
    }
    webhook_setup.install(cluster, ports["first"])
    told = Story()
    try:
        play(told, cluster, replicas, ports)
        told.logs = {name: [line.get("event", "") for line in replica.logs()] for name, replica in replicas.items()}
        yield told
    finally:
        for replica in replicas.values():
            replica.process.stop()
        webhook_setup.remove(cluster)


def play(told: Story, cluster: Cluster, replicas: dict[str, Webhook], ports: dict[str, int]) -> None:
    began = time.monotonic()
    for replica in replicas.values():
        replica.start(wait_ready=False)
    webhook_setup.wait_trusted(cluster)
    for replica in replicas.values():
        replica.wait_ready()
    wait_until(lambda: is_refused(cluster), 30, "the first refusal")
    told.seconds_to_trust = time.monotonic() - began
    told.secrets.append(stored(cluster))
    # The second answers, too: from here on the Service leads to it.
    webhook_setup.lead_to(cluster, ports["second"])
    webhook_setup.wait_asked(cluster, replicas["second"])
    told.asked_second = webhook_setup.reviews(replicas["second"])

    # A certificate of 63 days ago, which the API server trusts: a third of its life is left.
    aged = make_pair(NAMES, time.time() - LIFETIME_SECONDS * 0.7)
    store(cluster, tls_crt=aged.certificate, tls_key=aged.key, ca_crt=stored(cluster)["ca.crt"] + aged.certificate)
    wait_until(lambda: carries(cluster, aged.certificate), 60, "the aged certificate to be trusted")
    # Nobody published this one before it was served, so the API server has to hear of it first.
    wait_until(lambda: all(is_refused(cluster) for _ in range(20)), 30, "the API server to trust it")
    with Load(cluster) as told.load:
        wait_until(lambda: "next.crt" in stored(cluster), 60, "the next certificate")
        told.secrets.append(stored(cluster))
        following = told.secrets[-1]["next.crt"]
        wait_until(lambda: stored(cluster)["tls.crt"] == following, ROTATION_SECONDS, "the next to be served")
        told.secrets.append(stored(cluster))
        expiry = "taintwarden_webhook_certificate_expiry_timestamp_seconds"
        wait_until(lambda: replicas["second"].metric(expiry) > aged.ends_at, 60, "the second to serve it")
        time.sleep(1)
    told.rotated = carries(cluster, following)

    # One dies; the other keeps the certificate: it repairs what somebody breaks.
    replicas["first"].kill9()
    told.refused_after_kill = is_refused(cluster)
    store(cluster, tls_key=b"nonsense")
    before = told.secrets[-1]["tls.crt"]
    wait_until(lambda: stored(cluster)["tls.crt"] != before, 60, "the Secret to be made anew")
    told.repaired = stored(cluster)
    wait_until(lambda: carries(cluster, told.repaired["tls.crt"]), 30, "the new one to be trusted")
    wait_until(lambda: is_refused(cluster), 30, "webhooks that work with it")


def test_an_empty_secret_becomes_webhooks_that_work_in_seconds(story):
    assert set(story.secrets[0]) == {"tls.crt", "tls.key", "ca.crt"}
    assert story.seconds_to_trust < 30  # a start included, on a machine that others use


def test_one_replica_made_it_and_the_other_read_it(story):
    made = sum(events.count("certificate-made") for events in story.logs.values())
    assert made == 3  # that one, the next, and the change to it


def test_both_replicas_answer(story):
    assert story.asked_second > 0


def test_the_next_is_trusted_before_it_is_served(story):
    _, published, promoted = story.secrets
    assert published["next.crt"] in published["ca.crt"]
    assert published["tls.crt"] != published["next.crt"] == promoted["tls.crt"]
    assert promoted["ca.crt"] == published["ca.crt"]
    assert "next.crt" not in promoted
    assert story.rotated


def test_no_call_failed_meanwhile(story):
    assert story.load.missed == []
    assert story.load.refused > 500


def test_the_webhooks_work_on_when_one_is_killed(story):
    assert story.refused_after_kill


def test_a_broken_secret_is_made_anew_by_the_other(story):
    assert any("certificate-repaired" in events for events in story.logs.values())
    assert story.repaired["tls.key"].startswith(b"-----BEGIN PRIVATE KEY-----")


def test_only_the_bundle_is_ours_in_the_configurations(story: Any, own_control_plane: ControlPlane):
    """The field manager of the webhook owns caBundle and nothing else, so that others may apply the rest."""
    for resource in webhook_setup.CONFIGURATIONS.values():
        fields = own_control_plane.client.get(resource, "taintwarden")["metadata"]["managedFields"]
        (ours,) = (entry for entry in fields if entry["manager"] == "taintwarden-webhooks")
        for name, owned in ours["fieldsV1"]["f:webhooks"].items():
            assert name.startswith("k:")
            assert owned == {".": {}, "f:clientConfig": {"f:caBundle": {}}, "f:name": {}}
