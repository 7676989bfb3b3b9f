"""An admission webhook of others, which the API server asks about evictions."""

import base64
import json
import ssl
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from controlplane.api_server import LOOPBACK
from controlplane.client import Json
from controlplane.control_plane import ControlPlane

WEBHOOKS = "admissionregistration.k8s.io/v1/{kind}webhookconfigurations"


class EvictionWebhook:
    """Serves one for the evictions in selected namespaces; `answer` makes its response but the UID.

    `kind`: validating, or mutating.
    """

    def __init__(
        self,
        control_plane: ControlPlane,
        name: str,
        answer: Callable[[Json], Json],
        *,
        namespaces: Json,
        timeout_seconds: int,
        conditions: Sequence[Json] = (),
        kind: str = "validating",
    ) -> None:
        self._name = name
        self._resource = WEBHOOKS.format(kind=kind)
        self._client = control_plane.client
        self._server = ThreadingHTTPServer((LOOPBACK, 0), _handler(answer))
        self._server.daemon_threads = True
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        pair = control_plane.server_certificate(name)
        tls.load_cert_chain(pair.certificate, pair.key)
        self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        assert control_plane.ca
        url, ca = f"https://{LOOPBACK}:{self._server.server_port}/", control_plane.ca.read_bytes()
        asked = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"]}
        self._webhook = {
            "name": f"{name}.example.com",
            "clientConfig": {"url": url, "caBundle": base64.b64encode(ca).decode()},
            "rules": [asked],
            "matchConditions": list(conditions),
            "namespaceSelector": namespaces,
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": timeout_seconds,
        }

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self._client.create(self._resource, {"metadata": {"name": self._name}, "webhooks": [self._webhook]})
        return self

    def __exit__(self, *_: object) -> None:
        self._client.delete(self._resource, self._name)
        self._server.shutdown()
        self._server.server_close()


def _handler(answer: Callable[[Json], Json]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            response = {"uid": review["request"]["uid"], **answer(review["request"])}
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
