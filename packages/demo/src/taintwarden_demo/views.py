"""The displayed part of the cluster: a pod with its state, and a line of the timeline."""

import re
from datetime import datetime

import msgspec

from taintwarden_demo import phrases

_DUE = re.compile(r" at (\d{4}-\S+Z)[:,]")


class PodView(msgspec.Struct):
    """A pod as it is displayed."""

    uid: str
    name: str
    workload: str
    node: str = ""
    ready: bool = False
    leaving: bool = False
    replaces: bool = False
    due_at: float | None = None
    """By the wall clock; from its Event EvictionScheduled."""
    why: str = ""
    blocked: bool = False


class Line(msgspec.Struct):
    """A line of the timeline. Equal lines of several pods become one."""

    at: float
    kind: str
    node: str
    text: str
    workload: str = ""
    pods: int = 1


def apply_event(view: PodView, reason: str, note: str) -> None:
    """Update a pod's state by an Event."""
    if reason == "EvictionScheduled":
        found = _DUE.search(note)
        view.due_at = datetime.fromisoformat(found[1]).timestamp() if found else None
        view.why, view.blocked = phrases.short(reason, note), False
    elif reason == "EvictionCancelled":
        view.due_at, view.why, view.blocked = None, "", False
    elif reason == "EvictionBlocked":
        view.blocked, view.why = True, phrases.short(reason, note)
