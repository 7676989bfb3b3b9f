"""The certificates of the webhooks on a real API server: from an empty Secret to a new key, without a call that fails.

One story, played once: two replicas fill an empty Secret; the API server trusts it once the installation's Job has run;
both answer; under load the certificate is renewed; then one replica is killed, and the configurations are broken.
Each test judges one thing about it.
"""

import base64
import copy
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from admission.workloads import ANNOTATION, extended, gt
from controlplane import ApiError, Cluster, ControlPlane, Webhook, webhook_setup
from controlplane.api_server import free_port
from controlplane.waiting import wait_until
from e2e.stories import policy
from taintwarden.serving.key_pairs import LIFETIME_SECONDS, make_key_pair, read_key_pair

pytestmark = pytest.mark.timeout(600)  # the first test waits for the whole story

NAMES = tuple(f"taintwarden-webhook{suffix}" for suffix in (".taintwarden-system.svc", ".taintwarden-system", ""))
EXPIRY = "taintwarden_webhook_certificate_expiry_timestamp_seconds"


@dataclass
class Load:
    """A policy that has to be refused, sent repeatedly: one that is stored was not checked."""

    cluster: Cluster
    refused: int = 0
    missed: list[float] = field(default_factory=list)
    """Seconds from the begin of the load to each call that was not refused."""
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Load":
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        started = time.monotonic()
        while not self._stop.is_set():
            if is_policy_refused(self.cluster, "load"):
                self.refused += 1
            else:
                self.missed.append(round(time.monotonic() - started, 2))
            self._stop.wait(0.02)


@dataclass
class Story:
    """Observations of the story."""

    untrusted: list[dict[str, Any]] = field(default_factory=list)
    """Log lines of the first replica about configurations before they trusted it."""
    trusted_at_first: float = 0.0
    job: str = ""
    job_again: str = ""
    bundles: list[set[str]] = field(default_factory=list)
    """CA bundles of all configurations, after the Job and after the renewal."""
    broken: dict[str, float] = field(default_factory=dict)
    """The metric while a caBundle was wrong, and after the Job had run again."""
    load: Load | None = None
    secrets: list[dict[str, bytes]] = field(default_factory=list)
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


def bundles(cluster: Cluster) -> set[str]:
    return {webhook["clientConfig"].get("caBundle", "") for webhook in webhook_setup.webhooks(cluster)}


def trusted(replica: Webhook) -> float:
    """Smaller value of the two configurations: 1 if its CA bundle trusts the replica."""
    samples = replica.metrics().get("taintwarden_webhook_trusted", [({}, -1.0)])
    return min(value for _, value in samples)


def is_refused(cluster: Cluster) -> bool:
    pod = {"metadata": {"name": "web", "annotations": {ANNOTATION: extended(gt("0950"))}}}
    spec = {"containers": [{"name": "main", "image": "x"}]}
    try:
        cluster.create("pods", {**pod, "spec": spec}, "default", dryRun="All")
    except ApiError as error:
        return error.status == 422
    return False


def is_policy_refused(cluster: Cluster, name: str) -> bool:
    wrong = policy(name, windows=[{"schedule": "0 25 * * *", "duration": "1h"}])
    try:
        cluster.create("taintevictionpolicies", wrong, dryRun="All")
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
    played = Story()
    try:
        play(played, own_control_plane, replicas, ports)
        played.logs = {name: [line.get("event", "") for line in replica.logs()] for name, replica in replicas.items()}
        yield played
    finally:
        for replica in replicas.values():
            replica.process.stop()
        webhook_setup.remove(cluster)


def play(played: Story, target: ControlPlane, replicas: dict[str, Webhook], ports: dict[str, int]) -> None:
    cluster = target.client
    for replica in replicas.values():
        replica.start()
    first, second = replicas["first"], replicas["second"]
    wait_until(lambda: trusted(first) == 0, 30, "a replica to see that nobody trusts it")
    untrusted = lambda: [line for line in first.logs() if line.get("event") == "webhook-untrusted"]  # noqa: E731
    wait_until(lambda: len(untrusted()) == len(webhook_setup.CONFIGURATIONS), 30, "it to say so of each configuration")
    played.untrusted = untrusted()
    played.trusted_at_first = trusted(first)
    played.job = webhook_setup.trust(target)
    wait_until(lambda: is_refused(cluster), 30, "the first refusal")
    played.job_again = webhook_setup.trust(target)
    played.secrets.append(stored(cluster))
    played.bundles.append(bundles(cluster))
    # The second answers, too: from here on the Service leads to it.
    webhook_setup.lead_to(cluster, ports["second"])
    webhook_setup.wait_asked(cluster, second)
    with Load(cluster) as played.load:
        renew(played, cluster, second)
        wait_until(lambda: played.load.refused > 20, 30, "calls before and after it")
    # One dies; the other keeps the certificate, and repairs a broken one.
    first.kill9()
    played.refused_after_kill = is_refused(cluster)
    before = stored(cluster)["tls.crt"]
    store(cluster, tls_key=b"nonsense")
    wait_until(lambda: stored(cluster)["tls.crt"] != before, 60, "the certificate to be made anew")
    played.repaired = stored(cluster)
    wait_until(lambda: is_refused(cluster), 30, "webhooks that work with it")
    spoil(played, target, second)


