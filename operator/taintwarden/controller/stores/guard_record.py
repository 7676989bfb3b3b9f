"""Encoding of the records ``guard`` and ``places`` in the status of a policy. Stored records are checked when read."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any

import msgspec

from taintwarden.api.status import (
    MAX_CAUSE_LENGTH,
    MAX_NAMESPACES,
    MAX_PAST,
    MAX_RESERVED,
    GuardStatus,
    NamespacePods,
    PastEvictions,
    PlacesStatus,
    PlaceStatus,
    ReservedEviction,
)
from taintwarden.engine import rfc3339
from taintwarden.engine.model import WallTime
from taintwarden.engine.records import Evictions, GuardRecord, Place
from taintwarden.fields.text import shortened

MAX_COUNT = 1_000_000
"""Maximum count read from a record. A larger one would hold every wave, and sums of such counts cannot be stored."""
_TIME = Annotated[datetime, msgspec.Meta(tz=True)]


def encode_guard(record: GuardRecord) -> dict[str, Any]:
    """Return the record as a merge patch of ``status.guard``."""
    status = GuardStatus(
        tripped_at=None if record.tripped_at is None else rfc3339.exactly(record.tripped_at),
        cause=None if record.tripped_at is None else shortened(record.cause, MAX_CAUSE_LENGTH),
        counted=_largest(record.counted),
        evicted=tuple(PastEvictions(rfc3339.exactly(at), _largest(pods)) for at, pods in _bounded(record.evicted)),
        reserved=tuple(ReservedEviction(*one) for one in record.reserved[:MAX_RESERVED]),
        term=record.term,
        population=record.population,
    )
    patch: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(status))
    return patch


def decode_guard(stored: object) -> GuardRecord:
    """Return the record of a guard from ``status.guard``.

    Raises:
        ValueError: ``stored`` is no such record; the text names the fault.

    """
    status = msgspec.convert(stored, GuardStatus)
    return GuardRecord(
        None if status.tripped_at is None else _seconds(status.tripped_at),
        status.cause or "",
        _pairs(status.counted),
        tuple((_seconds(evictions.until), _pairs(evictions.namespaces)) for evictions in status.evicted),
        tuple((eviction.uid, eviction.namespace) for eviction in status.reserved),
        status.term,
        min(status.population, MAX_COUNT),
    )


def encode_places(places: Iterable[Place], term: int) -> dict[str, Any]:
    """Return places as a merge patch of ``status.places``."""
    nodes = tuple(PlaceStatus(place.node, rfc3339.exactly(place.since)) for place in places)
    patch: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(PlacesStatus(nodes, term)))
    return patch


def decode_places(stored: object) -> tuple[Place, ...]:
    """Return the places from ``status.places``.

    Raises:
        ValueError: ``stored`` is no such record; the text names the fault.

    """
    if stored is None:
        return ()
    return tuple(Place(one.node, WallTime(_seconds(one.since))) for one in msgspec.convert(stored, PlacesStatus).nodes)


def _pairs(counted: Iterable[NamespacePods]) -> tuple[tuple[str, int], ...]:
    return tuple((namespace.namespace, min(namespace.pods, MAX_COUNT)) for namespace in counted)


def _bounded(evicted: Evictions) -> Evictions:
    """Merge the oldest evictions down to ``MAX_PAST`` entries. They then count until the latest of their times."""
    surplus = len(evicted) - MAX_PAST
    if surplus <= 0:
        return evicted
    merged: Counter[str] = Counter()
    for _, pods in evicted[: surplus + 1]:
        merged.update(dict(pods))
    return ((evicted[surplus][0], tuple(merged.items())), *evicted[surplus + 1 :])


def _largest(counted: Iterable[tuple[str, int]]) -> tuple[NamespacePods, ...]:
    """Return the namespaces with the most pods, and the sum of the others as one entry without a name."""
    ordered = sorted(counted, key=lambda one: (-one[1], one[0]))
    found = [NamespacePods(*one) for one in ordered[:MAX_NAMESPACES]]
    if rest := sum(pods for _, pods in ordered[MAX_NAMESPACES:]):
        found.append(NamespacePods("", rest))
    return tuple(found)


def _seconds(text: str) -> float:
    return msgspec.convert(text, _TIME).timestamp()
