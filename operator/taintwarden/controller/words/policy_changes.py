"""What a change of a stored policy changed: who paused it, which fields an edit changed. ``history`` shows it later."""

import json
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from itertools import zip_longest
from typing import Any

import msgspec

from taintwarden.api.types import GROUP
from taintwarden.kube.errors import NOT_JSON

PAUSED_BY_ANNOTATION = f"{GROUP}/paused-by"
"""Who paused the policy, when and why, as text."""
MAX_FIELDS = 8
"""So many fields are named."""
MAX_VALUE = 80
"""So many characters of a value are shown."""


class ChangeKind(StrEnum):
    """What was done to a policy."""

    PAUSED = "paused"
    RESUMED = "resumed"
    EDITED = "edited"


class PolicyChange(msgspec.Struct, frozen=True):
    """One change, and what changed in one line."""

    name: str
    uid: str
    kind: ChangeKind
    note: str


class _Version(msgspec.Struct, frozen=True):
    uid: str
    generation: int
    spec: dict[str, Any]


class PolicyChanges:
    """Compares each version of a policy with the one before.

    Args:
        report: receives the changes of policies that were known before.

    """

    def __init__(self, report: Callable[[PolicyChange], None]) -> None:
        self._report = report
        self._known: dict[str, _Version] = {}

    def seen(self, obj: Mapping[str, Any]) -> None:
        """A policy is stored like this, valid or not."""
        meta = obj["metadata"]
        name, uid, generation = meta["name"], meta.get("uid", ""), meta.get("generation", 0)
        before = self._known.get(name)
        if before is not None and (before.uid, before.generation) == (uid, generation):
            return
        now = self._known[name] = _Version(uid, generation, _decoded(obj.get("spec")))
        if before is not None and before.uid == uid:
            for kind, note in _differences(before.spec, now.spec, meta.get("annotations") or {}):
                self._report(PolicyChange(name, uid, kind, note))

    def gone(self, name: str) -> None:
        """It was deleted."""
        self._known.pop(name, None)


def _decoded(spec: Any) -> dict[str, Any]:
    """A spec that is no object has no fields."""
    try:
        found = msgspec.json.decode(spec) if isinstance(spec, msgspec.Raw) else spec
    except NOT_JSON:  # its store says so
        return {}
    return dict(found) if isinstance(found, Mapping) else {}


def _differences(
    before: dict[str, Any], now: dict[str, Any], annotations: Mapping[str, str]
) -> Iterator[tuple[ChangeKind, str]]:
    was_paused, is_paused = before.pop("paused", None), now.get("paused")
    if is_paused and not was_paused:
        by = annotations.get(PAUSED_BY_ANNOTATION)
        yield ChangeKind.PAUSED, f"Paused by {by}" if by else "spec.paused is set"
    if was_paused and not is_paused:
        yield ChangeKind.RESUMED, f"spec.paused is not set any more: the mode is {now.get('mode', 'Enforce')}"
    fields = list(_fields("spec", before, {name: value for name, value in now.items() if name != "paused"}))
    if fields:
        more = f"; and {len(fields) - MAX_FIELDS} more fields" if len(fields) > MAX_FIELDS else ""
        yield ChangeKind.EDITED, "; ".join(fields[:MAX_FIELDS]) + more


def _fields(path: str, before: Any, now: Any) -> Iterator[str]:
    """Each field that differs, with both values; of a list, each item that differs."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for name in sorted(before.keys() | now.keys()):
            yield from _fields(f"{path}.{name}", before.get(name), now.get(name))
    elif isinstance(before, list) and isinstance(now, list):
        for index, (old, new) in enumerate(zip_longest(before, now)):
            yield from _fields(f"{path}[{index}]", old, new)
    elif before != now:
        yield f"{path} is {_shown(now)}, it was {_shown(before)}"


def _shown(value: Any) -> str:
    if value is None:
        return "not set"
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= MAX_VALUE else f"{text[: MAX_VALUE - 3]}..."
