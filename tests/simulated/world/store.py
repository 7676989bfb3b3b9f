"""The objects that the API server stores, now and at every moment before: the truth that judges ask."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from simulated.world.agenda import Agenda

KINDS = ("policies", "profiles", "namespaces", "workloads", "budgets", "nodes", "pods")
DEVICE_KINDS = ("slices", "claims", "rules")
"""Operators follow these only while a policy selects taints of devices."""
ALL_KINDS = (*KINDS, *DEVICE_KINDS)


class Past:
    """All states of one object, each with the true time since which it was stored; None: it did not exist."""

    __slots__ = ("states", "times")

    def __init__(self) -> None:
        self.times: list[float] = []
        self.states: list[Any] = []

    def add(self, at: float, state: Any) -> None:
        """The object has another state from now on; of two changes at the same moment the second is a little later."""
        at = at if not self.times or at > self.times[-1] else self.times[-1] + 1e-6
        self.times.append(at)
        self.states.append(state)


class Store:
    """Objects by kind and key. No object is changed in place."""

    def __init__(self, agenda: Agenda) -> None:
        self.version = 10
        self.objects: dict[str, dict[str, Any]] = {kind: {} for kind in ALL_KINDS}
        self.past: dict[str, dict[str, Past]] = {kind: {} for kind in ALL_KINDS}
        self.log: dict[str, list[tuple[int, str, Any]]] = {kind: [] for kind in ALL_KINDS}
        """Version, key and new state of each change that watches can receive."""
        self.changed: list[Callable[[str, str, Any, Any], None]] = []
        """Called with kind, key, the state before and the state after."""
        self.restored: list[Callable[[], None]] = []
        """Called when the store was replaced by an older one."""
        self._agenda = agenda
        self._backup: tuple[int, dict[str, dict[str, Any]]] | None = None

    def get(self, kind: str, key: str) -> Any:
        """An object, None if there is none."""
        return self.objects[kind].get(key)

    def put(self, kind: str, key: str, obj: Any) -> Any:
        """Create or replace an object. Returns what is stored."""
        self.version += 1
        return self._set(kind, key, obj, self.version)

    def change(self, kind: str, key: str, **changes: Any) -> Any:
        """Change fields; nothing happens if the object is gone or has these values."""
        known = self.objects[kind].get(key)
        if known is None or all(getattr(known, name) == value for name, value in changes.items()):
            return known
        return self.put(kind, key, replace(known, **changes))

    def delete(self, kind: str, key: str) -> None:
        """Delete an object, if it exists."""
        if key in self.objects[kind]:
            self.version += 1
            self._set(kind, key, None, self.version)

    def _set(self, kind: str, key: str, obj: Any, version: int) -> Any:
        before = self.objects[kind].pop(key, None)
        if obj is not None:
            obj = self.objects[kind][key] = replace(obj, version=version)
        self._remember(kind, key, obj)
        self.log[kind].append((version, key, obj))
        for tell in self.changed:
            tell(kind, key, before, obj)
        return obj

    def _remember(self, kind: str, key: str, obj: Any) -> None:
        past = self.past[kind].get(key)
        if past is None:
            past = self.past[kind][key] = Past()
        past.add(self._agenda.now, obj)

    # -- an older etcd --------------------------------------------------------------------------------------------

    def back_up(self) -> None:
        """Keep a copy of everything."""
        self._backup = (self.version, {kind: dict(objects) for kind, objects in self.objects.items()})

    def restore(self) -> bool:
        """Everything is as in the copy, and versions continue from there. False: there is no copy."""
        if self._backup is None:
            return False
        self.version, objects = self._backup
        for kind in ALL_KINDS:
            now, then = self.objects[kind], dict(objects[kind])
            for key in [key for key in now if key not in then]:
                self._remember(kind, key, None)
            for key, obj in then.items():
                if now.get(key) is not obj:
                    self._remember(kind, key, obj)
            self.objects[kind] = then
            self.log[kind] = []
        for tell in self.restored:
            tell()
        return True
