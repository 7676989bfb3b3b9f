"""Changes of the objects of one namespace, together and not too often: a tenant may write as often as it wants."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, NoReturn, TypeVar

AT_ONCE = 50

Change = TypeVar("Change")


class Coalescer(Generic[Change]):
    """Passes on the newest change of each object: the first at once, those within a pause after it at its end.

    Args:
        pass_on: takes changes in the order in which they came.
        seconds: how long the pause after changes of one namespace is.
        at_once: how many objects are passed on in one step of the event loop.

    """

    def __init__(self, pass_on: Callable[[Sequence[Change]], None], seconds: float, *, at_once: int = AT_ONCE) -> None:
        self._pass_on = pass_on
        self._seconds = seconds
        self._at_once = at_once
        self._waiting: dict[str, dict[str, Change]] = {}
        """Namespace -> key -> change, of each namespace that pauses."""
        self._begun: asyncio.Queue[str] = asyncio.Queue()
        """Namespaces whose pause begins."""

    def put(self, namespace: str, key: str, change: Change) -> None:
        """An object of the namespace changed."""
        waiting = self._waiting.get(namespace)
        if waiting is None:
            self._pass_on([change])
            self._waiting[namespace] = {}
            self._begun.put_nowait(namespace)
        else:
            waiting.pop(key, None)
            waiting[key] = change

    def flush(self) -> None:
        """Pass on everything that waits."""
        for waiting in self._waiting.values():
            if changes := list(waiting.values()):
                waiting.clear()
                self._pass_on(changes)

    async def run(self) -> NoReturn:
        """Pass on what waits when its pause is over, forever."""
        async with asyncio.TaskGroup() as pauses:
            while True:
                pauses.create_task(self._pause(await self._begun.get()))

    async def _pause(self, namespace: str) -> None:
        """Pause until nothing more has come."""
        waiting = self._waiting[namespace]
        while True:
            await asyncio.sleep(self._seconds)
            if not waiting:
                del self._waiting[namespace]
                return
            keys = list(waiting)
            for first in range(0, len(keys), self._at_once):
                # What was passed on by a flush meanwhile, or changed once more, is not there any more, or is newer.
                self._pass_on([waiting.pop(key) for key in keys[first : first + self._at_once] if key in waiting])
                await asyncio.sleep(0)
