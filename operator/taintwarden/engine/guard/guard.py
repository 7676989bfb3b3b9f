"""The decisions of a guard.

A tripped guard holds all pods of its policy. It is armed again when its cause is gone: no pod that was on its node when
the guard tripped has to leave any more. A lower number of them is not enough, since values are repaired node by node,
and pods on nodes that are not repaired yet must not be evicted meanwhile. Pods that came later do not keep it tripped:
they are not the cause. A person can also release the pods that it holds: exactly these, regardless of other counts, and
none counts again.

If the wave does not grow for a minute, and one namespace or one node is the reason for it, only the pods of that one
remain held: they exceed the limit alone while all others are within it, or all others are within half of it. And a
guard that is not tripped holds the pods of a namespace whose own pods, those that count for it only, would exceed the
limit. So no tenant and no node can stop the evictions of others for long.
"""

from collections import deque
from collections.abc import Callable
from enum import Enum, auto

from taintwarden.engine.guard.forecast import ROUNDING_SECONDS, Due, Forecast
from taintwarden.engine.guard.record import SMALLEST_RESERVATION, GuardRecord, Reservation
from taintwarden.engine.guard.spent import FOR_ALL, SLOTS, Peak, Share, Spent, slot_end
from taintwarden.engine.model import GuardAction, GuardSettings, Instant, MonotonicTime, WallTime, later

NARROW_SECONDS = 60.0
"""How long a wave has not grown until the guard holds only the one namespace or node that is the reason."""
ALL_PODS = ""
"""The name of a hold on all pods of the policy."""


class Turn(Enum):
    """What a check of the guard changed."""

    TRIPPED = auto()
    """It has been tripped long enough for the wave to be complete."""
    ARMED = auto()
    PASSED = auto()
    """It was armed again before the trip was announced."""


