"""A guard of one policy on a clock that the test moves."""

from typing import Any

import msgspec

from taintwarden.engine.guard import Due, Guard, GuardRecord, Turn
from taintwarden.engine.guard.spent import SLOTS
from taintwarden.engine.limits.protocol import Settlement
from taintwarden.engine.model import GuardSettings, Instant

WALL = 1_700_000_000.0
WINDOW = 600
SLOT = WINDOW / SLOTS
LONG_AGO = WALL - 10_000


class Bench:
    """A guard on a clock that the test moves, over a population that it sets."""

    def __init__(self, *, population: int = 1_000, **settings) -> None:
        self.population = population
        given = {"max_percent": 20, "min_pods": 5, "window_seconds": WINDOW, "settle_seconds": 0} | settings
        self.freed: list[str] = []
        """The holds that ended."""
        self.seconds = 0.0
        self._spent = 0
        self.begin(GuardSettings(**given))

    def begin(self, settings: GuardSettings) -> None:
        self.guard = Guard(settings, self.freed.append)
        self.guard.population = lambda: self.population

    @property
    def now(self) -> Instant:
        return Instant(WALL + self.seconds, self.seconds)

    def pass_time(self, seconds: float) -> None:
        self.seconds += seconds

    def expect(
        self, *uids: str, after: float = 0.0, bound: float = LONG_AGO, since: float = LONG_AGO, **of: Any
    ) -> None:
        for number, uid in enumerate(uids):
            where = {"namespace": f"ns-{number}", "node": f"node-{number}"} | of
            self.guard.expect(Due(uid, self.now.wall + after, bound, since, **where), self.now)

    def forget(self, *uids: str) -> None:
        for uid in uids:
            self.guard.forget(uid)

    def evict(self, *uids: str) -> None:
        for uid in uids:
            self.guard.take(uid, self.now)

    def settle(self, settlement: Settlement, *uids: str) -> None:
        for uid in uids:
            if settlement is not Settlement.UNKNOWN:
                self.guard.settle(uid, stays=settlement.stays)

    def spend(self, number: int) -> list[str]:
        """Pods of which nothing else is known are evicted. Returns their UIDs."""
        self._spent += number
        uids = [f"spent-{index}" for index in range(self._spent - number, self._spent)]
        self.evict(*uids)
        return uids

    def look(self) -> Turn | None:
        return self.guard.look(self.now)

    def trip(self, number: int = 300) -> "Bench":
        self.expect(*uids(number))
        assert self.look() is Turn.TRIPPED
        return self

    def release(self) -> int:
        return len(self.guard.release(self.now))

    def store(self, *, waiting: bool = True, succeeded: bool = True) -> GuardRecord | None:
        """What has to be saved is saved."""
        reserved = self.guard.reservation_wanted(self.now, waiting=waiting)
        if reserved is None:
            return None
        record = self.guard.record(self.now, reserved)
        self.guard.saved(record, reserved, succeeded=succeeded)
        return record

    def stored(self, *, waiting: bool = True) -> GuardRecord:
        record = self.store(waiting=waiting)
        assert record is not None
        return record

    def spent(self) -> list[int]:
        """Evictions by slot, the oldest first."""
        return [pods for _, pods in self.guard.record(self.now).spent]

    def change(self, **settings) -> None:
        self.guard.change(msgspec.structs.replace(self.guard.settings, **settings), self.now)

    def successor(self, record: GuardRecord, after: float = 0.0) -> "Bench":
        """Another process, whose monotonic clock reads the same by chance."""
        other = Bench(population=self.population)
        other.begin(self.guard.settings)
        other.seconds = self.seconds + after
        other.guard.restore(record, other.now)
        return other


def uids(number: int, prefix: str = "p") -> list[str]:
    return [f"{prefix}{index}" for index in range(number)]
