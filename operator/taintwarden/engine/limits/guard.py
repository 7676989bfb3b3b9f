"""The mass-eviction breaker: opens before the first eviction of a wave that is too large."""

import msgspec


class GuardRecord(msgspec.Struct, frozen=True):
    """What a guard must remember across restarts. Times are seconds since the epoch.

    ``open_since`` None: closed. ``cause`` and ``would_evict`` tell why it opened. ``accepted``: a reset let so many
    pods go. ``spent``: how many evictions count until when, oldest first; they are reserved before they happen.
    """

    open_since: float | None = None
    cause: str = ""
    would_evict: int = 0
    accepted: int | None = None
    spent: tuple[tuple[float, int], ...] = ()
