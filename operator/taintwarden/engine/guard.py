"""The mass-eviction guard of one policy: what it counts, what it holds, and what survives a restart.

* For each namespace it counts the pods evicted in the last window and those due within the next. Pods that wait for a
  PodDisruptionBudget count as far as it allows them.
* If the sum is above the allowance, the guard trips, before the first eviction of the wave, and holds the policy.
* What it counted is fixed and can only grow, since values are repaired node by node. If it has not grown for a minute,
  and all namespaces but the largest are together within half of the allowance, it holds only the largest.
* It is armed again when none of the counted pods has to leave any more; while those that have to are of one namespace
  only, it holds only that one. Or a person releases exactly the held pods: they pass, and count no more.
* Unreleased, at most the allowance leaves within a window, 1.5 times of it where the guard holds one namespace.

Every eviction is reserved in the stored record by the pod's UID before its call is made: after a restart those of the
pods that are gone count as evicted, and no others.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from enum import Enum, auto
from itertools import islice
from typing import TypeVar

import msgspec

from taintwarden.engine.deadlines import DeadlineQueue
from taintwarden.engine.model import (
    ROUNDING_SECONDS,
    GuardAction,
    GuardSettings,
    Instant,
    MonotonicTime,
    WallTime,
    later,
)

SLOTS = 20
"""Past evictions are counted in slots of a twentieth of the window, as if they happened at the end of their slot."""
NARROW_SECONDS = 60.0
"""How long a wave has not grown until the guard holds only the largest namespace."""
SMALLEST_RESERVATION, MAX_RESERVED = 10, 512
ALL = OTHERS = ""
"""The scope of a guard that holds all pods of its policy; and where those are counted whose namespace is not stored."""

K = TypeVar("K")
Evictions = tuple[tuple[float, tuple[tuple[str, int], ...]], ...]


class GuardRecord(msgspec.Struct, frozen=True):
    """The state of a guard that is kept across restarts. Times are seconds since the epoch.

    ``tripped_at`` None: armed. ``cause``: why it tripped. ``counted``: pods by namespace, as they were counted.
    ``evicted``: (until when they count, pods by namespace), oldest first. ``reserved``: (UID, namespace) of the next
    evictions. ``released``: the number of pods that a person released at ``released_at`` and that still have to leave.
    ``reset``: the request for a release that was granted and is not removed yet; the next leader does not grant it
    again. ``term``: of the leader that wrote the record; one of an earlier term never replaces it.
    """

    tripped_at: float | None = None
    cause: str = ""
    counted: tuple[tuple[str, int], ...] = ()
    evicted: Evictions = ()
    reserved: tuple[tuple[str, str], ...] = ()
    released: int | None = None
    released_at: float | None = None
    reset: str = ""
    term: int = 0


class Due(msgspec.Struct, frozen=True, gc=False):
    """A pod that has to leave: when, since when it is on its node and the taint evicts it, and what budget it has."""

    uid: str
    at: WallTime
    namespace: str
    since: float = 0.0
    """The later of when the pod was bound and when the taint began to evict it."""
    budget: str = ""
    """The PodDisruptionBudgets that select it; empty: none."""


class Turn(Enum):
    """What a check of the guard changed."""

    TRIPPED = auto()
    """It has been tripped long enough for the wave to be complete."""
    ARMED = auto()
    PASSED = auto()
    """It was armed again before the trip was reported."""


class Guard:
    """The guard of one policy.

    Args:
        settings: its limits.
        freed: called when it may admit pods that it refused: with a namespace, or ``ALL``.
        free_record: called when the record may reserve pods that it could not.

    """

    def __init__(
        self, settings: GuardSettings, freed: Callable[[str], None], free_record: Callable[[], None] = lambda: None
    ) -> None:
        self.settings = settings
        self.population: Callable[[], int] = lambda: 0
        """Counts the pods that the policy may evict; called only when many would be evicted."""
        self.allowed: Callable[[str], int] = lambda _: 0
        """How many pods the budgets of this name allow now."""
        self.knows_causes = True
        """Set by ``know_causes``."""
        self._is_resized = False
        """Other settings may allow what it holds, as soon as its causes are known."""
        self.due = _DuePods(settings.window_seconds)
        self.tripped_at: WallTime | None = None
        self.cause = ""
        self.reset = ""
        """The request for a release that was granted, until it is removed."""
        self.released: dict[str, None] = {}
        """UIDs of pods that a person released and that still have to leave."""
        self.scope = ALL
        """What it holds while it is tripped: all pods, or those of this namespace."""
        self._freed, self._free_record = freed, free_record
        self._is_full = False
        """A pod could not be reserved since then."""
        self._past = _Past()
        self._population = _Peak()
        self._counted: Counter[str] = Counter()
        """Pods by namespace, as they were counted since it tripped."""
        self._stored_counted: Counter[str] = Counter()
        """The same as another process stored it: its pods are among those that this one counts."""
        self._held: dict[str, None] = {}
        """UIDs of all pods due that were counted since it tripped."""
        self._fresh: dict[tuple[str, str], dict[str, None]] = {}
        """UIDs of pods near since it tripped that are not counted, by namespace and budgets: they came just now, or
        their budgets allow fewer."""
        self._standing: Counter[tuple[str, str]] = Counter()
        """Of the held ones, by namespace and budgets, those that still have to leave."""
        self._narrows_at = MonotonicTime(0.0)
        self._taken: dict[str, tuple[MonotonicTime, str]] = {}
        """UID -> the slot and the namespace for which its eviction counts, until it is settled."""
        self._reserved: dict[str, str] = {}
        """UID -> namespace of the evictions that the stored record has."""
        self._wanted: dict[str, str] = {}
        """The same of those that the next record should have."""
        self._unsure: tuple[tuple[str, str], ...] = ()
        """Evictions that another process reserved, and may have made."""
        self._stored_reset = ""
        self._quota, self._released_at = 0, 0.0
        """How many released pods of a restored record are not identified yet, and when they were released."""
        self._settled_at = MonotonicTime(0.0)
        self._is_reported = False
        self._changed = True
        """What counts changed: it has to be checked."""
        self._unsaved = False

    @property
    def is_tripped(self) -> bool:
        """Whether too many pods would be evicted."""
        return self.tripped_at is not None

    @property
    def halts(self) -> bool:
        """Whether it now refuses evictions, except those of released pods."""
        return self.is_tripped and self.settings.action is GuardAction.HALT

    def holds(self, namespace: str) -> bool:
        """Whether it refuses the pods of a namespace that are not released."""
        return self.halts and self.scope in (ALL, namespace)

    # -- what has to leave, and what was evicted ------------------------------------------------------------------

    def expect(self, due: Due, now: Instant) -> None:
        """A pod will have to leave, unless something changes."""
        if self.due.near.get(due.uid) == due:
            return
        if self._quota and due.uid not in self.released and self._was_released(due):
            self._quota -= 1
            self.released[due.uid] = None
        self._remove(due.uid)
        if self.due.put(due, now, counts=due.uid not in self.released):
            self._come_near(due)

    def _was_released(self, due: Due) -> bool:
        """After a restart: whether a pod already had to leave when a person released the pods that were held."""
        is_older = due.since <= self._released_at + ROUNDING_SECONDS
        return is_older and due.at <= self._released_at + self.settings.window_seconds

    def _come_near(self, due: Due) -> None:
        self._changed = True
        if due.uid in self._held:
            self._standing[due.namespace, due.budget] += 1
        elif self.is_tripped and due.uid not in self.released:
            self._fresh.setdefault((due.namespace, due.budget), {})[due.uid] = None

    def rest(self, uid: str) -> None:
        """The policy does not act on a pod that has to leave: it is paused, or leaves the pod on its node."""
        self._remove(uid)
        self.unreserve(uid)

    def forget(self, uid: str) -> None:
        """A pod no longer has to leave, or is gone."""
        self.rest(uid)
        if self.released.pop(uid, "") is None:
            self._unsaved = True

    def _remove(self, uid: str) -> None:
        due = self.due.remove(uid)
        if due is not None and self._fresh:
            self._fresh.get((due.namespace, due.budget), {}).pop(uid, None)
        if due is not None and uid in self._held:
            _take(self._standing, (due.namespace, due.budget))
            self._changed = True

    def has_taken(self, uid: str) -> bool:
        """Whether an eviction of this pod already counts: the last call may have been carried out."""
        return uid in self._taken

    def take(self, uid: str, namespace: str, now: Instant) -> None:
        """A pod is evicted now. It counts once, regardless of retries."""
        if uid not in self.released and uid not in self._taken:
            slot = self._slot(now)
            self._past.note(slot, namespace)
            self._taken[uid] = slot, namespace
        self.unreserve(uid)
        self._remove(uid)

    def settle(self, uid: str, *, stays: bool) -> None:
        """The eviction call ended: one that did not evict the pod no longer counts."""
        taken = self._taken.pop(uid, None)
        if stays and taken is not None:
            self._past.take_back(*taken)
            self._changed = True
            self._offer()

    def budgets_changed(self) -> None:
        """Budgets may allow other numbers of pods than before."""
        self._changed = True

    def regroup(self, budget_of: Callable[[str], str | None], namespace: str, now: Instant) -> None:
        """Other budgets select the pods of a namespace: ``budget_of`` names those of a UID; None: it is gone."""
        for due in self.due.of(namespace):
            budget = budget_of(due.uid)
            if budget is not None and budget != due.budget:
                self.expect(msgspec.structs.replace(due, budget=budget), now)

    # -- tripped or armed -----------------------------------------------------------------------------------------

    def look(self, now: Instant) -> Turn | None:
        """Trip, narrow or arm the guard, if what it counts requires it."""
        self._let_time_pass(now)
        turn: Turn | None = None
        if self._changed:
            self._changed = False
            if self.tripped_at is None and (due := self.expected()) and not self._may_evict(self.evicted() + due):
                self._trip(now)
            if self.tripped_at is not None:
                turn = self._look(now)
        if self.tripped_at is None:
            return turn
        if now.monotonic >= self._narrows_at:
            self._narrow(now)
        if not self._is_reported and now.monotonic >= self._settled_at:
            self._unsaved = self._is_reported = True
            return Turn.TRIPPED
        return turn

    def _trip(self, now: Instant) -> None:
        self.tripped_at = now.wall
        self._counted = self._past.by_namespace()
        for due in self.due.near.values():
            if due.uid not in self.released:
                self._fresh.setdefault((due.namespace, due.budget), {})[due.uid] = None
        self._unsaved, self._is_reported = True, False
        self._settled_at = later(now.monotonic, self.settings.settle_seconds)

    def _look(self, now: Instant) -> Turn | None:
        if self._hold():
            self._narrows_at = later(now.monotonic, NARROW_SECONDS)
        if self.scope != ALL and not self._is_small(self._past.by_namespace() + self._count()):
            self._hold_only(ALL)
        if self.knows_causes and not self._standing:
            return self._arm()
        namespaces = {namespace for namespace, _ in self._standing}
        if self.knows_causes and len(namespaces) == 1:
            self._hold_only(namespaces.pop())
        return None

    def _hold(self) -> bool:
        """Hold the pods that are not counted yet, as far as budgets allow them. Returns whether there are any."""
        grew = False
        for (namespace, budget), uids in list(self._fresh.items()):
            most = self.allowed(budget) - self._standing[namespace, budget] if budget else len(uids)
            for uid in list(islice(uids, max(0, most))):
                del uids[uid]
                self._held[uid] = None
                self._standing[namespace, budget] += 1
                self._counted[namespace] += 1
                grew = True
            if not uids:
                del self._fresh[namespace, budget]
        return grew

    def _narrow(self, now: Instant) -> None:
        self._narrows_at = later(now.monotonic, NARROW_SECONDS)
        counted = self.counted()
        if self.scope == ALL and counted:
            [(largest, pods)] = counted.most_common(1)
            if 2 * (counted.total() - pods) <= self.allowance():
                self._hold_only(largest)

    def _is_small(self, counted: Counter[str]) -> bool:
        """Whether the pods outside the scope, as they are now, are within half of the allowance."""
        return 2 * (counted.total() - counted[self.scope]) <= self.allowance()

    def _hold_only(self, scope: str) -> None:
        if scope != self.scope:
            before, self.scope = self.scope, scope
            self._freed(before)

    def _arm(self) -> Turn:
        self.tripped_at, self.cause = None, ""
        self._counted, self._stored_counted = Counter(), Counter()
        self._held, self._standing, self._fresh = {}, Counter(), {}
        before, self.scope = self.scope, ALL
        self._freed(before)
        self._unsaved = self._changed = True
        return Turn.ARMED if self._is_reported else Turn.PASSED

    def release(self, now: Instant) -> list[str]:
        """A person lets the held pods go; the guard is armed. Returns their UIDs."""
        if self.is_tripped:
            self._hold()
        held = [
            uid
            for uid, due in self.due.near.items()
            if uid not in self.released
            and (not self.is_tripped or (uid in self._held and self.scope in (ALL, due.namespace)))
        ]
        for uid in held:
            self.released[uid] = None
            self.due.discount(uid)
        self._released_at, self._quota = now.wall, 0
        self._unsaved = self._changed = True
        self._freed(ALL)
        if self.is_tripped:
            self._arm()
        return held

    def save(self) -> None:
        """The record has to be stored again, whatever was stored."""
        self._unsaved = True

    @property
    def has_to_save(self) -> bool:
        """Whether there is something to store."""
        return self._unsaved or bool(self._wanted)

    def grant(self, reset: str) -> None:
        """A request for a release is granted; or, if empty, it was removed. Either has to be stored."""
        self.reset = reset
        self._unsaved = True

    @property
    def is_grant_stored(self) -> bool:
        """Whether the next leader would know of the release. Until then, no released pod is evicted."""
        return not self.reset or self.reset == self._stored_reset

    # -- numbers --------------------------------------------------------------------------------------------------

    def allowance(self) -> int:
        """How many pods may be evicted in one window: a share of the most that the policy could evict within it.

        What was evicted and is not replaced yet still counts among these. What is gone for another reason does not.
        """
        pods = self.population()
        self._population.note(pods)
        return self.settings.limit(max(pods, min(self._population.greatest(), pods + self.evicted())))

    def evicted(self) -> int:
        """How many evictions of the last window count."""
        return self._past.total

    @property
    def reserved(self) -> int:
        """How many evictions are reserved and were not made yet."""
        return len(self._reserved)

    def expected(self) -> int:
        """How many pods are due within the window, as far as budgets allow them."""
        return self._count().total()

    def counted(self) -> Counter[str]:
        """Pods by namespace, as they were counted since the guard tripped; ``""``: of namespaces that are not named."""
        known, stored = self._counted, self._stored_counted
        named = sum(pods for namespace, pods in known.items() if namespace not in stored)
        return +((known | stored) - Counter({OTHERS: min(named, stored[OTHERS])}))

    def follow(self, now: Instant) -> None:
        """Another process leads. When this one does, its allowance is a share of the pods that there are now, too."""
        self._population.let_time_pass(self._slot(now), now.monotonic, self.settings.window_seconds)
        self._population.note(self.population())

    def _count(self) -> Counter[str]:
        """The pods due within the window by namespace. Of those with a budget as many as it allows."""
        counted: Counter[str] = Counter()
        for (namespace, budget), pods in self.due.groups.items():
            counted[namespace] += min(pods, max(0, self.allowed(budget))) if budget else pods
        return +counted

    def _may_evict(self, pods: int) -> bool:
        return pods <= self.settings.at_least(0) or pods <= self.allowance()

    def _let_time_pass(self, now: Instant) -> None:
        window = self.settings.window_seconds
        for due in self.due.let_time_pass(now):
            self._come_near(due)
        self._population.let_time_pass(self._slot(now), now.monotonic, window)
        if self._past.let_time_pass(now.monotonic, window):
            self._freed(ALL)

    def next_look(self, now: Instant) -> float | None:
        """Seconds until it has to be checked again even if nothing happens."""
        if self._changed:
            return 0.0
        waits: list[float] = []
        if self.is_tripped:
            waits += [] if self._is_reported else [self._settled_at - now.monotonic]
            waits += [self._narrows_at - now.monotonic] if self.scope == ALL else []
        if (near := self.due.next_near_at()) is not None:
            waits.append(near - now.wall)
        if (ends := self._past.first_ends_at()) is not None:
            waits.append(ends + self.settings.window_seconds - now.monotonic)
        return max(0.0, min(waits)) if waits else None

    def _slot(self, now: Instant) -> MonotonicTime:
        """The end of the slot that contains ``now``."""
        length = self.settings.window_seconds / SLOTS
        return MonotonicTime((now.monotonic // length + 1) * length)

    def unreserve(self, uid: str) -> None:
        """Another limit holds this pod: its reservation is free for others."""
        for reserved in (self._reserved, self._wanted):
            reserved.pop(uid, None)
        self._offer()

    def _offer(self) -> None:
        """Pods that could not be reserved may be now."""
        if self._is_full and len(self._reserved) <= MAX_RESERVED - SMALLEST_RESERVATION and self._most_to_reserve() > 0:
            self._is_full = False
            self._free_record()

    def unreserve_all(self, namespace: str) -> None:
        """The same of all pods of a namespace."""
        for uid in [uid for uid, other in (self._reserved | self._wanted).items() if other == namespace]:
            self.unreserve(uid)

    # -- reservations ---------------------------------------------------------------------------------------------

    def may_take(self, uid: str) -> bool:
        """Whether the stored record reserves the eviction of this pod."""
        return uid in self._reserved

    def want(self, uid: str, namespace: str) -> bool:
        """The next record should reserve the eviction of this pod. Returns whether it will: it has a bounded size."""
        if uid not in self._wanted and len(self._wanted) < self._most_to_reserve():
            self._wanted[uid] = namespace
        self._is_full |= uid not in self._wanted
        return uid in self._wanted

    def _most_to_reserve(self) -> int:
        stored = len(self._reserved) + len(self._taken) + len(self._unsure)
        batch = min(max(SMALLEST_RESERVATION, len(self.due.near) // 10), MAX_RESERVED - stored)
        return batch if self.settings.action is GuardAction.REPORT else min(batch, self._room())

    def _room(self) -> int:
        """How many more evictions there may be in this window than were made or are reserved."""
        factor = 1.0 if self.scope == ALL else 1.5
        return int(self.allowance() * factor) - self.evicted() - len(self._reserved)

    def used_up_until(self) -> MonotonicTime | None:
        """When the first evictions leave the window, if as many as may be are in it."""
        ends = self._past.first_ends_at()
        if self.settings.action is GuardAction.REPORT or ends is None or self._room() > 0:
            return None
        return later(ends, self.settings.window_seconds)

    def to_save(self, now: Instant, term: int) -> GuardRecord | None:
        """The record that has to be stored now; None: the stored one will do."""
        if not self.has_to_save:
            return None
        self._unsaved = False
        return self.record(now, term)

    def saved(self, record: GuardRecord, *, succeeded: bool) -> None:
        """The write of a record ended. Reservations that it lacks are wanted again by the pods that need them."""
        known, self._wanted = self._reserved | self._wanted, {}
        if succeeded:
            stored = dict(record.reserved)
            self._reserved = {uid: namespace for uid, namespace in known.items() if uid in stored}
            self._stored_reset = record.reset
        else:
            self._unsaved = True
        self._freed(ALL)

    def record(self, now: Instant, term: int = 0) -> GuardRecord:
        """The state of the guard as it has to be stored."""
        released = len(self.released) + self._quota or None
        in_the_air = [(uid, namespace) for uid, (_, namespace) in self._taken.items()]
        return GuardRecord(
            self.tripped_at,
            self.cause,
            tuple(sorted(self.counted().items())) if self.is_tripped else (),
            tuple(self._certain(now)),
            (*self._unsure, *in_the_air, *self._reserved.items(), *self._wanted.items()),
            released,
            self._released_at if released else None,
            self.reset,
            term,
        )

    def _certain(self, now: Instant) -> Iterator[tuple[float, tuple[tuple[str, int], ...]]]:
        """Past evictions without those whose calls are not answered: after a restart the pods tell."""
        in_the_air = Counter(self._taken.values())
        for end, pods in self._past.slots():
            certain = +(pods - Counter({name: in_the_air[end, name] for name in pods}))
            if certain:
                yield round(now.wall_at(end), 3), tuple(sorted(certain.items()))

    def restore(self, record: GuardRecord, now: Instant) -> None:
        """Apply the record that a leader stored."""
        latest = now.wall + self.settings.window_seconds / SLOTS
        self._past = _Past()
        for at, pods in sorted(record.evicted):
            for namespace, number in pods:
                self._past.note(now.monotonic_at(min(at, latest)), namespace, number)
        self._reserved, self._wanted, self._unsure, self._taken = {}, {}, record.reserved, {}
        self.tripped_at = None if record.tripped_at is None else WallTime(min(record.tripped_at, now.wall))
        self.cause, self.reset, self._stored_reset = record.cause, record.reset, record.reset
        self._is_reported = bool(record.cause)
        self._settled_at = later(now.monotonic, self.settings.settle_seconds)
        self._narrows_at = later(now.monotonic, NARROW_SECONDS)
        self._quota, self._released_at = record.released or 0, record.released_at or 0.0
        self._counted, self._stored_counted = Counter(), Counter(dict(record.counted))
        self._held, self.released = {}, {}
        before, self.scope = self.scope, ALL
        self._freed(before)
        self._expect_again(now)
        if self.is_tripped:
            self._hold()
        self.follow(now)
        self._unsaved, self._changed = False, True

    def resolve(self, exists: Callable[[str], bool], now: Instant) -> None:
        """All pods are known: what another process reserved was evicted if the pod is gone, and whom it released."""
        for uid, namespace in self._unsure:
            if not exists(uid):
                self._past.note(self._slot(now), namespace)
        self._unsure = ()
        self._quota = 0 if self.knows_causes else self._quota

    def change(self, settings: GuardSettings, now: Instant) -> None:
        """Apply changed settings, also to what is already known."""
        if settings == self.settings:
            return
        self.settings = settings
        self._expect_again(now)
        self._is_resized, self._changed = True, True
        self._arm_if_resized()

    def _expect_again(self, now: Instant) -> None:
        """Which pods are near, and which of them still stand, has to be found again."""
        known = self.due.all()
        self.due, self._standing, self._fresh = _DuePods(self.settings.window_seconds), Counter(), {}
        for due in known:
            self.expect(due, now)

    def know_causes(self, *, known: bool) -> None:
        """Whether all pods are known that have to leave: until then, that none is known does not arm it."""
        self._changed |= known != self.knows_causes
        self.knows_causes = known
        self._arm_if_resized()

    def _arm_if_resized(self) -> None:
        if self._is_resized and self.knows_causes:
            self._is_resized = False
            if self.is_tripped and self._may_evict(self.evicted() + self._count().total()):
                self._arm()


class _DuePods:
    """The pods that have to leave: those due within a window are *near*, grouped by namespace and budgets."""

    def __init__(self, window_seconds: float) -> None:
        self.near: dict[str, Due] = {}
        self.groups: Counter[tuple[str, str]] = Counter()
        """(namespace, budgets) -> how many near pods count."""
        self._counting: dict[str, None] = {}
        self._window_seconds = window_seconds
        self._far: DeadlineQueue[WallTime] = DeadlineQueue()
        self._later: dict[str, Due] = {}
        self._uids: dict[str, dict[str, None]] = {}
        """Namespace -> the UIDs of its pods."""

    def put(self, due: Due, now: Instant, *, counts: bool) -> bool:
        """A pod will have to leave. Returns whether it is near. A released pod does not count."""
        self._uids.setdefault(due.namespace, {})[due.uid] = None
        if due.at > now.wall + self._window_seconds:
            self._later[due.uid] = due
            self._far.schedule(due.uid, due.at)
            return False
        self._come_near(due, counts=counts)
        return True

    def _come_near(self, due: Due, *, counts: bool = True) -> None:
        self.near[due.uid] = due
        if counts:
            self._counting[due.uid] = None
            self.groups[due.namespace, due.budget] += 1

    def discount(self, uid: str) -> None:
        """A near pod counts no more."""
        if self._counting.pop(uid, "") is None:
            due = self.near[uid]
            _take(self.groups, (due.namespace, due.budget))

    def remove(self, uid: str) -> Due | None:
        """A pod no longer has to leave. Returns it if it was near."""
        due = self.near.get(uid)
        if due is not None:
            self.discount(uid)
            del self.near[uid]
        elif uid in self._later:
            self._far.cancel(uid)
        else:
            return None
        namespace = (due or self._later.pop(uid)).namespace
        del self._uids[namespace][uid]
        if not self._uids[namespace]:
            del self._uids[namespace]
        return due

    def all(self) -> list[Due]:
        """All pods, near or not."""
        return [*self.near.values(), *self._later.values()]

    def of(self, namespace: str) -> list[Due]:
        """The pods of a namespace, near or not."""
        return [self.near.get(uid) or self._later[uid] for uid in self._uids.get(namespace, ())]

    def let_time_pass(self, now: Instant) -> Iterator[Due]:
        """The pods that come near."""
        while (head := self._far.head()) is not None and head.at <= now.wall + self._window_seconds:
            self._far.cancel(head.key)
            due = self._later.pop(head.key)
            self._come_near(due)
            yield due

    def next_near_at(self) -> WallTime | None:
        """When the next pod comes near."""
        at = self._far.next_at()
        return None if at is None else WallTime(at - self._window_seconds)


class _Past:
    """Evictions of one window by slot and namespace. The counts are never too low."""

    def __init__(self) -> None:
        self.total = 0
        self._slots: deque[tuple[MonotonicTime, Counter[str]]] = deque()

    def note(self, ends_at: MonotonicTime, namespace: str, pods: int = 1) -> None:
        """Count evictions in the slot that ends then, which is the newest."""
        if not self._slots or self._slots[-1][0] != ends_at:
            self._slots.append((ends_at, Counter()))
        self._slots[-1][1][namespace] += pods
        self.total += pods

    def take_back(self, ends_at: MonotonicTime, namespace: str) -> None:
        """One eviction of that slot did not happen."""
        for end, pods in self._slots:
            if end == ends_at and pods[namespace]:
                _take(pods, namespace)
                self.total -= 1
                break

    def let_time_pass(self, now: MonotonicTime, window_seconds: float) -> bool:
        """Drop the slots that have left the window. Returns whether there were any."""
        before = len(self._slots)
        while self._slots and self._slots[0][0] + window_seconds <= now:
            self.total -= self._slots.popleft()[1].total()
        return len(self._slots) < before

    def first_ends_at(self) -> MonotonicTime | None:
        """The end of the oldest slot."""
        return self._slots[0][0] if self._slots else None

    def by_namespace(self) -> Counter[str]:
        """All evictions of the window."""
        found: Counter[str] = Counter()
        for _, pods in self._slots:
            found.update(pods)
        return found

    def slots(self) -> Iterator[tuple[MonotonicTime, Counter[str]]]:
        """The end of each slot with evictions, and these by namespace."""
        return ((end, pods) for end, pods in self._slots if pods)


class _Peak:
    """The greatest number of one window, in slots."""

    def __init__(self) -> None:
        self._slot = MonotonicTime(0.0)
        self._slots: deque[tuple[MonotonicTime, int]] = deque()
        """The end of a slot, and a number that is greater than all later ones."""

    def note(self, number: int) -> None:
        """A number of the current slot."""
        while self._slots and self._slots[-1][1] <= number:
            self._slots.pop()
        if not self._slots or self._slots[-1][0] != self._slot:
            self._slots.append((self._slot, number))

    def let_time_pass(self, slot: MonotonicTime, now: MonotonicTime, window_seconds: float) -> None:
        """Drop the slots that have left the window; ``slot`` is the end of the current one."""
        self._slot = slot
        while self._slots and self._slots[0][0] + window_seconds <= now:
            self._slots.popleft()

    def greatest(self) -> int:
        """0 if there is none."""
        return self._slots[0][1] if self._slots else 0


def _take(counts: Counter[K], name: K) -> None:
    counts[name] -= 1
    if not counts[name]:
        del counts[name]
