"""Displayed objects: a pod with its state, and a line of the timeline."""

import re
from datetime import datetime

import msgspec

from taintwarden_demo import phrases

_DUE = re.compile(r" at (\d{4}-\S+Z)[:,]")


class PodView(msgspec.Struct):
    """The displayed state of a pod."""

    uid: str
    name: str
    workload: str
    node: str = ""
    ready: bool = False
    leaving: bool = False
    replaces: bool = False  # True if the pod was created after the start
    due_at: float | None = None
    """Deadline by the wall clock, from the Event EvictionScheduled; None without one."""
    why: str = ""
    blocked: bool = False


class Line(msgspec.Struct):
    """A line of the timeline. Equal lines about several pods become one."""

    at: float
    kind: str
    node: str
    text: str
    workload: str = ""
    pods: int = 1


def apply_event(view: PodView, reason: str, note: str) -> None:
    """Update the state of a pod from an Event."""
    if reason == "EvictionScheduled":
        found = _DUE.search(note)
        view.due_at = datetime.fromisoformat(found[1]).timestamp() if found else None
        view.why, view.blocked = phrases.short(reason, note), False
    elif reason == "EvictionCancelled":
        view.due_at, view.why, view.blocked = None, "", False
    elif reason == "EvictionBlocked":
        view.blocked, view.why = True, phrases.short(reason, note)
