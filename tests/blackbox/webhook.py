"""A validating webhook of others, which is asked about each eviction in labelled namespaces and takes its time."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from controlplane import ApiError, ControlPlane, Json, wait_until
from controlplane.eviction_webhook import EvictionWebhook

LABEL = "blackbox/asks"
PROBE = "blackbox-webhook-probe"
TIMEOUT_SECONDS = 10
HEARD_SECONDS = 60


class SlowWebhook:
    """It allows everything after `seconds`; beyond TIMEOUT_SECONDS the server refuses the eviction meanwhile."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.asked = 0

    def answer(self) -> Json:
        self.asked += 1
        time.sleep(self.seconds)  # this is the fault
        return {"allowed": True}


@contextmanager
def serving(control_plane: ControlPlane) -> Iterator[SlowWebhook]:
    """Serve one that answers at once, until it is told otherwise, and have the API server ask it."""
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
