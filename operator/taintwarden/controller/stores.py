"""Objects of our kinds: what is stored, what of it is valid, and the last valid version of what is not."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from taintwarden.api.errors import InvalidObject
from taintwarden.kube.objects import version_number

T = TypeVar("T")


class ObservedObject(msgspec.Struct, frozen=True):
    """An object as it is stored: its generation, and why it is not accepted, if so."""

    generation: int
    problem: str = ""
    conditions: dict[str, tuple[str, str]] = {}
    """What stands in the stored status: type -> (status, lastTransitionTime). A restart is no transition."""


class _Known(msgspec.Struct, frozen=True):
    """Which object bears a name, and its newest version that was seen or, of a deleted one, at which it went."""

    uid: str
    version: int


class Store(ABC, Generic[T]):
    """Stored objects of one kind in, valid ones out.

    An invalid object keeps its last valid version in force; a deleted one stops acting at once. Objects are known by
    their key: the name, after ``namespace/`` where they have one.

    Lists and a watch bring the same objects, each in its own order, so either may be late. Of an object only what is
    newer than what is known counts. A list knows of everything up to its own version, and of nothing after it. One that
    is older than the list before it is of a store that was restored from a backup, and replaces everything.

    Args:
        parse: the value of a stored object; raises InvalidObject.
        issue: told key, UID and reason when an object cannot be accepted.

    """

    def __init__(self, parse: Callable[[Mapping[str, Any]], T], issue: Callable[[str, str, str], None]) -> None:
        self.observed: dict[str, ObservedObject] = {}
        self.valid: dict[str, T] = {}
        """What is in force, by key."""
        self._parse = parse
        self._issue = issue
        self._known: dict[str, _Known] = {}
        self._gone: dict[str, _Known] = {}
        """Objects that were deleted after the last list, by UID."""
        self._missed: dict[str, int] = {}
        """What a list brought before the watch did: UID -> version; 0: its deletion."""
        self._before: dict[str, T | None] = {}
        """What was in force before the changes that were not told yet."""
        self._loaded = False
        self._listed = 0
        """The version of the last list; 0 is not known."""

    def load(self, stored: Iterable[Mapping[str, Any]], resource_version: str = "") -> None:
        """Replace the content by a complete list, and report once if anything changed. Objects not in it are gone.

        Lists must be loaded in the order in which they were asked for.
        """
        version = version_number(resource_version, unreadable=0)
        restored = version < self._listed or not version
        self._gone = {} if restored else {uid: one for uid, one in self._gone.items() if one.version > version}
        first, named = not self._loaded, set()
        self._loaded, self._listed = True, version
        for obj in stored:
            named.add(key_of(obj))
            if (restored or not self._is_old(obj)) and self._take(obj) and not first:
                self._missed[uid_of(obj)] = version_of(obj)
        for key, known in list(self._known.items()):
            if key not in named and (restored or known.version <= version):
                self._forget(key)
                self._missed[known.uid] = 0
        self._publish(first=first)

    def seen(self, obj: Mapping[str, Any]) -> None:
        """The watch reports an object as listed, added or modified."""
        uid, version = uid_of(obj), version_of(obj)
        if 0 < self._missed.get(uid, 0) <= version:
            del self._missed[uid]
        is_listed = key_of(obj) in self._known or not 0 < version <= self._listed
        if is_listed and not self._is_old(obj):  # what the list did not name was deleted before it
            self._take(obj)
            self._publish()

    def gone(self, obj: Mapping[str, Any]) -> None:
        """The watch reports an object as deleted."""
        key, uid, version = key_of(obj), uid_of(obj), version_of(obj)
        self._missed.pop(uid, None)
        if not 0 < version <= self._listed:
            self._gone[uid] = _Known(uid, version)
        if key in self._known and self._known[key].uid == uid:
            self._forget(key)
            self._publish()

    def take_missed(self) -> bool:
        """Whether a list has brought anything since the last call that the watch has not brought until now."""
        missed, self._missed = bool(self._missed), {}
        return missed

    def _is_old(self, obj: Mapping[str, Any]) -> bool:
        known = self._known.get(key_of(obj))
        return uid_of(obj) in self._gone or (known is not None and 0 < version_of(obj) < known.version)

    @abstractmethod
    def _tell(self, changes: Mapping[str, T | None]) -> None:
        """These are in force now, None for what is not any more. Empty for a first list of nothing."""

    def _met(self, obj: Mapping[str, Any]) -> None:
        """An object is stored like this, valid or not. Comes before it is in force."""

    def _forget(self, key: str) -> None:
        self.observed.pop(key, None)
        self._known.pop(key, None)
        self._put(key, None)

    def _take(self, obj: Mapping[str, Any]) -> bool:
        """Whether it differs from what is known."""
        key, uid, generation = key_of(obj), uid_of(obj), obj["metadata"].get("generation", 0)
        known, found = self._known.get(key), _Known(uid, version_of(obj))
        if found == known and found.version:
            return False
        if known is not None and known.uid != uid:  # another object of the same name inherits nothing
            self._forget(key)
        self._known[key] = found
        self._met(obj)
        try:
            self._put(key, self._parse(obj))
        except InvalidObject as error:
            before = self.observed.get(key)
            if before is None or (before.generation, before.problem) != (generation, str(error)):
                self._issue(key, uid, str(error))
            self.observed[key] = ObservedObject(generation, str(error), _conditions(obj))
        else:
            self.observed[key] = ObservedObject(generation, conditions=_conditions(obj))
        return True

    def _put(self, key: str, value: T | None) -> None:
        self._before.setdefault(key, self.valid.get(key))
        if value is None:
            self.valid.pop(key, None)
        else:
            self.valid[key] = value

    def _publish(self, *, first: bool = False) -> None:
        changes = {key: self.valid.get(key) for key, before in self._before.items() if self.valid.get(key) != before}
        self._before = {}
        if changes or first:
            self._tell(changes)


def key_of(obj: Mapping[str, Any]) -> str:
    """The name of an object, after its namespace if it has one."""
    meta = obj["metadata"]
    name: str = meta["name"]
    return f"{meta['namespace']}/{name}" if meta.get("namespace") else name


def version_of(obj: Mapping[str, Any]) -> int:
    """The resourceVersion of a stored object as a number; 0 is not known."""
    return version_number(obj["metadata"].get("resourceVersion") or "", unreadable=0)


def uid_of(obj: Mapping[str, Any]) -> str:
    """The UID of a stored object."""
    uid: str = obj["metadata"].get("uid", "")
    return uid


def _conditions(obj: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    status = obj.get("status")  # also read from files, so of any shape
    listed = status.get("conditions") if isinstance(status, Mapping) else None
    stored = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    fields = ("type", "status", "lastTransitionTime")
    readable = [tuple(map(one.get, fields)) for one in stored]
    return {kind: (value, since) for kind, value, since in readable if isinstance(kind, str) and value and since}
