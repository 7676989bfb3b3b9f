"""The lease: who may act, by the numbers of ``kube/calls/lease.py``; requests are not simulated one by one.

A holder relies on the lease for ``HELD_SECONDS`` after its last renewal; others wait for ``FREE_SECONDS``.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulated.world.replica import Replica
    from simulated.world.world import World

HELD_SECONDS = 10.0
FREE_SECONDS = 15.0
RENEWAL_SECONDS = 2.0
SLOW_SECONDS = 2.0
"""Seconds without an answer after which a renewal counts as failed."""


class Lease:
    """One Lease, its holder, and who could hold it."""

    def __init__(self, world: "World") -> None:
        self.holder: Replica | None = None
        """Replica that the stored Lease names."""
        self.term = 0
        self.lapses_at = float("inf")
        """Until when the holder may act; infinite while it can renew."""
        self.changed_at = 0.0
        self._world = world
        self._life = 0
        self._free_at = 0.0
        self._trouble: dict[str, float] = {}
        """Name -> until when a replica cannot renew."""

    def holds(self, replica: "Replica") -> bool:
        """True if a replica may act now, as far as it knows."""
        mine = self.holder is replica and self._life == replica.life
        return mine and self._world.agenda.now < self.lapses_at

    def is_ours_alone(self, replica: "Replica") -> bool:
        """True if no other replica has acquired the lease since this one."""
        return self.holder is replica and self._life == replica.life

    # -- what can happen ----------------------------------------------------------------------------------------------

    def candidate(self, replica: "Replica") -> None:
        """A replica can lead from now on."""
        self._world.agenda.after(self._between(0.0, RENEWAL_SECONDS, "first try", replica.name), self._consider)

    def trouble(self, replica: "Replica", seconds: float) -> None:
        """A replica cannot renew, or acquire, for a while."""
        agenda = self._world.agenda
        self._trouble[replica.name] = max(self._trouble.get(replica.name, 0.0), agenda.now + seconds)
        if self.holds(replica) and self.lapses_at == float("inf"):
            self._expire(replica)
            late = self._between(0.0, RENEWAL_SECONDS + SLOW_SECONDS, "not renewed", replica.name)
            agenda.after(late, lambda: self._not_renewed(replica))
        agenda.after(seconds, self._consider)

    def _not_renewed(self, replica: "Replica") -> None:
        has_trouble = self._world.agenda.now < self._trouble.get(replica.name, 0.0)
        if self.holds(replica) and has_trouble and replica.is_alive:  # one that is suspended does not know it
            replica.renewed(succeeded=False)

    def died(self, replica: "Replica") -> None:
        """The process is gone."""
        if self.holder is replica and self._world.agenda.now < self._free_at_or_never:
            last = self._world.agenda.now - self._between(0.0, RENEWAL_SECONDS, "died", replica.name)
            self._free_at = min(self._free_at_or_never, last + FREE_SECONDS)
            self.lapses_at = self._world.agenda.now
            self._world.agenda.at(self._free_at, self._consider)

    @property
    def _free_at_or_never(self) -> float:
        return float("inf") if self.lapses_at == float("inf") else self._free_at

    def release(self, replica: "Replica") -> None:
        """The holder gives it up; others take it at their next try."""
        if not self.holds(replica):
            return
        replica.lead(term=0)
        self._trouble[replica.name] = self._world.agenda.now + 3.0
        self.holder, self.lapses_at, self._free_at = None, self._world.agenda.now, self._world.agenda.now
        self._note_change()
        seconds = self._between(0.0, RENEWAL_SECONDS, "release", replica.name)
        self._world.agenda.after(seconds, self._consider)
        self._world.agenda.after(3.0, self._consider)

    def calm(self) -> None:
        """End all trouble of replicas with renewing."""
        self._trouble = {}
        self._consider()

    # -- changes of the holder -----------------------------------------------------------------------------------------

    def _expire(self, replica: "Replica") -> None:
        agenda = self._world.agenda
        last = agenda.now - self._between(0.0, RENEWAL_SECONDS, "renewed", replica.name)
        self.lapses_at, self._free_at = last + HELD_SECONDS, last + FREE_SECONDS
        term = self.term
        agenda.at(self.lapses_at, lambda: self._lapse(replica, term))
        agenda.at(self._free_at + self._between(0.0, RENEWAL_SECONDS, "free", replica.name), self._consider)

    def _lapse(self, replica: "Replica", term: int) -> None:
        if term != self.term or not self.is_ours_alone(replica) or self.lapses_at > self._world.agenda.now:
            return
        replica.lead(term=0)

    def _able(self, replica: "Replica") -> bool:
        now = self._world.agenda.now
        return replica.is_alive and replica.synced_at is not None and now >= self._trouble.get(replica.name, 0.0)

    def _consider(self) -> None:
        """Renew, or let another replica acquire it."""
        agenda, holder = self._world.agenda, self.holder
        now = agenda.now
        if holder is not None and self._life == holder.life and self._able(holder):
            if now < self.lapses_at:
                self.lapses_at = float("inf")  # it renews
                holder.renewed(succeeded=True)
                return
            self._acquire(holder)  # it lapsed, and no other replica has acquired it
            return
        if now < self._free_at_or_never and holder is not None:
            return
        able = [one for one in self._world.replicas if self._able(one)]
        if able:
            self._acquire(self._world.noise.pick(able, "acquires", self.term))
        else:
            agenda.after(1.0, self._consider)

    def _acquire(self, replica: "Replica") -> None:
        if replica.term:  # it does not know yet that it lost the lease
            replica.lead(term=0)
        self.holder, self._life, self.lapses_at = replica, replica.life, float("inf")
        replica.renewed(succeeded=True)
        self.term += 1
        self._note_change()
        term, life = self.term, replica.life
        seconds = self._between(0.02, 0.5, "takes over", replica.name)

        def take_over() -> None:
            if self.term == term and replica.life == life and self.holds(replica):
                replica.read_policies()
                replica.lead(term=term)

        self._world.agenda.after(seconds, take_over)

    def _note_change(self) -> None:
        self.changed_at = self._world.agenda.now
        self._world.record.note_operators()

    def _between(self, low: float, high: float, *question: object) -> float:
        return self._world.noise.between(low, high, "lease", self.term, *question)
