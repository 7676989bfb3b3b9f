"""The common parts of the processes that answer over HTTPS: the webhooks and the scheduler extender.

Each follows the cluster, keeps a certificate, answers probes and scrapes, and stops without losing a call.
"""

import asyncio
import signal
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any

import structlog

from taintwarden.controller import memory
from taintwarden.controller.clock import CheckedClock, Clock
from taintwarden.controller.handlers.stream_handlers import StreamHandler
from taintwarden.kube.auth.connection import Connection
from taintwarden.kube.http.client import Client
from taintwarden.kube.watch.streams import Stream
from taintwarden.kube.wire.resources import Resource
from taintwarden.serving.metrics_server import MetricsServer
from taintwarden.serving.probes import ProbeServer
from taintwarden.telemetry.metrics import Metrics, Process
from taintwarden_placement.serving.https_server import HttpsServer
from taintwarden_placement.settings import ServedSettings

MAX_API_CONNECTIONS = 8
"""Maximum number of connections to the API server: a few watches, and the calls about the certificate."""

log = structlog.get_logger()

Followed = dict[Resource[Any], StreamHandler[Any]]


class ServedApp(ABC):
    """One running process.

    Args:
        process: the kind of process.
        settings: process settings.
        connection: the cluster.
        clock: wall and monotonic time.

    """

    def __init__(self, process: Process, settings: ServedSettings, connection: Connection, clock: Clock) -> None:
        self.settings = settings
        self.connection = connection
        self.failure: BaseException | None = None
        self.metrics = Metrics(process)
        self._clock = clock = CheckedClock(clock)
        self.client = Client(connection, max_connections=MAX_API_CONNECTIONS, on_date=clock.synchronize)
        self._process = process
        self.stopping = asyncio.Event()
        """Set by a signal, or after a task has failed."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers = (
            ProbeServer(settings, unready=self._unready, dead=self._dead, metrics=self.metrics.exposition),
            MetricsServer(settings, self.client, self.metrics.exposition, clock),
        )
        self.followed = self.follow()
        self._streams = [Stream(self.client, *one) for one in self.followed.items()]
        self.server = self.serve()

    @abstractmethod
    def follow(self) -> Followed:
        """Return the handler of each followed resource."""

    @abstractmethod
    def serve(self) -> HttpsServer:
        """Return the server. Called after :meth:`follow`."""

    async def start(self) -> None:
        """Start all servers, and start following the cluster.

        Raises:
            ConfigError: a port or the certificate for metrics cannot be used.

        """
        await self.client.__aenter__()
        for server in self._servers:
            await server.start()
        await self.server.start()
        self._start_task(self.server.keeper.run())
        for stream in self._streams:
            self._start_task(stream.run())
        for handler in self.followed.values():
            self._start_task(handler.run())
        self._start_task(self._release_memory())
        log.info(
            "process-started",
            process=self._process.value,
            server=self.connection.server,
            port=self.settings.webhook_port,
        )

    async def stop(self) -> None:
        """Stop the servers and all tasks."""
        await self.server.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for server in self._servers:
            await server.stop()
        await self.client.__aexit__()
        log.info("process-stopped", process=self._process.value)

    async def _release_memory(self) -> None:
        """Release unused memory after all lists, so that later garbage collections do not delay answers."""
        for stream in self._streams:
            await stream.listed.wait()
        memory.release_unused()

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_ended)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and self.failure is None:
            self.failure = error
            log.critical("task-failed", exc_info=error)
            self.stopping.set()

    def _unready(self) -> str:
        missing = [stream.name for stream in self._streams if not stream.listed.is_set()]
        return f"not known yet: {', '.join(missing)}" if missing else self.server.unready()

    def _dead(self) -> str:
        return f"a task failed: {self.failure}" if self.failure else ""


def ignore_fault(_key: str, _uid: str, _reason: str) -> None:
    """Ignore a fault of a policy or profile, since the operator reports it."""


async def serve(app: ServedApp) -> BaseException | None:
    """Serve until a signal or a failure stops the process. Returns the failure; None after a signal.

    Raises:
        ConfigError: a port or the certificate for metrics cannot be used.

    """
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, app.stopping.set)
    try:
        await app.start()
        await app.stopping.wait()
        if app.failure is None:  # answer until all nodes have removed this replica from the Service
            await app.server.linger()
    finally:
        await app.stop()
    return app.failure
