"""Stored records of guards and of places, which the leader writes, and stored requests to reset a guard."""

from collections.abc import Mapping
from typing import Any

import msgspec
import structlog

from taintwarden.controller.stores import guard_record
from taintwarden.engine import events
from taintwarden.engine.events import Feed
from taintwarden.engine.records import GuardRecord, Place
from taintwarden.kube.calls.own_kinds import GUARD_RESET_ANNOTATION

log = structlog.get_logger()


class _Stored(msgspec.Struct):
    """The stored state of one policy, as last seen."""

    uid: str
    guard: Any = None
    """``status.guard``."""
    places: Any = None
    """``status.places``."""
    asked: str = ""
    """Generation of the policy and its reset annotation; empty without it. A new generation may be the first valid."""
    passed_on: str = ""
    """Value of ``asked`` that was last passed on while this process leads; empty if none was."""


class GuardStore:
    """Turns stored policies into events about their guards and places.

    Args:
        feed: receives the events.

    """

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._stored: dict[str, _Stored] = {}
        self._leading = False

    def seen(self, obj: Mapping[str, Any]) -> None:
        """Read a stored policy. Called before it is in force, so that its guard starts with its record."""
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
        """Forget a deleted policy."""
        self._stored.pop(name, None)

    def apply_resets(self) -> None:
        """Pass on new requests for a reset, while leading. Called after policies are in force, which creates guards."""
        for name, stored in list(self._stored.items()) if self._leading else ():
            before, stored.passed_on = stored.passed_on, stored.asked
            if stored.asked not in ("", before):
                self._feed(events.GuardReset(name))

    def restore_records(self, *names: str) -> None:
        """Pass on the records of these policies again, by default all. A leader ignores those of policies in force."""
        for name in names or self._stored:
            self._restore_guard(name)
            if self._stored[name].places is not None:
                self._restore_places(name)

    def _restore_guard(self, name: str) -> None:
        record, guard = GuardRecord(), self._stored[name].guard
        try:
            record = GuardRecord() if guard is None else guard_record.decode_guard(guard)
        except ValueError as error:
            log.warning("guard-record-unreadable", policy=name, reason=str(error))
        self._feed(events.GuardRestored(name, record))

    def _restore_places(self, name: str) -> None:
        places: tuple[Place, ...] = ()
        try:
            places = guard_record.decode_places(self._stored[name].places)
        except ValueError as error:
            log.warning("places-record-unreadable", policy=name, reason=str(error))
        self._feed(events.PlacesRestored(name, places))

    def set_leading(self, leading: bool) -> None:  # noqa: FBT001 - a change's one value
        """Note a change of leadership. A new leader passes on all requested resets."""
        self._leading = leading
        for stored in self._stored.values():
            stored.passed_on = ""
        self.apply_resets()
