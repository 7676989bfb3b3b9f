"""Store of toleration profiles, of which the oldest of each namespace count."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from taintwarden.api.profiles import MAX_ENTRIES_IN_NAMESPACE, check_size, count_entries, parse_profile
from taintwarden.controller.stores.object_store import KnownVersion, Store
from taintwarden.engine import events
from taintwarden.engine.events import Feed
from taintwarden.engine.model import Profile

MAX_WAITING_BYTES = 2 * 2**20
"""Maximum size of the unread profiles kept of one namespace. Beyond it, the youngest are dropped.

Profiles that count always fit: they have at most 1,000 entries of 750 bytes. Others count once these are deleted."""
OBJECT_BYTES = 500
"""Approximate bytes of memory of an object without its spec."""


class _Stored(msgspec.Struct):
    """A stored profile.

    Attributes:
        age: its creation time, and its key, which orders profiles of the same second.
        unread: its object, kept until the profile may count and is read.
        size: bytes of the unread object.
        profile: the last valid version that was read.
        entries: number of entries of that version; 1 without one.
        fault: why the last version that was read is invalid, or why an unread one was dropped.

    """

    age: tuple[str, str]
    unread: Mapping[str, Any] | None = None
    size: int = 0
    profile: Profile | None = None
    entries: int = 1
    fault: str = ""


class _Namespace:
    """The stored profiles of one namespace."""

    def __init__(self, name: str) -> None:
        self.stored: dict[str, _Stored] = {}
        self.order: list[tuple[str, str]] = []
        """Ages of all stored profiles, in order."""
        self.unread: list[tuple[str, str]] = []
        """Ages of the profiles with an unread object, in order."""
        self.counting: dict[str, None] = {}
        self.first_waiting: tuple[str, str] | None = None
        """Age of the oldest profile that does not count; None if it is not known or all count."""
        self.touched: dict[str, None] = {}
        """Keys of profiles whose changes are not passed on yet."""
        self.too_many = (
            f"the profiles of namespace {name} may have {MAX_ENTRIES_IN_NAMESPACE} entries together, and the oldest "
            "count (tolerations, labels and values of podSelector and nodeAffinity): delete profiles that are not "
            "needed, or write one for several workloads"
        )
        self.bytes = 0

    def keep(self, profile: _Stored, obj: Mapping[str, Any]) -> None:
        """Keep an object unread instead of an earlier version."""
        self.drop(profile)
        spec = obj.get("spec")
        profile.unread = obj
        profile.size = OBJECT_BYTES + len(spec if isinstance(spec, msgspec.Raw) else msgspec.json.encode(spec))
        self.bytes += profile.size
        insort(self.unread, profile.age)

    def drop(self, profile: _Stored) -> None:
        """Drop the unread object of a profile, if any."""
        if profile.unread is not None:
            self.bytes -= profile.size
            profile.unread = None
            del self.unread[bisect_left(self.unread, profile.age)]

    def changed(self, profile: _Stored) -> None:
        """Have profiles counted again after a change of one, unless it is younger than one that does not count."""
        if self.first_waiting is not None and profile.age <= self.first_waiting:
            self.first_waiting = None


class ProfileStore(Store[Profile]):
    """Receives stored profiles, and feeds events about the valid ones to the machine.

    In a namespace the oldest profiles count, up to ``MAX_ENTRIES_IN_NAMESPACE`` entries together. Only these are read,
    so that a change of one profile among 20,000 costs as much as one among a thousand.

    Args:
        feed: receives the events.
        issue: called with ``namespace/name``, UID and reason when a profile cannot be accepted. If a namespace has too
            many, only the oldest of the surplus is reported.
        max_waiting_bytes: maximum size of the unread profiles kept of one namespace.

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
        """Take the profiles of one page of a list."""
        super().listed(stored)
        for space in self._touched.values():
            self._trim(space)

    def _spec_changed(self, key: str, obj: Mapping[str, Any]) -> None:
        space = self._touch(key)
        stored = space.stored.get(key)
        if stored is None:
            stored = space.stored[key] = _Stored((obj["metadata"].get("creationTimestamp") or "", key))
            insort(space.order, stored.age)
        space.keep(stored, obj)
        space.changed(stored)

    def _forget(self, key: str) -> None:
        super()._forget(key)
        space = self._touch(key)
        if (stored := space.stored.pop(key, None)) is not None:
            space.drop(stored)
            space.changed(stored)
            del space.order[bisect_left(space.order, stored.age)]
            space.counting.pop(key, None)
        space.touched.pop(key)

    def _touch(self, key: str) -> _Namespace:
        name = key.partition("/")[0]
        space = self._touched[name] = self._namespaces.setdefault(name, _Namespace(name))
        space.touched[key] = None
        return space

    def _publish(self) -> None:
        for name, space in self._touched.items():
            self._update_counting(space)
            self._trim(space)
            if not space.stored:
                del self._namespaces[name]
        self._touched = {}
        super()._publish()

    def _update_counting(self, space: _Namespace) -> None:
        if space.first_waiting is None:
            before, now = space.counting, self._count(space)
            space.counting = now
            space.touched |= {key: None for key in (*before, *now) if (key in before) != (key in now)}
        for key in space.touched:
            stored, counts = space.stored[key], key in space.counting
            self._put(key, stored.profile if counts else None)
            self._observe(key, problem=stored.fault if counts else space.too_many)
        space.touched = {}
        if space.first_waiting is not None:
            self._refuse(space.first_waiting[1], space.too_many)

    def _count(self, space: _Namespace) -> dict[str, None]:
        """Return the keys of the oldest profiles within the limit of entries. Reads them and the next one if unread."""
        left, counting = MAX_ENTRIES_IN_NAMESPACE, dict[str, None]()
        for age in space.order:
            stored = space.stored[age[1]]
            if stored.unread is not None:
                obj = stored.unread
                space.drop(stored)
                stored.profile = self._read(age[1], obj) or stored.profile
                stored.fault = self.observed[age[1]].problem
                stored.entries = 1 if stored.profile is None else max(1, count_entries(stored.profile))
            left -= stored.entries
            if left < 0:
                space.first_waiting = age
                break
            counting[age[1]] = None
        return counting

    def _trim(self, space: _Namespace) -> None:
        """Drop the youngest unread objects until the others are within the maximum size."""
        while space.bytes > self._max_waiting_bytes:
            key = space.unread[-1][1]
            space.drop(space.stored[key])
            # Generation 0 makes the store read the next version even if its spec is unchanged.
            self._known[key] = KnownVersion(self._known[key].uid, 0)
            fault = "it was dropped while it did not count, and may count now: change its labels to have it read"
            space.stored[key].fault = fault

    def _apply(self, changes: Mapping[str, Profile | None]) -> None:
        for key, profile in changes.items():
            namespace, _, name = key.partition("/")
            self._feed(events.ProfileGone(namespace, name) if profile is None else events.ProfileSeen(profile))


def _parse(obj: Mapping[str, Any]) -> Profile:
    """Parse a profile, whose entries must be within the limit of its namespace."""
    profile = parse_profile(obj)
    check_size(profile, 0)
    return profile
