"""Batches of changes of the objects of one namespace, which limit their rate: a tenant may write at any rate."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, NoReturn, TypeVar

AT_ONCE = 50
"""Maximum number of objects passed on in one step of the event loop at the end of a pause."""

Change = TypeVar("Change")


class Coalescer(Generic[Change]):
    """Passes on the first change in a namespace at once, then after each pause the newest change of each object.

    Args:
        pass_on: receives changes in the order in which they came.
        seconds: duration of the pause after changes of one namespace.
        at_once: see ``AT_ONCE``.

    """

    def __init__(self, pass_on: Callable[[Sequence[Change]], None], seconds: float, *, at_once: int = AT_ONCE) -> None:
        self._pass_on = pass_on
        self._seconds = seconds
        self._at_once = at_once
        self._waiting: dict[str, dict[str, Change]] = {}
        """Namespace -> key -> newest change, for each namespace that pauses."""
        self._begun: asyncio.Queue[str] = asyncio.Queue()
        """Namespaces whose pauses begin."""

    def put(self, namespace: str, key: str, change: Change) -> None:
        """Pass on a change of an object of the namespace, or keep it until the pause ends."""
        waiting = self._waiting.get(namespace)
        if waiting is None:
            self._pass_on([change])
            self._waiting[namespace] = {}
            self._begun.put_nowait(namespace)
        else:
            waiting.pop(key, None)
            waiting[key] = change

    def flush(self) -> None:
        """Pass on all changes that wait."""
        for waiting in self._waiting.values():
            if changes := list(waiting.values()):
                waiting.clear()
                self._pass_on(changes)

    async def run(self) -> NoReturn:
        """Pass on the changes that wait at the end of each pause, forever."""
        async with asyncio.TaskGroup() as pauses:
            while True:
                pauses.create_task(self._pause(await self._begun.get()))

    async def _pause(self, namespace: str) -> None:
        """Pause until no change has come in a whole pause. Pass on the changes of each pause at its end."""
        waiting = self._waiting[namespace]
        while True:
            await asyncio.sleep(self._seconds)
            if not waiting:
                del self._waiting[namespace]
                return
            keys = list(waiting)
            for first in range(0, len(keys), self._at_once):
                # While other tasks run, a flush may pass on a change, and a newer change may replace it.
                self._pass_on([waiting.pop(key) for key in keys[first : first + self._at_once] if key in waiting])
                await asyncio.sleep(0)
