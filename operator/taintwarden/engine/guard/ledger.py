"""The pods that were evicted within the window, and those for which a call is reserved.

A pod is reserved in the stored record before its call. After the call it is *called* and stays reserved until its watch
event shows that it leaves: then it counts as evicted, whatever the answer was. The reservation ends if a budget refused
the call, or nothing was sent. It also ends one window after the first call, or one minute after the last call if the
pod no longer has to leave. Another call needs another reservation. A pod that leaves within a window after a call still
counts. While too many called pods of a namespace do not leave, no other pod of that namespace is reserved.
A new leader treats the pods that the previous leader had reserved as called when it began to lead.
"""

import math
from collections import Counter
from collections.abc import Collection, Container, Iterable

import msgspec

from taintwarden.engine.model import MonotonicTime, WorkloadKey, later
from taintwarden.engine.tally import Tally

MAX_RESERVED, MAX_FAILING = 512, 64
"""Maximum reserved pods, since the record has a bounded size, and maximum called pods of a namespace that stay."""
UNSURE_SECONDS = 60.0
"""Seconds until a call counts as over: it may take 30 s, and its watch event arrives later."""
RESTORED: WorkloadKey = ("", "")
"""Stand-in for the workloads of pods that the previous leader evicted, which are not stored."""


class Reservation(msgspec.Struct, eq=False):
    """A pod that is reserved, or was called."""

    namespace: str
    is_stored: bool = False
    """True if the stored record has the pod."""
    since: MonotonicTime | None = None
    """When the first call after the reservation was made; None: not called yet."""
    last_at: MonotonicTime = MonotonicTime(-math.inf)
    """When the last call was made."""
    in_flight: bool = False
    may_leave: bool = False
    """True if a call was answered that may have been carried out."""

    def ends_at(self, window_seconds: float, *, is_due: bool) -> MonotonicTime:
        """Return when the reservation ends. ``is_due``: the pod still has to leave within the window."""
        if self.since is None or self.in_flight:
            return MonotonicTime(math.inf)
        if not is_due:
            return later(self.last_at, UNSURE_SECONDS)
        return later(self.since, window_seconds)


