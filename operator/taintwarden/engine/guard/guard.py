"""The mass-eviction guard of one policy: its counts, the pods that it holds, and its stored record.

docs/concepts.md states its rules. Unless it only reports, at most the allowance is evicted or reserved within a window;
1.5 times the allowance while it holds only one namespace. Pods that a person released do not count.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Container
from enum import Enum, auto

from msgspec.structs import replace

from taintwarden.engine.guard.latch import ALL, Latch
from taintwarden.engine.guard.ledger import MAX_FAILING, MAX_RESERVED, RESTORED, EvictionWindow, Ledger
from taintwarden.engine.guard.wave import Due, GroupKey, Wave
from taintwarden.engine.limit_settings import GuardAction, GuardSettings
from taintwarden.engine.model import Instant, MonotonicTime, WallTime, WorkloadKey, later
from taintwarden.engine.records import GuardRecord, Pace

SLOTS = 20
"""Number of slots in a window. An eviction counts as if it happened at the end of its slot."""
SMALLEST_RESERVATION = 10
"""Minimum pods by which one record may grow within the allowance. Pods are retried when as many fit into it."""
TIDY_SECONDS = 10.0
"""Seconds until the record is stored without a departed pod. A new leader would date its eviction too late."""


class GuardTransition(Enum):
    """Transition of a guard that has to be reported."""

    TRIPPED = auto()
    """The guard has been tripped for ``settleSeconds``, after which the wave counts as complete."""
    ARMED = auto()


class Guard:
    """The guard of one policy.

    Args:
        settings: the limits of the guard.
        freed: called with a namespace, or ``ALL``, when the guard may admit pods that it refused.
        free_record: called when the record may reserve pods that did not fit into it.

    """

    def __init__(
        self, settings: GuardSettings, freed: Callable[[str], None], free_record: Callable[[], None] = lambda: None
    ) -> None:
        self.settings = settings
        self.population: Callable[[], int] = lambda: 0
        """Counts the pods that the policy may evict. It has to be quick: each check of a pod calls it."""
        self.wave = Wave(self._recounted)
        self.latch = Latch()
        self.ledger = Ledger()
        self.error = ""
        """Why the record could not be stored; empty if it could."""
        self.pruned: tuple[str, ...] = ()
        """Fields of the record that the API server does not store."""
        self._passing: list[str] = []
        """UIDs of the pods that a person released and that :meth:`let_pass` has not admitted yet."""
        self._is_releasing = False
        """True from :meth:`release` until :meth:`let_pass` has admitted the last pod."""
        self._freed, self._free_record = freed, free_record
        self._is_resized = False
        """True if changed settings may allow the pods that the guard holds."""
        self._has_new_action = False
        """True if the action has changed since the last check, so that a trip has another effect than was reported."""
        self._changed = True
        """True if the counts have changed so that the guard has to be checked."""
        self._unsaved = False
        self._tidy_at = MonotonicTime(math.inf)
        """When the record is stored again, because a pod that it has reserved has left."""

    @property
    def is_acting(self) -> bool:
        """True if the guard is tripped and its action is not ``Report``."""
        return self.latch.is_tripped and self.settings.action is not GuardAction.REPORT

    @property
    def is_stored(self) -> bool:
        """True if the stored record has the counts by which the guard acts. One that only reports stores none."""
        return not self.is_acting or self.latch.is_stored

    @property
    def halts(self) -> bool:
        """True if the guard refuses evictions now, except those of released pods."""
        return self.latch.is_tripped and self.settings.action is GuardAction.HALT

    @property
    def scope(self) -> str:
        """The only namespace that the guard holds; ``ALL`` if it holds all pods, or none."""
        return self.latch.scope if self.halts else ALL

    def holds(self, namespace: str) -> bool:
        """Return True if the guard refuses the pods of a namespace that are not released."""
        return self.halts and self.scope in (ALL, namespace)

    # -- pods that have to leave, and evicted pods ----------------------------------------------------------------

    def expect(self, due: Due, now: Instant) -> None:
        """Count a pod that has to leave at ``due.at``. A pod that was called counts whatever its budgets allow."""
        if due.uid in self.ledger.called:
            due = replace(due, budget=None)
        self.wave.expect(due, self._window_end(now))

    def _window_end(self, now: Instant) -> WallTime:
        return WallTime(now.wall + self.settings.window_seconds)

    def _recounted(self, key: GroupKey, more: int) -> None:
        """Note that ``more`` pods of a group count than before; negative: fewer."""
        if key not in self.wave.groups:
            self.latch.held.pop(key, None)
        self._changed |= more > 0 or (self.latch.is_tripped and more != 0)
        if more and self.latch.is_tripped and key in self.wave.counting:
            self._hold(key)

    def _hold(self, key: GroupKey) -> None:
        namespace, _ = key
        self.latch.count(key, self.ledger.past.by_namespace[namespace] + self.wave.by_namespace[namespace])

    def forget(self, uid: str) -> None:
        """Drop a pod that no longer has to leave."""
        self.wave.forget(uid)
        self.ledger.forget(uid)
        self._offer()

    def call(self, uid: str, namespace: str, now: Instant) -> None:
        """Count a pod for which a call is made, whatever its budgets allow."""
        if uid not in self.wave.released:
            self.ledger.call(uid, namespace, now.monotonic)
            self.wave.ignore_budget(uid)

    def settle(self, uid: str, *, stays: bool) -> None:
        """Note the end of an eviction call."""
        if self.ledger.settle(uid, stays=stays):
            self._offer()

    def gone(self, uid: str, workload: WorkloadKey | None, now: Instant) -> None:
        """Note that a pod is gone or terminating. It counts as evicted if it was called."""
        if self.ledger.gone(uid, workload, self._slot(now)):
            self._tidy_at = min(self._tidy_at, later(now.monotonic, TIDY_SECONDS))
        self.wave.forget(uid)
        self._offer()

    # -- tripped or armed -----------------------------------------------------------------------------------------

    def check_wave(
        self, now: Instant, most: int = 500, *, may_trip: bool = True, may_arm: bool = True
    ) -> GuardTransition | None:
        """Trip, narrow or arm the guard, as its counts require. Returns the transition to report, if any.

        Args:
            now: current time.
            most: maximum number of pods that may enter the window in one step.
            may_trip: True if the policy acts.
            may_arm: True if all pods that have to leave are known. Before that, the absence of such pods arms nothing.

        """
        self.wave.process_time(self._window_end(now), most)
        if self.ledger.process_time(now.monotonic, self.settings.window_seconds, self.wave.near):
            self._freed(ALL)
        if self.ledger.past.missing:
            self.ledger.note_replaced(self.population())
        if now.monotonic >= self._tidy_at:
            self._unsaved, self._tidy_at = True, MonotonicTime(math.inf)
        changed, self._changed, latch = self._changed, False, self.latch
        if not latch.is_tripped:
            if not changed or not may_trip or not self.expected() or self._may_evict():
                return None
            latch.trip(now, self._current(), self.wave.counting, self.settings.settle_seconds)
            self._is_resized = self._has_new_action = False
        elif may_arm and self.is_stored and self._is_over():
            return self._arm()
        due = self.wave.by_namespace if may_arm else {}
        self._hold_only(latch.scope_at(now.monotonic, self._current(), self._is_small, due))
        if now.monotonic < latch.settled_at or (latch.is_reported and not self._has_new_action):
            return None
        self._unsaved, latch.is_reported, self._has_new_action = True, True, False
        return GuardTransition.TRIPPED

    def _current(self) -> Counter[str]:
        return self.ledger.past.by_namespace + self.wave.by_namespace

    def _is_over(self) -> bool:
        """Return True if none of the pods that counted has to leave any more, or changed settings allow the others."""
        is_resized, self._is_resized = self._is_resized, False
        return not self.latch.held or (is_resized and self._may_evict())

    def _is_small(self, pods: int) -> bool:
        return 2 * pods <= self.allowance()

    def _hold_only(self, scope: str) -> None:
        before, self.latch.scope = self.latch.scope, scope
        if before != scope:
            self._freed(before)

    def _arm(self) -> GuardTransition | None:
        before = self.latch.scope
        was_reported = self.latch.arm()
        self._freed(before)
        self._unsaved = self._changed = True
        return GuardTransition.ARMED if was_reported else None

    def release(self, *, all_are_unhealthy: bool = False) -> int:
        """Release the held pods for a person; of the pods with a budget, as many as count. Returns their number.

        ``all_are_unhealthy``: release pods that do not count, too, since the zones hold them.
        """
        scope = ALL if all_are_unhealthy else self.scope
        held = self.wave.held(scope, also_blocked=all_are_unhealthy)
        self._passing, self._is_releasing = [*dict.fromkeys((*self._passing, *held))], True
        return len(self._passing)

    def let_pass(self, most: int) -> list[str]:
        """Admit up to ``most`` released pods when the counts are stored; then arm the guard. Returns UIDs."""
        if not self._is_releasing or not self.is_stored:
            return []
        passing = self._passing[-most:]
        del self._passing[-most:]
        for uid in passing:
            self.wave.release(uid)
            self.ledger.drop(uid)
        self._is_releasing = bool(self._passing)
        if not self._is_releasing and self.latch.is_tripped:
            self._arm()
        return passing

    # -- numbers --------------------------------------------------------------------------------------------------

    def allowance(self) -> int:
        """Number of pods that may be evicted in one window: a share of the population.

        The population is the pods that the policy may evict, and those evicted within the window and not replaced yet.
        """
        return self.settings.limit(self.ledger.population(self.population()))

    def evicted(self) -> int:
        """Number of evictions within the last window."""
        return self.ledger.past.total

    def expected(self) -> int:
        """Number of pods that are due within the window, as far as budgets allow their eviction."""
        return self.wave.total

    def pace(self, now: Instant) -> Pace | None:
        """Pace of a tripped guard with ``action: Pace``; None for any other guard."""
        if not self.is_acting or self.halts:
            return None
        pods, window = self.expected(), self.settings.window_seconds
        ends_at = self.ledger.past.end(pods, self.allowance(), self._slot(now), window)
        return Pace(pods, None if ends_at is None else max(now.wall, now.wall_at(ends_at)))

    def _may_evict(self) -> bool:
        pods = self.evicted() + self.expected()
        return pods <= self.settings.at_least(0) or pods <= self.allowance()

    def next_check_in(self, now: Instant, *, may_arm: bool = True) -> float | None:
        """Seconds until the guard has to be checked again even if nothing happens; None: not at all."""
        is_over = self.latch.is_tripped and may_arm and not self.latch.held
        if self._changed or (self.is_stored and (self._is_releasing or is_over)):
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

    def may_call(self, uid: str) -> bool:
        """Return True if the stored record has the pod, so that it may be called."""
        return self.ledger.may_call(uid, self._most_failing())

    def want(self, uid: str, namespace: str) -> bool:
        """Reserve the pod in the next record, if the pod fits. Returns True if it is reserved."""
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
        """Number of pods that may still be reserved in this window."""
        if self.settings.action is GuardAction.REPORT:
            return MAX_RESERVED
        return int(self.allowance() * (1.0 if self.scope == ALL else 1.5)) - self.ledger.used

    def used_up(self, namespace: str) -> tuple[str, MonotonicTime | None]:
        """Return why no other pod of a namespace may be reserved, and until when at most; empty if one may be."""
        if self._free() <= 0:
            why = "as many pods as it allows were evicted within its window, or are reserved"
        elif self.ledger.fails(namespace, self._most_failing()):
            why = "half of what it allows is reserved for pods of the namespace that were called and did not leave"
        else:
            return "", None
        return why, self.ledger.next_end(self.settings.window_seconds)

    def unreserve(self, uid: str) -> None:
        """Free the reservation of a pod that another limit holds, unless the pod was called."""
        self.ledger.unreserve([uid])
        self._offer()

    def unreserve_all(self, namespace: str) -> None:
        """Free the reservations of a namespace whose pods were not called yet, except for the first of them."""
        rows = self.ledger.rows.items()
        self.ledger.unreserve([uid for uid, row in rows if row.namespace == namespace and row.since is None][1:])
        self._offer()

    def _offer(self) -> None:
        """Retry the pods that did not fit into the record, if some fit now."""
        has_space = len(self.ledger.rows) <= MAX_RESERVED - SMALLEST_RESERVATION
        if self.ledger.is_full and has_space and self._free() > 0:
            self.ledger.is_full = False
            self._free_record()

    # -- its record -----------------------------------------------------------------------------------------------

    @property
    def has_to_save(self) -> bool:
        """True if the stored record differs from the state of the guard."""
        return self._unsaved or not self.is_stored or bool(self.ledger.wanted)

    def to_save(self, now: Instant, term: int) -> GuardRecord:
        """Return the record that has to be stored now."""
        self._unsaved, self._tidy_at = False, MonotonicTime(math.inf)
        if self.is_acting:
            self.latch.note_sent()
        return self.record(now, term)

    def save_again(self) -> None:
        """Store the record once more, since the result of the last attempt is unknown."""
        self._unsaved = True

    def saved(self, record: GuardRecord, *, error: str = "", pruned: tuple[str, ...] = ()) -> None:
        """Note that the record is stored, except for ``pruned`` fields; or that an error requires another attempt."""
        self.error, self._unsaved = error, self._unsaved or bool(error)
        if not error:
            self.pruned = pruned
            self.latch.note_stored()
            self.ledger.stored(dict(record.reserved))
        self._changed |= self.latch.is_tripped
        self._freed(ALL)

    def record(self, now: Instant, term: int = 0) -> GuardRecord:
        """Return the state of the guard in its stored form."""
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
        """Apply the record that the previous leader stored."""
        latest, past = self._slot(now), EvictionWindow()
        for at, pods in sorted(record.evicted):
            for namespace, number in pods:
                past.note(min(now.monotonic_at(at), latest), namespace, RESTORED, number)
        past.process_time(later(now.monotonic, -self.settings.window_seconds))
        self.ledger.restore(past, dict(record.reserved), record.population, now.monotonic)
        tripped_at = None if record.tripped_at is None else WallTime(min(record.tripped_at, now.wall))
        before, self._passing, self._is_releasing = self.latch.scope, [], False
        self.latch.restore(tripped_at, record.cause, dict(record.counted), now)
        self.latch.settled_at = later(now.monotonic, self.settings.settle_seconds)
        self.wave.revoke_releases()
        self._is_resized = not record.counted  # the guard only reported, and may hold pods now
        self._has_new_action = self.is_acting and self._is_resized
        for key in self.wave.counting if self.latch.is_tripped else ():
            self._hold(key)
        self._freed(before)
        self.error, self._unsaved, self._changed = "", False, True

    def resolve(self, existing: Callable[[Collection[str]], Container[str]], now: Instant) -> None:
        """Count as evicted the pods that the previous leader had reserved and that are gone. All pods are known now."""
        if self.ledger.unknown:
            self.ledger.resolve(existing(self.ledger.unknown), self._slot(now))
            self._tidy_at = later(now.monotonic, TIDY_SECONDS)
            self._offer()

    def change(self, settings: GuardSettings) -> None:
        """Apply changed settings. The caller passes the pods that have to leave to :meth:`expect` again."""
        if settings != self.settings:
            self._is_resized = True
            self._has_new_action |= settings.action is not self.settings.action
            self.latch.schedule_narrowing()
            self.ledger.window_changed()
        self._changed = True  # the policy may act again
        self.settings = settings
