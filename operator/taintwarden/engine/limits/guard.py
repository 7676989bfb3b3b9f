"""The mass-eviction guard of one policy: it trips before the first eviction of a wave that is too large.

It counts what *would* be evicted: in any window of time of its length, past evictions and future deadlines together.
Past evictions are counted in slots of a twentieth of the window, as if they happened at the end of their slot; future
ones as if at its beginning. So the count is never too low. Evictions are reserved in the stored record before they
happen: after a crash the count may be too high, never too low.

A tripped guard is armed again when its cause is gone: no pod that was on its node when the guard tripped has to leave
any more. A lower number of them is not enough, since values are repaired node by node, and pods on nodes that are not
repaired yet must not be evicted meanwhile. Pods that came later do not keep it tripped: they are not the cause. A
person can also release the pods that it holds: exactly these, regardless of other counts, and none counts again.

A pod that comes to a node whose taint already evicts it (a latecomer) is not part of a wave and does not count.
Otherwise a tenant whose pods repeatedly go to such a node would trip the guard for every tenant. A tripped guard
holds latecomers, too; an armed one leaves them to the limit of bounces.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable
from enum import Enum, auto

import msgspec

from taintwarden.engine.deadlines import DeadlineQueue
from taintwarden.engine.limits.protocol import Freed, Settlement, policy_key
from taintwarden.engine.model import (
    GuardAction,
    GuardSettings,
    Instant,
    MonotonicTime,
    WallTime,
    later,
)

SLOTS = 20
"""The number of slots in a window."""
SMALLEST_RESERVATION = 10
ROUNDING_SECONDS = 1.0
"""Times in objects have whole seconds, and are taken as the end of that second."""


class GuardRecord(msgspec.Struct, frozen=True):
    """The state of a guard that is kept across restarts. Times are seconds since the epoch.

    ``open_since`` None: armed. ``cause`` and ``would_evict``: why it tripped. ``accepted``: the number of pods that a
    person released at ``released_at`` and that still have to leave. ``spent``: (time, evictions that count from then),
    oldest first; they are reserved before they happen. ``reset``: the request for a reset that was granted and is not
    removed yet; the next leader does not grant it again.
    """

    open_since: float | None = None
    cause: str = ""
    would_evict: int = 0
    accepted: int | None = None
    released_at: float | None = None
    spent: tuple[tuple[float, int], ...] = ()
    reset: str = ""


class Turn(Enum):
    """What a check of the guard changed."""

    TRIPPED = auto()
    """It has been tripped long enough for the wave to be complete."""
    ARMED = auto()
    PASSED = auto()
    """It was armed again before the trip was announced."""


class Due(msgspec.Struct, frozen=True, gc=False):
    """A pod that has to leave: when, since when it is on its node, and since when the taint evicts it."""

    uid: str
    at: WallTime
    bound_at: float
    since: float
    is_latecomer: bool = False


class Guard:
    """The guard of one policy.

    Args:
        policy: its name.
        settings: its limits.
        freed: receives the policy's key when evictions may continue.

    """

    def __init__(self, policy: str, settings: GuardSettings, freed: Freed) -> None:
        self.settings = settings
        self.tripped_at: WallTime | None = None
        self.cause = ""
        self.released: dict[str, None] = {}
        """UIDs of pods that a person released and that still have to leave."""
        self.population: Callable[[], int] = lambda: 0
        """Counts the pods that the policy may evict; called only when many would be evicted."""
        self._key = policy_key(policy)
        self._freed = freed
        self._near: dict[str, Due] = {}
        """Pods due within the window."""
        self._far: DeadlineQueue[WallTime] = DeadlineQueue()
        self._later: dict[str, Due] = {}
        """The pods of ``_far``."""
        self._counts: Counter[int] = Counter()
        """Slot -> the number of near pods that are due in it, without released ones."""
        self._causes: dict[str, None] = {}
        """The near pods that were on their node when it tripped."""
        self.reset = ""
        """The request for a reset that was granted, until it is removed."""
        self._stored_reset = ""
        """The same in the stored record."""
        self._released_at: WallTime | None = None
        self._quota = 0
        """How many released pods of the restored record are not identified yet."""
        self._slots: deque[list[float]] = deque()
        """[when the slot ends, evictions in it], on the monotonic clock."""
        self._rehearsed: deque[list[float]] = deque()
        """The same for evictions of a dry run."""
        self._taken: dict[str, float] = {}
        """UID -> the slot in which its eviction counts, until it is settled."""
        self._reserved = (0.0, 0)
        """(slot, evictions) that the stored record reserves."""
        self._settled_at = MonotonicTime(0.0)
        self._is_announced = False
        self._changed = True
        """More pods have to leave, or the settings changed: it has to be checked."""
        self._reconfigured = False
        self._unsaved = False

    @property
    def is_tripped(self) -> bool:
        """Whether too many pods would be evicted."""
        return self.tripped_at is not None

    @property
    def halts(self) -> bool:
        """Whether it now refuses all evictions except those of released pods."""
        return self.is_tripped and self.settings.action is GuardAction.HALT

    # -- what would be evicted, and what was --------------------------------------------------------------------

    def expect(self, due: Due, now: Instant) -> None:
        """A pod will have to leave, unless something changes."""
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
        if not self._is_counted(due):
            return
        self._counts[self._slot_of(due.at)] += 1
        self._changed = True
        if self.tripped_at is not None and due.bound_at <= self.tripped_at + ROUNDING_SECONDS:
            self._causes[due.uid] = None

    def _is_counted(self, due: Due) -> bool:
        return due.uid not in self.released and not due.is_latecomer

    def _meet_released(self, due: Due) -> None:
        """After a restart: identify a pod that already had to leave when a person released the pods that were held."""
        at = self._released_at
        if not self._quota or at is None or due.uid in self.released:
            return
        if max(due.bound_at, due.since) <= at + ROUNDING_SECONDS and due.at <= at + self.settings.window_seconds:
            self._quota -= 1
            self.released[due.uid] = None

    def forget(self, uid: str) -> None:
        """A pod no longer has to leave, or is gone."""
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
        elif self._is_counted(due):
            slot = self._slot_of(due.at)
            self._counts[slot] -= 1
            if not self._counts[slot]:
                del self._counts[slot]

    def expected(self) -> int:
        """How many pods have to leave within the next window and were not released."""
        return self._counts.total()

    def may_take(self, now: Instant) -> bool:
        """Whether the stored record reserves one more eviction."""
        slot, reserved = self._reserved
        return slot == self._slot(now) and self._used(slot) < reserved

    def has_taken(self, uid: str) -> bool:
        """Whether an eviction of this pod already counts: the last call may have been carried out."""
        return uid in self._taken

    def take(self, uid: str, now: Instant, *, counts: bool = True) -> None:
        """A pod is evicted now. It counts once, regardless of retries."""
        if counts and uid not in self.released and uid not in self._taken:
            self._taken[uid] = self._note(self._slots, now)
        self._remove(uid)

    def settle(self, uid: str, settlement: Settlement) -> None:
        """The eviction call ended: one that did not evict the pod no longer counts."""
        if settlement is Settlement.UNKNOWN:
            return
        slot = self._taken.pop(uid, None)
        if settlement is Settlement.STAYS and slot is not None:
            for one in self._slots:
                if one[0] == slot and one[1]:
                    one[1] -= 1
                    break

    def stay(self, uid: str) -> None:
        """No call for this pod is in progress any more."""
        self._taken.pop(uid, None)

    def rehearse(self, uid: str, now: Instant, *, counts: bool = True) -> None:
        """A pod would be evicted now: that counts until the policy enforces, unless a person released the pod."""
        if counts and uid not in self.released:
            self._note(self._rehearsed, now)
        self.forget(uid)

    def forget_rehearsals(self) -> None:
        """The policy enforces from now on; the evictions of the dry run did not happen."""
        self._rehearsed.clear()
        self._changed = True

    def _note(self, slots: deque[list[float]], now: Instant) -> float:
        slot = self._slot(now)
        if not slots or slots[-1][0] != slot:
            slots.append([slot, 0])
        slots[-1][1] += 1
        return slot

    def change(self, settings: GuardSettings, now: Instant) -> None:
        """Apply changed settings, also to what is already known."""
        if settings == self.settings:
            return
        self.settings = settings
        ends_at = now.wall + settings.window_seconds
        for due in [due for due in self._near.values() if due.at > ends_at]:  # time handles a longer window
            del self._near[due.uid]
            self._causes.pop(due.uid, None)
            self._put_far(due)
        self._counts = Counter(self._slot_of(due.at) for due in self._near.values() if self._is_counted(due))
        self._changed = self._reconfigured = True

    # -- tripped or armed ---------------------------------------------------------------------------------------

    def look(self, now: Instant) -> Turn | None:
        """Trip or arm the guard, if the evictions that it counts require it."""
        self._let_time_pass(now)
        if self.tripped_at is None:
            if not self._changed:
                return None
            self._changed = self._reconfigured = False
            if self._is_within_limit(now):
                return None
            self.tripped_at = now.wall
            self._causes = {uid: None for uid, due in self._near.items() if self._is_counted(due)}
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
        """A person confirmed the evictions of these pods; the guard is armed. Returns the number of pods."""
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
        """A request for a reset is granted; or, if empty, it was removed. Either has to be stored."""
        self.reset = reset
        self._unsaved = True

    @property
    def is_grant_stored(self) -> bool:
        """Whether the next leader would know of the reset. Until then, no released pod is evicted."""
        return not self.reset or self.reset == self._stored_reset

    def held(self) -> list[str]:
        """UIDs of the pods that have to leave within the window and were not released."""
        return [uid for uid in self._near if uid not in self.released]

    def limit(self) -> int:
        """How many pods may be evicted in one window."""
        return self.settings.limit(self.population())

    def next_look(self, now: Instant) -> float | None:
        """Seconds until it has to be checked again even if no more pods have to leave."""
        if self._changed or (self.is_tripped and not self._causes):
            return 0.0
        waits: list[float] = []
        if self.is_tripped and not self._is_announced:
            waits.append(self._settled_at - now.monotonic)
        if (far := self._far.next_at()) is not None:
            waits.append(far - self.settings.window_seconds - now.wall)
        if self._counts and self._slots:  # evictions that leave the window can be reserved again
            waits.append(self._slots[0][0] + self.settings.window_seconds - now.monotonic)
        return max(0.0, min(waits)) if waits else None

    def _is_within_limit(self, now: Instant) -> bool:
        pods = self._most(now)
        return pods <= self.settings.at_least(0) or pods <= self.limit()

    def _most(self, now: Instant) -> int:
        """The most evictions in any window of time that begins in the past and ends now or later.

        0 while no eviction is ahead: past evictions alone trip no guard. The work is bounded by the number of slots.
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
        """The end of the slot that contains ``now``."""
        return (now.monotonic // self._length + 1) * self._length

    def _used(self, slot: float) -> int:
        return int(self._slots[-1][1]) if self._slots and self._slots[-1][0] == slot else 0

    # -- what is stored -------------------------------------------------------------------------------------------

    def restore(self, record: GuardRecord, now: Instant) -> None:
        """Apply the record that the previous leader stored."""
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
        self.released = {}  # the record has only their number
        for due in known:
            self.expect(due, now)
        self._reserved = (0.0, 0)
        self._changed = True

    def record_wanted(self, now: Instant, *, waiting: bool) -> tuple[float, int] | None:
        """The (slot, evictions) of a record that has to be stored now, None if there is none.

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
        """How many more evictions may be reserved: at most those allowed, or a restart would trip it without cause."""
        if self.settings.action is GuardAction.REPORT:
            return wanted
        spent = sum(int(used) for _, used in self._slots)
        if spent + wanted <= self.settings.at_least(0):
            return wanted
        return max(0, min(wanted, self.limit() - spent))

    def saved(self, record: GuardRecord, reserved: tuple[float, int], *, succeeded: bool) -> None:
        """The write of a record, which contains ``reserved``, ended."""
        if succeeded:
            self._reserved, self._stored_reset = reserved, record.reset
            self._freed.add(self._key)
        else:
            self._unsaved = True

    def record(self, now: Instant, reserved: tuple[float, int] | None = None) -> GuardRecord:
        """The state of the guard; with ``reserved``, as it has to be stored."""
        slots: list[list[float]] = list(self._slots)
        if reserved is not None:
            slots = [one for one in slots if one[0] != reserved[0]] + [list(reserved)]
        spent = tuple((round(now.wall_at(MonotonicTime(end)), 3), int(count)) for end, count in slots if count)
        accepted = len(self.released) + self._quota or None
        would_evict = self.expected() if self.is_tripped else 0
        released_at = self._released_at if accepted else None
        return GuardRecord(self.tripped_at, self.cause, would_evict, accepted, released_at, spent, self.reset)
