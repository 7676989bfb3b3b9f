"""A tripped guard with ``action: Pace``."""

import itertools

import pytest

from engine.guard.bench import SLOT, WALL, WINDOW, Bench, pods, wave
from taintwarden.engine.guard import ALL, GuardTransition
from taintwarden.engine.guard.latch import NARROW_SECONDS
from taintwarden.engine.limit_settings import GuardAction
from taintwarden.engine.records import Pace

ALLOWED = 10
TWO_HOURS = 7_200
STEP = 30


def paced(**settings) -> Bench:
    return Bench(action=GuardAction.PACE, **settings)


class History:
    """Pods of bad nodes, evicted under one leader after another.

    Args:
        number: how many pods have to leave at first.
        kills: the process ends at each write, and the record is stored or not in turn.
        replaced: each pod is replaced at once, on a bad node.

    """

    def __init__(self, number: int, *, kills: bool = False, replaced: bool = False) -> None:
        self.bench, self.kills, self.replaced = paced(max_pods=ALLOWED), kills, replaced
        self.due = pods(number)
        self.left: list[float] = []
        self.stored = self.bench.guard.record(self.bench.now)
        self._writes = 0
        self.bench.expect(*self.due)
        self._names = (f"again-{index}" for index in itertools.count())

    def _store(self) -> None:
        guard, self._writes = self.bench.guard, self._writes + 1
        record = guard.to_save(self.bench.now, 1)
        if not self.kills or self._writes % 2:
            self.stored = record
        if not self.kills or self._writes % 3:
            return guard.saved(self.stored) if self.stored is record else None
        self.bench = self.bench.restart(self.stored)
        self.bench.expect(*self.due)
        self.bench.resolve(*self.due)
        return None

    def step(self) -> None:
        """Evict all that may leave now."""
        self.bench.guard.check_wave(self.bench.now)
        for _ in range(6):
            guard = self.bench.guard
            for uid in self.due:
                guard.want(uid, "shop")
            if guard.has_to_save:
                self._store()
            guard = self.bench.guard
            for uid in [uid for uid in self.due if guard.latch.is_stored and self.bench.may_call(uid)]:
                self._leave(uid)
            assert guard.ledger.used <= ALLOWED
        self.bench.seconds += STEP

    def _leave(self, uid: str) -> None:
        self.bench.evict(uid)
        self.due.remove(uid)
        self.left.append(self.bench.now.wall)
        if self.replaced:
            self.due.append(next(self._names))
            self.bench.expect(self.due[-1])

    def most(self) -> int:
        """Maximum number of pods that left within a window."""
        return max(sum(at - WINDOW < one <= at for one in self.left) for at in self.left)


@pytest.mark.parametrize("kills", [False, True])
def test_in_two_hours_no_window_has_more_than_the_allowance(kills):
    history = History(100, kills=kills, replaced=True)
    for _ in range(TWO_HOURS // STEP):
        history.step()
    assert history.most() == ALLOWED
    assert history.bench.guard.latch.is_tripped
    assert len(history.left) > 7 * ALLOWED, "replacements leave again"


@pytest.mark.parametrize("kills", [False, True])
def test_all_leave_when_values_stay_bad(kills):
    history = History(40, kills=kills)
    for _ in range(TWO_HOURS // STEP):
        history.step()
    assert not history.due
    assert history.most() == ALLOWED
    assert not history.bench.guard.latch.is_tripped


def test_a_pace_admits_pods_only_when_its_counts_are_stored():
    bench = paced()
    bench.expect(*pods(11))
    bench.guard.check_wave(bench.now)
    assert bench.guard.is_acting
    assert not bench.guard.latch.is_stored
    assert not bench.guard.holds("shop")


def test_one_namespace_has_no_more_than_the_allowance():
    """Nor do others beside it."""
    bench = paced()
    wave(bench, 20, 1)
    bench.advance(NARROW_SECONDS)
    assert bench.guard.scope == ALL
    assert bench.want(*pods(20, "shop-")) == ALLOWED
    assert bench.want("bank-0", namespace="bank") == 0


def test_a_pace_is_armed_when_none_of_the_wave_has_to_leave():
    """Not when those that are left would fit, also after a restart."""
    bench = paced()
    last, *others = bench.trip(20)
    bench.forget(*others)
    for one in (bench, bench.restart()):
        one.expect(last)
        one.resolve(last)
        assert one.guard.latch.is_tripped
        one.forget(last)
        assert one.check_guard() is GuardTransition.ARMED


def test_a_release_lets_all_leave_that_wait():
    bench = paced()
    wave(bench, 20, 1)
    bench.advance(NARROW_SECONDS)
    assert len(bench.release()) == 21
    assert not bench.guard.latch.is_tripped


@pytest.mark.parametrize(("number", "windows"), [(11, 1), (20, 1), (21, 2), (50, 4)])
def test_the_end_is_when_the_last_has_a_place_in_the_window(number, windows):
    bench = paced()
    bench.trip(number)
    pace = bench.guard.pace(bench.now)
    assert pace == Pace(number, bench.now.wall + SLOT + windows * WINDOW)


@pytest.mark.parametrize(("number", "windows"), [(5, 1), (6, 2), (10, 2), (11, 3)])
def test_more_evictions_than_the_allowance_make_no_place_when_they_end(number, windows):
    bench = paced()
    uids = bench.trip(11)
    bench.evict(*uids[:5])
    bench.advance(WINDOW / 2)
    bench.evict(*uids[5:10])
    bench.population = 40
    bench.expect(*pods(number - 1, "q"))
    assert bench.guard.allowance() == 5
    assert bench.guard.pace(bench.now).ends_at == WALL + SLOT + WINDOW / 2 + windows * WINDOW


def test_the_end_stays_while_pods_leave():
    bench = paced()
    uids = bench.trip(25)
    ends_at = bench.guard.pace(bench.now).ends_at
    bench.evict(*uids[:10])
    bench.advance(WINDOW / 2)
    assert bench.guard.pace(bench.now) == Pace(15, ends_at)


def test_without_an_allowance_there_is_no_end():
    bench = paced(population=5)
    bench.trip(3)
    assert bench.guard.pace(bench.now) == Pace(3, None)


@pytest.mark.parametrize("action", [GuardAction.HALT, GuardAction.REPORT])
def test_other_actions_have_no_pace(action):
    bench = Bench(action=action)
    bench.trip()
    assert bench.guard.pace(bench.now) is None
    assert paced().guard.pace(bench.now) is None
