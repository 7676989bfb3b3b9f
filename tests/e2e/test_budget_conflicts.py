"""Answers of the Eviction API that are easily mistaken: of conflicts, and of a namespace that is being deleted.

Conflicts are a UID that is another's, and a budget that is never written.

The API server takes a place of the budget before it deletes the pod, and gives up after twenty conflicts. A webhook
that answers 409 to every write of a budget's status stands for somebody who is always faster.
"""

import asyncio
import base64
import json
import ssl
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from controlplane import ControlPlane, Json, wait_until
from controlplane.cluster import is_evicted
from taintwarden.engine.machine import Outcome
from taintwarden.engine.model import Pod, PodClass, Tolerations
from taintwarden.kube.auth.connection import Connection
from taintwarden.kube.calls.evictor import Evictor, Result
from taintwarden.kube.http.client import Client

NAME = "web"
WEBHOOKS = "admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
LABELS = {"app": "web"}
IN_FORCE_SECONDS = 30
MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
pytestmark = pytest.mark.timeout(180)


class Conflict(BaseHTTPRequestHandler):
    """Refuses whatever is reviewed, as a conflict of versions."""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = {"code": 409, "reason": "Conflict", "status": "Failure", "message": MODIFIED}
        review["response"] = {"uid": review["request"]["uid"], "allowed": False, "status": status}
        del review["request"]
        body = json.dumps(review).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def pod(own_control_plane: ControlPlane) -> Iterator[Pod]:
    """One that runs, under a budget that allows one eviction."""
    cluster = own_control_plane.client
    namespace = f"conflicts-{uuid.uuid4().hex[:8]}"
    cluster.create_namespace(namespace)
    uid = cluster.create_pod(NAME, namespace, node="somewhere", labels=LABELS)["metadata"]["uid"]
    cluster.create_pdb("web", namespace, LABELS, disruptions_allowed=1)
    yield Pod(uid, NAME, "somewhere", PodClass(namespace, LABELS, Tolerations()), 0.0, 1)
    cluster.remove_namespace(namespace)


@contextmanager
def conflicts(control_plane: ControlPlane, namespace: str) -> Iterator[None]:
    """Budgets of a namespace cannot be written."""
    pair = control_plane.server_certificate("conflicts")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.certificate, pair.key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Conflict)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    ca = base64.b64encode(control_plane.ca.read_bytes()).decode()
    rule = {"apiGroups": ["policy"], "apiVersions": ["v1"], "resources": ["poddisruptionbudgets/status"]}
    webhook: Json = {
        "name": "conflicts.taintwarden.io",
        "clientConfig": {"url": f"https://127.0.0.1:{server.server_port}/", "caBundle": ca},
        "rules": [rule | {"operations": ["UPDATE"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    cluster = control_plane.client
    cluster.create(WEBHOOKS, {"metadata": {"name": "conflicts"}, "webhooks": [webhook]})
    try:
        path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/web/status"
        budget = cluster.get("poddisruptionbudgets", "web", namespace)
        wait_until(lambda: MODIFIED in cluster.refusal("PUT", path, budget), IN_FORCE_SECONDS, "conflicts")
        yield
        cluster.delete(WEBHOOKS, "conflicts")
        wait_until(lambda: not cluster.refusal("PUT", path, budget), IN_FORCE_SECONDS, "the end of conflicts")
    finally:
        if cluster.find(WEBHOOKS, "conflicts"):
            cluster.delete(WEBHOOKS, "conflicts")
        server.shutdown()
        server.server_close()


def evict(control_plane: ControlPlane, pod: Pod) -> Result:
    async def call() -> Result:
        async with Client(Connection.load(str(control_plane.admin_kubeconfig))) as client:
            return await Evictor(client).evict(pod, None, lambda: True)

    return asyncio.run(call())


def test_a_webhook_that_answers_as_a_conflict_does_is_told_as_a_webhook(
    own_control_plane: ControlPlane, pod: Pod
) -> None:
    """The pod stays, and is evicted by a later call."""
    with conflicts(own_control_plane, pod.namespace):
        result = evict(own_control_plane, pod)
        assert (result.outcome, MODIFIED in result.message) == (Outcome.DENIED, True), result
        assert not is_evicted(own_control_plane.client.find("pods", NAME, pod.namespace))
    assert evict(own_control_plane, pod).outcome is Outcome.EVICTED


def test_the_uid_of_another_pod_means_that_it_is_gone(own_control_plane: ControlPlane, pod: Pod) -> None:
    other = Pod("uid-of-another", pod.name, pod.node, pod.shared, 0.0, 1)
    result = evict(own_control_plane, other)
    assert (result.outcome, "the UID in the precondition" in result.message) == (Outcome.GONE, True), result


def test_a_namespace_that_is_being_deleted_is_told_as_such(own_control_plane: ControlPlane, pod: Pod) -> None:
    """No controller deletes its pods here. An eviction is created, which such a namespace does not take."""
    own_control_plane.client.delete("namespaces", pod.namespace)
    result = evict(own_control_plane, pod)
    assert (result.outcome, "being terminated" in result.message) == (Outcome.NAMESPACE_TERMINATING, True), result
