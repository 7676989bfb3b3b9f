"""A guard of one policy on a clock that the test moves."""

from typing import Any

import msgspec

from taintwarden.engine.guard import BudgetKey, Due, Guard, GuardTransition
from taintwarden.engine.limit_settings import GuardSettings
from taintwarden.engine.model import Instant, MonotonicTime, WallTime
from taintwarden.engine.records import GuardRecord

WALL = 1_700_000_000.0
WINDOW, SLOT = 600, 30
SETTINGS = GuardSettings(max_percent=10, min_pods=0, window_seconds=WINDOW, settle_seconds=0)
BEGAN = 900.0
"""First reading of the monotonic clock."""


class Bench:
    """A guard on a clock that the test moves. Of 100 pods 10 may be evicted."""

    def __init__(self, *, population: int = 100, wall: float = WALL, **settings: Any) -> None:
        self.population = population
        self.budgets: dict[BudgetKey, int] = {}
        """Budget -> number of pods that it allows."""
        self.wall, self.seconds = wall, 0.0
        self.freed: list[str] = []
        self.is_known = True
        """True if all pods that have to leave are known."""
        self.guard = Guard(msgspec.structs.replace(SETTINGS, **settings), self.freed.append)
        self.guard.population = lambda: self.population
        self.guard.wave.allowed = lambda key: self.budgets.get(key, 0)

    @property
    def now(self) -> Instant:
        return Instant(WallTime(self.wall + self.seconds), MonotonicTime(BEGAN + self.seconds))

    def expect(self, *uids: str, namespace: str = "shop", after: float = 0.0, budget: str = "") -> None:
        """Pods have to leave `after` seconds from now."""
        key = key_of(budget, namespace) if budget else None
        for uid in uids:
            self.guard.expect(Due(uid, WallTime(self.now.wall + after), namespace, "n1", key), self.now)

    def allow(self, budget: str, pods: int) -> None:
        """A budget of ``shop`` allows another number of pods."""
        self.budgets[key_of(budget)] = pods
        self.guard.wave.recount(("shop", key_of(budget)))

    def forget(self, *uids: str) -> None:
        for uid in uids:
            self.guard.forget(uid)

    def may_call(self, uid: str) -> bool:
        return self.guard.may_call(uid)

    def fail(self, *uids: str, namespace: str = "shop") -> None:
        """Calls are answered, and the pods are still there."""
        self.call(*uids, namespace=namespace)
        for uid in uids:
            self.guard.settle(uid, stays=False)
        self.expect(*uids, namespace=namespace)

    def call(self, *uids: str, namespace: str = "shop") -> None:
        """Eviction calls begin."""
        for uid in uids:
            self.guard.call(uid, namespace, self.now)

    def evict(self, *uids: str, namespace: str = "shop", of: str = "") -> None:
        """Pods are evicted, and gone."""
        self.call(*uids, namespace=namespace)
        for uid in uids:
            self.guard.settle(uid, stays=False)
        self.see_gone(*uids, of=of)

    def see_gone(self, *uids: str, of: str = "") -> None:
        """Pods of a workload are seen to leave."""
        for uid in uids:
            self.guard.gone(uid, (of, of) if of else None, self.now)
            self.guard.forget(uid)

    def check_guard(self) -> GuardTransition | None:
        """Check the guard, store what counts, and check it again."""
        turn = self.guard.check_wave(self.now, may_arm=self.is_known)
        if self.guard.is_stored:
            return turn
        self.store()
        later = self.guard.check_wave(self.now, may_arm=self.is_known)
        return turn or later

    def advance(self, seconds: float) -> GuardTransition | None:
        self.seconds += seconds
        return self.check_guard()

    def trip(self, number: int = 11, **more: Any) -> list[str]:
        """`number` pods have to leave, and the guard trips. Returns their UIDs."""
        uids = pods(number)
        self.expect(*uids, **more)
        assert self.check_guard() is GuardTransition.TRIPPED
        return uids

    def release(self, **options: bool) -> list[str]:
        number = self.guard.release(**options)
        return self.guard.let_pass(number)

    def change(self, **settings: Any) -> None:
        """Other settings; and all pods are evaluated again."""
        self.guard.change(msgspec.structs.replace(self.guard.settings, **settings))
        for due in [*self.guard.wave.near.values(), *self.guard.wave._later.values()]:
            self.guard.expect(due, self.now)

    def want(self, *uids: str, namespace: str = "shop") -> int:
        """Pods want to be reserved. Returns how many will be."""
        return sum(self.guard.want(uid, namespace) for uid in uids)

    def store(self, *, succeeded: bool = True) -> GuardRecord:
        """The record that has to be stored is stored, or not."""
        assert self.guard.has_to_save
        record = self.guard.to_save(self.now, 1)
        self.guard.saved(record, error="" if succeeded else "refused")
        return record

    def reserve(self, *uids: str, namespace: str = "shop") -> None:
        assert self.want(*uids, namespace=namespace) == len(uids)
        self.store()

    def restart(self, record: GuardRecord | None = None) -> "Bench":
        """The next leader, at the same time, by default with the record as it is. It knows no pods yet."""
        other = Bench(population=self.population, wall=self.now.wall)
        other.guard.change(self.guard.settings)
        other.is_known = False
        other.guard.restore(record or self.guard.record(self.now), other.now)
        return other

    def resolve(self, *existing: str) -> GuardTransition | None:
        """All pods are known, with those that have to leave."""
        self.is_known = True
        self.guard.resolve(lambda _: existing, self.now)
        return self.check_guard()


def key_of(budget: str, namespace: str = "shop") -> BudgetKey:
    return BudgetKey(namespace, (budget,))


def pods(number: int, prefix: str = "p") -> list[str]:
    return [f"{prefix}{index}" for index in range(number)]


def wave(bench: Bench, shop: int, bank: int) -> None:
    bench.expect(*pods(shop, "shop-"))
    bench.expect(*pods(bank, "bank-"), namespace="bank")
    bench.check_guard()
    assert bench.guard.latch.is_tripped
