"""What a guard keeps across restarts, and the evictions that the stored record already contains.

Evictions are reserved in the record before they happen: after a crash the count may be too high, never too low.
"""

import msgspec

from taintwarden.engine.model import MonotonicTime

SMALLEST_RESERVATION = 10


class GuardRecord(msgspec.Struct, frozen=True):
    """The state of a guard that is kept across restarts. Times are seconds since the epoch.

    ``open_since`` None: armed. ``cause`` and ``would_evict``: why it tripped. ``accepted``: the number of pods that a
    person released at ``released_at`` and that still have to leave. ``spent``: (time, evictions that count from then),
    oldest first; they are reserved before they happen. ``reset``: the request for a reset that was granted and is not
    removed yet; the next leader does not grant it again. ``enforces``: the generation of the policy that evicts pods,
    and since when. ``term``: of the leader that wrote the record; one of an earlier term never replaces it.
    """

    open_since: float | None = None
    cause: str = ""
    would_evict: int = 0
    accepted: int | None = None
    released_at: float | None = None
    spent: tuple[tuple[float, int], ...] = ()
    reset: str = ""
    enforces: tuple[int, float] | None = None
    term: int = 0


class Reservation(msgspec.Struct, frozen=True):
    """Evictions of one slot, as the stored record has them."""

    slot: MonotonicTime = MonotonicTime(0.0)
    pods: int = 0

    def left(self, slot: MonotonicTime, used: int) -> int:
        """How many more evictions it contains, of which so many happened in the slot."""
        return self.pods - used if self.slot == slot else -used
