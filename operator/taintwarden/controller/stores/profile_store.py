"""The profiles of tolerations in force."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from taintwarden.api.profiles import MAX_ENTRIES_IN_NAMESPACE, check_size, entries, parse_profile
from taintwarden.controller.loop import Feed
from taintwarden.controller.stores.object_store import KnownVersion, Store
from taintwarden.controller.stores.oldest import Oldest
from taintwarden.engine.machine import events
from taintwarden.engine.model import Profile

MAX_WAITING_BYTES = 2 * 2**20
"""Of the profiles of a namespace that do not count, the oldest are kept, up to this size: they count as soon as others
do not any more. What may count is shorter: an entry has at most 750 bytes.
"""
OBJECT_BYTES = 500
"""What an object without its spec takes."""


class _Stored(msgspec.Struct):
    """One profile as it is stored.

    Attributes:
        created: when.
        unread: the object, until it may count.
        size: of that, in bytes.
        profile: its last valid version that was read.
        fault: why the version that was read last is not valid.

    """

    created: str
    unread: Mapping[str, Any] | None = None
    size: int = 0
    profile: Profile | None = None
    fault: str = ""


class _Namespace:
    """The profiles of one namespace."""

    def __init__(self, name: str, size_of: Callable[[str], int], max_waiting_bytes: int) -> None:
        self.stored: dict[str, _Stored] = {}
        self.oldest = Oldest(MAX_ENTRIES_IN_NAMESPACE, size_of)
        self.touched: dict[str, None] = {}
        """Those whose changes were not passed on yet."""
        self.too_many = (
            f"the profiles of namespace {name} may have {MAX_ENTRIES_IN_NAMESPACE} entries together, and the oldest "
            "count (tolerations, labels and values of podSelector and nodeAffinity): delete profiles that are not "
            "needed, or write one for several workloads"
        )
        self._bytes = 0
        self._max_bytes = max_waiting_bytes

    def keep(self, one: _Stored, obj: Mapping[str, Any]) -> None:
        """Keep an object until it is read."""
        self.drop(one)
        spec = obj.get("spec")
        one.unread = obj
        one.size = OBJECT_BYTES + len(spec if isinstance(spec, msgspec.Raw) else msgspec.json.encode(spec))
        self._bytes += one.size

    def drop(self, one: _Stored) -> None:
        """It was read, or is not kept any longer."""
        self._bytes -= one.size
        one.unread, one.size = None, 0

    def trim(self) -> Iterator[str]:
        """Drop the youngest until the others are small enough."""
        if self._bytes <= self._max_bytes:
            return
        for key in self.oldest.youngest_first():
            if (one := self.stored[key]).unread is not None:
                self.drop(one)
                yield key
                if self._bytes <= self._max_bytes:
                    return


class ProfileStore(Store[Profile]):
    """Stored profiles in, events about valid ones out.

    In a namespace the oldest profiles count until they have ``MAX_ENTRIES_IN_NAMESPACE`` entries together. No other one
    is read: a change of one among 20,000 costs as much as one among ten.

    Args:
        feed: takes the events.
        issue: called with ``namespace/name``, UID and reason when a profile cannot be accepted. Of those that are too
            many in a namespace, only with the oldest.
        max_waiting_bytes: the size of what is kept of profiles of a namespace that do not count.

    """

    def __init__(
        self, feed: Feed, issue: Callable[[str, str, str], None], *, max_waiting_bytes: int = MAX_WAITING_BYTES
    ) -> None:
        super().__init__(_parse, issue)
        self._feed = feed
        self._max_waiting_bytes = max_waiting_bytes
        self._namespaces: dict[str, _Namespace] = {}
        self._touched: dict[str, _Namespace] = {}

    def listed(self, stored: Iterable[Mapping[str, Any]]) -> None:
        """One page of a list."""
        super().listed(stored)
        for space in self._touched.values():
            self._trim(space)

    def _spec_changed(self, key: str, obj: Mapping[str, Any]) -> None:
        space = self._touch(key)
        one = space.stored.get(key)
        if one is None:
            one = space.stored[key] = _Stored(obj["metadata"].get("creationTimestamp") or "")
            space.keep(one, obj)
            space.oldest.add((one.created, key))
        else:
            space.keep(one, obj)
            space.oldest.changed(key)

    def _forget(self, key: str) -> None:
        super()._forget(key)
        space = self._touch(key)
        if (one := space.stored.pop(key, None)) is not None:
            space.drop(one)
            space.oldest.remove((one.created, key))
        space.touched.pop(key)

    def _touch(self, key: str) -> _Namespace:
        name = key.partition("/")[0]
        space = self._namespaces.get(name)
        if space is None:
            space = self._namespaces[name] = _Namespace(name, self._size_of, self._max_waiting_bytes)
        self._touched[name] = space
        space.touched[key] = None
        return space

    def _size_of(self, key: str) -> int:
        """Read a profile that may count, if it was not read yet. What is not valid has the size of the smallest."""
        space = self._namespaces[key.partition("/")[0]]
        one = space.stored[key]
        if one.unread is not None:
            obj = one.unread
            space.drop(one)
            one.profile = self._read(key, obj) or one.profile
            one.fault = self.observed[key].problem
        return 1 if one.profile is None else max(1, entries(one.profile))

    def _publish(self) -> None:
        for name, space in self._touched.items():
            self._settle(space)
            self._trim(space)
            if not space.stored:
                del self._namespaces[name]
        self._touched = {}
        super()._publish()

    def _settle(self, space: _Namespace) -> None:
        for key in {**dict.fromkeys(space.oldest.settle()), **space.touched}:
            one = space.stored[key]
            if key in space.oldest:
                self._put(key, one.profile)
                self._observe(key, problem=one.fault)
            else:
                self._put(key, None)
                self._observe(key, problem=space.too_many)
        space.touched = {}
        if (first := space.oldest.first_waiting) is not None:
            self._refuse(first, space.too_many)

    def _trim(self, space: _Namespace) -> None:
        for key in space.trim():
            # What comes next of it is read, whatever its generation is.
            self._known[key] = KnownVersion(self._known[key].uid, 0)
            space.stored[
                key
            ].fault = "it may count now, but was not kept while it did not: change its labels to have it read"

    def _apply(self, changes: Mapping[str, Profile | None]) -> None:
        for key, profile in changes.items():
            namespace, _, name = key.partition("/")
            self._feed(events.ProfileGone(namespace, name) if profile is None else events.ProfileSeen(profile))


def _parse(obj: Mapping[str, Any]) -> Profile:
    """A profile that is no larger than all of a namespace may be."""
    profile = parse_profile(obj)
    check_size(profile, 0)
    return profile
