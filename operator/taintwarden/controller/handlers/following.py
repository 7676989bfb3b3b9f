"""Follows every kind that the operator has to know: a stream each, and its handler."""

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
"""Starts a task that the caller ends."""


class Following:
    """The streams of the operator.

    Args:
        client: to list and watch with.
        handlers: receive each kind.
        timings: how long streams wait for what.
        spawn: starts the tasks.

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
        """Begin with a list of every kind, but of nodes and Deployments: policies say what is read of these."""
        for resource, handler in self.handlers.items():
            if resource not in (NODES, DEPLOYMENTS):
                self.follow(resource)
            self._spawn(handler.run())

    async def all_listed(self) -> None:
        """Wait until every kind was listed once, but Deployments, which the operator may have no right to read."""
        await self._streams[POLICIES].listed.wait()
        self.follow(NODES)
        for resource, stream in [*self._streams.items()]:
            if resource is not DEPLOYMENTS:
                await stream.listed.wait()

    def list_again(self, resource: Resource[Any], *, is_stale: bool = False) -> None:
        """Have a kind listed once more, if it is followed already; what ``is_stale`` is not up to date until then."""
        if resource in self._streams:
            self._streams[resource].list_again(is_stale=is_stale)

    async def policies_listed(self) -> None:
        """Wait until a list of the policies that was requested after this call was delivered."""
        self.list_again(POLICIES)
        await self._streams[POLICIES].listed.wait()

    @property
    def cut_off(self) -> list[str]:
        """The kinds of which what was delivered is not up to date."""
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
