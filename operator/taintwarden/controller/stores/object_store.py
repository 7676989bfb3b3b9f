"""Objects of our kinds: what is stored, what of it is valid, and the last valid version of what is not."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from taintwarden.controller.complaints import Complaints
from taintwarden.fields.field_errors import FieldError, InvalidObject
from taintwarden.kube.errors import NOT_JSON

T = TypeVar("T")


class ObservedObject(msgspec.Struct, frozen=True):
    """An object as it is stored: its generation, and why it is not accepted, if so."""

    generation: int
    problem: str = ""
    conditions: dict[str, tuple[str, str]] = {}
    """What stands in the stored status: type -> (status, lastTransitionTime). A restart is no transition."""


class KnownVersion(msgspec.Struct, frozen=True):
    """Which object bears a name, and which version of its spec came last."""

    uid: str
    generation: int


class Store(ABC, Generic[T]):
    """Stored objects of one kind in, valid ones out.

    An invalid object keeps its last valid version in force; a deleted one stops acting at once. Objects are known by
    their key: the name, after ``namespace/`` where they have one. They come in the order of one stream. The ``spec`` of
    an object may be encoded still (:class:`msgspec.Raw`): it is decoded when it is read.

    The API server counts every change of a spec in ``metadata.generation``, so an object of the same UID and generation
    is not read again.

    Args:
        parse: the value of a stored object; raises InvalidObject.
        issue: called with key, UID and reason when an object cannot be accepted.

    """

    def __init__(self, parse: Callable[[Mapping[str, Any]], T], issue: Callable[[str, str, str], None]) -> None:
        self.observed: dict[str, ObservedObject] = {}
        self.valid: dict[str, T] = {}
        """What is in force, by key."""
        self._parse = parse
        self._issue = issue
        self._known: dict[str, KnownVersion] = {}
        self._complaints = Complaints()
        self._before: dict[str, T | None] = {}
        """What was in force before the changes that were not passed on yet."""

    # -- a list ---------------------------------------------------------------------------------------------------

    def listed(self, stored: Iterable[Mapping[str, Any]]) -> None:
        """One page of it."""
        for obj in stored:
            self._take(obj)

    def list_ended(self, listed: Container[str]) -> None:
        """It is complete, and names these keys: what else is stored is gone. Reports once if anything changed."""
        for key in [key for key in self._known if key not in listed]:
            self._forget(key)
        self._publish()

    def load(self, stored: Iterable[Mapping[str, Any]]) -> None:
        """Replace the content by a complete list."""
        listed = {key_of(obj): obj for obj in stored}
        self.listed(listed.values())
        self.list_ended(listed)

    # -- changes --------------------------------------------------------------------------------------------------

    def knows(self, key: str, uid: str, generation: int) -> bool:
        """Whether this is the version of the spec that came last."""
        known = self._known.get(key)
        return known is not None and (known.uid, known.generation) == (uid, generation) and generation > 0

    def seen(self, *objects: Mapping[str, Any]) -> None:
        """Objects were added or modified. Reports once if anything changed."""
        for obj in objects:
            self._take(obj)
        self._publish()

    def gone(self, key: str, uid: str) -> None:
        """An object was deleted."""
        if key not in self._known and "/" not in key:  # its namespace could not be read, perhaps
            key = next((key for key, known in self._known.items() if known.uid == uid), "")
        if key in self._known:
            self._forget(key)
            self._publish()

    # -- what kinds differ in -------------------------------------------------------------------------------------

    @abstractmethod
    def _apply(self, changes: Mapping[str, T | None]) -> None:
        """These are in force now, None for what is not any more."""

    def _met(self, obj: Mapping[str, Any]) -> None:
        """An object is stored like this, valid or not. Comes before it is in force."""

    def _spec_changed(self, key: str, obj: Mapping[str, Any]) -> None:
        """An object is new, or its spec is another one."""
        if (value := self._read(key, obj)) is not None:
            self._put(key, value)

    def _forget(self, key: str) -> None:
        self.observed.pop(key, None)
        self._known.pop(key, None)
        self._complaints.settle(key)
        self._put(key, None)

    # -- what they share ------------------------------------------------------------------------------------------

    def _take(self, obj: Mapping[str, Any]) -> None:
        meta, key = obj["metadata"], key_of(obj)
        found = KnownVersion(meta.get("uid", ""), meta.get("generation", 0))
        known = self._known.get(key)
        if known is not None and known.uid != found.uid:  # another object of the same name inherits nothing
            self._forget(key)
        self._met(obj)
        self._known[key] = found
        if known == found and found.generation:
            self._observe(key, conditions=_conditions(obj))
        else:
            self._observe(key, generation=found.generation, conditions=_conditions(obj))
            self._spec_changed(key, obj)

    def _observe(self, key: str, **what: Any) -> None:
        before = self.observed.get(key) or ObservedObject(0)
        self.observed[key] = msgspec.structs.replace(before, **what)

    def _read(self, key: str, obj: Mapping[str, Any]) -> T | None:
        """The value of an object; None if it is invalid, which is reported once for each of its versions."""
        try:
            value = self._parse(_decoded(obj))
        except InvalidObject as error:
            self._refuse(key, str(error))
            return None
        self._complaints.settle(key)
        self._observe(key, problem="")
        return value

    def _refuse(self, key: str, reason: str) -> None:
        """An object is not accepted."""
        known = self._known[key]
        if self._complaints.is_new(key, (known.generation, reason)):
            self._issue(key, known.uid, reason)
        self._observe(key, problem=reason)

    def _put(self, key: str, value: T | None) -> None:
        self._before.setdefault(key, self.valid.get(key))
        if value is None:
            self.valid.pop(key, None)
        else:
            self.valid[key] = value

    def _publish(self) -> None:
        changes = {key: self.valid.get(key) for key, before in self._before.items() if self.valid.get(key) != before}
        self._before = {}
        if changes:
            self._apply(changes)


def key_of(obj: Mapping[str, Any]) -> str:
    """The name of an object, after its namespace if it has one."""
    meta = obj["metadata"]
    name: str = meta["name"]
    return f"{meta['namespace']}/{name}" if meta.get("namespace") else name


def _decoded(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object with its spec.

    Raises:
        InvalidObject: it is no JSON.

    """
    spec = obj.get("spec")
    if not isinstance(spec, msgspec.Raw):
        return obj
    try:
        return {**obj, "spec": msgspec.json.decode(spec)}
    except NOT_JSON as error:
        raise InvalidObject(str(obj.get("kind")), key_of(obj), [FieldError("spec", None, str(error))]) from error


def _conditions(obj: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    status = obj.get("status")  # also read from files, so of any shape
    listed = status.get("conditions") if isinstance(status, Mapping) else None
    stored = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    fields = ("type", "status", "lastTransitionTime")
    readable = [tuple(map(one.get, fields)) for one in stored]
    return {kind: (value, since) for kind, value, since in readable if isinstance(kind, str) and value and since}
