"""`helm test`: its pod, and the result of its command for servers of these tests."""

import http.server
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.rendering import Json, by_key, chart
from taintwarden.serving.key_pairs import make_key_pair

SECONDS = 60


def pods(**values: Any) -> list[Json]:
    """Pods that `helm test` starts in addition to the installed objects."""
    installed = by_key(chart(values, namespace="ops"))
    return [one for name, one in by_key(chart(values, namespace="ops", more=[])).items() if name not in installed]


def called(**values: Any) -> list[str]:
    [pod] = pods(**values)
    urls: list[str] = pod["spec"]["containers"][0]["args"]
    return urls


def test_services_are_called_where_they_are():
    assert called() == ["https://taintwarden-webhook.ops.svc:443"]
    monitor = {"enabled": True}
    assert called(serviceMonitor=monitor) == [
        "https://taintwarden-webhook.ops.svc:443",
        "http://taintwarden-metrics.ops.svc:8080/readyz",
        "http://taintwarden-webhook-metrics.ops.svc:8080/readyz",
    ]
    assert called(serviceMonitor=monitor, webhooks={"enabled": False}) == [
        "http://taintwarden-metrics.ops.svc:8080/readyz"
    ]
    assert pods(webhooks={"enabled": False}) == []


@pytest.mark.parametrize("protected", [False, True])
def test_each_url_is_that_of_a_service(protected):
    values = {"serviceMonitor": {"enabled": True}, "metrics": {"protected": protected}}
    services = {
        (f"{name}.ops.svc", port["port"])
        for (kind, name), one in by_key(chart(values, namespace="ops")).items()
        if kind == "Service"
        for port in one["spec"]["ports"]
    }
    urls = called(**values)
    assert {(host, int(port)) for host, port in (url.split("/")[2].split(":") for url in urls)} == services


def test_its_pod_runs_where_and_as_the_pods_of_the_operator_run():
    """A sidecar that is injected where `podAnnotations` forbid it for all others would never let it end."""
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}}
    of_pod = {"dnsConfig": {"options": [{"name": "ndots", "value": "1"}]}, "affinity": affinity}
    marks = {"podLabels": {"team": "ops"}, "podAnnotations": {"sidecar.istio.io/inject": "false"}}
    [pod] = pods(**of_pod, **marks)
    assert {name: pod["spec"].get(name) for name in of_pod} == of_pod
    assert pod["metadata"]["labels"] == {"app.kubernetes.io/name": "taintwarden-test", "team": "ops"}
    assert pod["metadata"]["annotations"].items() >= marks["podAnnotations"].items()
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"


def test_its_pod_has_each_limit_that_the_operator_has():
    [pod] = pods(resources={"limits": {"cpu": "1", "memory": "2Gi"}})
    [container] = pod["spec"]["containers"]
    assert container["resources"]["limits"] == {"cpu": "1", "memory": "64Mi"}


def test_nothing_of_the_release_takes_the_pod_for_its_own():
    [pod] = pods(podLabels={"team": "a"})
    labels = pod["metadata"]["labels"]
    selectors = [
        one["spec"]["selector"].get("matchLabels", one["spec"]["selector"])
        for one in chart({"serviceMonitor.enabled": True})
        if "selector" in one.get("spec", {})
    ]
    assert len(selectors) >= 7
    assert [selector for selector in selectors if selector.items() <= labels.items()] == []


def test_the_pod_has_no_token_and_the_image_of_the_operator():
    [pod] = pods(image={"repository": "example.com/mine"})
    [container] = pod["spec"]["containers"]
    assert container["image"] == "example.com/mine:0.1.0"
    assert pod["spec"]["automountServiceAccountToken"] is False
    [operator] = by_key(chart())["Deployment", "taintwarden"]["spec"]["template"]["spec"]["containers"]
    assert container["securityContext"] == operator["securityContext"]


class Handler(http.server.BaseHTTPRequestHandler):
    """Ready, or not."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/readyz" else 503)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def plain() -> Iterator[str]:
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    yield from serving(server, "http")


@pytest.fixture
def encrypted(tmp_path: Path) -> Iterator[str]:
    """URL of a server with TLS that requests a client certificate, too, which the pod does not have."""
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    pair = make_key_pair(["taintwarden-webhook.ops.svc"], time.time())
    (tmp_path / "pair.pem").write_bytes(pair.certificate + pair.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(tmp_path / "pair.pem"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(tmp_path / "pair.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    yield from serving(server, "https")


def serving(server: http.server.HTTPServer, scheme: str) -> Iterator[str]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"{scheme}://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def run(*urls: str) -> subprocess.CompletedProcess[str]:
    """The pod's command, as far as Python gives it meaning."""
    [pod] = pods()
    python, *words = pod["spec"]["containers"][0]["command"]
    assert python == "python"
    return subprocess.run(
        [sys.executable, *words, *urls], check=False, capture_output=True, text=True, timeout=SECONDS
    )  # fmt: skip


def test_services_that_answer_pass(plain, encrypted):
    done = run(encrypted, f"{plain}/readyz")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"{encrypted} is served", f"{plain}/readyz is served"]


def test_a_replica_that_is_not_ready_fails(plain):
    assert run(f"{plain}/other").returncode == 1


def test_a_service_that_does_not_encrypt_fails(plain):
    assert run(plain.replace("http:", "https:")).returncode == 1


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_service_without_replicas_fails(plain, scheme):
    nobody = "127.0.0.1:1"
    done = run(f"{scheme}://{nobody}", plain)
    assert done.returncode == 1
    assert "refused" in done.stderr
