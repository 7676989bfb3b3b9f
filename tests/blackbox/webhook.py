"""Webhooks of others that are asked about evictions: one takes its time, one takes the pods over."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from controlplane import ApiError, ControlPlane, Json, wait_until
from controlplane.eviction_webhook import EvictionWebhook

LABEL = "blackbox/asks"
PROBE = "blackbox-webhook-probe"
TIMEOUT_SECONDS = 10
HEARD_SECONDS = 60


class SlowWebhook:
    """Webhook that allows all requests after `seconds`; beyond TIMEOUT_SECONDS the server refuses the eviction."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.asked = 0

    def answer(self, _: Json) -> Json:
        self.asked += 1
        time.sleep(self.seconds)  # this is the fault
        return {"allowed": True}


@contextmanager
def serving(control_plane: ControlPlane) -> Iterator[SlowWebhook]:
    """Serve a SlowWebhook, without a delay at first, and have the API server call it."""
    webhook, cluster = SlowWebhook(), control_plane.client
    asking = {"matchLabels": {LABEL: "true"}}
    with EvictionWebhook(control_plane, PROBE, webhook.answer, namespaces=asking, timeout_seconds=TIMEOUT_SECONDS):
        cluster.create_namespace(PROBE, {LABEL: "true"})
        try:
            cluster.create_pod("probe", PROBE)
            wait_until(lambda: is_asked(control_plane, webhook), HEARD_SECONDS, "the webhook to be asked")
            yield webhook
        finally:
            webhook.seconds = 0.0
            cluster.delete_all("pods", PROBE)
            cluster.delete("namespaces", PROBE)


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


class TakingWebhook:
    """Webhook that answers evictions in its own way, and deletes the pods itself `seconds` later (0: never).

    `behaviour`: `dry-run` (it makes the accepted eviction a dry run), `postpone` (429), `deny` (403).
    """

    def __init__(self, control_plane: ControlPlane, behaviour: str, seconds: float) -> None:
        self.behaviour = behaviour
        self.seconds = seconds
        self.asked: dict[str, float] = {}
        """Namespace and name of a pod -> when its eviction was asked for first."""
        self._client = control_plane.client

    def answer(self, request: Json) -> Json:
        if request.get("dryRun"):
            return {"allowed": True}
        pod = f"{request['namespace']}/{request['name']}"
        if pod not in self.asked:
            self.asked[pod] = time.monotonic()
            if self.seconds:
                threading.Timer(self.seconds, self._delete, [request["name"], request["namespace"]]).start()
        if self.behaviour == "dry-run":
            patch = [{"op": "add", "path": "/deleteOptions/dryRun", "value": ["All"]}]
            text = base64.b64encode(json.dumps(patch).encode()).decode()
            return {"allowed": True, "patchType": "JSONPatch", "patch": text}
        code = 429 if self.behaviour == "postpone" else 403
        return {"allowed": False, "status": {"code": code, "message": "this webhook moves the pod itself"}}

    def _delete(self, name: str, namespace: str) -> None:
        with suppress(ApiError):  # its story has ended
            self._client.delete("pods", name, namespace)


@contextmanager
def taking(control_plane: ControlPlane, namespace: str, behaviour: str, seconds: float) -> Iterator[TakingWebhook]:
    """Have the API server ask such a webhook about the evictions of a namespace, once it does so."""
    webhook, cluster = TakingWebhook(control_plane, behaviour, seconds), control_plane.client
    kind = "mutating" if behaviour == "dry-run" else "validating"
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    with EvictionWebhook(
        control_plane, f"taking-{namespace}", webhook.answer, namespaces=here, timeout_seconds=10, kind=kind
    ):
        cluster.create_pod("probe", namespace)
        wait_until(lambda: _is_taken(control_plane, webhook, namespace), HEARD_SECONDS, "the webhook to be asked")
        cluster.delete("pods", "probe", namespace)
        webhook.asked.clear()
        yield webhook


def _is_taken(control_plane: ControlPlane, webhook: TakingWebhook, namespace: str) -> bool:
    with suppress(ApiError):
        control_plane.client.evict("probe", namespace)
    if not webhook.asked and control_plane.client.find("pods", "probe", namespace) is None:
        control_plane.client.create_pod("probe", namespace)
    return bool(webhook.asked)
