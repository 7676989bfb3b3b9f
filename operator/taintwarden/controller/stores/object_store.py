"""Store of the objects of one kind of Taintwarden: it keeps the last valid version of an invalid object."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from taintwarden.controller.reported_faults import ReportedFaults
from taintwarden.fields.field_errors import FieldError, InvalidObject
from taintwarden.kube.errors import NOT_JSON

T = TypeVar("T")


class ObservedObject(msgspec.Struct, frozen=True):
    """A stored object: its generation, why it is not accepted, empty if it is accepted, and its UID."""

    generation: int
    problem: str = ""
    conditions: dict[str, tuple[str, str]] = {}
    """Conditions in the stored status: type -> (status, lastTransitionTime). A restart is not a transition."""
    version: str = ""
    """Its ``resourceVersion``."""
    records: tuple[str, ...] = ()
    """Records in the stored status: ``guard``, ``places``."""
    uid: str = ""


class KnownVersion(msgspec.Struct, frozen=True):
    """UID of the object with a key, and generation of its last spec; 0 if the next version has to be read."""

    uid: str
    generation: int


class Store(ABC, Generic[T]):
    """Receives the stored objects of one kind in the order of one stream, and passes on the valid ones.

    An invalid object keeps its last valid version in force; a deleted one has no effect any more. The key of an object
    is its name, after ``namespace/`` if it has one. Its ``spec`` may still be encoded (:class:`msgspec.Raw`): it is
    decoded when it is read.

    The API server counts every change of a spec in ``metadata.generation``, so an object of the same UID and generation
    is not read again.

    Args:
        parse: returns the value of a stored object; raises InvalidObject.
        issue: called with key, UID and reason when an object cannot be accepted; without a reason when that ends.

    """

    def __init__(self, parse: Callable[[Mapping[str, Any]], T], issue: Callable[[str, str, str], None]) -> None:
        self.observed: dict[str, ObservedObject] = {}
        self.valid: dict[str, T] = {}
        """Values in force, by key."""
        self._parse = parse
        self._issue = issue
        self._known: dict[str, KnownVersion] = {}
        self._reported_faults = ReportedFaults()
        self._before: dict[str, T | None] = {}
        """Values in force before the changes that are not passed on yet, by key; None for a new key."""

    # -- a list ---------------------------------------------------------------------------------------------------

    def listed(self, stored: Iterable[Mapping[str, Any]]) -> None:
        """Take the objects of one page of a list."""
        for obj in stored:
            self._take(obj)

    def list_ended(self, listed: Container[str]) -> None:
        """Drop all objects but those with the keys of the complete list, and pass on all changes together."""
        for key in [key for key in self._known if key not in listed]:
            self._forget(key)
        self._publish()

    def load(self, stored: Iterable[Mapping[str, Any]]) -> None:
        """Replace the content by the objects of a complete list."""
        listed = {key_of(obj): obj for obj in stored}
        self.listed(listed.values())
        self.list_ended(listed)

    # -- changes --------------------------------------------------------------------------------------------------

    def knows(self, key: str, uid: str, generation: int) -> bool:
        """Return True if the last spec of the object is that of this UID and generation."""
        known = self._known.get(key)
        return known is not None and (known.uid, known.generation) == (uid, generation) and generation > 0

    def seen(self, *objects: Mapping[str, Any]) -> None:
        """Take objects that were added or modified, and pass on all changes together."""
        for obj in objects:
            self._take(obj)
        self._publish()

    def gone(self, key: str, uid: str) -> None:
        """Drop a deleted object."""
        if key not in self._known and "/" not in key:  # perhaps its namespace could not be read
            key = next((key for key, known in self._known.items() if known.uid == uid), "")
        if key in self._known:
            self._forget(key)
            self._publish()

    # -- hooks of each kind ---------------------------------------------------------------------------------------

    @abstractmethod
    def _apply(self, changes: Mapping[str, T | None]) -> None:
        """Pass on the values that are now in force, by key; None for a key that has none any more."""

    def _object_seen(self, obj: Mapping[str, Any]) -> None:
        """Read other fields of a stored object, valid or not, before it is in force."""

    def _spec_changed(self, key: str, obj: Mapping[str, Any]) -> None:
        """Put an object into force that is new or has a new spec, if it is valid."""
        if (value := self._read(key, obj)) is not None:
            self._put(key, value)

    def _forget(self, key: str) -> None:
        self._accept(key)
        self.observed.pop(key, None)
        self._known.pop(key, None)
        self._put(key, None)

    # -- shared by all kinds --------------------------------------------------------------------------------------

    def _take(self, obj: Mapping[str, Any]) -> None:
        meta, key = obj["metadata"], key_of(obj)
        found = KnownVersion(meta.get("uid", ""), meta.get("generation", 0))
        known = self._known.get(key)
        if known is not None and known.uid != found.uid:  # another object of the same name inherits nothing
            self._forget(key)
        self._object_seen(obj)
        self._known[key] = found
        seen = {"generation": found.generation, "uid": found.uid, "version": meta.get("resourceVersion", "")}
        self._observe(key, **seen, **_stored_status(obj))
        if known != found or not found.generation:
            self._spec_changed(key, obj)

    def _observe(self, key: str, **what: Any) -> None:
        before = self.observed.get(key) or ObservedObject(0)
        self.observed[key] = msgspec.structs.replace(before, **what)

    def _read(self, key: str, obj: Mapping[str, Any]) -> T | None:
        """Return the value of an object; None if it is invalid, which is reported once for each of its versions."""
        try:
            value = self._parse(_decoded(obj))
        except InvalidObject as error:
            self._refuse(key, str(error))
            return None
        self._accept(key)
        return value

    def _accept(self, key: str) -> None:
        """Note that an object has no fault any more."""
        if self._reported_faults.forget(key):
            self._issue(key, self._known[key].uid, "")
        self._observe(key, problem="")

    def _refuse(self, key: str, reason: str) -> None:
        """Report that an object is not accepted, once for each generation and reason."""
        known = self._known[key]
        if self._reported_faults.is_new(key, (known.generation, reason)):
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
    """Return the key of an object: its name, after ``namespace/`` if it has one."""
    meta = obj["metadata"]
    name: str = meta["name"]
    return f"{meta['namespace']}/{name}" if meta.get("namespace") else name


def _decoded(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the object with its spec decoded.

    Raises:
        InvalidObject: the spec is not JSON.

    """
    spec = obj.get("spec")
    if not isinstance(spec, msgspec.Raw):
        return obj
    try:
        return {**obj, "spec": msgspec.json.decode(spec)}
    except NOT_JSON as error:
        raise InvalidObject(str(obj.get("kind")), key_of(obj), [FieldError("spec", None, str(error))]) from error


def _stored_status(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an observed object that its stored status has."""
    found = obj.get("status")  # may come from a file, so its shape is not known
    status = found if isinstance(found, Mapping) else {}
    listed = status.get("conditions")
    stored = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    fields = ("type", "status", "lastTransitionTime")
    readable = [tuple(map(one.get, fields)) for one in stored]
    conditions = {kind: (value, since) for kind, value, since in readable if isinstance(kind, str) and value and since}
    return {"conditions": conditions, "records": tuple(name for name in ("guard", "places") if status.get(name))}
