"""A validating webhook of others, which is asked about each eviction in labelled namespaces and takes its time."""

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from controlplane import ApiError, ControlPlane, wait_until
from controlplane.api_server import LOOPBACK

LABEL = "blackbox/asks"
PROBE = "blackbox-webhook-probe"
WEBHOOKS = "admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
TIMEOUT_SECONDS = 10
HEARD_SECONDS = 60


class SlowWebhook:
    """It allows everything after `seconds`; beyond TIMEOUT_SECONDS the server refuses the eviction meanwhile."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.asked = 0


@contextmanager
def serving(control_plane: ControlPlane) -> Iterator[SlowWebhook]:
    """Serve one that answers at once, until it is told otherwise, and have the API server ask it."""
    webhook, cluster = SlowWebhook(), control_plane.client
    server = ThreadingHTTPServer((LOOPBACK, 0), handler(webhook))
    server.daemon_threads = True
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pair = control_plane.server_certificate(PROBE)
    tls.load_cert_chain(pair.certificate, pair.key)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    assert control_plane.ca
    cluster.create(WEBHOOKS, configuration(server.server_port, control_plane.ca))
    cluster.create_namespace(PROBE, {LABEL: "true"})
    try:
        cluster.create_pod("probe", PROBE)
        wait_until(lambda: is_asked(control_plane, webhook), HEARD_SECONDS, "the webhook to be asked")
        yield webhook
    finally:
        webhook.seconds = 0.0
        cluster.delete(WEBHOOKS, PROBE)
        cluster.delete_all("pods", PROBE)
        cluster.delete("namespaces", PROBE)
        server.shutdown()
        server.server_close()


def configuration(port: int, ca: Path) -> dict[str, object]:
    url, bundle = f"https://{LOOPBACK}:{port}/", base64.b64encode(ca.read_bytes()).decode()
    webhook = {
        "name": "slow.example.com",
        "clientConfig": {"url": url, "caBundle": bundle},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"]}],
        "namespaceSelector": {"matchLabels": {LABEL: "true"}},
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": TIMEOUT_SECONDS,
    }
    return {"metadata": {"name": PROBE}, "webhooks": [webhook]}


def is_asked(control_plane: ControlPlane, webhook: SlowWebhook) -> bool:
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "probe", "namespace": PROBE},
        "deleteOptions": {"dryRun": ["All"]},
    }
    try:
        control_plane.client.create("pods", body, PROBE, name="probe", subresource="eviction", dryRun="All")
    except ApiError as error:
        if error.status != 500:  # a server that does not reach it yet
            raise
    return webhook.asked > 0


def handler(webhook: SlowWebhook) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            webhook.asked += 1
            time.sleep(webhook.seconds)  # this is the fault
            response = {"uid": review["request"]["uid"], "allowed": True}
            body = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

        def handle(self) -> None:
            with suppress(OSError):  # the API server has given up
                super().handle()

    return Handler
