"""The stored form of an object and of a change.

Objects are stored as encoded JSON, so that lists and watches need not encode them. `kind` and `apiVersion` are left
out, since they depend on the requested version. Forbidden here: decisions.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from localcluster.store.selectors import Selector, matches

Object = dict[str, Any]
Key = tuple[str, str]  # namespace ("" for cluster-scoped), name

encode = msgspec.json.encode
decode_json = msgspec.json.Decoder().decode


class Entry(msgspec.Struct, frozen=True):
    """The state of an object at one revision."""

    key: Key
    revision: int
    uid: str
    body: bytes
    labels: dict[str, str]
    fields: dict[str, str]

    def decoded(self) -> Object:
        """Return a new copy of the object, which the caller may change."""
        value: Object = decode_json(self.body)
        return value

    def at_revision(self, revision: int) -> "Entry":
        """Return the same state with another revision, as in the event of a deletion."""
        value = self.decoded()
        value["metadata"]["resourceVersion"] = str(revision)
        return Entry(self.key, revision, self.uid, encode(value), self.labels, self.fields)


class Change:
    """One write. `before` is None for a creation, `after` for a deletion."""

    __slots__ = ("_departed", "_lines", "after", "before", "revision")

    def __init__(self, revision: int, before: Entry | None, after: Entry | None) -> None:
        self.revision = revision
        self.before = before
        self.after = after
        self._lines: dict[tuple[str, bytes], bytes] = {}
        self._departed: Entry | None = None

    @property
    def key(self) -> Key:
        """The key of the object."""
        return self.last.key

    @property
    def last(self) -> Entry:
        """The newest state: the written or the deleted object."""
        entry = self.after or self.before
        if entry is None:
            raise ValueError("a change has a state before or after it")
        return entry

    def departed_state(self) -> Entry:
        """Return the last state of an object that leaves a watcher's selection, with this change's revision."""
        if self._departed is None:
            self._departed = (self.before or self.last).at_revision(self.revision)
        return self._departed

    def watch_line(self, kind: str, prefix: bytes) -> bytes:
        """Return the watch line of this change, encoded once for all watchers of a version.

        `prefix` is `{"kind":...,"apiVersion":...,`.
        """
        known = self._lines.get((kind, prefix))
        if known is None:
            entry = self.departed_state() if kind == "DELETED" or self.after is None else self.after
            known = b'{"type":"' + kind.encode() + b'","object":' + prefix + entry.body[1:] + b"}\n"
            self._lines[kind, prefix] = known
        return known


class Selection(NamedTuple):
    """The restriction of a list or watch by namespace, labels and fields."""

    namespace: str = ""
    labels: Selector = ()
    fields: Selector = ()

    def includes(self, entry: Entry | None) -> bool:
        """True if the selection includes this state."""
        if entry is None or (self.namespace and entry.key[0] != self.namespace):
            return False
        return matches(self.labels, entry.labels) and matches(self.fields, entry.fields)

    def event_type(self, change: Change) -> str | None:
        """Return the type of the watch event for this change. Entering the selection is ADDED, leaving it DELETED."""
        now, was = self.includes(change.after), self.includes(change.before)
        if now:
            return "MODIFIED" if was else "ADDED"
        return "DELETED" if was else None


def selectable(value: Mapping[str, Any], paths: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return the selectable fields of an object as text. As upstream, an absent field is the empty string."""
    found = {}
    for label, path in paths.items():
        item: Any = value
        for part in path:
            item = item.get(part) if isinstance(item, dict) else None
        if isinstance(item, str):
            found[label] = item
        else:
            found[label] = "" if item is None else str(item).lower()
    return found
