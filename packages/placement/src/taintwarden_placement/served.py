"""What the processes that answer over HTTPS have in common: from their start to their end.

They follow the cluster, keep a certificate, answer probes and scrapes, and stop without losing a call.
"""

import asyncio
import signal
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any

import structlog

from taintwarden.controller import memory
from taintwarden.controller.clock import Clock
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
"""A few watches, and the calls about the certificate."""

log = structlog.get_logger()

Followed = dict[Resource[Any], StreamHandler[Any]]


class ServedApp(ABC):
    """One running process.

    Args:
        process: what it is.
        settings: process settings.
        connection: the cluster.
        clock: both clocks.

    """

    def __init__(self, process: Process, settings: ServedSettings, connection: Connection, clock: Clock) -> None:
        self.settings = settings
        self.connection = connection
        self.failure: BaseException | None = None
        self.metrics = Metrics(process)
        self.client = Client(connection, max_connections=MAX_API_CONNECTIONS)
        self._process = process
        self.stopping = asyncio.Event()
        """Asked to stop, or a task has failed."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers = (
            ProbeServer(settings, unready=self._unready, dead=self._dead, metrics=self.metrics.exposition),
            MetricsServer(settings, self.client, self.metrics.exposition, clock),
        )
        self._clock = clock
        self.followed = self.follow()
        self._streams = [Stream(self.client, *one) for one in self.followed.items()]
        self.server = self.serve()

    @abstractmethod
    def follow(self) -> Followed:
        """What it follows, each with what receives its stream."""

    @abstractmethod
    def serve(self) -> HttpsServer:
        """What answers. Called after :meth:`follow`."""

    async def start(self) -> None:
        """Listen, and begin to follow the cluster.

        Raises:
            ConfigError: a port is not to be had.

        """
        await self.client.__aenter__()
        for one in self._servers:
            await one.start()
        await self.server.start()
        self._task(self.server.keeper.run())
        for stream in self._streams:
            self._task(stream.run())
        for handler in self.followed.values():
            self._task(handler.run())
        self._task(self._release_memory())
        log.info(
            "process-started",
            process=self._process.value,
            server=self.connection.server,
            port=self.settings.webhook_port,
        )

    async def stop(self) -> None:
        """Stop answering, and end."""
        await self.server.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for one in self._servers:
            await one.stop()
        await self.client.__aexit__()
        log.info("process-stopped", process=self._process.value)

    async def _release_memory(self) -> None:
        """Once all lists are complete. No client waits then while the collector looks at what is known."""
        for stream in self._streams:
            await stream.listed.wait()
        memory.release_unused()

    def _task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
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


def unreported(_key: str, _uid: str, _reason: str) -> None:
    """The operator reports what is wrong with policies and profiles."""


async def serve(app: ServedApp) -> BaseException | None:
    """Serve until told to stop; what made it fail, if anything.

    Raises:
        ConfigError: a port or a certificate of callers cannot be used.

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
