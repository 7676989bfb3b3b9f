"""Metrics of both processes for those alone whom the API server lets: real tokens, real reviews, shipped rights."""

import contextlib
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client.parser import text_string_to_metric_families

from controlplane import OPERATOR_NAMESPACE, Cluster, ControlPlane, Operator, Webhook
from controlplane.api_server import LOOPBACK, free_port
from controlplane.waiting import wait_until
from taintwarden.controller.scrapers import REVIEW_BURST, REVIEWS_PER_SECOND

READER, STRANGER = "metrics-reader", "metrics-stranger"
ROLE = "taintwarden-metrics-reader"
LEAVE_SECONDS = 90


class Scraped:
    """Both processes, and the tokens of two accounts: one may get metrics, one may not."""

    def __init__(self, control_plane: ControlPlane, ports: dict[str, int], plain: dict[str, str]) -> None:
        self.control_plane = control_plane
        self.plain = plain
        self.tokens = {name: control_plane.token(name) for name in (READER, STRANGER)}
        self._ports = ports

    def ask(self, process: str, token: str = "") -> tuple[int, str]:
        unverified = ssl.create_default_context()
        unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return answer(f"https://{LOOPBACK}:{self._ports[process]}/metrics", headers, unverified)


def answer(url: str, headers: dict[str, str] | None = None, context: ssl.SSLContext | None = None) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers=headers or {}), timeout=15, context=context
        ) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.fixture(scope="module")
def scraped(own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scraped]:
    folder, admin = tmp_path_factory.mktemp("metrics"), own_control_plane.client
    for name in (READER, STRANGER):
        admin.create("serviceaccounts", {"metadata": {"name": name}}, OPERATOR_NAMESPACE)
    subject = {"kind": "ServiceAccount", "name": READER, "namespace": OPERATOR_NAMESPACE}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE}
    admin.create("clusterrolebindings", {"metadata": {"name": READER}, "roleRef": role, "subjects": [subject]})
    ports = {name: free_port() for name in ("operator", "webhook")}
    flags = {name: [f"--metrics-port={port}"] for name, port in ports.items()}
    operator = Operator(own_control_plane.operator_kubeconfig(), folder, args=flags["operator"])
    webhook = Webhook(own_control_plane.webhook_kubeconfig(), folder, free_port(), args=flags["webhook"])
    operator.start()
    webhook.start(wait_ready=False)
    wait_until(webhook.is_live, 60, "the webhook to answer probes")
    yield Scraped(own_control_plane, ports, {"operator": operator.url, "webhook": webhook.url})
    for process in (operator, webhook):
        process.process.stop()
    admin.delete("clusterrolebindings", READER)
    for name in (READER, STRANGER):
        admin.delete("serviceaccounts", name, OPERATOR_NAMESPACE)


BOTH = pytest.mark.parametrize("process", ["operator", "webhook"])


@BOTH
def test_nobody_reads_them_without_a_token(scraped, process):
    assert scraped.ask(process)[0] == 401


@BOTH
def test_a_token_that_the_api_server_does_not_know_is_none(scraped, process):
    assert scraped.ask(process, "eyJhbGciOiJub25lIn0.e30.")[0] == 401


@BOTH
def test_a_token_without_the_right_is_refused(scraped, process):
    assert scraped.ask(process, scraped.tokens[STRANGER])[0] == 403


@BOTH
def test_a_token_with_the_right_reads_them(scraped, process):
    status, text = scraped.ask(process, scraped.tokens[READER])
    assert status == 200
    its_own = {"operator": "taintwarden_nodes", "webhook": "taintwarden_admission_requests"}[process]
    assert its_own in {family.name for family in text_string_to_metric_families(text)}


@BOTH
def test_the_plain_port_has_probes_only(scraped, process):
    assert answer(f"{scraped.plain[process]}/livez")[0] == 200
    assert answer(f"{scraped.plain[process]}/metrics")[0] == 404


def reviews(admin: Cluster) -> float:
    """How many TokenReviews the API server was asked for."""
    families = text_string_to_metric_families(admin.request("GET", "/metrics"))
    samples = [sample for family in families for sample in family.samples if sample.name == "apiserver_request_total"]
    return sum(one.value for one in samples if one.labels["resource"] == "tokenreviews")


@BOTH
def test_a_flood_of_tokens_keeps_neither_probes_nor_readers_waiting(scraped, process):
    admin = scraped.control_plane.client
    assert scraped.ask(process, scraped.tokens[READER])[0] == 200
    before, began, statuses = reviews(admin), time.monotonic(), []

    def flood(number: int) -> None:
        with contextlib.suppress(OSError):  # made room for another
            statuses.append(scraped.ask(process, f"strange-{number}")[0])

    with ThreadPoolExecutor(32) as pool:
        flooding = [pool.submit(flood, number) for number in range(150)]
        while not all(one.done() for one in flooding):
            assert answer(f"{scraped.plain[process]}/livez")[0] == 200
            time.sleep(0.2)
    seconds = time.monotonic() - began
    assert reviews(admin) - before <= REVIEW_BURST + REVIEWS_PER_SECOND * (seconds + 1)
    assert set(statuses) <= {401, 429}
    assert scraped.ask(process, scraped.tokens[READER])[0] == 200


def test_while_the_api_server_is_away_nobody_new_is_let_in(scraped):
    time.sleep(1 / REVIEWS_PER_SECOND)  # until a flood of before leaves a review for another token
    scraped.control_plane.stop_api_server(kill=True)
    try:
        found = {process: scraped.ask(process, "a-token-that-nobody-knows") for process in ("operator", "webhook")}
    finally:
        scraped.control_plane.start_api_server()
    assert {status for status, _ in found.values()} == {503}
    assert not any("taintwarden_" in text for _, text in found.values())
