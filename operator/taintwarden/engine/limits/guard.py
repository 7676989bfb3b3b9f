"""The mass-eviction breaker: opens before the first eviction of a wave that is too large.

It looks at what *would* leave: in any window of time of its length, the evictions of the past and the deadlines ahead
together. What has left is remembered in slots of a twentieth of the window, each counted as if at its end, so the
window is never shorter than it says. Evictions are reserved in the stored record before they happen: a crash may count
some too many, never one too few.
"""

from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum, auto

import msgspec

from taintwarden.engine.deadlines import DeadlineQueue
from taintwarden.engine.model import GuardAction, GuardSettings, Instant

SLOTS = 20
"""Into how many slots a window is cut."""
SMALLEST_RESERVATION = 10
RETRY_SECONDS = 1.0
"""Pause after a record that could not be saved."""
LOOK_AGAIN_SECONDS = 1.0
"""How often an open guard looks whether its cause is gone."""
CALM_SECONDS = 10.0
"""Values come back node by node: an open guard that holds anybody closes when nothing has changed for so long."""


class GuardRecord(msgspec.Struct, frozen=True):
    """What a guard must remember across restarts. Times are seconds since the epoch.

    ``open_since`` None: closed. ``cause`` and ``would_evict`` tell why it opened. ``accepted``: a reset let so many
    pods go. ``spent``: how many evictions count from when, oldest first; they are reserved before they happen.
    """

    open_since: float | None = None
    cause: str = ""
    would_evict: int = 0
    accepted: int | None = None
    spent: tuple[tuple[float, int], ...] = ()


class Turn(Enum):
    """What a look at the guard changed."""

    OPENED = auto()
    """It has been open long enough for the wave to be seen whole."""
    CLOSED = auto()
    PASSED = auto()
    """It closed again before anybody was told."""


