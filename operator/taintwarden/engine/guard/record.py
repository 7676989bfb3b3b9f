"""The stored state of a guard."""

import msgspec

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
