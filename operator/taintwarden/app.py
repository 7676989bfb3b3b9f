"""The composition root, which creates and connects all objects.

``taintwarden run`` and plain ``kopf run -A -m taintwarden.kopf_run`` both use it.
"""

import asyncio
import gc
import os
import signal
from collections.abc import Coroutine
from typing import Any, Self

import msgspec
import structlog

from taintwarden.controller import memory
from taintwarden.controller.clock import CheckedClock, Clock, system_clock
from taintwarden.controller.decoding.decoding import Decoder
from taintwarden.controller.effector import Effector
from taintwarden.controller.handlers.following import Following
from taintwarden.controller.handlers.keyed_handlers import (
    BudgetHandler,
    DeploymentHandler,
    NamespaceHandler,
    WorkloadHandler,
)
from taintwarden.controller.handlers.store_handler import StoreHandler
from taintwarden.controller.handlers.stream_handlers import NodeHandler, PodHandler, StreamHandler
from taintwarden.controller.loop import Loop
from taintwarden.controller.status.status_writer import REFRESH_SECONDS, StatusWriter
from taintwarden.controller.stores.guard_store import GuardStore
from taintwarden.controller.stores.policy_store import PolicyStore
from taintwarden.controller.stores.profile_store import ProfileStore
from taintwarden.controller.words.issues import Issues
from taintwarden.controller.words.notifier import Notifier
from taintwarden.controller.words.policy_changes import PolicyChanges
from taintwarden.engine import events
from taintwarden.engine.limits.calls import MAX_SLOW
from taintwarden.engine.machine import Machine, Timings
from taintwarden.engine.policy import Policy, has_replace_first
from taintwarden.kube.auth.connection import Connection
from taintwarden.kube.auth.credentials import CredentialsError
from taintwarden.kube.calls.lease import LEASE_NAME, Lease, LeaseTimings
from taintwarden.kube.calls.own_kinds import POLICIES, PROFILES, check_definition
from taintwarden.kube.calls.recorder import Recorder
from taintwarden.kube.errors import ApiError, Unreachable, Untrusted
from taintwarden.kube.http.client import Client
from taintwarden.kube.watch.watching import StreamTimings
from taintwarden.kube.wire.kinds import CustomObject
from taintwarden.kube.wire.resources import BUDGETS, CONTROLLERS, DEPLOYMENTS, NAMESPACES, NODES, PODS, Resource
from taintwarden.plugin import LABELLER, TAINT_SOURCE, LabellerPlugin, SourcePlugin, load_plugin
from taintwarden.serving.metrics_server import MetricsServer
from taintwarden.serving.probes import ProbeServer
from taintwarden.settings import Settings
from taintwarden.telemetry.metrics import Metrics, Process

COLLECTOR_THRESHOLDS = (5_000, 2, 1_000)
"""Thresholds of the garbage collector: scanning all pods would be a long pause, and they form no cycles."""
STARTING_SECONDS = 30.0
"""Maximum seconds until the API server serves a kind of Taintwarden. Then the process ends, to be started again."""

log = structlog.get_logger()


class AppTimings(msgspec.Struct, frozen=True, kw_only=True):
    """Durations of one operator. Tests pass shorter ones."""

    streams: StreamTimings = StreamTimings()
    machine: Timings = Timings()
    lease: LeaseTimings = LeaseTimings()
    refresh_seconds: float = REFRESH_SECONDS
    """Minimum seconds between two reports of all policies."""
    starting_seconds: float = STARTING_SECONDS
    """Maximum seconds to wait for the API server at the start, for each kind of Taintwarden."""
    stop_seconds: float = 5.0
    """Maximum seconds to wait for calls in progress when the operator stops."""


