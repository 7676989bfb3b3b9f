"""Streams of the kinds that the operator follows, each with its handler. A source of taints has streams of its own."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from taintwarden.controller.handlers.stream_handlers import StreamHandler
from taintwarden.kube.calls.own_kinds import POLICIES
from taintwarden.kube.http.client import Client
from taintwarden.kube.watch.streams import Stream
from taintwarden.kube.watch.watching import StreamTimings
from taintwarden.kube.wire.resources import DEPLOYMENTS, NODES, Resource

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
"""Function that starts a task. Its owner ends the task."""


class Following:
    """Starts and stops the streams of the operator.

    Args:
        client: sends the lists and watches.
        handlers: resource -> receiver of its stream.
        timings: durations of lists, watches and pauses.
        spawn: starts the tasks of streams and handlers.

    """

    def __init__(
        self,
        client: Client,
        handlers: Mapping[Resource[Any], StreamHandler[Any]],
        timings: StreamTimings,
        spawn: Spawn,
    ) -> None:
        self.handlers = handlers
        self._client = client
        self._timings = timings
        self._spawn = spawn
        self._streams: dict[Resource[Any], Stream[Any]] = {}
        self._tasks: dict[Resource[Any], asyncio.Task[None]] = {}

    def start(self) -> None:
        """Follow every kind except nodes and Deployments, because policies decide what is read of these."""
        for resource, handler in self.handlers.items():
            if resource not in (NODES, DEPLOYMENTS):
                self.follow(resource)
            self._spawn(handler.run())

    async def list_all(self) -> None:
        """Follow nodes once policies are listed. Wait for all lists but that of Deployments, which may be forbidden."""
        await self._streams[POLICIES].listed.wait()
        self.follow(NODES)
        for resource, stream in [*self._streams.items()]:
            if resource is not DEPLOYMENTS:
                await stream.listed.wait()

    def list_again(self, resource: Resource[Any], *, is_stale: bool = False) -> None:
        """List a kind once more if it is followed. ``is_stale``: True if its objects are not up to date until then."""
        if resource in self._streams:
            self._streams[resource].list_again(is_stale=is_stale)

    async def relist_policies(self) -> None:
        """Request a new list of the policies, and wait until it was delivered."""
        self.list_again(POLICIES)
        await self._streams[POLICIES].listed.wait()

    @property
    def cut_off(self) -> list[str]:
        """Names of the kinds whose delivered objects are not up to date, so that no pod is evicted."""
        return [resource.name for resource, handler in self.handlers.items() if not handler.is_live]

    def follow(self, resource: Resource[Any]) -> None:
        """Follow a kind from now on, if it is not followed already."""
        if resource not in self._streams:
            self._streams[resource] = Stream(self._client, resource, self.handlers[resource], self._timings)
            self._tasks[resource] = self._spawn(self._streams[resource].run())

    def stop(self, resource: Resource[Any]) -> None:
        """Stop following a kind, and withdraw its objects."""
        if self._streams.pop(resource, None) is not None:
            self._tasks.pop(resource).cancel()
            handler = self.handlers[resource]
            handler.list_began()
            handler.list_ended("")
