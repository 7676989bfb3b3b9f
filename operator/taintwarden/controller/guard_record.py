"""A guard's record as it stands in ``status.guard``: written exactly, read back with distrust."""

from datetime import datetime
from typing import Annotated, Any

import msgspec

from taintwarden.api.status import MAX_CAUSE_LENGTH, MAX_SPENT, GuardStatus, SpentEvictions
from taintwarden.controller import wording
from taintwarden.engine.guard import GuardRecord

_TIME = Annotated[datetime, msgspec.Meta(tz=True)]


def written(record: GuardRecord) -> dict[str, Any]:
    """The record as a merge patch of ``status.guard``."""
    is_open = record.open_since is not None
    status = GuardStatus(
        open=is_open,
        since=None if record.open_since is None else wording.exactly(record.open_since),
        cause=record.cause[:MAX_CAUSE_LENGTH] if is_open else None,
        would_evict=record.would_evict if is_open else None,
        accepted=record.accepted,
        released_at=None if record.released_at is None else wording.exactly(record.released_at),
        reset_granted=record.reset or None,
        enforced_generation=record.enforces[0] if record.enforces else None,
        enforced_since=wording.exactly(record.enforces[1]) if record.enforces else None,
        term=record.term,
        spent=tuple(SpentEvictions(wording.exactly(at), pods) for at, pods in _bounded(record.spent)),
    )
    patch: dict[str, Any] = msgspec.to_builtins(status)
    return patch


def read(stored: object) -> GuardRecord:
    """What was written.

    Raises:
        ValueError: it is something else; the text says what.

    """
    status = msgspec.convert(stored, GuardStatus)
    if not status.open:
        since = None
    elif status.since is None:
        msg = "it is open, and does not say since when"
        raise ValueError(msg)
    else:
        since = _seconds(status.since)
    spent = tuple((_seconds(one.until), one.pods) for one in status.spent)
    released_at = None if status.released_at is None else _seconds(status.released_at)
    enforces = None
    if status.enforced_generation is not None and status.enforced_since is not None:
        enforces = status.enforced_generation, _seconds(status.enforced_since)
    return GuardRecord(
        since,
        status.cause or "",
        status.would_evict or 0,
        status.accepted,
        released_at,
        spent,
        status.reset_granted or "",
        enforces,
        status.term,
    )


def _bounded(spent: tuple[tuple[float, int], ...]) -> tuple[tuple[float, int], ...]:
    """No more than can be stored. What is put together counts until the later time: too many, never too few."""
    surplus = len(spent) - MAX_SPENT
    if surplus <= 0:
        return spent
    merged, rest = spent[: surplus + 1], spent[surplus + 1 :]
    return ((merged[-1][0], sum(pods for _, pods in merged)), *rest)


def _seconds(text: str) -> float:
    return msgspec.convert(text, _TIME).timestamp()
