"""An admission webhook of somebody else that is asked about each eviction of a namespace, as that of KubeVirt is."""

import base64
from pathlib import Path
from typing import Literal

from controlplane import wait_until
from controlplane.certificates import Authority
from kind.scene import RUN_SECONDS, Scene

NAME = "interceptor"
WEBHOOKS = "admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
PORT = 8443
HANG_SECONDS = 4
"""The API server waits so long for an answer."""
HEARD_SECONDS = 30
MESSAGE = "Eviction triggered evacuation of the virtual machine"
Answer = Literal["postpone", "hang"]
"""As the path of a call says."""
SERVE = f"""\
import json, ssl, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.startswith("/hang"):
            time.sleep({2 * HANG_SECONDS})
        status = {{"code": 429, "message": "{MESSAGE}"}}
        response = {{"uid": review["request"]["uid"], "allowed": False, "status": status}}
        kind = {{"apiVersion": review["apiVersion"], "kind": review["kind"]}}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({{**kind, "response": response}}).encode())

server = ThreadingHTTPServer(("", {PORT}), Handler)
server.daemon_threads = True
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/tls/tls.crt", "/tls/tls.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


class Interceptor:
    """A pod, its Service, and while it is `asked` a webhook configuration that the API server follows."""

    def __init__(self, scene: Scene, folder: Path) -> None:
        self._scene = scene
        self._authority = Authority(folder)

    def start(self, node: str) -> None:
        """On a node that keeps its pods."""
        scene, cluster = self._scene, self._scene.cluster
        pair = self._authority.server(NAME, (f"{NAME}.{scene.name}.svc",), ())
        files = {"tls.crt": pair.certificate.read_text(), "tls.key": pair.key.read_text()}
        cluster.create("secrets", {"metadata": {"name": NAME}, "stringData": files}, scene.name)
        port = {"port": 443, "targetPort": PORT}
        cluster.create(
            "services", {"metadata": {"name": NAME}, "spec": {"selector": {"app": NAME}, "ports": [port]}}, scene.name
        )
        template = scene.template(
            on=node,
            grace_seconds=0,
            container={
                "command": ["python3", "-c", SERVE],
                "volumeMounts": [{"name": "tls", "mountPath": "/tls"}],
                "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
            },
            volumes=[{"name": "tls", "secret": {"secretName": NAME}}],
        )
        template["metadata"] = {"name": NAME, "labels": {"app": NAME}}
        cluster.create("pods", template, scene.name)

        def answers() -> bool:
            slices = cluster.items("discovery.k8s.io/v1/endpointslices", scene.name)
            return any(one["conditions"].get("ready") for each in slices for one in each["endpoints"] or [])

        wait_until(answers, RUN_SECONDS, "the webhook to be reached by its Service")

    def ask(self, answer: Answer, pod: str) -> None:
        """From now on it is asked about each eviction, and answers so. `pod` is one whose eviction is tried for it."""
        scene, cluster = self._scene, self._scene.cluster
        webhook = {
            "name": "interceptor.example.com",
            "clientConfig": {
                "service": {"name": NAME, "namespace": scene.name, "path": f"/{answer}"},
                "caBundle": base64.b64encode(self._authority.pair.certificate.read_bytes()).decode(),
            },
            "rules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"]}
            ],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scene.name}},
            "timeoutSeconds": HANG_SECONDS,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        cluster.create(WEBHOOKS, {"metadata": {"name": scene.name}, "webhooks": [webhook]})
        # A dry run evicts nothing while the API server has not heard of the webhook.
        options = {"dryRun": ["All"]}
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": scene.name},
            "deleteOptions": options,
        }
        path = f"/api/v1/namespaces/{scene.name}/pods/{pod}/eviction"
        wait_until(lambda: NAME in cluster.refusal("POST", path, body), HEARD_SECONDS, "the webhook to be asked")

    def end(self) -> None:
        """It is asked no more."""
        if self._scene.cluster.find(WEBHOOKS, self._scene.name):
            self._scene.cluster.delete(WEBHOOKS, self._scene.name)
