"""Admission webhooks of others that stand in the way of evictions, in half of the namespaces."""

import base64
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from chaos.faults.base import Fault, Scene
from controlplane import OPERATOR_USER
from controlplane.api_server import LOOPBACK

NAME = "chaos"
RESOURCE = "admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
HANG_SECONDS = 20
TIMEOUT_SECONDS = 5
LAST_SECONDS = 10


class Webhook(Fault):
    """One that is asked about each eviction in half of the namespaces, and does not allow it."""

    code = 403

    def start(self, scene: Scene) -> None:
        self._server = ThreadingHTTPServer((LOOPBACK, 0), handler(self))
        self._server.daemon_threads = True
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        pair = scene.plane.server_certificate("chaos-webhook")
        tls.load_cert_chain(pair.certificate, pair.key)
        self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        half = scene.world.namespaces[::2]
        asked = {"operations": ["CREATE"], "resources": ["pods/eviction"]}
        own = {"name": "own", "expression": f"request.userInfo.username == '{OPERATOR_USER}'"}
        assert scene.plane.ca is not None
        bundle = base64.b64encode(scene.plane.ca.read_bytes()).decode()
        webhook = {
            "name": "chaos.example.com",
            "clientConfig": {"url": f"https://{LOOPBACK}:{self._server.server_port}/", "caBundle": bundle},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], **asked}],
            "matchConditions": [own],
            "namespaceSelector": {
                "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": half}]
            },
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": TIMEOUT_SECONDS,
        }
        scene.plane.client.create(RESOURCE, {"metadata": {"name": NAME}, "webhooks": [webhook]})

    def end(self, scene: Scene) -> None:
        scene.plane.client.delete(RESOURCE, NAME)
        self._server.shutdown()
        self._server.server_close()

    def answer(self) -> tuple[int, str]:
        """Code and message of the refusal."""
        return self.code, "the webhook of the test does not allow it"


class WebhookDenies(Webhook):
    """It denies every eviction."""

    name = "webhook-denies"


class WebhookDeniesLast(WebhookDenies):
    """It denies every eviction until ten seconds after the last value has changed."""

    name = "webhook-denies-last"

    def end(self, scene: Scene) -> None:
        scene.world.freeze()
        time.sleep(LAST_SECONDS)  # no change of a node follows the denials
        super().end(scene)


class WebhookBusy(Webhook):
    """It answers 429, as budgets of other projects do."""

    name = "webhook-429"
    code = 429


class WebhookHangs(Webhook):
    """It does not answer, so that each call takes five seconds and fails."""

    name = "webhook-hangs"
    seconds = 30
    staleness_seconds = TIMEOUT_SECONDS + 2

    def answer(self) -> tuple[int, str]:
        time.sleep(HANG_SECONDS)  # this is the fault
        return super().answer()


def handler(fault: Webhook) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            code, message = fault.answer()
            status = {"code": code, "message": message}
            response = {"uid": review["request"]["uid"], "allowed": False, "status": status}
            body = json.dumps(
                {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
