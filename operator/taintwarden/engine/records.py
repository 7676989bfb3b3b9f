"""Guard records and places, which the status of a policy stores, and the pace of a guard."""

from typing import NamedTuple

import msgspec

from taintwarden.engine.model import WallTime

Evictions = tuple[tuple[float, tuple[tuple[str, int], ...]], ...]


class GuardRecord(msgspec.Struct, frozen=True):
    """The state of a guard that is kept across restarts. Times are seconds since the epoch.

    ``tripped_at`` None: armed. ``cause``: why the guard tripped. ``counted``: highest counts by namespace; empty if the
    guard held nothing. ``evicted``: (end of the slot, pods by namespace), oldest first. ``reserved``: (UID, namespace)
    of pods that may be called, or were. ``term``: term of the leader that wrote the record; a record of an earlier
    term never replaces it. ``population``: number of pods of which the allowance is a share; 0: not stored.
    """

    tripped_at: float | None = None
    cause: str = ""
    counted: tuple[tuple[str, int], ...] = ()
    evicted: Evictions = ()
    reserved: tuple[tuple[str, str], ...] = ()
    term: int = 0
    population: int = 0


class Place(msgspec.Struct, frozen=True, gc=False):
    """A node from which pods of a policy leave, and the time at which it took its place."""

    node: str
    since: WallTime


class Pace(NamedTuple):
    """Pods that a tripped guard with ``action: Pace`` lets leave one after another. Other limits may delay them."""

    pods: int
    ends_at: WallTime | None
    """Approximate time at which the last pod may be evicted; None: never, since the allowance is 0."""
