"""Guards in the store: the records that the leader writes, places among them, and requests to reset a guard."""

from collections.abc import Mapping
from typing import Any

import msgspec
import structlog

from taintwarden.controller.loop import Feed
from taintwarden.controller.stores import guard_record
from taintwarden.engine.guard import GuardRecord
from taintwarden.engine.limits.places import Place
from taintwarden.engine.machine import events
from taintwarden.kube.calls.own_kinds import GUARD_RESET_ANNOTATION

log = structlog.get_logger()


class _Stored(msgspec.Struct):
    """What was seen of one policy."""

    uid: str
    guard: Any = None
    """``status.guard``."""
    places: Any = None
    """``status.places``."""
    asked: str = ""
    """The generation, which may be the first that is valid, and the annotation that requests a reset, or nothing."""
    handed_on: str = ""
    """The value that was passed on, since this process leads."""


class GuardStore:
    """Stored policies in, events about their guards out.

    Args:
        feed: takes the events.

    """

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._stored: dict[str, _Stored] = {}
        self._leading = False

    def seen(self, obj: Mapping[str, Any]) -> None:
        """A policy is stored. Called before it is in force, so that its guard starts with its record."""
        meta = obj["metadata"]
        name, uid = meta["name"], meta.get("uid", "")
        stored = self._stored.get(name)
        is_new = stored is None or stored.uid != uid
        if stored is None or is_new:
            stored = self._stored[name] = _Stored(uid)
        value = (meta.get("annotations") or {}).get(GUARD_RESET_ANNOTATION)
        stored.asked = f"{meta.get('generation')}/{value}" if value else ""
        status = obj.get("status") or {}
        guard, places = status.get("guard"), status.get("places")
        if is_new or guard != stored.guard:
            stored.guard = guard
            self._restore_guard(name)
        if places != stored.places:
            stored.places = places
            self._restore_places(name)

    def gone(self, name: str) -> None:
        """A policy was deleted."""
        self._stored.pop(name, None)

    def apply_resets(self) -> None:
        """Pass on which resets are requested, while leading. Policies are in force then."""
        for name, stored in list(self._stored.items()) if self._leading else ():
            before, stored.handed_on = stored.handed_on, stored.asked
            if stored.asked not in ("", before):
                self._feed(events.GuardReset(name))

    def restore(self, *names: str) -> None:
        """Pass on the records of these policies again, or all. A leader ignores those of guards that it has."""
        for name in names or self._stored:
            self._restore_guard(name)
            if self._stored[name].places is not None:
                self._restore_places(name)

    def _restore_guard(self, name: str) -> None:
        record, guard = GuardRecord(), self._stored[name].guard
        try:
            record = GuardRecord() if guard is None else guard_record.read(guard)
        except ValueError as error:
            log.warning("guard-record-unreadable", policy=name, reason=str(error))
        self._feed(events.GuardRestored(name, record))

    def _restore_places(self, name: str) -> None:
        places: tuple[Place, ...] = ()
        try:
            places = guard_record.read_places(self._stored[name].places)
        except ValueError as error:
            log.warning("places-record-unreadable", policy=name, reason=str(error))
        self._feed(events.PlacesRestored(name, places))

    def lead(self, leading: bool) -> None:  # noqa: FBT001 - a change's one value
        """Leadership changed."""
        self._leading = leading
        for stored in self._stored.values():
            stored.handed_on = ""
        self.apply_resets()
