"""What the API server has stored, and what it had stored at every moment before: the truth that judges ask."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from simulated.world.agenda import Agenda

KINDS = ("policies", "profiles", "namespaces", "workloads", "budgets", "nodes", "pods")
DEVICE_KINDS = ("slices", "claims", "rules")
"""Operators follow these only while a policy selects taints of devices."""
ALL_KINDS = (*KINDS, *DEVICE_KINDS)


class Past:
    """All states of one object, each with the true time since which it was stored; None: it did not exist."""

    __slots__ = ("_changes", "number", "states", "times")

    def __init__(self, number: int = 0) -> None:
        self.number = number
        """How many objects of its kind were created before."""
        self.times: list[float] = []
        self.states: list[Any] = []
        self._changes: dict[Any, Changes] = {}

    def add(self, at: float, state: Any) -> None:
        """The object has another state from now on; of two changes at the same moment the second is a little later."""
        at = at if not self.times or at > self.times[-1] else self.times[-1] + 1e-6
        self.times.append(at)
        self.states.append(state)

    def changes(self, what: Callable[[Any], Any]) -> "Changes":
        """When something about it changed, which `what` gives of a state and of nothing else."""
        code = what.__code__
        found = self._changes.get(code)
        if found is None:
            found = self._changes[code] = Changes(self, what)
        return found

    def at(self, moment: float) -> Any:
        """The state at a moment, the last one if it changed several times then."""
        index = bisect_right(self.times, moment)
        return self.states[index - 1] if index else None

    def since(self, begin: float, end: float) -> Iterator[tuple[float, Any]]:
        """The state at ``begin`` and all later ones up to ``end``."""
        first = max(0, bisect_right(self.times, begin) - 1)
        for index in range(first, bisect_right(self.times, end)):
            yield self.times[index], self.states[index]


def last_change(past: Past, moment: float, what: Callable[[Any], Any]) -> float:
    """When what counts of an object changed last before a moment.

    It is looked for from the end. What needs nothing but the object is compared once for each of its states.
    """
    if what.__closure__ is None:
        return past.changes(what).last(moment)
    index = bisect_right(past.times, moment) - 1
    if index < 0:
        return 0.0
    value = what(past.states[index])
    while index and what(past.states[index - 1]) == value:
        index -= 1
    return past.times[index] if index or value is not None else 0.0


class Changes:
    """When one thing about an object changed."""

    def __init__(self, past: "Past", what: Callable[[Any], Any]) -> None:
        self._past = past
        self._what = what
        self._seen = 0
        self._value: Any = None
        self._times: list[float] = []

    def last(self, moment: float) -> float:
        """The last time before a moment; 0: never."""
        for index in range(self._seen, len(self._past.times)):
            value = self._what(self._past.states[index])
            if value != self._value:
                self._times.append(self._past.times[index])
                self._value = value
        self._seen = len(self._past.times)
        found = bisect_right(self._times, moment)
        return self._times[found - 1] if found else 0.0


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
        self._serial = 0
        self._gone: dict[str, list[tuple[float, str]]] = {kind: [] for kind in ALL_KINDS}
        """When objects were deleted, and which."""
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
            self._serial += 1
            obj = self.objects[kind][key] = replace(obj, version=version, serial=self._serial)
        self._remember(kind, key, obj)
        self.log[kind].append((version, key, obj))
        for tell in self.changed:
            tell(kind, key, before, obj)
        return obj

    def _remember(self, kind: str, key: str, obj: Any) -> None:
        past = self.past[kind].get(key)
        if past is None:
            past = self.past[kind][key] = Past(len(self.past[kind]))
        past.add(self._agenda.now, obj)
        if obj is None:
            self._gone[kind].append((past.times[-1], key))

    def pasts_since(self, kind: str, moment: float) -> list[Past]:
        """Of the objects that exist or did then or later, in the order in which they were first created."""
        keys = dict.fromkeys(self.objects[kind])
        gone = self._gone[kind]
        for index in range(len(gone) - 1, -1, -1):
            at, key = gone[index]
            if at < moment:
                break
            keys[key] = None
        return sorted((self.past[kind][key] for key in keys), key=lambda one: one.number)

    # -- an older etcd --------------------------------------------------------------------------------------------

    def back_up(self) -> None:
        """Keep a copy of everything."""
        self._backup = (self.version, {kind: dict(objects) for kind, objects in self.objects.items()})

    def restore(self) -> bool:
        """Everything is as in the copy, and versions go on from there. False: there is no copy."""
        if self._backup is None:
            return False
        self.version, objects = self._backup
        for kind in ALL_KINDS:
            now, then = self.objects[kind], dict(objects[kind])
            for key in [key for key in now if key not in then]:
                self._remember(kind, key, None)
            for key, obj in then.items():
                if now.get(key) is not obj:
                    self._serial += 1
                    then[key] = replace(obj, serial=self._serial)
                    self._remember(kind, key, then[key])
            self.objects[kind] = then
            self.log[kind] = []
        for tell in self.restored:
            tell()
        return True
