"""A guard of one policy on a clock that the test moves."""

from typing import Any

import msgspec

from taintwarden.engine.guard import Due, Guard, GuardRecord, Turn
from taintwarden.engine.model import GuardSettings, Instant, MonotonicTime, WallTime

WALL = 1_700_000_000.0
WINDOW, SLOT = 600, 30
SETTINGS = GuardSettings(max_percent=10, min_pods=0, window_seconds=WINDOW, settle_seconds=0)
BEGAN = 900.0
"""What the monotonic clock reads at first."""


class Bench:
    """A guard on a clock that the test moves. Of 100 pods 10 may be evicted."""

    def __init__(self, *, population: int = 100, wall: float = WALL, **settings: Any) -> None:
        self.population = population
        self.budgets: dict[str, int] = {}
        """How many pods each allows."""
        self.wall, self.seconds = wall, 0.0
        self.freed: list[str] = []
        self.is_known = True
        """Whether all pods are known that have to leave."""
        self.guard = Guard(msgspec.structs.replace(SETTINGS, **settings), self.freed.append)
        self.guard.population = lambda: self.population
        self.guard.allowed = lambda name: self.budgets.get(name, 0)

    @property
    def now(self) -> Instant:
        return Instant(WallTime(self.wall + self.seconds), MonotonicTime(BEGAN + self.seconds))

    def expect(self, *uids: str, namespace: str = "shop", after: float = 0.0, budget: str = "") -> None:
        """Pods have to leave so many seconds from now."""
        for uid in uids:
            self.guard.expect(Due(uid, WallTime(self.now.wall + after), namespace, "n1", budget), self.now)

    def allow(self, budget: str, pods: int) -> None:
        """A budget allows another number of pods."""
        self.budgets[budget] = pods
        self.guard.budget_changed(budget)

    def forget(self, *uids: str) -> None:
        for uid in uids:
            self.guard.forget(uid)

    def call(self, *uids: str, namespace: str = "shop") -> None:
        """Eviction calls begin."""
        for uid in uids:
            self.guard.take(uid, namespace, self.now)

    def evict(self, *uids: str, namespace: str = "shop") -> None:
        """Pods are evicted, and gone."""
        self.call(*uids, namespace=namespace)
        for uid in uids:
            self.guard.settle(uid, stays=False)
            self.guard.forget(uid)

    def look(self) -> Turn | None:
        return self.guard.look(self.now, may_arm=self.is_known)

    def advance(self, seconds: float) -> Turn | None:
        self.seconds += seconds
        return self.look()

    def trip(self, number: int = 11, **more: Any) -> list[str]:
        """So many pods have to leave. Returns their UIDs."""
        uids = pods(number)
        self.expect(*uids, **more)
        assert self.look() is Turn.TRIPPED
        return uids

    def release(self, **options: bool) -> list[str]:
        number = self.guard.release(**options)
        return self.guard.let_pass(number)

    def change(self, **settings: Any) -> None:
        """Other settings; and all pods are evaluated again."""
        self.guard.change(msgspec.structs.replace(self.guard.settings, **settings))
        for due in [*self.guard.near.values(), *self.guard._later.values()]:
            self.guard.expect(due, self.now)

    def want(self, *uids: str, namespace: str = "shop") -> int:
        """Pods want to be reserved. Returns how many will be."""
        return sum(self.guard.want(uid, namespace) for uid in uids)

    def store(self, *, succeeded: bool = True) -> GuardRecord:
        """The record that has to be stored is stored, or not."""
        assert self.guard.has_to_save
        record = self.guard.to_save(self.now, 1)
        self.guard.saved(record, succeeded=succeeded)
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

    def resolve(self, *existing: str) -> Turn | None:
        """All pods are known, with those that have to leave."""
        self.is_known = True
        self.guard.resolve(existing, self.guard.near, self.now)
        return self.look()


def pods(number: int, prefix: str = "p") -> list[str]:
    return [f"{prefix}{index}" for index in range(number)]


def wave(bench: Bench, shop: int, bank: int) -> None:
    bench.expect(*pods(shop, "shop-"))
    bench.expect(*pods(bank, "bank-"), namespace="bank")
    bench.look()
    assert bench.guard.is_tripped
