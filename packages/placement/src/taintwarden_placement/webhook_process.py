"""The composition root of ``taintwarden webhook``, a separate process with the admission webhooks.

It answers API servers and manages its own certificate. It reads neither pods nor nodes, and its account can change
nothing else. A flood of requests therefore stops no eviction, and an attacker who controls the process evicts no pod.
"""

from functools import partial

from taintwarden.controller.clock import Clock, system_clock
from taintwarden.controller.decoding.decoding import Decoder
from taintwarden.controller.handlers.keyed_handlers import NamespaceHandler
from taintwarden.controller.handlers.store_handler import StoreHandler
from taintwarden.controller.stores.policy_store import PolicyStore
from taintwarden.controller.stores.profile_store import ProfileStore
from taintwarden.engine import events
from taintwarden.engine.model import Gates
from taintwarden.kube.auth.connection import Connection
from taintwarden.kube.calls.own_kinds import POLICIES, PROFILES
from taintwarden.kube.wire.resources import NAMESPACES
from taintwarden.telemetry.metrics import Process, observer
from taintwarden_placement.admission.cluster_state import ClusterState
from taintwarden_placement.admission.webhooks import AdmissionWebhooks
from taintwarden_placement.scheduling.demands import Demands
from taintwarden_placement.served import Followed, ServedApp, ignore_fault, serve
from taintwarden_placement.serving.https_server import HttpsServer
from taintwarden_placement.serving.reviews import RESULTS, review_app
from taintwarden_placement.settings import WebhookSettings
from taintwarden_placement.webhook_calls import ConfigurationKind


class WebhookApp(ServedApp):
    """One running webhook.

    Args:
        settings: process settings.
        connection: the cluster.
        clock: wall and monotonic time.

    """

    def __init__(self, settings: WebhookSettings, connection: Connection, clock: Clock = system_clock) -> None:
        self.known = ClusterState()
        self._by_extender = settings.placement == "extender"
        super().__init__(Process.WEBHOOK, settings, connection, clock)

    def follow(self) -> Followed:
        """Follow policies, profiles and namespaces."""
        feed = self.known.feed
        policies = PolicyStore(lambda valid: feed(events.PoliciesChanged(valid)), ignore_fault)
        profiles = ProfileStore(feed, ignore_fault)
        return {
            POLICIES: StoreHandler(POLICIES.name, feed, self.metrics, policies),
            PROFILES: StoreHandler(PROFILES.name, feed, self.metrics, profiles),
            NAMESPACES: NamespaceHandler(NAMESPACES.name, feed, self.metrics),
        }

    def serve(self) -> HttpsServer:
        """Create the server for the reviews of API servers."""
        gates = self.settings.gates
        webhook = admission_webhooks(self.known, self._clock, gates, by_extender=self._by_extender)
        webhooks = {"validate": webhook.validate, "mutate": webhook.mutate}
        observe = observer(self.metrics.admission_requests, self.metrics.admission_duration, webhooks, RESULTS)
        make_app = partial(review_app, webhooks, observe)
        return HttpsServer(
            self.settings,
            self.client,
            make_app,
            report_expiry=self.metrics.webhook_certificate_expiry.set,
            clock=self._clock,
            kinds=tuple(ConfigurationKind),
            report_configured=lambda kind, exists: self.metrics.webhook_configured.labels(kind).set(exists),
            report_trusted=lambda kind, is_trusted: self.metrics.webhook_trusted.labels(kind).set(is_trusted),
        )


def admission_webhooks(
    known: ClusterState, clock: Clock, gates: Gates, *, by_extender: bool = False
) -> AdmissionWebhooks:
    """Create the webhooks that answer from the state in ``known``."""
    decoder = Decoder(clock)
    # Node affinity of volumes is not part of the demand: the scheduler evaluates it.
    demands = Demands(decoder, known.profiles)
    return AdmissionWebhooks(known, decoder, demands.of, gates, by_extender=by_extender)


async def run(settings: WebhookSettings) -> BaseException | None:
    """Serve until a signal or a failure stops the process. Returns the failure; None after a signal.

    Raises:
        ConfigError: the kubeconfig, a port, a certificate or the CA of callers cannot be used.

    """
    return await serve(WebhookApp(settings, Connection.load(settings.kubeconfig, settings.context)))
