"""The mass-eviction guard of one policy: what it counts, what it holds, and what survives a restart.

docs/concepts.md states its rules. Unreleased, at most the allowance is evicted or reserved within a window, 1.5 times
of it where the guard holds one namespace.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Container
from enum import Enum, auto
from typing import NamedTuple

from msgspec.structs import replace

from taintwarden.engine.guard.latch import ALL, Latch
from taintwarden.engine.guard.ledger import MAX_FAILING, MAX_RESERVED, RESTORED, Ledger, Past
from taintwarden.engine.guard.record import GuardRecord
from taintwarden.engine.guard.wave import Due, GroupKey, Wave
from taintwarden.engine.model import GuardAction, GuardSettings, Instant, MonotonicTime, WallTime, WorkloadKey, later

SLOTS = 20
"""Past evictions are counted in slots of a twentieth of the window, as if they happened at the end of their slot."""
SMALLEST_RESERVATION = 10
TIDY_SECONDS = 10.0
"""Seconds after a reserved pod has left until the record is stored again: a new leader counts stale rows as of now."""


class Turn(Enum):
    """What a check of the guard changed, to be reported."""

    TRIPPED = auto()
    """It has been tripped long enough for the wave to be complete."""
    ARMED = auto()


class Pace(NamedTuple):
    """What is left for a tripped guard with ``action: Pace``, as far as the guard alone limits it."""

    pods: int
    ends_at: WallTime | None
    """About when the last of them may be evicted; None: never, since it allows none."""


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
        self.wave = Wave(self._recounted)
        self.latch = Latch()
        self.ledger = Ledger()
        self.error = ""
        """Why the record could not be stored; empty: it could."""
        self.pruned: tuple[str, ...] = ()
        """Fields of the record that the API server does not store."""
        self._passing: list[str] = []
        """UIDs of those that a person released and that do not pass yet."""
        self._freed, self._free_record = freed, free_record
        self._is_resized = False
        """Other settings may allow what it holds."""
        self._changed = True
        """What counts has grown, or may no longer be held: it has to be checked."""
        self._unsaved = False
        self._tidy_at = MonotonicTime(math.inf)
        """When the record is written again because a pod left that it has reserved."""

    @property
    def is_acting(self) -> bool:
        """True if it is tripped and does more than report."""
        return self.latch.is_tripped and self.settings.action is not GuardAction.REPORT

    @property
    def halts(self) -> bool:
        """True if it now refuses evictions, except those of released pods."""
        return self.latch.is_tripped and self.settings.action is GuardAction.HALT

    @property
    def scope(self) -> str:
        """The only namespace that it holds; ``ALL``: it holds all pods, or none."""
        return self.latch.scope if self.halts else ALL

    def holds(self, namespace: str) -> bool:
        """Whether it refuses the pods of a namespace that are not released."""
        return self.halts and self.scope in (ALL, namespace)

    # -- what has to leave, and what was evicted ------------------------------------------------------------------

    def expect(self, due: Due, now: Instant) -> None:
        """A pod will have to leave, unless something changes. One that was called counts whatever its budgets allow."""
        if due.uid in self.ledger.called:
            due = replace(due, budget=None)
        self.wave.expect(due, self._window_end(now))

    def _window_end(self, now: Instant) -> WallTime:
        return WallTime(now.wall + self.settings.window_seconds)

    def _recounted(self, key: GroupKey, more: int) -> None:
        """So many more pods of a group count than before."""
        if key not in self.wave.groups:
            self.latch.held.pop(key, None)
        self._changed |= more > 0 or (self.latch.is_tripped and more != 0)
        if more and self.latch.is_tripped and key in self.wave.counting:
            self._hold(key)

    def _hold(self, key: GroupKey) -> None:
        namespace, _ = key
        self.latch.count(key, self.ledger.past.by_namespace[namespace] + self.wave.by_namespace[namespace])

    def forget(self, uid: str) -> None:
        """A pod no longer has to leave, or is gone."""
        self.wave.forget(uid)
        self.ledger.forget(uid)
        self._offer()

    def call(self, uid: str, namespace: str, now: Instant) -> None:
        """A call for a pod is made: from now on it counts, whatever its budgets allow."""
        if uid not in self.wave.released:
            self.ledger.call(uid, namespace, now.monotonic)
            self.wave.ignore_budget(uid)

    def settle(self, uid: str, *, stays: bool) -> None:
        """The eviction call ended."""
        if self.ledger.settle(uid, stays=stays):
            self._changed = True
            self._offer()

    def gone(self, uid: str, workload: WorkloadKey | None, now: Instant) -> None:
        """A pod is seen to leave: it counts as evicted if it was called."""
        if self.ledger.gone(uid, workload, self._slot(now)):
            self._tidy_at = min(self._tidy_at, later(now.monotonic, TIDY_SECONDS))
        self.wave.forget(uid)
        self._offer()

    # -- tripped or armed -----------------------------------------------------------------------------------------

    def look(self, now: Instant, most: int = 500, *, may_trip: bool = True, may_arm: bool = True) -> Turn | None:
        """Trip, narrow or arm the guard, if what it counts requires it.

        Args:
            now: the time.
            most: how many pods may come near in one step.
            may_trip: whether its policy acts.
            may_arm: whether all pods are known that have to leave: until then, that none is known does not arm it.

        """
        self.wave.let_time_pass(self._window_end(now), most)
        if self.ledger.let_time_pass(now.monotonic, self.settings.window_seconds, self.wave.near):
            self._freed(ALL)
        if now.monotonic >= self._tidy_at:
            self._unsaved, self._tidy_at = True, MonotonicTime(math.inf)
        changed, self._changed, latch = self._changed, False, self.latch
        if not latch.is_tripped:
            if not changed or not may_trip or not self.expected() or self._may_evict():
                return None
            latch.trip(now, self._current(), self.wave.counting, self.settings.settle_seconds)
            self._unsaved, self._is_resized = True, False
        elif may_arm and latch.is_stored and self._is_over():
            return self._arm()
        due = self.wave.by_namespace if may_arm else {}
        self._hold_only(latch.scope_at(now.monotonic, self._current(), self._is_small, due))
        if now.monotonic < latch.settled_at or latch.is_reported:
            return None
        self._unsaved = latch.is_reported = True
        return Turn.TRIPPED

    def _current(self) -> Counter[str]:
        return self.ledger.past.by_namespace + self.wave.by_namespace

    def _is_over(self) -> bool:
        """Whether none of the pods that counted has to leave, or other settings allow those that do."""
        is_resized, self._is_resized = self._is_resized, False
        return not self.latch.held or (is_resized and self._may_evict())

    def _is_small(self, pods: int) -> bool:
        return 2 * pods <= self.allowance()

    def _hold_only(self, scope: str) -> None:
        before, self.latch.scope = self.latch.scope, scope
        if before != scope:
            self._freed(before)

    def _arm(self) -> Turn | None:
        before = self.latch.scope
        was_reported = self.latch.arm()
        self._freed(before)
        self._unsaved = self._changed = True
        return Turn.ARMED if was_reported else None

    def release(self, *, all_are_unhealthy: bool = False) -> int:
        """A person releases the held pods, of those with a budget as many as count. Returns how many.

        ``all_are_unhealthy``: also those that wait for that alone.
        """
        scope = ALL if all_are_unhealthy else self.scope
        self._passing += self.wave.held(scope, also_blocked=all_are_unhealthy)
        return len(self._passing)

    def let_pass(self, most: int) -> list[str]:
        """Release up to ``most`` of these, once what counts is stored. With the last one it is armed.

        Returns their UIDs.
        """
        if not self.latch.is_stored:
            return []
        passing = self._passing[-most:]
        del self._passing[-most:]
        for uid in passing:
            self.wave.release(uid)
            self.ledger.drop(uid)
        if passing and not self._passing and self.latch.is_tripped:
            self._arm()
        return passing

    # -- numbers --------------------------------------------------------------------------------------------------

    def allowance(self) -> int:
        """How many pods may be evicted in one window: a share of those that the policy may evict, or did within it.

        Of these, only those of which no pod of their workload has replaced one.
        """
        return self.settings.limit(self.ledger.population(self.population()))

    def evicted(self) -> int:
        """How many evictions of the last window count."""
        return self.ledger.past.total

    def expected(self) -> int:
        """How many pods are due within the window, as far as budgets allow them."""
        return self.wave.total

    def pace(self, now: Instant) -> Pace | None:
        """How many pods a tripped guard lets leave one after another, and until when; None: it does not."""
        if not self.is_acting or self.halts:
            return None
        pods, window = self.expected(), self.settings.window_seconds
        ends_at = self.ledger.past.end(pods, self.allowance(), self._slot(now), window)
        return Pace(pods, None if ends_at is None else max(now.wall, now.wall_at(ends_at)))

    def _may_evict(self) -> bool:
        pods = self.evicted() + self.expected()
        return pods <= self.settings.at_least(0) or pods <= self.allowance()

    def next_look(self, now: Instant, *, may_arm: bool = True) -> float | None:
        """Seconds until it has to be checked again even if nothing happens."""
        is_over = self.latch.is_tripped and may_arm and not self.latch.held
        if self._changed or (self.latch.is_stored and (self._passing or is_over)):
            return 0.0
        waits = [*self.latch.waits(now.monotonic), self._tidy_at - now.monotonic]
        if (at := self.wave.next_at()) is not None:
            waits.append(at - self._window_end(now))
        if (ends := self.ledger.next_end(self.settings.window_seconds)) is not None:
            waits.append(ends - now.monotonic)
        first = min(waits)
        return None if first == math.inf else max(0.0, first)

    def _slot(self, now: Instant) -> MonotonicTime:
        length = self.settings.window_seconds / SLOTS
        return MonotonicTime((now.monotonic // length + 1) * length)

    # -- reservations ---------------------------------------------------------------------------------------------

    def may_call(self, uid: str, now: Instant) -> bool:
        """Whether the stored record has the pod."""
        return self.ledger.may_call(uid, now.monotonic, self.settings.window_seconds, self._most_failing())

    def want(self, uid: str, namespace: str) -> bool:
        """The next record should reserve the eviction of this pod. Returns whether it will."""
        return self.ledger.want(
            uid,
            namespace,
            free=self._free(),
            at_once=max(SMALLEST_RESERVATION, len(self.wave.near) // 10),
            most_failing=self._most_failing(),
        )

    def _most_failing(self) -> int:
        return min(self.allowance() // 2, MAX_FAILING)

    def _free(self) -> int:
        """How many more pods there may be in this window than were evicted or are reserved."""
        if self.settings.action is GuardAction.REPORT:
            return MAX_RESERVED
        return int(self.allowance() * (1.0 if self.scope == ALL else 1.5)) - self.ledger.used

    def used_up(self, namespace: str) -> tuple[str, MonotonicTime | None]:
        """Why no other pod of a namespace may be reserved, and until when at most; empty: the record is written."""
        if self._free() <= 0:
            why = "as many pods as it allows were evicted within its window, or are reserved"
        elif self.ledger.fails(namespace, self._most_failing()):
            why = "half of what it allows is reserved for pods of the namespace that were called and did not leave"
        else:
            return "", None
        return why, self.ledger.next_end(self.settings.window_seconds)

    def unreserve(self, uid: str) -> None:
        """Another limit holds this pod: its reservation is free for others, unless it was called."""
        self.ledger.unreserve([uid])
        self._offer()

    def unreserve_all(self, namespace: str) -> None:
        """The same of all pods of a namespace but the first: those that were called may not go before it again."""
        rows = self.ledger.rows.items()
        self.ledger.unreserve([uid for uid, row in rows if row.namespace == namespace and row.since is None][1:])
        self._offer()

    def _offer(self) -> None:
        """Pods that could not be reserved may be now."""
        has_place = len(self.ledger.rows) <= MAX_RESERVED - SMALLEST_RESERVATION
        if self.ledger.is_full and has_place and self._free() > 0:
            self.ledger.is_full = False
            self._free_record()

    # -- its record -----------------------------------------------------------------------------------------------

    @property
    def has_to_save(self) -> bool:
        """Whether there is something to store."""
        return self._unsaved or not self.latch.is_stored or bool(self.ledger.wanted)

    def to_save(self, now: Instant, term: int) -> GuardRecord:
        """The record that has to be stored now."""
        self._unsaved, self._tidy_at = False, MonotonicTime(math.inf)
        self.latch.send()
        return self.record(now, term)

    def save_again(self) -> None:
        """The record may not be stored, and no answer will tell."""
        self._unsaved = True

    def saved(self, record: GuardRecord, *, error: str = "", pruned: tuple[str, ...] = ()) -> None:
        """The record is stored, except for ``pruned`` fields; or there was an error: then a new one is made."""
        self.error, self._unsaved = error, self._unsaved or bool(error)
        if not error:
            self.pruned = pruned
            self.latch.sent()
            self.ledger.stored(dict(record.reserved))
        self._changed |= self.latch.is_tripped
        self._freed(ALL)

    def record(self, now: Instant, term: int = 0) -> GuardRecord:
        """The state of the guard as it has to be stored."""
        past, latch = self.ledger.past.slots.items(), self.latch
        return GuardRecord(
            latch.tripped_at,
            latch.cause,
            tuple(sorted(latch.counted().items())) if self.is_acting else (),
            tuple((round(now.wall_at(end), 3), tuple(sorted(slot.pods.items()))) for end, slot in past),
            tuple((uid, row.namespace) for uid, row in self.ledger.rows.items()),
            term,
            self.ledger.population(self.population()),
        )

    def restore(self, record: GuardRecord, now: Instant) -> None:
        """Apply the record that a leader stored."""
        latest, past = self._slot(now), Past()
        for at, pods in sorted(record.evicted):
            for namespace, number in pods:
                past.note(min(now.monotonic_at(at), latest), namespace, RESTORED, number)
        past.let_time_pass(later(now.monotonic, -self.settings.window_seconds))
        self.ledger.restore(past, dict(record.reserved), record.population, now.monotonic)
        tripped_at = None if record.tripped_at is None else WallTime(min(record.tripped_at, now.wall))
        before, self._passing = self.latch.scope, []
        self.latch.restore(tripped_at, record.cause, dict(record.counted), now)
        self.latch.settled_at = later(now.monotonic, self.settings.settle_seconds)
        self.wave.release_none()
        self._is_resized = not record.counted  # it held nothing, and may now: what it counted then holds nothing
        for key in self.wave.counting if self.latch.is_tripped else ():
            self._hold(key)
        self._freed(before)
        self.error, self._unsaved, self._changed = "", False, True

    def resolve(self, existing: Callable[[Collection[str]], Container[str]], now: Instant) -> None:
        """All pods are known: what another process reserved was evicted if the pod is gone."""
        if self.ledger.unknown:
            self.ledger.resolve(existing(self.ledger.unknown), self._slot(now))
            self._tidy_at = later(now.monotonic, TIDY_SECONDS)
            self._offer()

    def change(self, settings: GuardSettings) -> None:
        """Apply changed settings. The pods that have to leave have to be expected again, as after a restart."""
        if settings != self.settings:
            self._is_resized = True
            self.latch.check_scope()
        self._changed = True  # or its policy acts again
        self.settings = settings
