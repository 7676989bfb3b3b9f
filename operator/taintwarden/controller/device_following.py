"""Follows devices while a policy selects their taints, and only then: a cluster without such a policy pays nothing."""

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec
import structlog

from taintwarden.controller.device_handlers import (
    DeviceClaimHandler,
    DeviceHandler,
    SliceHandler,
    TaintRuleHandler,
    selected_attributes,
)
from taintwarden.controller.following import Spawn
from taintwarden.controller.loop import Feed
from taintwarden.controller.wording import devices_unserved
from taintwarden.engine.machine import events
from taintwarden.engine.model import Policy
from taintwarden.kube.errors import ApiError, KubeError
from taintwarden.kube.http.client import Client
from taintwarden.kube.watch.stream_timings import StreamTimings
from taintwarden.kube.watch.streams import Stream
from taintwarden.kube.wire.answers import decoded
from taintwarden.kube.wire.resources import DEVICE_CLAIMS, DEVICES_PATH, SLICES, TAINT_RULES, Resource
from taintwarden.telemetry.metrics import Metrics

RETRY_SECONDS = 15.0
"""Between two requests whether the server serves devices."""
TOLD_SECONDS = 1.0
"""Between two looks whether lists fail."""
UPGRADED_SECONDS = 600.0
"""Between two requests whether the server serves what it did not serve before."""

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
        self._client = client
        self._feed = feed
        self._metrics = metrics
        self._timings = timings
        self._spawn = spawn
        self._attributes: frozenset[str] = frozenset()
        self._current: _Streams | None = None

    def policies_changed(self, policies: Iterable[Policy]) -> None:
        """Other policies are in force: begin, end, or read more of devices."""
        policies = tuple(policies)
        selectors = [one for policy in policies for one in policy.devices]
        attributes = selected_attributes(policies)
        if self._current is not None and not (selectors and attributes <= self._attributes):
            self._current.end()
            self._current = None
        if self._current is None and selectors:
            self._attributes = attributes
            self._current = _Streams(self._client, self._feed, self._metrics, self._timings, attributes)
            self._current.task = self._spawn(self._current.run())


class _Streams:
    """The streams from one beginning to its end, after which they deliver nothing."""

    def __init__(
        self, client: Client, feed: Feed, metrics: Metrics, timings: StreamTimings, attributes: frozenset[str]
    ) -> None:
        self.task: asyncio.Task[None] | None = None
        self._client = client
        self._feed_on = feed
        self._has_ended = False
        self._problem: str | None = None
        self._metrics = metrics
        self._attributes = attributes
        self._timings = timings
        self._handlers = self._new_handlers()

    def _new_handlers(self) -> dict[Resource[Any], DeviceHandler[Any]]:
        """Handlers remember what they passed on, which the machine forgets when devices are not known any more."""
        parts = (self._feed, self._metrics)
        return {
            SLICES: SliceHandler(SLICES.name, *parts, self._attributes),
            DEVICE_CLAIMS: DeviceClaimHandler(DEVICE_CLAIMS.name, *parts),
            TAINT_RULES: TaintRuleHandler(TAINT_RULES.name, *parts),
        }

    async def run(self) -> None:
        """Wait until the server serves devices, then follow them; again, if it serves more than before."""
        while True:
            served = await self._served()
            if isinstance(served, str):
                self._tell(served)
                await asyncio.sleep(RETRY_SECONDS)
            else:
                await self._follow(served)

    async def _follow(self, served: frozenset[str]) -> None:
        self._forget()
        self._handlers = self._new_handlers()
        handlers = {one: handler for one, handler in self._handlers.items() if one.name in served}
        streams = [Stream(self._client, one, handler, self._timings) for one, handler in handlers.items()]
        following = [asyncio.create_task(stream.run()) for stream in streams]
        listing = [asyncio.create_task(stream.listed.wait()) for stream in streams]
        try:
            while not all(one.done() for one in listing):
                await _look_after(following, TOLD_SECONDS)
                if problem := next((handler.problem for handler in handlers.values() if handler.problem), ""):
                    self._tell(problem)
            self._feed(events.DevicesKnown(known=True))
            self._problem = None
            log.info("devices-followed", resources=[one.name for one in handlers])
            while len(handlers) == len(self._handlers) or not await self._serves_more_than(served):
                await _look_after(following, UPGRADED_SECONDS)
        finally:
            for task in (*following, *listing):
                task.cancel()
            await asyncio.wait([*following, *listing])

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

    def _feed(self, event: events.Event) -> None:
        if not self._has_ended:
            self._feed_on(event)

    def _tell(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            log.warning("devices-not-known", reason=problem)
            self._feed(events.DevicesKnown(known=False, problem=problem))

    async def _served(self) -> frozenset[str] | str:
        """The names of what the server serves; or why it does not serve what is needed."""
        try:
            body = await self._client.request("GET", DEVICES_PATH)
            found = frozenset(one.name for one in decoded(body, _Served, "list of resources").resources)
        except KubeError as error:
            if not (isinstance(error, ApiError) and error.is_unserved):
                return str(error)
            found = frozenset()
        if missing := {SLICES.name, DEVICE_CLAIMS.name} - found:
            return devices_unserved(missing)
        return found

    async def _serves_more_than(self, before: frozenset[str]) -> bool:
        """Whether the server was upgraded, for example to a version that serves rules."""
        found = await self._served()
        return not isinstance(found, str) and bool(found & {one.name for one in self._handlers} - before)


class _ServedResource(msgspec.Struct):
    name: str = ""


class _Served(msgspec.Struct):
    resources: list[_ServedResource] = []


async def _look_after(tasks: Iterable[asyncio.Task[Any]], seconds: float) -> None:
    """Wait, and raise what ended one of these tasks, which never end in order."""
    done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    for task in done:
        task.result()
