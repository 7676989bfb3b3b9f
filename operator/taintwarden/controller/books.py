"""Objects of our kinds: what is stored, what of it is valid, and the last valid version of what is not."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from taintwarden.api.errors import InvalidObject
from taintwarden.kube.objects import version_number

T = TypeVar("T")


class Standing(msgspec.Struct, frozen=True):
    """An object as it is stored: its generation, and why it is not accepted, if so."""

    generation: int
    problem: str = ""
    conditions: dict[str, tuple[str, str]] = {}
    """What stands in the stored status: type -> (status, lastTransitionTime). A restart is no transition."""


class Book(ABC, Generic[T]):
    """Stored objects of one kind in, valid ones out.

    An invalid object keeps its last valid version in force; a deleted one stops acting at once. Objects are known by
    their key: the name, after ``namespace/`` where they have one.

    Args:
        parse: the value of a stored object; raises InvalidObject.
        issue: told key, UID and reason when an object cannot be accepted.

    """

    def __init__(self, parse: Callable[[Mapping[str, Any]], T], issue: Callable[[str, str, str], None]) -> None:
        self.standings: dict[str, Standing] = {}
        self.valid: dict[str, T] = {}
        """What is in force, by key."""
        self._parse = parse
        self._issue = issue
        self._uids: dict[str, str] = {}
        self._before: dict[str, T | None] = {}
        """What was in force before the changes that were not told yet."""
        self._loaded = False
        self._newest = 0

    def load(self, stored: Iterable[Mapping[str, Any]], resource_version: str = "") -> None:
        """Take over a complete list, and tell of it once if it changes anything. What it does not name is gone.

        A list that is older than something the watch brought meanwhile is of no use.
        """
        if version_number(resource_version, unreadable=0) < self._newest:
            return
        first, named = not self._loaded, set()
        self._loaded = True
        for obj in stored:
            named.add(key_of(obj))
            self._take(obj)
        for key in [key for key in self.standings if key not in named]:
            self._forget(key)
        self._publish(first=first)

    def seen(self, obj: Mapping[str, Any]) -> None:
        """An object was listed, added or modified."""
        self._newest = max(self._newest, version_of(obj))
        self._take(obj)
        self._publish()

    def gone(self, obj: Mapping[str, Any]) -> None:
        """An object was deleted."""
        self._newest = max(self._newest, version_of(obj))
        self._forget(key_of(obj))
        self._publish()

    @abstractmethod
    def _tell(self, changes: Mapping[str, T | None]) -> None:
        """These are in force now, None standing for what is not any more. Empty for a first list of nothing."""

    def _met(self, obj: Mapping[str, Any]) -> None:
        """An object is stored like this, valid or not. Comes before it is in force."""

    def _forget(self, key: str) -> None:
        self.standings.pop(key, None)
        self._uids.pop(key, None)
        self._put(key, None)

    def _take(self, obj: Mapping[str, Any]) -> None:
        meta = obj["metadata"]
        key, uid, generation = key_of(obj), meta.get("uid", ""), meta.get("generation", 0)
        if self._uids.get(key, uid) != uid:  # another object of the same name inherits nothing
            self._forget(key)
        self._uids[key] = uid
        self._met(obj)
        try:
            self._put(key, self._parse(obj))
        except InvalidObject as error:
            known = self.standings.get(key)
            if known is None or (known.generation, known.problem) != (generation, str(error)):
                self._issue(key, uid, str(error))
            self.standings[key] = Standing(generation, str(error), _conditions(obj))
        else:
            self.standings[key] = Standing(generation, conditions=_conditions(obj))

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


def _conditions(obj: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    stored = obj.get("status", {}).get("conditions") or []
    return {one["type"]: (one["status"], one["lastTransitionTime"]) for one in stored}
