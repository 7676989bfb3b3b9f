"""Changes of the objects of one namespace, together and not too often: a tenant may write as often as it wants."""

import asyncio
from collections import deque
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
        self._pauses: deque[tuple[float, str]] = deque()
        """When they end, by the clock of the event loop."""
        self._begun = asyncio.Event()

    def put(self, namespace: str, key: str, change: Change) -> None:
        """An object of the namespace changed."""
        waiting = self._waiting.get(namespace)
        if waiting is None:
            self._pass_on([change])
            self._waiting[namespace] = {}
            self._pause(namespace)
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
        while True:
            self._begun.clear()
            if not self._pauses:
                await self._begun.wait()
            ends_at, namespace = self._pauses[0]
            await asyncio.sleep(ends_at - _now())
            self._pauses.popleft()
            await self._end(namespace)

    async def _end(self, namespace: str) -> None:
        waiting = self._waiting[namespace]
        if not waiting:
            del self._waiting[namespace]
            return
        keys = list(waiting)
        for first in range(0, len(keys), self._at_once):
            # What was passed on by a flush meanwhile, or changed once more, is not there any more, or is newer.
            self._pass_on([waiting.pop(key) for key in keys[first : first + self._at_once] if key in waiting])
            await asyncio.sleep(0)
        self._pause(namespace)

    def _pause(self, namespace: str) -> None:
        self._pauses.append((_now() + self._seconds, namespace))
        self._begun.set()


def _now() -> float:
    return asyncio.get_running_loop().time()
