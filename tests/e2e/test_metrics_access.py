"""Metrics of both processes for those alone whom the API server lets: real tokens, real reviews, shipped rights."""

import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import pytest
from prometheus_client.parser import text_string_to_metric_families

from controlplane import OPERATOR_NAMESPACE, ControlPlane, Operator, Webhook
from controlplane.api_server import LOOPBACK, free_port
from controlplane.waiting import wait_until

READER, STRANGER = "metrics-reader", "metrics-stranger"
ROLE = "taintwarden-metrics-reader"


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

    def is_granted(self, process: str) -> bool:
        """Return True once the port for metrics, which opens after that of probes, answers and the binding is known."""
        with suppress(urllib.error.URLError):
            return self.ask(process, self.tokens[READER])[0] == 200
        return False


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
    scraped = Scraped(own_control_plane, ports, {"operator": operator.url, "webhook": webhook.url})
    for process in ports:
        wait_until(partial(scraped.is_granted, process), 60, f"the {process} to grant who has the right")
    yield scraped
    for process in (operator, webhook):
        process.process.stop()
    admin.delete("clusterrolebindings", READER)
    for name in (READER, STRANGER):
        admin.delete("serviceaccounts", name, OPERATOR_NAMESPACE)


BOTH = pytest.mark.parametrize("process", ["operator", "webhook"])


@BOTH
@pytest.mark.parametrize(("account", "status"), [("", 401), (STRANGER, 403), (READER, 200)])
def test_metrics_need_the_right(scraped, process, account, status):
    found, text = scraped.ask(process, scraped.tokens.get(account, ""))
    assert found == status
    its_own = {"operator": "taintwarden_nodes", "webhook": "taintwarden_admission_requests"}[process]
    assert status != 200 or its_own in {family.name for family in text_string_to_metric_families(text)}


@BOTH
def test_the_plain_port_has_probes_only(scraped, process):
    assert answer(f"{scraped.plain[process]}/livez")[0] == 200
    assert answer(f"{scraped.plain[process]}/metrics")[0] == 404
