"""The mass-eviction guard of one policy: what it counts, what it holds, and what survives a restart.

* For each namespace it counts the pods evicted in the last window and those due within the next. Pods that wait for a
  PodDisruptionBudget count as far as it allows them, and once they are deleted in spite of it.
* If the sum is above the allowance, the guard trips, before the first eviction of the wave, and holds the policy.
* The most that it counted of a namespace stands, since values are repaired node by node. If that has not grown for a
  minute, and all namespaces but the largest are together within half of the allowance, it holds only the largest.
* It is armed again when none of them has to leave any more, whatever their budgets allow by then; while those that
  count are of one namespace only, it holds only that one. Or a person releases exactly the held pods: they pass, and
  count no more.
* Unreleased, at most the allowance leaves within a window, 1.5 times of it where the guard holds one namespace.

Every eviction is reserved in the stored record by the pod's UID before its call is made: after a restart those of the
pods that are gone, or go within a minute, count as evicted, and no others: calls of before may be carried out late.
Pods are counted as they come and go, so what a check costs depends on what has changed since the last one.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterator
from enum import Enum, auto
from itertools import groupby, islice

import msgspec

from taintwarden.engine.deadlines import Entries, Entry
from taintwarden.engine.model import (
    GuardAction,
    GuardSettings,
    Instant,
    MonotonicTime,
    WallTime,
    later,
)
from taintwarden.engine.tally import Tally

SLOTS = 20
"""Past evictions are counted in slots of a twentieth of the window, as if they happened at the end of their slot."""
NARROW_SECONDS = 60.0
"""How long a wave has not grown until the guard holds only the largest namespace."""
SMALLEST_RESERVATION, MAX_RESERVED = 10, 512
UNSURE_SECONDS = 60.0
"""How long a call of another process may still be carried out: it has 30 s, and the watch shows it later."""
ALL = OTHERS = ""
"""The scope of a guard that holds all pods of its policy; and where those are counted whose namespace is not stored."""

Evictions = tuple[tuple[float, tuple[tuple[str, int], ...]], ...]


class GuardRecord(msgspec.Struct, frozen=True):
    """The state of a guard that is kept across restarts. Times are seconds since the epoch.

    ``tripped_at`` None: armed. ``cause``: why it tripped. ``counted``: the most pods by namespace that counted; none if
    it held nothing. ``evicted``: (until when they count, pods by namespace), oldest first. ``reserved``: (UID,
    namespace) of the next evictions. ``term``: of the leader that wrote the record; one of an earlier term never
    replaces it.
    """

    tripped_at: float | None = None
    cause: str = ""
    counted: tuple[tuple[str, int], ...] = ()
    evicted: Evictions = ()
    reserved: tuple[tuple[str, str], ...] = ()
    term: int = 0


class Due(msgspec.Struct, frozen=True, gc=False):
    """A pod that has to leave: when, from where, and what budget it has."""

    uid: str
    at: WallTime
    namespace: str
    node: str
    budget: str = ""
    """The PodDisruptionBudgets that select it; empty: none."""


class Turn(Enum):
    """What a check of the guard changed, to be reported."""

    TRIPPED = auto()
    """It has been tripped long enough for the wave to be complete."""
    ARMED = auto()


GroupKey = tuple[str, str]
"""Namespace and budgets."""


class Guard:
    """The guard of one policy.

    Args:
        settings: its limits.
        freed: called when it may admit pods that it refused: with a namespace, or ``ALL``.
        free_record: called when the record may reserve pods that it could not.

    """

    def __init__(  # noqa: PLR0915 - one statement for each field
        self, settings: GuardSettings, freed: Callable[[str], None], free_record: Callable[[], None] = lambda: None
    ) -> None:
        self.settings = settings
        self.population: Callable[[], int] = lambda: 0
        """Counts the pods that the policy may evict; called only when many would be evicted."""
        self.allowed: Callable[[str], int] = lambda _: 0
        """How many pods the budgets of this name allow now."""
        self._is_resized = False
        """Other settings may allow what it holds."""
        self.near: dict[str, Due] = {}
        """The pods due within the window, by UID."""
        self.nodes: Tally[str] = Tally()
        """How many of them each node has."""
        self._later: dict[str, Due] = {}
        """Those due later."""
        self._far = Entries()
        """The same in order."""
        self._groups: Tally[GroupKey] = Tally()
        """How many pods near there are that no person released, by namespace and budgets."""
        self._counting: Tally[GroupKey] = Tally()
        """How many of them count: as many as their budgets allow."""
        self._expected: Tally[str] = Tally()
        """Namespace -> how many pods near count."""
        self._expected_total = 0
        self.tripped_at: WallTime | None = None
        self.cause = ""
        self.released: dict[str, None] = {}
        """UIDs of pods that a person released and that still have to leave. A restart forgets them."""
        self._passing: list[str] = []
        """UIDs of those that a person released and that do not pass yet."""
        self.scope = ALL
        """What it holds while it is tripped: all pods, or those of this namespace."""
        self._freed, self._free_record = freed, free_record
        self._is_full = False
        """A pod could not be reserved since then."""
        self._past = _Past()
        self._slot = MonotonicTime(0.0)
        """The end of the current slot."""
        self._populations: dict[MonotonicTime, int] = {}
        """The greatest numbers of pods that the policy could evict, by the slots of the window."""
        self._counted: Counter[str] = Counter()
        """The most pods by namespace that it counted at a time since it tripped, or was restored."""
        self._stored: Counter[str] = Counter()
        """What was counted when it was restored."""
        self._has_grown = False
        """They were more at a time than before."""
        self._held: dict[GroupKey, None] = {}
        """Groups of which pods have counted since it tripped, and still have to leave."""
        self._narrows_at = MonotonicTime(0.0)
        self._taken: dict[str, tuple[MonotonicTime, str]] = {}
        """UID -> the slot and the namespace for which its eviction counts, until it is settled."""
        self._reserved: dict[str, str] = {}
        """UID -> namespace of the evictions that the stored record has."""
        self._wanted: dict[str, str] = {}
        """The same of those that the next record should have."""
        self.unsure: dict[str, str] = {}
        """UID -> namespace of the evictions that another process reserved, and may have made."""
        self._unsure_until = MonotonicTime(0.0)
        self._settled_at = MonotonicTime(0.0)
        self._is_reported = False
        self._changed = True
        """What counts has grown, or may no longer be held: it has to be checked."""
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
        is_near = self._is_near(due, now)
        if (self.near if is_near else self._later).get(due.uid) == due:
            return
        self._remove(due.uid)
        if is_near:
            self._come_near(due)
        else:
            self._later[due.uid] = due
            self._far.add(Entry(due.at, (), due.uid))

    def _is_near(self, due: Due, now: Instant) -> bool:
        return due.at <= now.wall + self.settings.window_seconds

    def _come_near(self, due: Due) -> None:
        self.near[due.uid] = due
        self.nodes[due.node] += 1
        if due.uid not in self.released:
            self._groups[due.namespace, due.budget] += 1
            self._recount(due.namespace, due.budget)

    def _recount(self, namespace: str, budget: str) -> None:
        """The pods of a group changed, or what their budgets allow."""
        key = namespace, budget
        pods = self._groups[key]
        counts = min(pods, max(0, self.allowed(budget))) if budget else pods
        more = counts - self._counting[key]
        if not pods:
            self._held.pop(key, None)
        if more:
            self._counting.change(key, more)
            self._expected.change(namespace, more)
            self._expected_total += more
            self._changed |= more > 0 or self.is_tripped
            if self.is_tripped and counts:
                self._hold(key)

    def _hold(self, key: GroupKey) -> None:
        """Pods of a group count while it is tripped."""
        namespace, _ = key
        self._held[key] = None
        pods = self._past.by_namespace[namespace] + self._expected[namespace]
        if pods > self._counted[namespace]:
            self._counted[namespace], self._has_grown = pods, True

    def forget(self, uid: str) -> None:
        """A pod no longer has to leave, or is gone."""
        self._remove(uid)
        self.unreserve(uid)
        self.released.pop(uid, None)

    def _remove(self, uid: str) -> None:
        due = self.near.pop(uid, None)
        if due is None:
            if (due := self._later.pop(uid, None)) is not None:
                self._far.remove(Entry(due.at, (), uid))
            return
        self.nodes.take(due.node)
        if uid not in self.released:
            self._groups.take((due.namespace, due.budget))
            self._recount(due.namespace, due.budget)

    def forget_some(self, most: int) -> bool:
        """The guard is gone: forget so many pods. Returns whether that were all."""
        for uid in list(islice(self.near or self._later, most)):
            self._remove(uid)
        return not (self.near or self._later)

    def has_taken(self, uid: str) -> bool:
        """Whether an eviction of this pod already counts: the last call may have been carried out."""
        return uid in self._taken

    def take(self, uid: str, namespace: str, now: Instant) -> None:
        """A pod is evicted now. It counts once, regardless of retries."""
        if uid not in self.released and uid not in self._taken:
            self._begin_slot(now)
            self._past.note(self._slot, namespace)
            self._taken[uid] = self._slot, namespace
        self.unsure.pop(uid, None)
        self._remove(uid)
        self.unreserve(uid)

    def settle(self, uid: str, *, stays: bool) -> None:
        """The eviction call ended: one that did not evict the pod no longer counts."""
        taken = self._taken.pop(uid, None)
        if stays and taken is not None:
            self._past.take_back(*taken)
            self._changed = True
            self._offer()

    def budget_changed(self, name: str) -> None:
        """The budgets of this name may allow another number of pods than before."""
        self._recount(name.partition("/")[0], name)

    # -- tripped or armed -----------------------------------------------------------------------------------------

    def look(self, now: Instant, most: int = 500, *, may_trip: bool = True, may_arm: bool = True) -> Turn | None:
        """Trip, narrow or arm the guard, if what it counts requires it.

        Args:
            now: the time.
            most: how many pods may come near in one step.
            may_trip: whether its policy acts.
            may_arm: whether all pods are known that have to leave: until then, that none is known does not arm it.

        """
        self._let_time_pass(now, most)
        changed, self._changed = self._changed, False
        if self.tripped_at is not None:
            if may_arm and self._is_over():
                return self._arm()
        elif changed and may_trip and self.expected() and not self._may_evict():
            self._trip(now)
        if self.tripped_at is None:
            return None
        if self._has_grown:
            self._has_grown, self._narrows_at = False, later(now.monotonic, NARROW_SECONDS)
        elif now.monotonic >= self._narrows_at:
            self._narrow(now)
        is_complete = now.monotonic >= self._settled_at
        if is_complete and may_arm and len(self._expected) == 1:
            self._hold_only(*self._expected)
        elif changed and self.scope != ALL and not self._is_small(self._past.by_namespace + self._expected, self.scope):
            self._hold_only(ALL)
        if not is_complete or self._is_reported:
            return None
        self._unsaved = self._is_reported = True
        return Turn.TRIPPED

    def _is_over(self) -> bool:
        """Whether none of the pods that counted has to leave, or other settings allow those that do."""
        is_resized, self._is_resized = self._is_resized, False
        return not self._held or (is_resized and self._may_evict())

    def _trip(self, now: Instant) -> None:
        self.tripped_at = now.wall
        self._counted, self._has_grown = self._past.by_namespace + self._expected, True
        self._held = dict.fromkeys(self._counting)
        self._unsaved, self._is_reported, self._is_resized = True, False, False
        self._settled_at = later(now.monotonic, self.settings.settle_seconds)

    def _narrow(self, now: Instant) -> None:
        self._narrows_at = later(now.monotonic, NARROW_SECONDS)
        counted = self.counted()
        if self.scope == ALL and counted:
            [(largest, _)] = counted.most_common(1)
            if self._is_small(counted, largest):
                self._hold_only(largest)

    def _is_small(self, counted: Counter[str], scope: str) -> bool:
        """Whether the pods outside a namespace are within half of the allowance."""
        return 2 * (counted.total() - counted[scope]) <= self.allowance()

    def _hold_only(self, scope: str) -> None:
        if scope != self.scope:
            before, self.scope = self.scope, scope
            self._freed(before)

    def _arm(self) -> Turn | None:
        self.tripped_at, self.cause, self._counted, self._is_resized = None, "", Counter(), False
        self._stored, self._held = Counter(), {}
        before, self.scope = self.scope, ALL
        self._freed(before)
        self._unsaved = self._changed = True
        return Turn.ARMED if self._is_reported else None

    def release(self, *, every_zone_is_full: bool = False) -> int:
        """A person releases the held pods, of those with a budget as many as count. Returns how many.

        ``every_zone_is_full``: also those that wait for that alone.
        """
        left, scope = Counter(self._counting), ALL if every_zone_is_full else self.scope
        for due in self.near.values():
            if due.uid in self.released or scope not in (ALL, due.namespace):
                continue
            if due.budget and not every_zone_is_full:
                left[due.namespace, due.budget] -= 1
                if left[due.namespace, due.budget] < 0:
                    continue
            self._passing.append(due.uid)
        return len(self._passing)

    def let_pass(self, most: int) -> list[str]:
        """Release so many of these. With the last one it is armed. Returns their UIDs."""
        passing = self._passing[-most:]
        del self._passing[-most:]
        for uid in passing:
            due = self.near.get(uid)
            if due is not None:
                self._remove(uid)
                self.released[uid] = None
                self._come_near(due)
        if passing and not self._passing and self.is_tripped:
            self._arm()
        return passing

    @property
    def has_to_save(self) -> bool:
        """Whether there is something to store."""
        return self._unsaved or bool(self._wanted)

    # -- numbers --------------------------------------------------------------------------------------------------

    def allowance(self) -> int:
        """How many pods may be evicted in one window: a share of the most that the policy could evict within it.

        What was evicted and is not replaced yet still counts among these. What is gone for another reason does not.
        """
        pods = self.population()
        self._populations[self._slot] = max(pods, self._populations.get(self._slot, 0))
        return self.settings.limit(max(pods, min(max(self._populations.values()), pods + self.evicted())))

    def evicted(self) -> int:
        """How many evictions of the last window count."""
        return self._past.total

    def expected(self) -> int:
        """How many pods are due within the window, as far as budgets allow them."""
        return self._expected_total

    def counted(self) -> Counter[str]:
        """The most pods by namespace that it counted at a time; ``""``: of namespaces that a record did not name."""
        named = sum(pods for namespace, pods in self._counted.items() if namespace not in self._stored)
        return +((self._counted | self._stored) - Counter({OTHERS: min(named, self._stored[OTHERS])}))

    def follow(self, now: Instant) -> None:
        """Another process leads. When this one does, its allowance is a share of the pods that there are now, too."""
        self._begin_slot(now)
        self.allowance()

    def _may_evict(self) -> bool:
        pods = self.evicted() + self.expected()
        return pods <= self.settings.at_least(0) or pods <= self.allowance()

    def _let_time_pass(self, now: Instant, most: int) -> None:
        for _ in range(most):
            head = self._far.head()
            if head is None or not self._is_near(due := self._later[head.key], now):
                break
            self._far.remove(head)
            del self._later[head.key]
            self._come_near(due)
        self._begin_slot(now)
        if self._past.let_time_pass(later(now.monotonic, -self.settings.window_seconds)):
            self._freed(ALL)

    def next_look(self, now: Instant, *, may_arm: bool = True) -> float | None:
        """Seconds until it has to be checked again even if nothing happens."""
        if self._changed or self._passing or (self.is_tripped and may_arm and not self._held):
            return 0.0
        waits: list[float] = []
        if self.is_tripped:
            is_complete = self._is_reported and now.monotonic >= self._settled_at
            waits += [] if is_complete else [self._settled_at - now.monotonic]
            waits += [self._narrows_at - now.monotonic] if self.scope == ALL else []
        waits += [self._unsure_until - now.monotonic] if self.unsure else []
        if (far := self._far.head()) is not None:
            waits.append(far.at - self.settings.window_seconds - now.wall)
        if (ends := self._past.first_ends_at()) is not None:
            waits.append(ends + self.settings.window_seconds - now.monotonic)
        return max(0.0, min(waits)) if waits else None

    def _begin_slot(self, now: Instant) -> None:
        length = self.settings.window_seconds / SLOTS
        slot = MonotonicTime((now.monotonic // length + 1) * length)
        if slot != self._slot:
            self._slot, ended = slot, now.monotonic - self.settings.window_seconds
            self._populations = {end: pods for end, pods in self._populations.items() if end > ended}

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
        return uid in self._reserved or uid in self.unsure

    def want(self, uid: str, namespace: str) -> bool:
        """The next record should reserve the eviction of this pod. Returns whether it will: it has a bounded size."""
        if uid not in self._wanted and len(self._wanted) < self._most_to_reserve():
            self._wanted[uid] = namespace
        self._is_full |= uid not in self._wanted
        return uid in self._wanted

    def _most_to_reserve(self) -> int:
        stored = len(self._reserved) + len(self._taken) + len(self.unsure)
        batch = min(max(SMALLEST_RESERVATION, len(self.near) // 10), MAX_RESERVED - stored)
        return batch if self.settings.action is GuardAction.REPORT else min(batch, self._room())

    def _room(self) -> int:
        """How many more evictions there may be in this window than were made or are reserved."""
        factor = 1.0 if self.scope == ALL else 1.5
        return int(self.allowance() * factor) - self.evicted() - len(self._reserved) - len(self.unsure)

    def used_up_until(self) -> MonotonicTime | None:
        """When the first evictions leave the window, if as many as may be are in it."""
        ends = self._past.first_ends_at()
        if self.settings.action is GuardAction.REPORT or ends is None or self._room() > 0:
            return None
        return later(ends, self.settings.window_seconds)

    def to_save(self, now: Instant, term: int) -> GuardRecord:
        """The record that has to be stored now."""
        self._unsaved = False
        return self.record(now, term)

    def saved(self, record: GuardRecord, *, succeeded: bool) -> None:
        """The write of a record ended. Reservations that it lacks are wanted again by the pods that need them."""
        known, self._wanted = self._reserved | self._wanted, {}
        if succeeded:
            stored = dict(record.reserved)
            self._reserved = {uid: namespace for uid, namespace in known.items() if uid in stored}
        else:
            self._unsaved = True
        self._freed(ALL)

    def record(self, now: Instant, term: int = 0) -> GuardRecord:
        """The state of the guard as it has to be stored."""
        in_the_air = [(uid, namespace) for uid, (_, namespace) in self._taken.items()]
        return GuardRecord(
            self.tripped_at,
            self.cause,
            tuple(sorted(self.counted().items())) if self.halts else (),
            tuple(self._certain(now)),
            (*self.unsure.items(), *in_the_air, *self._reserved.items(), *self._wanted.items()),
            term,
        )

    def _certain(self, now: Instant) -> Iterator[tuple[float, tuple[tuple[str, int], ...]]]:
        """Past evictions without those whose calls are not answered: after a restart the pods tell."""
        certain = self._past.slots - Counter(self._taken.values())
        for end, pods in groupby(sorted(certain.items()), lambda one: one[0][0]):
            yield round(now.wall_at(end), 3), tuple((namespace, number) for (_, namespace), number in pods)

    def restore(self, record: GuardRecord, now: Instant) -> None:
        """Apply the record that a leader stored."""
        latest = now.wall + self.settings.window_seconds / SLOTS
        self._past = _Past()
        for at, pods in sorted(record.evicted):
            for namespace, number in pods:
                self._past.note(now.monotonic_at(min(at, latest)), namespace, number)
        self._past.let_time_pass(later(now.monotonic, -self.settings.window_seconds))
        self._reserved, self._wanted, self.unsure, self._taken = {}, {}, dict(record.reserved), {}
        self._unsure_until = later(now.monotonic, UNSURE_SECONDS)
        self.tripped_at = None if record.tripped_at is None else WallTime(min(record.tripped_at, now.wall))
        self.cause, self._is_reported = record.cause, bool(record.cause)
        self._settled_at = later(now.monotonic, self.settings.settle_seconds)
        self._narrows_at = later(now.monotonic, NARROW_SECONDS)
        passed, self.released, self._passing = self.released, {}, []
        for due in (self.near[uid] for uid in passed if uid in self.near):
            self._groups[due.namespace, due.budget] += 1
            self._recount(due.namespace, due.budget)
        self._is_resized = not record.counted  # it held nothing, and may now: what it counted then holds nothing
        self._counted, self._stored = Counter(), Counter(dict(record.counted))
        self._held = {}
        for key in self._counting if self.is_tripped else ():
            self._hold(key)
        before, self.scope = self.scope, ALL
        self._freed(before)
        self.follow(now)
        self._unsaved, self._changed = False, True

    def made(self, existing: Container[str]) -> list[str]:
        """Namespaces of the evictions that another process reserved and made: their pods are gone."""
        return [namespace for uid, namespace in self.unsure.items() if uid not in existing]

    def resolve(self, existing: Container[str], leaving: Container[str], now: Instant) -> None:
        """All pods are known: what another process reserved was evicted if the pod is gone.

        ``leaving``: the pods that have to leave, whose calls of before may be carried out yet.
        """
        self._begin_slot(now)
        for namespace in self.made(existing):
            self._past.note(self._slot, namespace)
        if self.unsure:
            left = self.unsure.items() if now.monotonic < self._unsure_until else ()
            self.unsure = {uid: namespace for uid, namespace in left if uid in existing and uid in leaving}
            self._offer()

    def change(self, settings: GuardSettings) -> None:
        """Apply changed settings. The pods that have to leave have to be expected again, as after a restart."""
        self._is_resized |= settings != self.settings
        self._changed = True  # or its policy acts again
        self.settings = settings


class _Past:
    """Evictions of one window by slot and namespace. The counts are never too low."""

    def __init__(self) -> None:
        self.slots: Tally[tuple[MonotonicTime, str]] = Tally()
        """By the end of the slot, the oldest first."""
        self.by_namespace: Tally[str] = Tally()
        self.total = 0

    def note(self, ends_at: MonotonicTime, namespace: str, pods: int = 1) -> None:
        """Count evictions in the slot that ends then, which is the newest."""
        self.slots.change((ends_at, namespace), pods)
        self.by_namespace.change(namespace, pods)
        self.total += pods

    def take_back(self, ends_at: MonotonicTime, namespace: str) -> None:
        """One eviction of that slot did not happen."""
        if (ends_at, namespace) in self.slots:
            self.note(ends_at, namespace, -1)

    def let_time_pass(self, until: MonotonicTime) -> bool:
        """Drop the slots that ended by then. Returns whether there were any."""
        before = self.total
        while (ended := next(iter(self.slots), None)) is not None and ended[0] <= until:
            self.note(*ended, -self.slots[ended])
        return self.total < before

    def first_ends_at(self) -> MonotonicTime | None:
        """The end of the oldest slot."""
        return next((end for end, _ in self.slots), None)
