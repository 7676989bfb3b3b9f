"""The mass-eviction guard of one policy: it trips before the first eviction of a wave that is too large.

It counts what *would* be evicted: in any window of time of its length, the evictions of the past and the deadlines
ahead together. What was evicted is counted in slots of a twentieth of the window, each as if at its end; what is ahead
in slots, each as if at its beginning. So the count is never too low. Evictions are reserved in the stored record before
they happen: a crash may count some too many, never one too few.

A tripped guard is armed again when its cause is gone: no pod that was on its node when the guard tripped has to leave
any more. Fewer of them is not enough, since values are repaired node by node and what has not been repaired yet must
not be evicted for that. Pods that came later do not keep it tripped: they are not the cause. A person can also release
the pods that it is holding: exactly these, whatever else it counts, and none of them counts again.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable
from enum import Enum, auto

import msgspec

from taintwarden.engine.deadlines import DeadlineQueue
from taintwarden.engine.limits.protocol import Freed, Reservation, Settlement, policy_key
from taintwarden.engine.model import (
    GuardAction,
    GuardSettings,
    Instant,
    MonotonicTime,
    WallTime,
    later,
)

SLOTS = 20
"""Into how many slots a window is cut."""
SMALLEST_RESERVATION = 10
ROUNDING_SECONDS = 1.0
"""Times in objects have whole seconds, and are read as the end of theirs."""


class GuardRecord(msgspec.Struct, frozen=True):
    """What a guard must remember across restarts. Times are seconds since the epoch.

    ``open_since`` None: armed. ``cause`` and ``would_evict`` say why it tripped. ``accepted``: a person released so
    many pods at ``released_at``, which are still there. ``spent``: how many evictions count from when, oldest first;
    they are reserved before they happen. ``reset``: the request for a reset that was granted and that is not taken off
    yet; whoever leads next does not grant it again.
    """

    open_since: float | None = None
    cause: str = ""
    would_evict: int = 0
    accepted: int | None = None
    released_at: float | None = None
    spent: tuple[tuple[float, int], ...] = ()
    reset: str = ""


class Turn(Enum):
    """What a look at the guard changed."""

    TRIPPED = auto()
    """It has been tripped long enough for the wave to be seen whole."""
    ARMED = auto()
    PASSED = auto()
    """It was armed again before that was announced."""


class Due(msgspec.Struct, frozen=True, gc=False):
    """A pod that has to leave: when, and since when it is on its node and the taint makes it leave."""

    uid: str
    at: WallTime
    bound_at: float
    since: float


class Guard:
    """The guard of one policy.

    Args:
        policy: its name.
        settings: its limits.
        freed: takes the policy's key when evictions may go on.

    """

    def __init__(self, policy: str, settings: GuardSettings, freed: Freed) -> None:
        self.settings = settings
        self.tripped_at: WallTime | None = None
        self.cause = ""
        self.released: dict[str, None] = {}
        """UIDs of pods that a person released and that still have to leave."""
        self.population: Callable[[], int] = lambda: 0
        """Counts the pods that the policy may evict; asked only when many would be."""
        self._key = policy_key(policy)
        self._freed = freed
        self._near: dict[str, Due] = {}
        """Pods due within the window."""
        self._far: DeadlineQueue[WallTime] = DeadlineQueue()
        self._later: dict[str, Due] = {}
        """Those of ``_far``."""
        self._counts: Counter[int] = Counter()
        """How many of the near ones are due in which slot; those that were released are not counted."""
        self._causes: dict[str, None] = {}
        """The near ones that were on their node when it tripped."""
        self.reset = ""
        """The request for a reset that was granted, until it is taken off."""
        self._stored_reset = ""
        """The same in the stored record."""
        self._released_at: WallTime | None = None
        self._quota = 0
        """How many released pods the restored record names that were not met yet."""
        self._slots: deque[list[float]] = deque()
        """[when the slot ends, evictions in it], on the monotonic clock."""
        self._rehearsed: deque[list[float]] = deque()
        """The same of evictions that were only rehearsed."""
        self._taken: dict[str, float] = {}
        """UID -> the slot in which its eviction counts, until it is settled."""
        self._reserved = (0.0, 0)
        """(slot, evictions) that the stored record allows for."""
        self._settled_at = MonotonicTime(0.0)
        self._is_announced = False
        self._changed = True
        """More has to leave, or other settings hold: it has to be looked at."""
        self._reconfigured = False
        self._unsaved = False

    @property
    def is_tripped(self) -> bool:
        """Whether too many pods would be evicted."""
        return self.tripped_at is not None

    @property
    def halts(self) -> bool:
        """Whether it refuses every eviction now, but those that were released."""
        return self.is_tripped and self.settings.action is GuardAction.HALT

    # -- what would be evicted, and what was --------------------------------------------------------------------

    def expect(self, due: Due, now: Instant) -> None:
        """A pod has to leave, unless something changes."""
        if self._near.get(due.uid) == due:
            return
        was_cause = due.uid in self._causes
        self._remove(due.uid)
        self._meet_released(due)
        if due.at > now.wall + self.settings.window_seconds:
            self._put_far(due)
        else:
            self._come_near(due)
            if was_cause:
                self._causes[due.uid] = None

    def _put_far(self, due: Due) -> None:
        self._later[due.uid] = due
        self._far.schedule(due.uid, due.at)

    def _come_near(self, due: Due) -> None:
        self._near[due.uid] = due
        if due.uid in self.released:
            return
        self._counts[self._slot_of(due.at)] += 1
        self._changed = True
        if self.tripped_at is not None and due.bound_at <= self.tripped_at + ROUNDING_SECONDS:
            self._causes[due.uid] = None

    def _meet_released(self, due: Due) -> None:
        """After a restart: a pod that had to leave already when a person released what the guard was holding."""
        at = self._released_at
        if not self._quota or at is None or due.uid in self.released:
            return
        if max(due.bound_at, due.since) <= at + ROUNDING_SECONDS and due.at <= at + self.settings.window_seconds:
            self._quota -= 1
            self.released[due.uid] = None

    def forget(self, uid: str) -> None:
        """It does not have to leave any more, or is gone."""
        self._remove(uid)
        if uid in self.released:
            del self.released[uid]
            self._unsaved = True

    def _remove(self, uid: str) -> None:
        self._causes.pop(uid, None)
        due = self._near.pop(uid, None)
        if due is None:
            if self._later.pop(uid, None) is not None:
                self._far.cancel(uid)
        elif uid not in self.released:
            slot = self._slot_of(due.at)
            self._counts[slot] -= 1
            if not self._counts[slot]:
                del self._counts[slot]

    def expected(self) -> int:
        """How many pods have to leave within the next window and were not released."""
        return self._counts.total()

    def may_take(self, now: Instant) -> bool:
        """Whether the stored record allows for one more eviction."""
        slot, reserved = self._reserved
        return slot == self._slot(now) and self._used(slot) < reserved

    def has_taken(self, uid: str) -> bool:
        """Whether an eviction of this pod counts already: the last call may have been carried out."""
        return uid in self._taken

    def take(self, uid: str, now: Instant) -> Reservation:
        """A pod is evicted now. It counts once, however often that is tried."""
        if uid not in self.released and uid not in self._taken:
            self._taken[uid] = self._note(self._slots, now)
        self._remove(uid)
        return lambda settlement: self._settle(uid, settlement)

    def _settle(self, uid: str, settlement: Settlement) -> None:
        if settlement is Settlement.UNKNOWN:
            return
        slot = self._taken.pop(uid, None)
        if settlement is Settlement.STAYS and slot is not None:
            for one in self._slots:
                if one[0] == slot and one[1]:
                    one[1] -= 1
                    break

    def stay(self, uid: str) -> None:
        """No call for this pod is under way any more."""
        self._taken.pop(uid, None)

    def rehearse(self, uid: str, now: Instant) -> None:
        """A pod would be evicted now: it counts until the policy enforces, unless a person released it."""
        if uid not in self.released:
            self._note(self._rehearsed, now)
        self.forget(uid)

    def forget_rehearsals(self) -> None:
        """The policy enforces from now on, and nothing was evicted."""
        self._rehearsed.clear()
        self._changed = True

    def _note(self, slots: deque[list[float]], now: Instant) -> float:
        slot = self._slot(now)
        if not slots or slots[-1][0] != slot:
            slots.append([slot, 0])
        slots[-1][1] += 1
        return slot

    def change(self, settings: GuardSettings, now: Instant) -> None:
        """Other settings hold from now on, for what is known already."""
        if settings == self.settings:
            return
        self.settings = settings
        ends_at = now.wall + settings.window_seconds
        for due in [due for due in self._near.values() if due.at > ends_at]:  # a longer window takes them in by itself
            del self._near[due.uid]
            self._causes.pop(due.uid, None)
            self._put_far(due)
        self._counts = Counter(self._slot_of(due.at) for uid, due in self._near.items() if uid not in self.released)
        self._changed = self._reconfigured = True

    # -- tripped or armed ---------------------------------------------------------------------------------------

    def look(self, now: Instant) -> Turn | None:
        """Trip it or arm it, if what would be evicted asks for it."""
        self._let_time_pass(now)
        if self.tripped_at is None:
            if not self._changed:
                return None
            self._changed = self._reconfigured = False
            if self._is_within_limit(now):
                return None
            self.tripped_at = now.wall
            self._causes = {uid: None for uid in self._near if uid not in self.released}
            self._unsaved, self._is_announced = True, False
            self._settled_at = later(now.monotonic, self.settings.settle_seconds)
        elif not self._causes or (self._reconfigured and self._is_within_limit(now)):
            return self._arm()
        self._changed = self._reconfigured = False
        if not self._is_announced and now.monotonic >= self._settled_at:
            self._unsaved = self._is_announced = True
            return Turn.TRIPPED
        return None

    def _let_time_pass(self, now: Instant) -> None:
        window = self.settings.window_seconds
        while (head := self._far.head()) is not None and head.at <= now.wall + window:
            self._far.cancel(head.key)
            self._come_near(self._later.pop(head.key))
        for slots in (self._slots, self._rehearsed):
            while slots and slots[0][0] + window <= now.monotonic:
                slots.popleft()

    def _arm(self) -> Turn:
        was_announced = self._is_announced
        self.tripped_at, self.cause = None, ""
        self._unsaved = self._changed = True
        self._reconfigured = False
        self._freed.add(self._key)
        return Turn.ARMED if was_announced else Turn.PASSED

    def release(self, uids: Iterable[str], now: Instant) -> int:
        """A person has seen which pods are held: these may go, and the guard is armed. Returns how many they are."""
        named = list(uids)
        for uid in named:
            due = self._near.get(uid)
            if due is not None:
                self._remove(uid)
                self._near[uid] = due
            self.released[uid] = None
        self._released_at, self._quota = now.wall, 0
        self._causes = {}
        self._unsaved = True
        self._freed.add(self._key)
        if self.is_tripped:
            self._arm()
        return len(named)

    def grant(self, reset: str) -> None:
        """A request for a reset is granted, now; or, with none, it was taken off. Has to be stored."""
        self.reset = reset
        self._unsaved = True

    @property
    def is_grant_stored(self) -> bool:
        """Whether the next leader would know of the reset. Until then, nothing that was released is evicted."""
        return not self.reset or self.reset == self._stored_reset

    def held(self) -> list[str]:
        """UIDs of the pods that have to leave within the window and were not released."""
        return [uid for uid in self._near if uid not in self.released]

    def limit(self) -> int:
        """How many pods may be evicted in one window."""
        return self.settings.limit(self.population())

    def next_look(self, now: Instant) -> float | None:
        """Seconds until it has to be looked at again although no more pods have to leave."""
        if self._changed or (self.is_tripped and not self._causes):
            return 0.0
        waits: list[float] = []
        if self.is_tripped and not self._is_announced:
            waits.append(self._settled_at - now.monotonic)
        if (far := self._far.next_at()) is not None:
            waits.append(far - self.settings.window_seconds - now.wall)
        if self._counts and self._slots:  # what leaves the window makes room, where none was left to reserve
            waits.append(self._slots[0][0] + self.settings.window_seconds - now.monotonic)
        return max(0.0, min(waits)) if waits else None

    def _is_within_limit(self, now: Instant) -> bool:
        pods = self._most(now)
        return pods <= self.settings.at_least(0) or pods <= self.limit()

    def _most(self, now: Instant) -> int:
        """The most evictions that any window of time would hold which begins in the past and ends now or later.

        0 while nothing is ahead: what was evicted alone trips no guard. The work is bounded by the number of slots.
        """
        ahead = self._counts.total()
        if not ahead:
            return 0
        past = sorted([*self._slots, *self._rehearsed])
        spent = sum(int(used) for _, used in past)
        if not spent:
            return ahead
        window, length = self.settings.window_seconds, self._length
        ends = deque((now.wall_at(MonotonicTime(end)), int(used)) for end, used in past)
        most, counted = spent, 0
        for slot in sorted(self._counts):
            while ends and ends[0][0] + window <= max(slot * length, now.wall):
                spent -= ends.popleft()[1]
            counted += self._counts[slot]
            most = max(most, counted + spent)
        return most

    @property
    def _length(self) -> float:
        return self.settings.window_seconds / SLOTS

    def _slot_of(self, at: WallTime) -> int:
        return int(at // self._length)

    def _slot(self, now: Instant) -> float:
        """When the slot ends that ``now`` lies in."""
        return (now.monotonic // self._length + 1) * self._length

    def _used(self, slot: float) -> int:
        return int(self._slots[-1][1]) if self._slots and self._slots[-1][0] == slot else 0

    # -- what is stored -------------------------------------------------------------------------------------------

    def restore(self, record: GuardRecord, now: Instant) -> None:
        """Take over what the process that led before has saved."""
        self.tripped_at = None if record.open_since is None else WallTime(min(record.open_since, now.wall))
        self.cause = record.cause
        self._is_announced = bool(record.cause)
        self._settled_at = later(now.monotonic, self.settings.settle_seconds)
        latest = now.wall + self.settings.window_seconds / SLOTS
        self._slots = deque([now.monotonic_at(min(at, latest)), pods] for at, pods in sorted(record.spent) if pods)
        self._quota = record.accepted or 0
        self._released_at = None if record.released_at is None else WallTime(record.released_at)
        self.reset = self._stored_reset = record.reset
        known = [*self._near.values(), *self._later.values()]
        for due in known:
            self.forget(due.uid)
        self.released = {}  # the record counts them, whichever they are
        for due in known:
            self.expect(due, now)
        self._reserved = (0.0, 0)
        self._changed = True

    def record_wanted(self, now: Instant, *, waiting: bool) -> tuple[float, int] | None:
        """The (slot, evictions) of a record that has to be saved now, None if none has to.

        ``waiting``: due pods need more evictions reserved.
        """
        slot = self._slot(now)
        used, reserved = self._used(slot), self._reserved[1] if self._reserved[0] == slot else 0
        wanted = max(SMALLEST_RESERVATION, (self.settings.min_pods or 0) // 10, len(self._near) // 10)
        runs_out = waiting and not self.halts and reserved - used <= wanted // 2
        if runs_out and (more := used + self._reservable(wanted)) > reserved:
            reserved = more
        elif not self._unsaved:
            return None
        self._unsaved = False
        return slot, max(used, reserved)

    def _reservable(self, wanted: int) -> int:
        """How many more evictions may be reserved: no more than are allowed, or a restart would trip it for nothing."""
        if self.settings.action is GuardAction.REPORT:
            return wanted
        spent = sum(int(used) for _, used in self._slots)
        if spent + wanted <= self.settings.at_least(0):
            return wanted
        return max(0, min(wanted, self.limit() - spent))

    def saved(self, record: GuardRecord, reserved: tuple[float, int], *, succeeded: bool) -> None:
        """The record, which allows for ``reserved``, is stored, or is not."""
        if succeeded:
            self._reserved, self._stored_reset = reserved, record.reset
            self._freed.add(self._key)
        else:
            self._unsaved = True

    def record(self, now: Instant, reserved: tuple[float, int] | None = None) -> GuardRecord:
        """Its state; with ``reserved``, as it has to be stored."""
        slots: list[list[float]] = list(self._slots)
        if reserved is not None:
            slots = [one for one in slots if one[0] != reserved[0]] + [list(reserved)]
        spent = tuple((round(now.wall_at(MonotonicTime(end)), 3), int(count)) for end, count in slots if count)
        accepted = len(self.released) + self._quota or None
        would_evict = self.expected() if self.is_tripped else 0
        released_at = self._released_at if accepted else None
        return GuardRecord(self.tripped_at, self.cause, would_evict, accepted, released_at, spent, self.reset)
