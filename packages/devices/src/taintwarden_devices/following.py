"""The streams of slices, rules and claims, which run only while a policy selects taints of devices."""

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec
import structlog

from taintwarden.controller.handlers.following import Spawn
from taintwarden.controller.words.wording import devices_unserved
from taintwarden.engine.events import Feed
from taintwarden.engine.policy import Policy
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
"""Seconds between two requests for the served resources while the server does not serve devices."""
RECHECK_SECONDS = 60.0
"""Seconds between two requests for the served resources while devices are followed."""

HANDLERS: dict[Resource[Any], type[DeviceHandler[Any, Any]]] = {
    SLICES: SliceHandler,
    CLAIMS: ClaimHandler,
    TAINT_RULES: TaintRuleHandler,
}
NEEDED = frozenset({SLICES.name, CLAIMS.name})
"""Resources without which devices cannot be followed. DeviceTaintRules are optional."""
UNKNOWN = events.DevicesKnown(known=False)

log = structlog.get_logger()


class _ServedChangedError(Exception):
    """The server now serves other resources."""


class DeviceFollowing:
    """Starts and stops the streams of slices, rules and claims.

    Args:
        client: the session for lists and watches.
        feed: receives the events.
        metrics: counts restarts and faults.
        timings: timeouts and delays of the streams.
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
        """The last task follows devices. Earlier ones are cancelled and end soon."""
        self._known = UNKNOWN
        """The event that was passed on last."""

    def policies_changed(self, policies: Iterable[Policy]) -> None:
        """Start or stop the streams, or follow other drivers, as the policies in force require."""
        drivers = named_drivers(policies)
        if drivers != self._drivers:
            self._drivers = drivers
            former = [task for task in self._tasks if not task.done()]
            for task in former:
                task.cancel()
            self._tasks = [*former, self._spawn(self._run(drivers, former))]

    async def _run(self, drivers: frozenset[str], former: list[asyncio.Task[None]]) -> None:
        """Follow devices while the server serves them, and start again when it serves other resources."""
        if former:
            await asyncio.wait(former)
        while drivers:
            served = await self._served()
            if not isinstance(served, str) and served >= NEEDED:
                await self._follow(drivers, served)
            else:
                self._report_problem(served if isinstance(served, str) else devices_unserved(NEEDED - served))
                await asyncio.sleep(RETRY_SECONDS)

    async def _follow(self, drivers: frozenset[str], served: frozenset[str]) -> None:
        """Follow devices until the server serves other resources. Then drop everything that was delivered."""
        parts = (self._feed, self._metrics, drivers, self._report_problem)
        handlers = {one: kind(one.name, *parts) for one, kind in HANDLERS.items() if one.name in served}
        streams = [Stream(self._client, resource, handler, self._timings) for resource, handler in handlers.items()]
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._watch_served(served))
                for stream in streams:
                    tasks.create_task(stream.run())
                for stream in streams:
                    await stream.listed.wait()
                self._pass_on(events.DevicesKnown(known=True))
                log.info("devices-followed", resources=[resource.name for resource in handlers])
        except* _ServedChangedError:
            pass
        finally:
            self._pass_on(UNKNOWN)

    def _report_problem(self, problem: str) -> None:
        """Report why devices are not known yet. Once they are, the streams themselves report disconnections."""
        found = events.DevicesKnown(known=False, problem=problem)
        if found != self._known and not self._known.known:
            log.warning("devices-not-known", reason=problem)
            self._pass_on(found)

    def _pass_on(self, known: events.DevicesKnown) -> None:
        self._known = known
        self._feed(known)

    async def _watch_served(self, served: frozenset[str]) -> None:
        """Raise an error when the server serves other resources, for example DeviceTaintRules after an upgrade."""
        while True:
            await asyncio.sleep(RECHECK_SECONDS)
            found = await self._served()
            if not isinstance(found, str) and found != served:
                raise _ServedChangedError

    async def _served(self) -> frozenset[str] | str:
        """Return the names of the served resources about devices; or, as text, why they are not known."""
        try:
            body = await self._client.request("GET", DEVICES_PATH)
            found = frozenset(one.name for one in decoded(body, _Served, "list of resources").resources)
        except KubeError as error:
            if not (isinstance(error, ApiError) and error.is_unserved):
                return str(error)
            found = frozenset()
        return found & {resource.name for resource in HANDLERS}


class _ServedResource(msgspec.Struct):
    name: str = ""


class _Served(msgspec.Struct):
    resources: list[_ServedResource] = []
