"""Guards in the store: the records that the leader writes, and requests to reset one."""

from collections.abc import Mapping
from typing import Any

import msgspec
import structlog

from taintwarden.controller.loop import Feed
from taintwarden.controller.stores import guard_record
from taintwarden.controller.words.issues import Issues
from taintwarden.engine.guard import GuardRecord
from taintwarden.engine.machine import events
from taintwarden.kube.calls.own_kinds import GUARD_RESET_ANNOTATION

log = structlog.get_logger()


class _Stored(msgspec.Struct):
    """What was seen of one policy."""

    uid: str
    guard: Any = None
    """``status.guard``."""
    record: GuardRecord = GuardRecord()
    asked: tuple[str, int] | None = None
    """The value of the annotation, and the generation that it was compared with."""
    handed_on: str = ""
    """The value for which a reset was passed on, since this process leads."""

    def to_restore(self) -> GuardRecord:
        """The record. A reset that was granted may be requested again once the annotation is gone."""
        return self.record if self.asked else msgspec.structs.replace(self.record, reset="")


class GuardStore:
    """Stored policies in, events about their guards out.

    Args:
        feed: takes the events.
        issues: reports a reset that names another generation than the stored one.

    """

    def __init__(self, feed: Feed, issues: Issues) -> None:
        self._feed = feed
        self._issues = issues
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
        self._note_reset(name, stored, meta)
        guard = (obj.get("status") or {}).get("guard")
        if is_new or guard != stored.guard:
            stored.guard = guard
            stored.record = self._read(name, guard)
            self._feed(events.GuardRestored(name, stored.to_restore()))

    def gone(self, name: str) -> None:
        """A policy was deleted."""
        self._stored.pop(name, None)

    def apply_resets(self) -> None:
        """Pass on the requested resets, while leading. Called after policies are in force."""
        if not self._leading:
            return
        for name, stored in list(self._stored.items()):
            if stored.asked is None:
                if stored.handed_on:
                    stored.handed_on = ""
                    self._feed(events.GuardReset(name, ""))
                continue
            value, generation = stored.asked
            if value == str(generation) and value != stored.handed_on:
                stored.handed_on = value
                self._feed(events.GuardReset(name, value))

    def restore(self, *names: str) -> None:
        """Pass on the records of these policies again, or all. A leader ignores those of guards that it has."""
        for name in names or self._stored:
            self._feed(events.GuardRestored(name, self._stored[name].to_restore()))

    def lead(self, leading: bool) -> None:  # noqa: FBT001 - a change's one value
        """Leadership changed."""
        self._leading = leading
        for stored in self._stored.values():
            stored.handed_on = ""
        self.apply_resets()

    def _note_reset(self, name: str, stored: _Stored, meta: Mapping[str, Any]) -> None:
        value = (meta.get("annotations") or {}).get(GUARD_RESET_ANNOTATION)
        generation = meta.get("generation", 0)
        if value is None:
            stored.asked = None
        elif (value, generation) != stored.asked:
            stored.asked = (value, generation)
            if value not in (str(generation), stored.handed_on):
                self._issues.guard_reset(name, stored.uid, value, generation)

    def _read(self, name: str, guard: Any) -> GuardRecord:
        if guard is None:
            return GuardRecord()
        try:
            return guard_record.read(guard)
        except ValueError as error:
            log.warning("guard-record-unreadable", policy=name, reason=str(error))
            return GuardRecord()
