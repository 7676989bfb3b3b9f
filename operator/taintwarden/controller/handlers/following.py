"""Follows every kind that the operator has to know: a stream each, and its handler."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from taintwarden.controller.handlers.stream_handlers import StreamHandler
from taintwarden.kube.calls.own_kinds import POLICIES
from taintwarden.kube.http.client import Client
from taintwarden.kube.watch.streams import Stream
from taintwarden.kube.watch.watching import StreamTimings
from taintwarden.kube.wire.resources import NODES, Resource

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
        self._streams: dict[Resource[Any], tuple[Stream[Any], asyncio.Task[None]]] = {}

    def start(self) -> None:
        """Begin with a list of every kind but nodes: policies say what is read of these."""
        for resource, handler in self.handlers.items():
            if resource is not NODES:
                self._follow(resource)
            self._spawn(handler.run())

    async def all_listed(self) -> None:
        """Wait until every kind was listed once."""
        await self._streams[POLICIES][0].listed.wait()
        self._follow(NODES)
        for stream, _ in self._streams.values():
            await stream.listed.wait()

    async def list_again(self, resource: Resource[Any]) -> None:
        """Follow a kind again, and wait until a list that was requested after this call was delivered."""
        _, before = self._streams[resource]
        before.cancel()
        try:
            await asyncio.wait({before})
        finally:  # also when the caller is cancelled
            following = self._follow(resource)
        await following.listed.wait()

    def read_again(self, resource: Resource[Any]) -> None:
        """Have a kind listed once more if it is followed: its handler reads more of the objects than before."""
        if resource in self._streams:
            self._streams[resource][0].list_again()

    @property
    def cut_off(self) -> list[str]:
        """The kinds of which what was delivered is not up to date."""
        return [resource.name for resource, handler in self.handlers.items() if not handler.is_live]

    def _follow(self, resource: Resource[Any]) -> Stream[Any]:
        stream = Stream(self._client, resource, self.handlers[resource], self._timings)
        self._streams[resource] = stream, self._spawn(stream.run())
        return stream
