"""The profiles of tolerations in force."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from taintwarden.api.profiles import MAX_ENTRIES_IN_NAMESPACE, check_size, count_entries, parse_profile
from taintwarden.controller.loop import Feed
from taintwarden.controller.stores.object_store import KnownVersion, Store
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
        age: when it was created, and its key: the order of those of one second.
        unread: the object, until it may count.
        size: of that, in bytes.
        profile: its last valid version that was read.
        entries: of that; what is not valid has as many as the smallest.
        fault: why the version that was read last is not valid.

    """

    age: tuple[str, str]
    unread: Mapping[str, Any] | None = None
    size: int = 0
    profile: Profile | None = None
    entries: int = 1
    fault: str = ""


class _Namespace:
    """The profiles of one namespace."""

    def __init__(self, name: str) -> None:
        self.stored: dict[str, _Stored] = {}
        self.order: list[tuple[str, str]] = []
        """The ages of all of them."""
        self.unread: list[tuple[str, str]] = []
        """The ages of those that are kept until they are read."""
        self.counting: dict[str, None] = {}
        self.first_waiting: tuple[str, str] | None = None
        """The age of the oldest that does not count; None: not known, or all count."""
        self.touched: dict[str, None] = {}
        """Those whose changes were not passed on yet."""
        self.too_many = (
            f"the profiles of namespace {name} may have {MAX_ENTRIES_IN_NAMESPACE} entries together, and the oldest "
            "count (tolerations, labels and values of podSelector and nodeAffinity): delete profiles that are not "
            "needed, or write one for several workloads"
        )
        self.bytes = 0

    def keep(self, one: _Stored, obj: Mapping[str, Any]) -> None:
        """Keep an object until it is read."""
        self.drop(one)
        spec = obj.get("spec")
        one.unread = obj
        one.size = OBJECT_BYTES + len(spec if isinstance(spec, msgspec.Raw) else msgspec.json.encode(spec))
        self.bytes += one.size
        insort(self.unread, one.age)

    def drop(self, one: _Stored) -> None:
        """It was read, or is not kept any longer."""
        if one.unread is not None:
            self.bytes -= one.size
            one.unread = None
            del self.unread[bisect_left(self.unread, one.age)]

    def changed(self, one: _Stored) -> None:
        """It is new, gone, or another one. What is younger than one that does not count changes nothing."""
        if self.first_waiting is not None and one.age <= self.first_waiting:
            self.first_waiting = None


class ProfileStore(Store[Profile]):
    """Stored profiles in, events about valid ones out.

    In a namespace the oldest profiles count until they have ``MAX_ENTRIES_IN_NAMESPACE`` entries together. No other one
    is read: a change of one among 20,000 costs as much as one among a thousand.

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
            one = space.stored[key] = _Stored((obj["metadata"].get("creationTimestamp") or "", key))
            insort(space.order, one.age)
        space.keep(one, obj)
        space.changed(one)

    def _forget(self, key: str) -> None:
        super()._forget(key)
        space = self._touch(key)
        if (one := space.stored.pop(key, None)) is not None:
            space.drop(one)
            space.changed(one)
            del space.order[bisect_left(space.order, one.age)]
            space.counting.pop(key, None)
        space.touched.pop(key)

    def _touch(self, key: str) -> _Namespace:
        name = key.partition("/")[0]
        space = self._touched[name] = self._namespaces.setdefault(name, _Namespace(name))
        space.touched[key] = None
        return space

    def _publish(self) -> None:
        for name, space in self._touched.items():
            self._settle(space)
            self._trim(space)
            if not space.stored:
                del self._namespaces[name]
        self._touched = {}
        super()._publish()

    def _settle(self, space: _Namespace) -> None:
        if space.first_waiting is None:
            before, now = space.counting, self._count(space)
            space.counting = now
            space.touched |= {key: None for key in (*before, *now) if (key in before) != (key in now)}
        for key in space.touched:
            one, counts = space.stored[key], key in space.counting
            self._put(key, one.profile if counts else None)
            self._observe(key, problem=one.fault if counts else space.too_many)
        space.touched = {}
        if space.first_waiting is not None:
            self._refuse(space.first_waiting[1], space.too_many)

    def _count(self, space: _Namespace) -> dict[str, None]:
        """The oldest with so many entries together. Reads those of them, and the next, that were not read yet."""
        left, counting = MAX_ENTRIES_IN_NAMESPACE, dict[str, None]()
        for age in space.order:
            one = space.stored[age[1]]
            if one.unread is not None:
                obj = one.unread
                space.drop(one)
                one.profile = self._read(age[1], obj) or one.profile
                one.fault = self.observed[age[1]].problem
                one.entries = 1 if one.profile is None else max(1, count_entries(one.profile))
            left -= one.entries
            if left < 0:
                space.first_waiting = age
                break
            counting[age[1]] = None
        return counting

    def _trim(self, space: _Namespace) -> None:
        """Drop the youngest until the others are small enough."""
        while space.bytes > self._max_waiting_bytes:
            key = space.unread[-1][1]
            space.drop(space.stored[key])
            # What comes next of it is read, whatever its generation is.
            self._known[key] = KnownVersion(self._known[key].uid, 0)
            fault = "it may count now, but was not kept while it did not: change its labels to have it read"
            space.stored[key].fault = fault

    def _apply(self, changes: Mapping[str, Profile | None]) -> None:
        for key, profile in changes.items():
            namespace, _, name = key.partition("/")
            self._feed(events.ProfileGone(namespace, name) if profile is None else events.ProfileSeen(profile))


def _parse(obj: Mapping[str, Any]) -> Profile:
    """A profile that is no larger than all of a namespace may be."""
    profile = parse_profile(obj)
    check_size(profile, 0)
    return profile