class Ledger:
    """Reservations and evictions of one policy."""

    def __init__(self) -> None:
        self.past = EvictionWindow()
        self.rows: dict[str, Reservation] = {}
        """The reserved pods, by UID."""
        self.wanted: dict[str, None] = {}
        """UIDs of reserved pods that the stored record lacks."""
        self.called: dict[str, Reservation] = {}
        """The pods that may leave because of a call, by UID."""
        self.is_full = False
        """True if a pod could not be reserved."""
        self.unknown: tuple[str, ...] = ()
        """UIDs of the pods that the previous leader had reserved, until all pods are known."""
        self._population = 0
        """Population from which the previous leader computed its allowance."""
        self._ends_at = -math.inf
        """When the next reservation ends; -inf: to be computed."""
        self._failing: Counter[str] | None = None
        """Reserved pods by namespace that have not left after an answered call; None: to be counted."""

    @property
    def used(self) -> int:
        """Number of pods that are evicted or reserved within the window."""
        return self.past.total + len(self.rows)

    # -- reservations ---------------------------------------------------------------------------------------------

    def may_call(self, uid: str, most_failing: int) -> bool:
        """Return True if the stored record reserves the pod. A first call waits while too many called pods stay."""
        row = self.rows.get(uid)
        if row is None or not row.is_stored:
            return False
        return row.since is not None or not self.fails(row.namespace, most_failing)

    def want(self, uid: str, namespace: str, *, free: int, at_once: int, most_failing: int) -> bool:
        """Reserve the pod in the next record, if the pod fits. Returns True if it is reserved."""
        if self.fails(namespace, most_failing):
            self.unreserve([uid])
        elif uid not in self.rows and free > 0 and len(self.wanted) < at_once and len(self.rows) < MAX_RESERVED:
            row = self.rows[uid] = self.called.get(uid) or Reservation(namespace)
            row.is_stored, row.since, self.wanted[uid] = False, None, None
        self.is_full |= uid not in self.rows
        return uid in self.rows

    def fails(self, namespace: str, most: int) -> bool:
        """Return True if at least ``most`` reserved pods of a namespace have not left after an answered call."""
        if self._failing is None:
            self._failing = Counter(row.namespace for row in self.rows.values() if row.may_leave and row.since)
        return self._failing[namespace] >= max(1, most)

    def unreserve(self, uids: Iterable[str]) -> None:
        """Free the reservations of pods that other limits hold, except for pods that were called."""
        for uid in uids:
            if uid in self.rows and self.rows[uid].since is None:
                del self.rows[uid]
                self.is_full |= uid in self.wanted  # the pod waits for the record, which will not have it
                self.wanted.pop(uid, None)

    def stored(self, uids: Collection[str]) -> None:
        """Note that the stored record has these pods."""
        for uid in [uid for uid in self.wanted if uid in uids]:
            del self.wanted[uid]
            self.rows[uid].is_stored = True

    # -- calls ----------------------------------------------------------------------------------------------------

    def call(self, uid: str, namespace: str, now: MonotonicTime) -> None:
        """Note that a call for the pod is made."""
        row = self.rows.get(uid) or self.called.get(uid) or Reservation(namespace)
        self.rows[uid] = self.called[uid] = row
        row.since = now if row.since is None else row.since
        row.last_at, row.in_flight = now, True

    def settle(self, uid: str, *, stays: bool) -> bool:
        """Note the end of a call. Returns True if the pod is known to stay, so that its reservation has ended."""
        row = self.called.get(uid)
        if row is None:
            return False
        row.in_flight, row.may_leave = False, row.may_leave or not stays
        self._ends_at, self._failing = -math.inf, None
        if row.may_leave:
            return False
        self.drop(uid)
        return True

    def drop(self, uid: str) -> None:
        """Drop a pod that stays, or that a person released."""
        self._failing = None if uid in self.rows else self._failing
        for known in (self.called, self.rows, self.wanted):
            known.pop(uid, None)

    def forget(self, uid: str) -> None:
        """Free the reservation of a pod that no longer has to leave, unless it was called and may leave yet."""
        self.unreserve([uid])
        self._ends_at = -math.inf

    def gone(self, uid: str, workload: WorkloadKey | None, slot: MonotonicTime) -> bool:
        """Count a pod as evicted in this slot if it was called, since it is gone or terminating. Returns True if so."""
        row = self.called.get(uid)
        self.drop(uid)
        if row is not None:
            self.past.note(slot, row.namespace, workload, uid=uid)
        return row is not None

    # -- time -----------------------------------------------------------------------------------------------------

    def window_changed(self) -> None:
        """Compute again when the next reservation ends."""
        self._ends_at = -math.inf

    def process_time(self, now: MonotonicTime, window_seconds: float, due: Container[str]) -> bool:
        """End reservations, and drop calls that are over without a departure. Returns True if more may be reserved."""
        is_free = self.past.process_time(later(now, -window_seconds))
        if now < self._ends_at:
            return is_free
        self._ends_at, self._failing = math.inf, None
        for uid, row in list(self.called.items()):
            ends_at = row.ends_at(window_seconds, is_due=uid in due)
            if ends_at <= now and self.rows.pop(uid, None) is not None:
                is_free = True
            if uid not in self.rows:
                ends_at = later(row.last_at, window_seconds)
            if ends_at <= now:
                del self.called[uid]
            else:
                self._ends_at = min(self._ends_at, ends_at)
        return is_free

    def next_end(self, window_seconds: float) -> MonotonicTime | None:
        """Return when the next eviction leaves the window, or a reservation ends; None if nothing counts."""
        ends = [self._ends_at] if self.called else []
        ends += [later(end, window_seconds) for end in self.past.first_end()]
        first = min(ends, default=math.inf)
        return None if first == math.inf else MonotonicTime(first)

    # -- the population, and another leader -----------------------------------------------------------------------

    def population(self, pods: int) -> int:
        """Return the population: ``pods`` that may be evicted, and evicted pods that are not replaced yet."""
        return pods + self.past.missing

    def note_replaced(self, pods: int) -> None:
        """Count ``pods`` beyond the population that the previous leader stored as replacing pods that it evicted."""
        self.past.replace(RESTORED, max(0, self.population(pods) - self._population))

    def restore(self, past: "EvictionWindow", reserved: dict[str, str], population: int, now: MonotonicTime) -> None:
        """Apply the evictions, reservations and population that another process stored."""
        self.past, self.wanted, self.is_full, self._population = past, {}, False, population
        self.rows = {uid: Reservation(one, is_stored=True, since=now, last_at=now) for uid, one in reserved.items()}
        self.called, self.unknown, self._ends_at = dict(self.rows), tuple(reserved), -math.inf
        self._failing = None

    def resolve(self, existing: Container[str], slot: MonotonicTime) -> None:
        """Count as evicted the pods that another process reserved and that are not among the ``existing`` ones."""
        unknown, self.unknown = self.unknown, ()
        for uid in unknown:
            if uid not in existing:
                self.gone(uid, RESTORED, slot)


