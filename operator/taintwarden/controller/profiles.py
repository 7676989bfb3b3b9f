"""The profiles of tolerations in force."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from taintwarden.api.errors import InvalidObject
from taintwarden.api.profiles import check_room, entries, parse_profile
from taintwarden.controller.loop import Feed
from taintwarden.controller.stores import Store, key_of
from taintwarden.engine.machine import events
from taintwarden.engine.model import Profile


class ProfileStore(Store[Profile]):
    """Stored profiles in, events about valid ones out.

    In a namespace, profiles count up to its bound, the oldest first: see :func:`.check_room`.

    Args:
        feed: takes the events.
        issue: told ``namespace/name``, UID and reason when a profile cannot be accepted.

    """

    def __init__(self, feed: Feed, issue: Callable[[str, str, str], None]) -> None:
        super().__init__(parse_profile, issue)
        self._feed = feed
        self._created: dict[str, str] = {}
        self._parsed: dict[str, dict[str, Profile]] = {}
        """Namespace -> key -> the last valid version, whether it exceeds the bound or not."""
        self._excess: dict[str, str] = {}
        """Those that exceed the bound, each with the reason that was reported."""

    def _met(self, obj: Mapping[str, Any]) -> None:
        self._created[key_of(obj)] = obj["metadata"].get("creationTimestamp") or ""

    def _forget(self, key: str) -> None:
        super()._forget(key)
        self._created.pop(key, None)
        self._excess.pop(key, None)

    def _put(self, key: str, value: Profile | None) -> None:
        super()._put(key, value)
        named = self._parsed.setdefault(_namespace(key), {})
        if value is None:
            named.pop(key, None)
        else:
            named[key] = value

    def _publish(self, *, first: bool = False) -> None:
        for namespace in {_namespace(key) for key in self._before}:
            self._make_room(namespace)
        super()._publish(first=first)

    def _make_room(self, namespace: str) -> None:
        found = self._parsed[namespace]
        if not found:
            del self._parsed[namespace]
        used = 0
        for key in sorted(found, key=lambda key: (self._created[key], key)):
            try:
                check_room(found[key], used)
            except InvalidObject as error:
                super()._put(key, None)
                self._refuse(key, str(error))
            else:
                used += entries(found[key])
                super()._put(key, found[key])
                self._accept(key)

    def _refuse(self, key: str, reason: str) -> None:
        if key not in self._excess:
            self._excess[key] = reason
            self._issue(key, self._known[key].uid, reason)
        if not self.observed[key].problem:
            self.observed[key] = msgspec.structs.replace(self.observed[key], problem=self._excess[key])

    def _accept(self, key: str) -> None:
        reason = self._excess.pop(key, None)
        if reason is not None and self.observed[key].problem == reason:
            self.observed[key] = msgspec.structs.replace(self.observed[key], problem="")

    def _tell(self, changes: Mapping[str, Profile | None]) -> None:
        for key, profile in changes.items():
            namespace, _, name = key.partition("/")
            self._feed(events.ProfileGone(namespace, name) if profile is None else events.ProfileSeen(profile))


def _namespace(key: str) -> str:
    return key.partition("/")[0]
