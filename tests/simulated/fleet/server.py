"""The API server of a fleet: objects with versions, the log that watches read, and time."""

import heapq
import itertools
from collections.abc import Callable
from typing import Any

from simulated.cluster import START

KINDS = ("nodes", "pods", "namespaces", "policies")

Json = dict[str, Any]


class Server:
    """What is stored. An object is never changed in place: each change stores another one with a newer version."""

    def __init__(self) -> None:
        self.at = 0.0
        """Seconds since the start, on the clock that is right."""
        self.version = 10
        self.objects: dict[str, dict[str, Json]] = {kind: {} for kind in KINDS}
        self.logs: dict[str, list[tuple[int, str, Json | None]]] = {kind: [] for kind in KINDS}
        self.changed: list[Callable[[str], None]] = []
        """Called with the kind after each change."""
        self.restored: list[Callable[[], None]] = []
        """Called when the store has been replaced by an older one."""
        self._backup: tuple[int, dict[str, dict[str, Json]]] | None = None
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._numbers = itertools.count(1)

    # -- time ---------------------------------------------------------------------------------------------------------

    @property
    def wall(self) -> float:
        """Seconds since the epoch, which timestamps in objects are taken from."""
        return START + self.at

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something after ``seconds``."""
        heapq.heappush(self._queue, (self.at + seconds, next(self._order), action))

    def run(self, seconds: float) -> None:
        """Let time pass."""
        until = self.at + seconds
        while self._queue and self._queue[0][0] <= until:
            self.at, _, action = heapq.heappop(self._queue)
            action()
        self.at = until

    # -- objects ------------------------------------------------------------------------------------------------------

    def name(self, prefix: str) -> str:
        """A name or UID that was never given before."""
        return f"{prefix}{next(self._numbers)}"

    def get(self, kind: str, key: str) -> Json | None:
        """An object as it is stored."""
        return self.objects[kind].get(key)

    def put(self, kind: str, key: str, obj: Json) -> None:
        """Create or replace an object."""
        self.version += 1
        stored = self.objects[kind][key] = {**obj, "version": self.version}
        self._log(kind, key, stored)

    def change(self, kind: str, key: str, **changes: Any) -> None:
        """Change fields of an object; nothing happens if they are like that already."""
        known = self.objects[kind].get(key)
        if known is not None and any(known.get(name) != value for name, value in changes.items()):
            self.put(kind, key, {**known, **changes})

    def delete(self, kind: str, key: str) -> None:
        """Delete an object."""
        if self.objects[kind].pop(key, None) is not None:
            self.version += 1
            self._log(kind, key, None)

    def _log(self, kind: str, key: str, obj: Json | None) -> None:
        self.logs[kind].append((self.version, key, obj))
        for tell in self.changed:
            tell(kind)

    # -- a restore ----------------------------------------------------------------------------------------------------

    def back_up(self) -> None:
        """Keep a copy of everything that is stored."""
        self._backup = (self.version, {kind: dict(objects) for kind, objects in self.objects.items()})

    def restore(self) -> bool:
        """Everything is as it was in the last copy, and versions go on from there. False: there is no copy."""
        if self._backup is None:
            return False
        self.version, objects = self._backup
        self.objects = {kind: dict(stored) for kind, stored in objects.items()}
        self.logs = {kind: [] for kind in KINDS}
        for tell in self.restored:
            tell()
        return True

    # -- eviction -----------------------------------------------------------------------------------------------------

    def evict(self, uid: str, seconds: float) -> bool:
        """A pod is asked to stop, and is gone after ``seconds``. False: there is no such pod."""
        pod = self.get("pods", uid)
        if pod is None:
            return False
        if not pod["stopping"]:
            self.change("pods", uid, stopping=True)
            self.later(seconds, lambda: self.delete("pods", uid))
        return True