class _Slot:
    """Evictions in a part of a window: pods by namespace, and by workload those that are not replaced yet."""

    __slots__ = ("missing", "pods", "uids")

    def __init__(self) -> None:
        self.uids: list[str] = []
        self.pods: Tally[str] = Tally()
        self.missing: Tally[WorkloadKey | None] = Tally()


class EvictionWindow:
    """Evictions of one window. Each counts for one window from the end of its slot, so no count is too low."""

    def __init__(self) -> None:
        self.slots: dict[MonotonicTime, _Slot] = {}
        """Slots by their ends, the oldest first."""
        self._evicted: dict[str, tuple[MonotonicTime, str, WorkloadKey | None]] = {}
        """UID -> the slot, namespace and workload of a pod that this process evicted."""
        self.by_namespace: Tally[str] = Tally()
        self.total = self.missing = 0

    def note(
        self, ends_at: MonotonicTime, namespace: str, workload: WorkloadKey | None, pods: int = 1, *, uid: str = ""
    ) -> None:
        """Count evictions in the slot with this end, which is the newest."""
        slot = self.slots.get(ends_at)
        if slot is None:
            slot = self.slots[ends_at] = _Slot()
        if uid:
            slot.uids.append(uid)
            self._evicted[uid] = ends_at, namespace, workload
        slot.pods[namespace] += pods
        slot.missing[workload] += pods
        self.by_namespace[namespace] += pods
        self.total += pods
        self.missing += pods

    def pod_added(self, uid: str, workload: WorkloadKey | None) -> None:
        """Note a new pod, which replaces an evicted one; or, after a restore of etcd, is an evicted one."""
        evicted = self._evicted.pop(uid, None)
        if evicted is None:
            self.replace(workload, 1)
            return
        ends_at, namespace, workload = evicted
        slot = self.slots[ends_at]
        slot.pods.change(namespace, -1)
        self.by_namespace.change(namespace, -1)
        self.total -= 1
        if slot.missing[workload]:
            slot.missing.change(workload, -1)
            self.missing -= 1

    def replace(self, workload: WorkloadKey | None, most: int) -> None:
        """Count up to ``most`` evicted pods of a workload as replaced, the oldest evictions first."""
        for slot in self.slots.values() if most and self.missing and workload is not None else ():
            pods = min(most, slot.missing[workload])
            slot.missing.change(workload, -pods)
            self.missing -= pods
            most -= pods

    def process_time(self, until: MonotonicTime) -> bool:
        """Drop the slots with ends up to ``until``. Returns True if there were any."""
        ended = [end for end in self.slots if end <= until]
        for end in ended:
            slot = self.slots.pop(end)
            for uid in slot.uids:
                if self._evicted.get(uid, (None,))[0] == end:
                    del self._evicted[uid]
            self.total -= slot.pods.total()
            self.missing -= slot.missing.total()
            for namespace, pods in slot.pods.items():
                self.by_namespace.change(namespace, -pods)
        return bool(ended)

    def end(self, pods: int, allowance: int, slot: MonotonicTime, window_seconds: float) -> MonotonicTime | None:
        """Return when the last of ``pods`` others is admitted; None: never. ``slot``: end of the current slot."""
        if (waiting := pods + self.total - allowance) <= 0:
            return slot
        if not allowance:
            return None
        surplus = max(0, self.total - allowance)  # their end admits no other pod
        windows, waiting = divmod(waiting - 1 - surplus, allowance)
        waiting += surplus
        for end, evicted in self.slots.items():
            waiting -= evicted.pods.total()
            if waiting < 0:
                slot = end
                break
        return later(slot, (windows + 1) * window_seconds)

    def first_end(self) -> list[MonotonicTime]:
        """Return the end of the oldest slot, as a list that is empty if there is no slot."""
        return [*self.slots][:1]