def renew(played: Story, cluster: Cluster, other: Webhook) -> None:
    """A certificate of 63 days ago: a third of its lifetime is left."""
    content = stored(cluster)
    authority = read_key_pair(content["authority.crt"], content["authority.key"], is_authority=True)
    aged = make_key_pair(NAMES, time.time() - LIFETIME_SECONDS * 0.7, authority)
    store(cluster, tls_crt=aged.certificate, tls_key=aged.key)
    wait_until(lambda: stored(cluster)["tls.crt"] not in (aged.certificate, content["tls.crt"]), 60, "another one")
    wait_until(lambda: other.metric(EXPIRY) > aged.ends_at, 60, "the other replica to serve it")
    played.secrets.append(stored(cluster))
    played.bundles.append(bundles(cluster))


def spoil(played: Story, target: ControlPlane, replica: Webhook) -> None:
    """Write another caBundle into one webhook."""
    resource = webhook_setup.CONFIGURATIONS["validating"]
    path = "/webhooks/0/clientConfig/caBundle"
    wrong = base64.b64encode(make_key_pair(NAMES, time.time()).certificate).decode()
    target.client.patch(resource, "taintwarden", [{"op": "replace", "path": path, "value": wrong}], kind="json")
    wait_until(lambda: trusted(replica) == 0, 30, "the replica to see it")
    wait_until(lambda: not is_refused(target.client), 30, "the API server to see it")
    played.broken["wrong"] = trusted(replica)
    webhook_setup.trust(target)
    wait_until(lambda: trusted(replica) == 1, 30, "the replica to see that it is right again")
    played.broken["right"] = trusted(replica)


def test_until_the_job_has_run_the_webhooks_are_untrusted_and_the_remedy_is_logged(story):
    assert story.trusted_at_first == 0
    assert {line["reason"] for line in story.untrusted} == {"caBundle is missing"}
    assert len(story.untrusted) == len(webhook_setup.CONFIGURATIONS)
    assert all("taintwarden webhook-trust" in line["remedy"] for line in story.untrusted)


def test_after_the_job_the_webhooks_work_within_seconds(story):
    assert set(story.secrets[0]) == {"tls.crt", "tls.key", "ca.crt", "authority.crt", "authority.key"}
    assert story.job.count("has the certificate now") == len(webhook_setup.CONFIGURATIONS)


def test_a_second_job_changes_nothing(story):
    assert story.job_again.count("has the certificate already") == len(webhook_setup.CONFIGURATIONS)


def test_a_certificate_is_renewed_without_a_change_of_what_is_trusted(story):
    first, renewed = story.secrets
    assert first["tls.crt"] != renewed["tls.crt"]
    assert first["authority.crt"] == renewed["authority.crt"]
    assert story.bundles[0] == story.bundles[1] == {base64.b64encode(first["ca.crt"]).decode()}


def test_no_call_failed_meanwhile(story):
    assert story.load.missed == []


def test_the_webhooks_work_when_one_replica_is_killed(story):
    assert story.refused_after_kill


def test_a_broken_secret_is_replaced_by_the_other_replica(story):
    assert any("certificate-repaired" in events for events in story.logs.values())
    assert story.repaired["tls.key"].startswith(b"-----BEGIN PRIVATE KEY-----")
    assert story.repaired["ca.crt"] == story.secrets[-1]["ca.crt"]


def test_a_wrong_bundle_is_reported_and_the_job_corrects_it(story):
    assert story.broken == {"wrong": 0, "right": 1}


def test_the_processes_own_nothing_of_a_configuration(story: Any, own_control_plane: ControlPlane):
    for resource in webhook_setup.CONFIGURATIONS.values():
        fields = own_control_plane.client.get(resource, "taintwarden")["metadata"]["managedFields"]
        assert "caBundle" not in str(fields)


def test_an_installer_removes_a_webhook_by_server_side_apply_and_the_others_stay_trusted(story, own_control_plane):
    cluster = own_control_plane.client
    fewer = copy.deepcopy(webhook_setup.SHIPPED["MutatingWebhookConfiguration"])
    removed = fewer["webhooks"].pop()
    cluster.apply(fewer)
    left = cluster.get(webhook_setup.CONFIGURATIONS["mutating"], "taintwarden")["webhooks"]
    assert removed["name"] not in {webhook["name"] for webhook in left}
    assert all(webhook["clientConfig"]["caBundle"] for webhook in left)
