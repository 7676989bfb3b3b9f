"""Changes of stored policies: pauses with their author, and edited fields. The command ``history`` shows them."""

import json
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from itertools import zip_longest
from typing import Any

from taintwarden.api.types import GROUP

PAUSED_BY_ANNOTATION = f"{GROUP}/paused-by"
"""Annotation with the user who paused the policy, the time and the reason, as text."""
MAX_FIELDS = 8
"""Maximum number of edited fields named."""
MAX_VALUE = 80
"""Maximum number of characters shown of a value."""


class ChangeKind(StrEnum):
    """A kind of change to a policy."""

    PAUSED = "paused"
    RESUMED = "resumed"
    EDITED = "edited"


class PolicyChanges:
    """Compares each version of a policy with the one before.

    Args:
        report: receives name, UID, kind and a note of one line for each change of a policy that was known before.

    """

    def __init__(self, report: Callable[[str, str, ChangeKind, str], None]) -> None:
        self._report = report
        self._specs: dict[str, dict[str, Any]] = {}
        self._paused_by: dict[str, str | None] = {}
        """Annotation of each policy as of the version before. One that stays as it is names who paused it earlier."""

    def seen(self, obj: Mapping[str, Any]) -> None:
        """Compare a policy that is new or has a new spec, valid or not, with its version before."""
        meta = obj["metadata"]
        before = self._specs.get(meta["name"])
        spec = obj.get("spec")
        now = self._specs[meta["name"]] = dict(spec) if isinstance(spec, Mapping) else {}
        earlier, by = self._paused_by.get(meta["name"]), (meta.get("annotations") or {}).get(PAUSED_BY_ANNOTATION)
        self._paused_by[meta["name"]] = by
        if before is not None:
            for kind, note in _differences(before, now, None if by == earlier else by):
                self._report(meta["name"], meta.get("uid", ""), kind, note)

    def gone(self, name: str) -> None:
        """Forget a deleted policy."""
        self._specs.pop(name, None)
        self._paused_by.pop(name, None)


def _differences(before: dict[str, Any], now: dict[str, Any], by: str | None) -> Iterator[tuple[ChangeKind, str]]:
    was_paused, is_paused = before.get("paused"), now.get("paused")
    if is_paused and not was_paused:
        yield ChangeKind.PAUSED, f"Paused by {by}" if by else "spec.paused is set"
    if was_paused and not is_paused:
        yield ChangeKind.RESUMED, f"spec.paused is not set any more: the mode is {now.get('mode', 'Enforce')}"
    fields = list(_fields("spec", *({**spec, "paused": None} for spec in (before, now))))
    if fields:
        more = f"; and {len(fields) - MAX_FIELDS} more fields" if len(fields) > MAX_FIELDS else ""
        yield ChangeKind.EDITED, "; ".join(fields[:MAX_FIELDS]) + more


def _fields(path: str, before: Any, now: Any) -> Iterator[str]:
    """Yield a text for each field that differs, with both values; in a list, for each item that differs."""
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
