"""Follows devices while a policy selects their taints, and only then: a cluster without such a policy pays nothing."""

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec
import structlog

from taintwarden.controller.handlers.following import Spawn
from taintwarden.controller.loop import Feed
from taintwarden.controller.words.wording import devices_unserved
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
UPGRADED_SECONDS = 60.0
"""Between two requests whether the server serves the same as before."""

HANDLERS: dict[Resource[Any], type[DeviceHandler[Any, Any]]] = {
    SLICES: SliceHandler,
    CLAIMS: ClaimHandler,
    TAINT_RULES: TaintRuleHandler,
}
NEEDED = frozenset({SLICES.name, CLAIMS.name})
"""Without rules, devices have the taints of their slices alone."""
UNKNOWN = events.DevicesKnown(known=False)

log = structlog.get_logger()


class _OthersServedError(Exception):
    """The server serves more than before, or less."""


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
        self._drivers: frozenset[str] = frozenset()
        self._tasks: list[asyncio.Task[None]] = []
        """The last one follows; those before it are about to end."""
        self._known = UNKNOWN
        """What was passed on last."""

    def policies_changed(self, policies: Iterable[Policy]) -> None:
        """Other policies are in force: begin, end, or follow other drivers."""
        drivers = named_drivers(policies)
        if drivers != self._drivers:
            self._drivers = drivers
            former = [one for one in self._tasks if not one.done()]
            for one in former:
                one.cancel()
            self._tasks = [*former, self._spawn(self._run(drivers, former))]

    async def _run(self, drivers: frozenset[str], former: list[asyncio.Task[None]]) -> None:
        """Wait until the server serves devices, then follow them; again, if it serves more than before, or less."""
        if former:
            await asyncio.wait(former)
        while drivers:
            served = await self._served()
            if not isinstance(served, str) and served >= NEEDED:
                await self._follow(drivers, served)
            else:
                self._complain(served if isinstance(served, str) else devices_unserved(NEEDED - served))
                await asyncio.sleep(RETRY_SECONDS)

    async def _follow(self, drivers: frozenset[str], served: frozenset[str]) -> None:
        """Until others are served. Then nothing counts that was delivered, nor that a stream was cut off."""
        parts = (self._feed, self._metrics, drivers, self._complain)
        handlers = {one: kind(one.name, *parts) for one, kind in HANDLERS.items() if one.name in served}
        streams = [Stream(self._client, one, handler, self._timings) for one, handler in handlers.items()]
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._until_others_are_served(served))
                for stream in streams:
                    tasks.create_task(stream.run())
                for stream in streams:
                    await stream.listed.wait()
                self._pass_on(events.DevicesKnown(known=True))
                log.info("devices-followed", resources=[one.name for one in handlers])
        except* _OthersServedError:
            pass
        finally:
            self._pass_on(UNKNOWN)

    def _complain(self, problem: str) -> None:
        """Why devices are not known. Once they are, streams that are cut off say so themselves."""
        found = events.DevicesKnown(known=False, problem=problem)
        if found != self._known and not self._known.known:
            log.warning("devices-not-known", reason=problem)
            self._pass_on(found)

    def _pass_on(self, known: events.DevicesKnown) -> None:
        self._known = known
        self._feed(known)

    async def _until_others_are_served(self, served: frozenset[str]) -> None:
        """The server was upgraded, for example to a version that serves rules; or an older one is back."""
        while True:
            await asyncio.sleep(UPGRADED_SECONDS)
            found = await self._served()
            if not isinstance(found, str) and found != served:
                raise _OthersServedError

    async def _served(self) -> frozenset[str] | str:
        """The names of what the server serves of devices; or why that is not known."""
        try:
            body = await self._client.request("GET", DEVICES_PATH)
            found = frozenset(one.name for one in decoded(body, _Served, "list of resources").resources)
        except KubeError as error:
            if not (isinstance(error, ApiError) and error.is_unserved):
                return str(error)
            found = frozenset()
        return found & {one.name for one in HANDLERS}


class _ServedResource(msgspec.Struct):
    name: str = ""


class _Served(msgspec.Struct):
    resources: list[_ServedResource] = []