class App:
    """One running operator.

    Args:
        settings: settings of the process.
        connection: address and credentials of the API server.
        clock: reads both clocks, wall and monotonic.
        timings: durations of the operator.

    """

    def __init__(
        self,
        settings: Settings,
        connection: Connection,
        clock: Clock = system_clock,
        timings: AppTimings = AppTimings(),  # noqa: B008 - it is frozen
    ) -> None:
        self.settings = settings
        self._timings = timings
        self.connection = connection
        self.failure: BaseException | None = None
        """Error of the first task that failed."""
        self._clock = clock = CheckedClock(clock)
        self._tasks: set[asyncio.Task[None]] = set()
        self._calls: set[asyncio.Task[None]] = set()
        self._taking_over: asyncio.Task[None] | None = None
        self._events_dropped = 0
        """Number of dropped Events that the metric already counts."""
        gates = settings.gates
        source: SourcePlugin | None = load_plugin(TAINT_SOURCE)
        labeller: LabellerPlugin | None = load_plugin(LABELLER)
        self.metrics = Metrics(Process.OPERATOR)
        self.client = Client(
            connection,
            max_connections=settings.max_in_flight + MAX_SLOW + 32,
            is_paced=True,
            on_date=clock.synchronize,
        )
        self.machine = Machine(
            gates=gates,
            overall_rate=settings.overall_rate,
            max_in_flight=settings.max_in_flight,
            timings=timings.machine,
            source=None if source is None else source.new_source,
            drained_condition=settings.drained_condition,
        )
        self.recorder = Recorder(
            self.client, settings.identity, settings.events_per_second, lambda: self.machine.view.is_busy
        )
        self.notifier = Notifier(self.recorder, self.metrics, gates)
        self.issues = Issues(self.notifier)
        self.lease = Lease(
            self.client,
            namespace=settings.namespace,
            name=LEASE_NAME,
            identity=settings.identity,
            monotonic=lambda: clock().monotonic,
            on_change=self.lease_changed,
            on_error=lambda reason: log.warning("lease-not-renewed", reason=reason),
            on_renewal=lambda succeeded: self._feed(events.LeaseRenewal(succeeded)),
            timings=timings.lease,
        )
        self._decoder = decoder = Decoder(clock, self.issues.report_pod, reads_drained=settings.drained_condition)
        self.effector = Effector(
            client=self.client,
            lease=self.lease,
            is_wanted=lambda order: self.machine.is_still_valid(order, clock()),
            knows_pods=self.machine.knows_pods,
            metrics=self.metrics,
            feed=self._feed,
            newest_version=lambda: self.loop.newest_version,
            spawn=self._call,
            spawn_minor=self._task,
        )
        self.loop = Loop(self.machine, clock, self.effector.carry_out, self.notifier.report)
        self.guards = GuardStore(self._feed)
        self.policies = PolicyStore(
            changed=self._policies_changed,
            issue=self.issues.report_policy,
            guards=self.guards,
            changes=PolicyChanges(self.issues.report_policy_change),
            dry_run=settings.dry_run,
        )
        self.profiles = ProfileStore(self._feed, self.issues.report_profile)
        self.status = StatusWriter(
            self.client,
            self.machine.view,
            self.metrics,
            clock,
            self.policies.observed,
            self.profiles.observed,
            lambda: self.lease.is_held and self.machine.view.is_leading,
            self.loop,
            dry_run=settings.dry_run,
            refresh_seconds=timings.refresh_seconds,
        )
        parts = (self._feed, self.metrics)
        handlers: dict[Resource[Any], StreamHandler[Any]] = {
            POLICIES: StoreHandler(POLICIES.name, *parts, self.policies),
            PROFILES: StoreHandler(PROFILES.name, *parts, self.profiles),
            NODES: NodeHandler(NODES.name, *parts, decoder),
            PODS: PodHandler(PODS.name, *parts, decoder),
            NAMESPACES: NamespaceHandler(NAMESPACES.name, *parts),
            BUDGETS: BudgetHandler(BUDGETS.name, *parts),
            DEPLOYMENTS: DeploymentHandler(DEPLOYMENTS.name, *parts),
            **{resource: WorkloadHandler(resource.name, *parts) for resource in CONTROLLERS},
        }
        self.following = Following(self.client, handlers, timings.streams, self._task)
        self._source = self._labeller = None
        if source is not None:
            self._source = source.new_following(self.client, *parts, timings.streams, self._task)
        if labeller is not None:
            self._labeller = labeller.Labeller(
                self.client, lambda: self.lease.is_held, self.notifier.report, self._task
            )
        self._servers = (
            ProbeServer(settings, unready=self.unready, dead=self.dead, metrics=self.exposition),
            MetricsServer(settings, self.client, self.exposition, clock),
        )

    @classmethod
    async def connect(cls, settings: Settings, timings: AppTimings = AppTimings()) -> Self:  # noqa: B008 - it is frozen
        """Create the app, and check that the API server serves the custom resources.

        Raises:
            KubeError: the API server cannot be used, or does not serve them.

        """
        app = cls(settings, Connection.load(settings.kubeconfig, settings.context), timings=timings)
        await app.client.__aenter__()
        try:
            for resource in (POLICIES, PROFILES):
                await app._await_definition(resource)
        except BaseException:
            await app.client.__aexit__()
            raise
        return app

    async def start(self) -> None:
        """Begin to follow the cluster. Lead and decide as soon as everything was listed."""
        gc.set_threshold(*COLLECTOR_THRESHOLDS)
        settings = self.settings
        for server in self._servers:
            await server.start()
        log.info("operator-started", identity=settings.identity, server=self.connection.server)
        if settings.dry_run:
            log.warning("dry-run", effect="no policy evicts, whatever its mode")
        for gate, name in ((settings.numeric_operators, "Gt, Lt"), (settings.semver_operators, "Semver*")):
            if not gate:
                log.warning("operators-switched-off", operators=name, effect="such tolerations never match")
        self.following.start()
        self._task(self._sync())
        self._task(self.recorder.run())

    async def stop(self) -> None:
        """Stop deciding, wait for calls in progress, release the lease."""
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._calls:
            await asyncio.wait(self._calls, timeout=self._timings.stop_seconds)
        await self.lease.release()
        await self.recorder.flush(self._timings.stop_seconds)
        for call in self._calls:
            call.cancel()
        for server in self._servers:
            await server.stop()
        await self.client.__aexit__()
        log.info("operator-stopped", identity=self.settings.identity)

    async def _sync(self) -> None:
        """Wait until everything was listed once, then begin to decide."""
        began = self._clock().monotonic
        await self.following.list_all()
        self._feed(events.Synced())
        memory.release_unused()
        log.info("synced", seconds=round(self._clock().monotonic - began, 3), nodes=len(self.machine.view.nodes))
        self._task(self.loop.run())
        self._task(self.status.run())
        self._task(self.lease.run())

    def _policies_changed(self, policies: tuple[Policy, ...]) -> None:
        """Feed changed policies to the machine. List nodes or controllers again if more of their fields are needed.

        Until the controllers are listed, no pod is evicted, because it is unknown which pods count together.
        """
        reads_more = self._decoder.follow(policies)
        for resource in CONTROLLERS:
            handler = self.following.handlers[resource]
            if isinstance(handler, WorkloadHandler) and handler.follow(policies):
                self.following.list_again(resource, is_stale=True)
        if has_replace_first(policies):
            self.following.follow(DEPLOYMENTS)
        else:
            self.following.stop(DEPLOYMENTS)
        self._feed(events.PoliciesChanged(policies))
        if self._source is not None:
            self._source.policies_changed(policies)
        if reads_more:
            self.following.list_again(NODES)

    async def _await_definition(self, resource: Resource[CustomObject]) -> None:
        """Wait until the API server is ready to serve this kind. A definition that is missing is an error at once.

        Right after a node has booted, its pods cannot reach the API server: the rules of its Services do not exist yet.
        """
        ends_at = self._clock().monotonic + self._timings.starting_seconds
        while True:
            try:
                return await check_definition(self.client, resource)
            except (ApiError, Unreachable, CredentialsError) as error:
                is_refusal = isinstance(error, ApiError) and error.is_final
                if is_refusal or isinstance(error, Untrusted) or self._clock().monotonic >= ends_at:
                    raise
                name = "credentials-not-ready" if isinstance(error, CredentialsError) else "api-server-not-ready"
                log.warning(name, reason=str(error))
            await asyncio.sleep(1.0)

    # -- tasks ----------------------------------------------------------------------------------------------------

    def _task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._spawn(work, self._tasks)

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        self._spawn(work, self._calls)

    def _spawn(self, work: Coroutine[Any, Any, None], among: set[asyncio.Task[None]]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        among.add(task)
        task.add_done_callback(among.discard)
        task.add_done_callback(self._task_ended)
        return task

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """End the process after a bug: a new process starts from the state of the cluster."""
        if self.failure is None:
            self.failure = error
            log.critical("task-failed", exc_info=error)
            os.kill(os.getpid(), signal.SIGTERM)

    # -- leadership ----------------------------------------------------------------------------------------------------

    def lease_changed(self, held: bool) -> None:  # noqa: FBT001 - a callback's one argument
        """The lease was acquired or lost."""
        log.info("leadership-gained" if held else "leadership-lost", identity=self.settings.identity)
        self.metrics.leader.set(held)
        if self._taking_over is not None:
            self._taking_over.cancel()
        if held:
            self._taking_over = self._task(self._take_over())
        else:
            self._lead(leading=False)

    async def _take_over(self) -> None:
        """Read the policies again, whose status contains the guard records of the previous leader."""
        await self.following.relist_policies()
        self.guards.restore_records()
        self._lead(leading=True)

    def _lead(self, *, leading: bool) -> None:
        self._feed(events.LeadershipChanged(leading, self.lease.term))
        self.guards.set_leading(leading)
        self.issues.set_leading(leading)
        self.status.refresh()

    def _feed(self, event: events.Event) -> None:
        if self._labeller is not None:  # first, because labels place the replacements of evicted pods
            self._labeller.take(event)
        try:
            self.loop.feed(event)
        except Exception as error:  # also in a timer of a stream or of the lease, whose errors asyncio only logs
            self._fail(error)
            raise

    # -- probes and metrics --------------------------------------------------------------------------------------------

    def unready(self) -> str:
        """Return why this replica is not ready; empty if it decides, or could take over from the leader."""
        view = self.machine.view
        if not view.is_synced:
            return "the cluster is not fully known yet"
        if view.is_blind:
            return f"disconnected from the API server, so no pod is evicted: {', '.join(self.following.cut_off)}"
        if self.lease.is_held and not view.is_leading:
            return "leading, but not deciding yet"
        return "" if self.lease.has_leader else "no replica leads, so no pod is evicted"

    def dead(self) -> str:
        """Return why the process has to be restarted; empty if it works."""
        return f"a task failed: {self.failure}" if self.failure else ""

    def exposition(self) -> bytes:
        """Return the current metrics."""
        self.metrics.events_dropped.inc(self.recorder.dropped - self._events_dropped)
        self._events_dropped = self.recorder.dropped
        self.metrics.stale_view.set(not self.machine.view.is_synced or self.machine.view.is_blind)
        return self.metrics.exposition()


async def run(settings: Settings, timings: AppTimings = AppTimings()) -> BaseException | None:  # noqa: B008 - it is frozen
    """Run the operator until it is stopped. Return the error that made it fail, if any.

    Raises:
        KubeError: the API server cannot be used.

    """
    app = await App.connect(settings, timings)
    stopping = asyncio.Event()
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
        await app.start()
        await stopping.wait()
    finally:
        await app.stop()
    return app.failure
