"""Foreign admission webhooks that deny or delay evictions, in half of the namespaces."""

import time

from chaos.faults.base import Fault, Scene
from controlplane import OPERATOR_USER, Json
from controlplane.eviction_webhook import EvictionWebhook

NAME = "chaos"
OWN = {"name": "own", "expression": f"request.userInfo.username == '{OPERATOR_USER}'"}
HANG_SECONDS = 20
TIMEOUT_SECONDS = 5
LAST_SECONDS = 10


class Webhook(Fault):
    """One that is asked about each eviction in half of the namespaces, and does not allow it."""

    code = 403

    def start(self, scene: Scene) -> None:
        half = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": scene.world.namespaces[::2]}
        self._webhook = EvictionWebhook(
            scene.plane,
            NAME,
            self.answer,
            namespaces={"matchExpressions": [half]},
            timeout_seconds=TIMEOUT_SECONDS,
            conditions=[OWN],
        )
        self._webhook.__enter__()

    def end(self, scene: Scene) -> None:
        self._webhook.__exit__()

    def answer(self, _: Json) -> Json:
        """The refusal."""
        return {"allowed": False, "status": {"code": self.code, "message": "the webhook of the test does not allow it"}}


class WebhookDenies(Webhook):
    """The webhook denies every eviction."""

    name = "webhook-denies"


class WebhookDeniesLast(WebhookDenies):
    """The webhook denies every eviction until ten seconds after the last value has changed."""

    name = "webhook-denies-last"

    def end(self, scene: Scene) -> None:
        scene.world.freeze()
        time.sleep(LAST_SECONDS)  # no change of a node follows the denials
        super().end(scene)


class WebhookBusy(Webhook):
    """The webhook answers 429, as budgets of other projects do."""

    name = "webhook-429"
    code = 429


class WebhookHangs(Webhook):
    """The webhook does not answer, so that each call takes five seconds and fails."""

    name = "webhook-hangs"
    seconds = 30
    staleness_seconds = TIMEOUT_SECONDS + 2

    def answer(self, _: Json) -> Json:
        time.sleep(HANG_SECONDS)  # this is the fault
        return super().answer()