class Guard:
    """The guard of one policy.

    Args:
        settings: its limits.
        freed: called with the name of a hold that ended; with ``ALL_PODS``, evictions of the policy may continue.

    """

    def __init__(self, settings: GuardSettings, freed: Callable[[str], None]) -> None:
        self.settings = settings
        self.ahead = Forecast(settings.window_seconds)
        self.tripped_at: WallTime | None = None
        self.cause = ""
        self.population: Callable[[], int] = lambda: 0
        """Counts the pods that the policy may evict; called only when many would be evicted."""
        self.knows_causes = True
        """Whether all pods are known that have to leave: until then, that none is known does not arm it."""
        self.acts_since = WallTime(0.0)
        """Since when the policy enforces as it is, under one leader after the other."""
        self.reset = ""
        """The request for a reset that was granted, until it is removed."""
        self._freed = freed
        self._spent = Spent()
        self._rehearsed = Spent()
        """The same for evictions of a dry run."""
        self._rehearsals: dict[str, tuple[MonotonicTime, Share]] = {}
        """UID -> the slot in which its rehearsed eviction counts, and for whom; the oldest first."""
        self._population = Peak()
        """How many pods the policy might evict, as they were counted."""
        self._current_slot = MonotonicTime(0.0)
        """The end of the slot in which they are counted now."""
        self._taken: dict[str, tuple[MonotonicTime, Share]] = {}
        """UID -> the slot in which its eviction counts, and for whom, until it is settled."""
        self._generation: int | None = None
        """Of the policy that enforces; None: it does not."""
        self._stored = GuardRecord()
        """What was stored last, or restored."""
        self._reserved = Reservation()
        self._released_at: WallTime | None = None
        self._quota = 0
        """How many released pods of the restored record are not identified yet."""
        self._scope = ALL_PODS
        """What a tripped guard holds; all pods until it is narrowed."""
        self._narrows_at = MonotonicTime(0.0)
        self._held: dict[str, int] = {}
        """Holds on namespaces whose own pods exceed the limit, and how many pods would be evicted."""
        self._settled_at = MonotonicTime(0.0)
        self._is_announced = False
        self._changed = True
        """The settings or the past changed: it has to be checked."""
        self._reconfigured = False
        self._unsaved = False

    @property
    def is_tripped(self) -> bool:
        """Whether too many pods would be evicted."""
        return self.tripped_at is not None

    @property
    def halts(self) -> bool:
        """Whether it now refuses evictions, except those of released pods."""
        return self.is_tripped and self.settings.action is GuardAction.HALT

    @property
    def scope(self) -> str:
        """What a tripped guard holds: ``namespace shop``, ``node a1``, or all pods."""
        return self._scope

    @property
    def own_holds(self) -> dict[str, int]:
        """The holds on namespaces because of their own pods, and how many pods would be evicted of each."""
        return dict(self._held) if self.settings.action is GuardAction.HALT else {}

    def hold_on(self, namespace: str, node: str) -> str | None:
        """The name of the hold on a pod; None if it may be evicted."""
        if self.settings.action is not GuardAction.HALT:
            return None
        name = _of_namespace(namespace)
        if self.is_tripped and self._scope in (ALL_PODS, name, _of_node(node)):
            return self._scope
        return next((hold for hold in (name, _of_namespace(namespace, node)) if hold in self._held), None)

    # -- what would be evicted, and what was --------------------------------------------------------------------

    def expect(self, due: Due, now: Instant) -> None:
        """A pod will have to leave, unless something changes."""
        if self.ahead.near.get(due.uid) == due:
            return
        self._meet_released(due)
        self._take_back_rehearsal(due.uid)
        self.ahead.put(due, now)

    def _meet_released(self, due: Due) -> None:
        """After a restart: identify a pod that already had to leave when a person released the pods that were held."""
        at = self._released_at
        if not self._quota or at is None or due.uid in self.ahead.released:
            return
        if max(due.bound_at, due.since) <= at + ROUNDING_SECONDS and due.at <= at + self.settings.window_seconds:
            self._quota -= 1
            self.ahead.release(due.uid)

    def forget(self, uid: str) -> None:
        """A pod no longer has to leave, or is gone."""
        self.ahead.remove(uid)
        self._changed = self._changed or bool(self._held)
        if self.ahead.released.pop(uid, "") is None:
            self._unsaved = True

    def may_take(self, now: Instant) -> bool:
        """Whether the stored record reserves one more eviction."""
        slot = self._slot(now)
        return self._reserved.left(slot, self._spent.in_slot(slot)) > 0

    def used_up_until(self) -> MonotonicTime | None:
        """When the first evictions leave the window, if as many as may be are in it."""
        if self.settings.action is GuardAction.REPORT or not self._spent or self._room() > 0:
            return None
        return MonotonicTime(self._spent.first_ends_at() + self.settings.window_seconds)

    def has_taken(self, uid: str) -> bool:
        """Whether an eviction of this pod already counts: the last call may have been carried out."""
        return uid in self._taken

    def is_own(self, uid: str) -> bool:
        """Whether a pod that has to leave counts for its own namespace only: no record has to reserve that."""
        due = self.ahead.near.get(uid)
        return due is not None and due.is_own

    def take(self, uid: str, now: Instant) -> None:
        """A pod is evicted now. It counts once, regardless of retries."""
        due = self.ahead.near.get(uid)
        if uid not in self.ahead.released and uid not in self._taken:
            share = due.share if due is not None else FOR_ALL
            slot = self._slot(now)
            self._spent.note(slot, share)
            self._taken[uid] = slot, share
        self.ahead.evict(uid)

    def settle(self, uid: str, *, stays: bool) -> None:
        """The eviction call ended: one that did not evict the pod no longer counts."""
        taken = self._taken.pop(uid, None)
        if stays and taken is not None:
            self._spent.take_back(*taken)
            self._changed = self._changed or bool(self._held)

    def stay(self, uid: str) -> None:
        """No call for this pod is in progress any more."""
        self._taken.pop(uid, None)

    def rehearse(self, uid: str, now: Instant) -> None:
        """A pod would be evicted now: that counts until the policy enforces, unless a person released the pod."""
        due = self.ahead.near.get(uid)
        self._take_back_rehearsal(uid)
        if uid not in self.ahead.released:
            rehearsal = self._slot(now), due.share if due is not None else FOR_ALL
            self._rehearsed.note(*rehearsal)
            self._rehearsals[uid] = rehearsal
        self.forget(uid)

    def _take_back_rehearsal(self, uid: str) -> None:
        """A pod that is still there to be evicted again was not evicted: it counts once, as it would be then."""
        if (rehearsal := self._rehearsals.pop(uid, None)) is not None:
            self._rehearsed.take_back(*rehearsal)

    def forget_rehearsals(self) -> None:
        """The policy enforces from now on; the evictions of the dry run did not happen."""
        self._rehearsed, self._rehearsals = Spent(), {}
        self._changed = True

    # -- settings -----------------------------------------------------------------------------------------------

    def change(self, settings: GuardSettings, now: Instant) -> None:
        """Apply changed settings, also to what is already known."""
        if settings == self.settings:
            return
        if settings.window_seconds != self.settings.window_seconds:
            self.ahead.resize(settings.window_seconds, now)
        self.settings = settings
        self._changed = self._reconfigured = True

    def enforce(self, generation: int | None, now: Instant) -> None:
        """The policy enforces with this generation; None: it does not enforce."""
        if generation != self._generation:
            self._generation, self.acts_since = generation, now.wall

    def interrupt(self, now: Instant) -> None:
        """For some time no leader acted: what happened meanwhile counts for all."""
        self.acts_since = now.wall

    # -- tripped or armed ---------------------------------------------------------------------------------------

    def look(self, now: Instant) -> Turn | None:
        """Trip or arm the guard, if the evictions that it counts require it."""
        self._let_time_pass(now)
        grew, self.ahead.grew = self.ahead.grew, False
        grew_for_all, self.ahead.grew_for_all = self.ahead.grew_for_all, False
        is_due = self._changed or grew
        self._changed = False
        turn = self._look(now, is_due=is_due)
        if is_due or self._held:
            self._hold_namespaces(now)
        self._narrow(now, grew=grew_for_all)
        return turn

    def _look(self, now: Instant, *, is_due: bool) -> Turn | None:
        reconfigured, self._reconfigured = self._reconfigured, False
        if self.tripped_at is None:
            if not is_due or self._is_within_limit(now):
                return None
            self._trip(now)
        elif not self.knows_causes:
            self._reconfigured = reconfigured
        elif not self.ahead.causes or (reconfigured and self._is_within_limit(now)):
            return self._arm()
        if not self._is_announced and now.monotonic >= self._settled_at:
            self._unsaved = self._is_announced = True
            return Turn.TRIPPED
        return None

    def _let_time_pass(self, now: Instant) -> None:
        self._current_slot = self._slot(now)
        self.ahead.let_time_pass(now)
        for past in (self._spent, self._rehearsed, self._population):
            past.let_time_pass(now.monotonic, self.settings.window_seconds)
        while (oldest := next(iter(self._rehearsals), None)) is not None:
            if self._rehearsals[oldest][0] + self.settings.window_seconds > now.monotonic:
                break
            del self._rehearsals[oldest]

    def _trip(self, now: Instant) -> None:
        self.tripped_at = now.wall
        self.ahead.trip(self.tripped_at, is_now=True)
        self._unsaved, self._is_announced = True, False
        self._settled_at = later(now.monotonic, self.settings.settle_seconds)
        self._narrows_at = later(now.monotonic, NARROW_SECONDS)

    def _arm(self) -> Turn:
        self.tripped_at, self.cause = None, ""
        self._hold(ALL_PODS)
        self.ahead.trip(None)
        self._unsaved = self._changed = True
        self._freed(ALL_PODS)
        return Turn.ARMED if self._is_announced else Turn.PASSED

    def _hold(self, scope: str) -> None:
        """What it holds changes. Pods that wait for the end of the hold that it had are admitted, or refused again."""
        if scope != self._scope:
            self._scope, before = scope, self._scope
            self._freed(before)

    def _hold_namespaces(self, now: Instant) -> None:
        """Hold the namespaces whose own pods would exceed the limit: on one node only, if those are the reason.

        A kubelet may annotate the pods of its node. Those of their namespaces on other nodes are not its own.
        """
        before, self._held = self._held, {}
        for namespace in self.ahead.namespaces() if self.settings.holds_own else ():
            pods = self._most(now, namespace)
            if self._may_evict(pods):  # which costs no count of all pods while they are few
                continue
            node = self._reason(now, namespace)
            self._held[_of_namespace(namespace, node)] = pods
        for name in before:
            if name not in self._held:
                self._freed(name)

    def _reason(self, now: Instant, namespace: str) -> str:
        """The node with most of the own pods of a namespace, if all other pods are within the limit."""
        shares = self.ahead.own(namespace)
        for past in (self._spent, self._rehearsed):
            shares.update(past.own(namespace))
        [(node, pods)] = shares.most_common(1)
        is_one = pods > shares.total() - pods and self._may_evict(self._most(now, namespace, besides=node))
        return node if is_one else ""

    def _narrow(self, now: Instant, *, grew: bool) -> None:
        """Hold only what is the reason, if the wave does not grow; all again if the rest exceeds the limit."""
        if not self.is_tripped:
            return
        if self._scope != ALL_PODS:
            if grew and not self._may_evict(self._rest(self._scope)):
                self._hold(ALL_PODS)
                self._narrows_at = later(now.monotonic, NARROW_SECONDS)
        elif grew:
            self._narrows_at = later(now.monotonic, NARROW_SECONDS)
        elif now.monotonic >= self._narrows_at:
            self._narrows_at = later(now.monotonic, NARROW_SECONDS)
            largest = [(kind, peaks.most_common(1)) for kind, peaks in self.ahead.peaks.items()]
            reasons = [
                (pods, hold)
                for kind, [(name, pods)] in largest
                if self._is_reason(pods, self._rest(hold := f"{kind} {name}"))
            ]
            if reasons:
                self._hold(min(reasons)[1])

    def _is_reason(self, pods: int, rest: int) -> bool:
        """Whether ``pods`` of one namespace or node are the reason: they are too many alone, or the rest is few."""
        return self._may_evict(2 * rest) or (self._may_evict(rest) and not self._may_evict(pods))

    def _rest(self, hold: str) -> int:
        """The most evictions without those ahead of one namespace or node.

        What was repaired since the guard tripped counts, too: those that are not repaired yet must not be evicted.
        """
        kind, _, name = hold.partition(" ")
        peaks = self.ahead.peaks[kind]
        return self.spent() + peaks.total() - peaks[name]

    def release(self, now: Instant) -> list[str]:
        """A person confirmed the evictions of the pods that it holds; it is armed. Returns their UIDs."""
        held = list(self.ahead.held())
        for uid in held:
            self.ahead.release(uid)
        self._released_at, self._quota = now.wall, 0
        self._unsaved = self._changed = True
        self._freed(ALL_PODS)
        if self.is_tripped:
            self._arm()
        return held

    def grant(self, reset: str) -> None:
        """A request for a reset is granted; or, if empty, it was removed. Either has to be stored."""
        self.reset = reset
        self._unsaved = True

    @property
    def is_grant_stored(self) -> bool:
        """Whether the next leader would know of the reset. Until then, no released pod is evicted."""
        return not self.reset or self.reset == self._stored.reset

    def limit(self) -> int:
        """How many pods may be evicted in one window.

        Of those that there were in it at most: what was evicted and is not replaced yet still counts. What is gone for
        another reason does not.
        """
        pods = self._counted()
        return self.settings.limit(max(pods, min(self._population.greatest(), pods + self._evicted())))

    def _counted(self) -> int:
        """How many pods the policy may evict now."""
        pods = self.population()
        self._population.note(self._current_slot, pods)
        return pods

    def _evicted(self) -> int:
        """How many evictions of the last window count for all."""
        return sum(pods for _, pods in self._spent.of())

    def _room(self) -> int:
        """How many more there may be. Below 0 if there are fewer pods than when it was checked."""
        return self.limit() - self._evicted()

    def spent(self) -> int:
        """How many evictions of the last window count for all, those of a dry run included."""
        return sum(pods for past in (self._spent, self._rehearsed) for _, pods in past.of())

    def next_look(self, now: Instant) -> float | None:
        """Seconds until it has to be checked again even if no more pods have to leave."""
        if self._changed or self.ahead.grew or (self.is_tripped and self.knows_causes and not self.ahead.causes):
            return 0.0
        waits: list[float] = []
        if self.is_tripped and not self._is_announced:
            waits.append(self._settled_at - now.monotonic)
        elif self.is_tripped and self._scope == ALL_PODS:
            waits.append(self._narrows_at - now.monotonic)
        if (near := self.ahead.next_near_at()) is not None:
            waits.append(near - now.wall)
        if self._spent and self.ahead.near:  # evictions that leave the window can be reserved again
            waits.append(self._spent.first_ends_at() + self.settings.window_seconds - now.monotonic)
        return max(0.0, min(waits)) if waits else None

    def _is_within_limit(self, now: Instant) -> bool:
        return self._may_evict(self._most(now))

    def _may_evict(self, pods: int) -> bool:
        return pods <= self.settings.at_least(0) or pods <= self.limit()

    def _most(self, now: Instant, namespace: str = "", besides: str = "") -> int:
        """The most evictions in any window of time that begins in the past and ends now or later.

        Those that count for all, and for this namespace, except on the node ``besides``. 0 while no eviction is ahead:
        past evictions alone trip no guard. The work is bounded by the number of slots.
        """
        ahead = self.ahead.begins(namespace, besides)
        total = sum(pods for _, pods in ahead)
        past = sorted([*self._spent.of(namespace, besides), *self._rehearsed.of(namespace, besides)])
        spent = sum(pods for _, pods in past)
        if not total or not spent:
            return total
        window = self.settings.window_seconds
        ends = deque((now.wall_at(end), pods) for end, pods in past)
        most, counted = spent, 0
        for begins, pods in ahead:
            while ends and ends[0][0] + window <= max(begins, now.wall):
                spent -= ends.popleft()[1]
            counted += pods
            most = max(most, counted + spent)
        return most

    def _slot(self, now: Instant) -> MonotonicTime:
        return slot_end(now, self.settings.window_seconds)

    # -- what is stored -------------------------------------------------------------------------------------------

    def restore(self, record: GuardRecord, now: Instant) -> None:
        """Apply the record that the previous leader stored.

        What it reserved may not have happened. This process knows that of the record that it stored itself.
        """
        is_own = (record.term, record.spent) == (self._stored.term, self._stored.spent)
        self._stored = record
        self._current_slot = self._slot(now)
        self._counted()  # the leader is about to evict pods, which are there still
        self.tripped_at = None if record.open_since is None else WallTime(min(record.open_since, now.wall))
        self.cause = record.cause
        self._hold(ALL_PODS)
        self._is_announced = bool(record.cause)
        self._settled_at = later(now.monotonic, self.settings.settle_seconds)
        self._narrows_at = later(now.monotonic, NARROW_SECONDS)
        if not is_own:
            self._restore_spent(record, now)
        self._quota = record.accepted or 0
        self._released_at = None if record.released_at is None else WallTime(record.released_at)
        self.reset = record.reset
        if record.enforces is not None and record.enforces[0] == self._generation:
            self.acts_since = WallTime(min(record.enforces[1], now.wall))
        if self.tripped_at is not None:  # what selected pods only by then is not known any more: they count for all
            self.acts_since = max(self.acts_since, self.tripped_at)
        self._forecast_again(now)
        self._reserved = Reservation()
        self._unsaved, self._changed = False, True

    def _restore_spent(self, record: GuardRecord, now: Instant) -> None:
        """The past evictions of a record, what it reserves included."""
        latest = now.wall + self.settings.window_seconds / SLOTS
        self._spent = Spent()
        for at, pods in sorted(record.spent):
            if pods:
                self._spent.note(now.monotonic_at(min(at, latest)), pods=pods)

    def _forecast_again(self, now: Instant) -> None:
        """The record has only the number of the released pods."""
        known = self.ahead.known()
        self.ahead = Forecast(self.settings.window_seconds)
        self.ahead.trip(self.tripped_at)
        for due in known:
            self.expect(due, now)

    def reservation_wanted(self, now: Instant, *, waiting: bool) -> Reservation | None:
        """The reservation of a record that has to be stored now, None if there is none.

        ``waiting``: due pods need more evictions reserved.
        """
        slot = self._slot(now)
        used = self._spent.in_slot(slot)
        # What it holds needs nothing reserved: so the stored count of a tripped guard is exact after a restart, too.
        left = 0 if self._is_halted else self._reserved.left(slot, used)
        wanted = max(SMALLEST_RESERVATION, (self.settings.min_pods or 0) // 10, len(self.ahead.near) // 10)
        more = self._reservable(wanted) if waiting and not self._is_halted and left <= wanted // 2 else 0
        if more > left:
            left = more
        elif not self._unsaved and self.enforces == self._stored.enforces:
            return None
        self._unsaved = False
        return Reservation(slot, used + max(0, left))

    @property
    def _is_halted(self) -> bool:
        return self.halts and self._scope == ALL_PODS

    def _reservable(self, wanted: int) -> int:
        """How many more evictions may be reserved: at most a tenth of those allowed, and what is left of them.

        What is reserved and not used counts as evicted after a restart, and would trip it without cause.
        """
        if self.settings.action is GuardAction.REPORT:
            return wanted
        return max(0, min(wanted, max(1, self.limit() // 10), self._room()))

    def saved(self, record: GuardRecord, reserved: Reservation, *, succeeded: bool) -> None:
        """The write of a record, which contains ``reserved``, ended."""
        if succeeded:
            self._reserved, self._stored = reserved, record
            self._freed(ALL_PODS)
        else:
            self._unsaved = True

    @property
    def enforces(self) -> tuple[int, float] | None:
        """The generation that enforces, and since when, as it has to be stored."""
        return None if self._generation is None else (self._generation, round(self.acts_since, 3))

    def record(self, now: Instant, reserved: Reservation | None = None, term: int = 0) -> GuardRecord:
        """The state of the guard; with ``reserved``, as it has to be stored."""
        slots = dict(self._spent.of())
        if reserved is not None:
            slots[reserved.slot] = reserved.pods
        spent = tuple((round(now.wall_at(end), 3), pods) for end, pods in slots.items() if pods)
        accepted = len(self.ahead.released) + self._quota or None
        return GuardRecord(
            self.tripped_at,
            self.cause,
            self.ahead.total if self.is_tripped else 0,
            accepted,
            self._released_at if accepted else None,
            spent,
            self.reset,
            self.enforces,
            term,
        )


def _of_namespace(name: str, node: str = "") -> str:
    return f"namespace {name} on node {node}" if node else f"namespace {name}"


def _of_node(name: str) -> str:
    return f"node {name}"
