"""Follows devices while a policy selects their taints, and only then: a cluster without such a policy pays nothing."""

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Any

import msgspec
import structlog

from taintwarden.controller.handlers.following import Spawn
from taintwarden.controller.loop import Feed
from taintwarden.controller.words.wording import devices_unserved
from taintwarden.engine.machine import Event
from taintwarden.engine.model import Policy
from taintwarden.kube.errors import ApiError, KubeError
from taintwarden.kube.http.client import Client
from taintwarden.kube.watch.streams import Stream
from taintwarden.kube.watch.watching import StreamTimings
from taintwarden.kube.wire.answers import decoded
from taintwarden.kube.wire.resources import Resource
from taintwarden.telemetry.metrics import Metrics
from taintwarden_devices import events
from taintwarden_devices.handlers import ClaimHandler, DeviceHandler, SliceHandler, TaintRuleHandler, named_drivers
from taintwarden_devices.objects import CLAIMS, DEVICES_PATH, SLICES, TAINT_RULES

RETRY_SECONDS = 15.0
"""Between two requests whether the server serves devices."""
TOLD_SECONDS = 1.0
"""Between two looks whether lists fail."""
UPGRADED_SECONDS = 60.0
"""Between two requests whether the server serves the same as before."""

NEEDED = frozenset({SLICES.name, CLAIMS.name})
"""Without rules, devices have the taints of their slices alone."""

log = structlog.get_logger()


class DeviceFollowing:
    """The streams of slices, rules and claims.

    Args:
        client: to list and watch with.
        feed: takes the events.
        metrics: counts restarts and faults.
        timings: how long streams wait for what.
        spawn: starts the tasks.

    """

    def __init__(self, client: Client, feed: Feed, metrics: Metrics, timings: StreamTimings, spawn: Spawn) -> None:
        self._new_streams = partial(_Streams, client, feed, metrics, timings)
        self._spawn = spawn
        self._drivers: frozenset[str] = frozenset()
        self._current: _Streams | None = None

    def policies_changed(self, policies: Iterable[Policy]) -> None:
        """Other policies are in force: begin, end, or follow other drivers."""
        drivers = named_drivers(policies)
        if self._current is not None and drivers != self._drivers:
            self._current.end()
            self._current = None
        if self._current is None and drivers:
            self._drivers = drivers
            self._current = self._new_streams(drivers)
            self._current.task = self._spawn(self._current.run())


class _Streams:
    """The streams from one beginning to its end, after which they deliver nothing."""

    def __init__(
        self, client: Client, feed: Feed, metrics: Metrics, timings: StreamTimings, drivers: frozenset[str]
    ) -> None:
        self.task: asyncio.Task[None] | None = None
        self._client = client
        self._feed_on = feed
        self._has_ended = False
        self._problem: str | None = None
        self._metrics = metrics
        self._drivers = drivers
        self._timings = timings
        self._handlers = self._new_handlers()

    def _new_handlers(self) -> dict[Resource[Any], DeviceHandler[Any, Any]]:
        """Handlers remember what they passed on, which the machine forgets when devices are not known any more."""
        parts = (self._feed, self._metrics, self._drivers)
        return {
            SLICES: SliceHandler(SLICES.name, *parts),
            CLAIMS: ClaimHandler(CLAIMS.name, *parts),
            TAINT_RULES: TaintRuleHandler(TAINT_RULES.name, *parts),
        }

    async def run(self) -> None:
        """Wait until the server serves devices, then follow them; again, if it serves more than before, or less."""
        while True:
            served = await self._served()
            if not isinstance(served, str) and served >= NEEDED:
                await self._follow(served)
            else:
                self._tell(served if isinstance(served, str) else devices_unserved(NEEDED - served))
                await asyncio.sleep(RETRY_SECONDS)

    async def _follow(self, served: frozenset[str]) -> None:
        self._forget()
        self._handlers = self._new_handlers()
        handlers = {one: handler for one, handler in self._handlers.items() if one.name in served}
        streams = [Stream(self._client, one, handler, self._timings) for one, handler in handlers.items()]
        others = asyncio.create_task(self._until_others_are_served(served))
        tasks = [others, *(asyncio.create_task(stream.run()) for stream in streams)]
        try:
            while not (others.done() or all(one.listed.is_set() for one in streams)):
                await _look_after(tasks, TOLD_SECONDS)
                if problem := next((handler.problem for handler in handlers.values() if handler.problem), ""):
                    self._tell(problem)
            if not others.done():
                self._feed(events.DevicesKnown(known=True))
                self._problem = None
                log.info("devices-followed", resources=[one.name for one in handlers])
                await _look_after(tasks, None)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def end(self) -> None:
        """Deliver nothing any more."""
        self._forget()
        self._has_ended = True
        if self.task is not None:
            self.task.cancel()

    def _forget(self) -> None:
        for handler in self._handlers.values():
            handler.live(live=True)  # it is not blind any more to what it does not follow
        self._problem = None
        self._feed(events.DevicesKnown(known=False))

    def _feed(self, event: Event) -> None:
        if not self._has_ended:
            self._feed_on(event)

    def _tell(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            log.warning("devices-not-known", reason=problem)
            self._feed(events.DevicesKnown(known=False, problem=problem))

    async def _until_others_are_served(self, served: frozenset[str]) -> None:
        """The server was upgraded, for example to a version that serves rules; or an older one is back."""
        while True:
            await asyncio.sleep(UPGRADED_SECONDS)
            found = await self._served()
            if not isinstance(found, str) and found != served:
                return

    async def _served(self) -> frozenset[str] | str:
        """The names of what the server serves of devices; or why that is not known."""
        try:
            body = await self._client.request("GET", DEVICES_PATH)
            found = frozenset(one.name for one in decoded(body, _Served, "list of resources").resources)
        except KubeError as error:
            if not (isinstance(error, ApiError) and error.is_unserved):
                return str(error)
            found = frozenset()
        return found & {one.name for one in self._handlers}


class _ServedResource(msgspec.Struct):
    name: str = ""


class _Served(msgspec.Struct):
    resources: list[_ServedResource] = []


async def _look_after(tasks: Iterable[asyncio.Task[Any]], seconds: float | None) -> None:
    """Wait until one of these tasks ends, but not longer (None: as long as it takes), and raise what ended it."""
    done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