class Guard:
    """The guard of one policy.

    Args:
        settings: its limits.
        population: counts the pods that the policy may evict; asked only when many would leave.

    """

    def __init__(self, settings: GuardSettings, population: Callable[[], int]) -> None:
        self.settings = settings
        self.open_since: float | None = None
        self.cause = ""
        self.accepted: int | None = None
        self.saving = False
        self._population = population
        self._near: dict[str, float] = {}
        self._far = DeadlineQueue()
        self._slots: deque[list[float]] = deque()
        """[when the slot ends, evictions in it], on the monotonic clock."""
        self._rehearsed: deque[list[float]] = deque()
        """The same of evictions that were only rehearsed."""
        self._reserved = (0.0, 0)
        """(slot, evictions) that the stored record allows for."""
        self._asked = (0.0, 0)
        self._retry_at = 0.0
        self._look_at = 0.0
        self._tell_at = 0.0
        self._is_told = False
        self._grew = True
        self._moves = 0
        """How often a pod came to have to leave within the window, or not any more."""
        self._seen_moves = 0
        self._calm_since = 0.0
        self._unsaved = False

    @property
    def halts(self) -> bool:
        """Whether it holds every eviction now."""
        return self.open_since is not None and self.settings.action is GuardAction.HALT

    # -- what would leave, and what left ------------------------------------------------------------------------

    def expect(self, uid: str, due_at: float, now: Instant) -> None:
        """A pod has to leave at ``due_at``, unless something changes."""
        if self._near.get(uid) == due_at:
            return
        if due_at <= now.wall + self.settings.window_seconds:
            self._far.cancel(uid)
            self._near[uid] = due_at
            self._grew = True
            self._moves += 1
        else:
            self._near.pop(uid, None)
            self._far.schedule(uid, due_at)

    def forget(self, uid: str) -> None:
        """It has not to leave any more, or has left."""
        if self._near.pop(uid, None) is None:
            self._far.cancel(uid)
        else:
            self._moves += 1

    def expected(self) -> int:
        """How many pods have to leave within the next window."""
        return len(self._near)

    def may_take(self, now: Instant) -> bool:
        """Whether the stored record allows for one more eviction."""
        slot, reserved = self._reserved
        return slot == self._slot(now) and self._used(slot) < reserved

    def take(self, now: Instant) -> float:
        """One eviction happens now. Returns the slot in which it counts."""
        return self._note(self._slots, now)

    def rehearse(self, now: Instant) -> None:
        """One eviction would happen now: it counts until the policy means it."""
        self._note(self._rehearsed, now)

    def forget_rehearsals(self) -> None:
        """The policy means it from now on, and nobody has left."""
        self._rehearsed.clear()
        self._grew = True

    def _note(self, slots: deque[list[float]], now: Instant) -> float:
        slot = self._slot(now)
        if not slots or slots[-1][0] != slot:
            slots.append([slot, 0])
        slots[-1][1] += 1
        return slot

    def give_back(self, slot: float) -> None:
        """An eviction that was taken in this slot did not happen."""
        for one in self._slots:
            if one[0] == slot and one[1]:
                one[1] -= 1
                return

    def change(self, settings: GuardSettings) -> None:
        """Other settings hold from now on, for what is known already."""
        if settings != self.settings:
            self.settings = settings
            self._grew, self._look_at = True, 0.0

    # -- open or closed -----------------------------------------------------------------------------------------

    def look(self, now: Instant) -> Turn | None:
        """Open or close it, if what would leave asks for it."""
        settings = self.settings
        while (head := self._far.head()) is not None and head.at <= now.wall + settings.window_seconds:
            self._far.cancel(head.key)
            self._near[head.key] = head.at
            self._grew = True
        for slots in (self._slots, self._rehearsed):
            while slots and slots[0][0] + settings.window_seconds <= now.monotonic:
                slots.popleft()
        is_open = self.open_since is not None
        if not ((self._grew and not is_open) or (self._watches and now.monotonic >= self._look_at)):
            return None
        self._grew = False
        self._look_at = now.monotonic + LOOK_AGAIN_SECONDS
        if self._moves != self._seen_moves:
            self._seen_moves, self._calm_since = self._moves, now.monotonic
        is_calm = not self._near or now.monotonic - self._calm_since >= CALM_SECONDS
        pods = self._most(now) if self._near else 0
        within_limit = pods <= settings.min_pods or pods <= self.limit()
        if within_limit and self.accepted is not None:
            self.accepted = None
            self._unsaved = True
        elif self.accepted is not None:
            self.accepted = min(self.accepted, pods)  # who has left makes no room for others
        if not is_open and not within_limit and pods > (self.accepted or 0):
            self.open_since, self.accepted = now.wall, None
            self._unsaved, self._is_told = True, False
            self._tell_at = now.monotonic + settings.settle_seconds
        elif is_open and within_limit and is_calm:
            was_told = self._is_told
            self._close()
            return Turn.CLOSED if was_told else Turn.PASSED
        if self.open_since is not None and not self._is_told and now.monotonic >= self._tell_at:
            self._unsaved = self._is_told = True
            return Turn.OPENED
        return None

    def limit(self) -> int:
        """How many pods may leave in one window."""
        return self.settings.limit(self._population())

    def next_look(self, now: Instant) -> float | None:
        """Seconds until it has to be looked at again although no more pods have to leave."""
        if self._grew and self.open_since is None:
            return 0.0
        waits = [self._look_at - now.monotonic] if self._watches else []
        if (far := self._far.next_at()) is not None:
            waits.append(far - self.settings.window_seconds - now.wall)
        if self._near and self._slots:  # what leaves the window makes room, where none was left to reserve
            waits.append(self._slots[0][0] + self.settings.window_seconds - now.monotonic)
        return max(0.0, min(waits)) if waits else None

    @property
    def _watches(self) -> bool:
        """Whether time alone may change it: what it holds, or has let go once, may have left or recovered."""
        return self.open_since is not None or self.accepted is not None

    def reset(self, now: Instant) -> int | None:
        """Somebody saw what an open guard holds and lets it go, once. Returns how many pods that are."""
        if self.open_since is None:
            return None
        self.accepted = self._most(now)
        self._close()
        return self.accepted

    def _close(self) -> None:
        self.open_since, self.cause = None, ""
        self._unsaved = True

    def _most(self, now: Instant) -> int:
        """The most evictions that any window of time would hold which begins in the past and ends now or later."""
        slots = sorted([*self._slots, *self._rehearsed])
        spent = sum(int(used) for _, used in slots)
        if len(self._near) + spent <= self.settings.min_pods or not spent:
            return len(self._near) + spent
        window, shift = self.settings.window_seconds, now.wall - now.monotonic
        past = [(end + shift, int(used)) for end, used in slots]
        most = spent
        for ahead, at in enumerate(sorted(max(due, now.wall) for due in self._near.values()), 1):
            while past and past[0][0] + window <= at:
                spent -= past.pop(0)[1]
            most = max(most, ahead + spent)
        return most

    def _slot(self, now: Instant) -> float:
        """When the slot ends that ``now`` lies in."""
        length = self.settings.window_seconds / SLOTS
        return (now.monotonic // length + 1) * length

    def _used(self, slot: float) -> int:
        return int(self._slots[-1][1]) if self._slots and self._slots[-1][0] == slot else 0

    # -- what is stored -------------------------------------------------------------------------------------------

    def restore(self, record: GuardRecord, now: Instant) -> None:
        """Take over what whoever led before has saved."""
        self.open_since, self.cause, self.accepted = record.open_since, record.cause, record.accepted
        self._is_told = bool(record.cause)
        self._tell_at = now.monotonic + self.settings.settle_seconds
        latest = now.wall + self.settings.window_seconds / SLOTS
        self._slots = deque(
            [min(at, latest) - now.wall + now.monotonic, pods] for at, pods in sorted(record.spent) if pods
        )
        if self.accepted is not None and record.spent:
            self.accepted += record.spent[-1][1]  # what was reserved there and not used must not open it again
        self._reserved = (0.0, 0)
        self._grew, self._look_at = True, now.monotonic

    def record_wanted(self, now: Instant, *, waiting: bool) -> GuardRecord | None:
        """What has to be saved now, if anything. ``waiting``: due pods need more evictions reserved.

        The caller sets ``saving`` while it is being saved and says with :meth:`saved` how that went.
        """
        if self.saving or now.monotonic < self._retry_at:
            return None
        slot = self._slot(now)
        used, reserved = self._used(slot), self._reserved[1] if self._reserved[0] == slot else 0
        wanted = max(SMALLEST_RESERVATION, self.settings.min_pods // 10, len(self._near) // 10)
        runs_out = waiting and not self.halts and reserved - used <= wanted // 2
        if runs_out and (more := used + self._reservable(wanted)) > reserved:
            reserved = more
        elif not self._unsaved:
            return None
        self._unsaved = False
        self._asked = (slot, reserved)
        return self._record(now, [one for one in self._slots if one[0] != slot] + [[slot, max(used, reserved)]])

    def _reservable(self, wanted: int) -> int:
        """How many more evictions may be reserved: no more than are allowed, or a restart would open it for nothing."""
        if self.settings.action is GuardAction.REPORT:
            return wanted
        spent = sum(int(used) for _, used in self._slots)
        if spent + wanted <= self.settings.min_pods:
            return wanted
        return max(0, min(wanted, max(self.limit(), self.accepted or 0) - spent))

    def saved(self, now: Instant, *, succeeded: bool) -> None:
        """The record that was wanted is stored, or could not be."""
        self.saving = False
        if succeeded:
            self._reserved = self._asked
        else:
            self._unsaved = True
            self._retry_at = now.monotonic + RETRY_SECONDS

    def retry_in(self, now: Instant) -> float | None:
        """Seconds until a record that could not be saved is tried again."""
        return max(0.0, self._retry_at - now.monotonic) if self._unsaved and not self.saving else None

    def current_record(self, now: Instant) -> GuardRecord:
        """Its state for people: what has left, without what is only reserved."""
        return self._record(now, self._slots)

    def _record(self, now: Instant, slots: Iterable[list[float]]) -> GuardRecord:
        shift = now.wall - now.monotonic
        spent = tuple((round(end + shift, 3), int(count)) for end, count in slots if count)
        would_evict = self.expected() if self.open_since is not None else 0
        return GuardRecord(self.open_since, self.cause, would_evict, self.accepted, spent)
