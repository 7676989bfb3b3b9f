"""The composition root of ``taintwarden scheduler-extender``, a separate process that answers schedulers.

It reads nodes, policies and profiles, and manages its own certificate. It can change nothing else in the cluster.
Schedulers with ``ignorable: true`` continue without it.
"""

from collections.abc import Sequence
from functools import partial

from taintwarden.controller.clock import Clock, system_clock
from taintwarden.controller.decoding.decoding import Decoder
from taintwarden.controller.handlers.store_handler import StoreHandler
from taintwarden.controller.stores.policy_store import PolicyStore
from taintwarden.controller.stores.profile_store import ProfileStore
from taintwarden.engine.policy import Policy
from taintwarden.kube.auth.connection import Connection
from taintwarden.kube.calls.own_kinds import POLICIES, PROFILES
from taintwarden.kube.wire.resources import NODES
from taintwarden.telemetry.metrics import Process, observer
from taintwarden_placement.admission.cluster_state import ClusterState
from taintwarden_placement.mirror import Mirror
from taintwarden_placement.scheduling.demands import Demands
from taintwarden_placement.scheduling.extender import REASONS, SchedulerExtender
from taintwarden_placement.scheduling.node_changes import NodeChanges
from taintwarden_placement.scheduling.node_filters import NodeFacts, NodeFilters, NodeReader
from taintwarden_placement.served import Followed, ServedApp, ignore_fault, serve
from taintwarden_placement.serving.extender_requests import RESULTS, VERBS, extender_app
from taintwarden_placement.serving.https_server import HttpsServer
from taintwarden_placement.settings import ExtenderSettings


class ExtenderApp(ServedApp):
    """One running scheduler extender.

    Args:
        settings: process settings.
        connection: the cluster.
        clock: wall and monotonic time.

    """

    def __init__(self, settings: ExtenderSettings, connection: Connection, clock: Clock = system_clock) -> None:
        self.known = ClusterState()
        self._node_changes = NodeChanges(lambda: clock().monotonic)
        super().__init__(Process.EXTENDER, settings, connection, clock)

    def follow(self) -> Followed:
        """Follow nodes, policies and profiles."""
        feed = self.known.feed
        self._reader = NodeReader()
        self._nodes = Mirror[NodeFacts](NODES.name, self.metrics, self._reader, self._node_changes.notify)
        return {
            POLICIES: StoreHandler(POLICIES.name, feed, self.metrics, PolicyStore(self._derive, ignore_fault)),
            NODES: self._nodes,
            PROFILES: StoreHandler(PROFILES.name, feed, self.metrics, ProfileStore(feed, ignore_fault)),
        }

    def serve(self) -> HttpsServer:
        """Create the server for the requests of schedulers."""
        for reason in REASONS:
            self.metrics.extender_refusals.labels(reason)
        demands = Demands(Decoder(self._clock), self.known.profiles)
        extender = SchedulerExtender(
            self._nodes.get,
            demands,
            NodeFilters(self.settings.gates),
            self._node_changes,
            lambda reason, nodes: self.metrics.extender_refusals.labels(reason).inc(nodes),
            derived=lambda: self._reader.derived,
            shows_values=self.settings.webhook_client_ca is not None,
        )
        observe = observer(self.metrics.extender_requests, self.metrics.extender_duration, VERBS, RESULTS)
        return HttpsServer(
            self.settings,
            self.client,
            partial(extender_app, extender, observe),
            report_expiry=self.metrics.extender_certificate_expiry.set,
            clock=self._clock,
        )

    def _derive(self, policies: Sequence[Policy]) -> None:
        """Put policies in force. If they derive other taints than the policies before, list the nodes again."""
        if self._reader.set_policies(policies):
            for stream in self._streams:
                if stream.name == NODES.name:
                    stream.list_again()


async def run(settings: ExtenderSettings) -> BaseException | None:
    """Serve until a signal or a failure stops the process. Returns the failure; None after a signal.

    Raises:
        ConfigError: the kubeconfig, a port, a certificate or the CA of callers cannot be used.

    """
    return await serve(ExtenderApp(settings, Connection.load(settings.kubeconfig, settings.context)))
