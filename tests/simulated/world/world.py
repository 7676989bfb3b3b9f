"""A world: a cluster with its API server, operators, and what happens to them. One plan, one history."""

from dataclasses import dataclass
from typing import Any

from simulated.world.agenda import EPOCH, Agenda, Noise
from simulated.world.cluster import Cluster
from simulated.world.devices import Devices
from simulated.world.happenings import HAPPENINGS
from simulated.world.lease import Lease
from simulated.world.plan import Plan
from simulated.world.record import Record
from simulated.world.replica import Replica
from simulated.world.server import Server
from simulated.world.store import Store
from simulated.world.wire import Wire


@dataclass
class Cpu:
    """Seconds of the processor that a step takes: for an event, and for a wake that the machine wanted at once."""

    event: float = 0.0
    wake: float = 0.0


class World:
    """One history, from its plan.

    Args:
        plan: what happens, and when.

    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.agenda = Agenda()
        self.noise = Noise(plan.seed)
        self.store = Store(self.agenda)
        self.devices = Devices(self.store)
        self.cpu = Cpu(plan.event_seconds, plan.wake_seconds)
        self.api_skew = plan.api_skew
        self.writer_skew = plan.writer_skew
        self.is_frozen = False
        """Inputs happen no more."""
        self.record = Record(self)
        self.server = Server(self)
        self.cluster = Cluster(self)
        self.wire = Wire(self)
        self.lease = Lease(self)
        options = dict(plan.options)
        self.replicas = [
            Replica(self, name, skew, **options) for name, skew in zip(("a", "b", "c"), plan.skews, strict=False)
        ]
        self.store.changed.append(self._changed)
        self.store.restored.append(self._restored)

    def api_wall(self) -> float:
        """The clock of the API server."""
        return self.agenda.wall + self.api_skew

    @property
    def leader(self) -> Replica | None:
        """The replica whose machine leads and that holds the lease."""
        for one in self.replicas:
            if one.engine is not None and one.term and self.lease.holds(one):
                return one
        return None

    def _changed(self, kind: str, key: str, before: Any, after: Any) -> None:
        for replica in self.replicas:
            if replica.engine is not None and kind in replica.streams:
                replica.streams[kind].changed(key)
        self.record.stored(kind, key, before, after)

    def _restored(self) -> None:
        self.record.restored()
        for replica in self.replicas:
            if replica.engine is not None:
                for stream in replica.streams.values():
                    stream.restored()

    # -- a history ----------------------------------------------------------------------------------------------------

    def play(self) -> "World":
        """Everything that is planned happens; then calm, then no limits, then quiet."""
        plan, agenda = self.plan, self.agenda
        for happening in plan.happenings:
            agenda.at(happening.at, lambda happening=happening: self.happen(happening.what, happening.given))
        agenda.run(plan.freeze_at)
        self.freeze()
        agenda.run(agenda.now + plan.calm_seconds)
        self.record.judge.end(wall(agenda.now))  # also of what nothing follows
        if plan.options.get("drained_condition"):
            self.record.drained.end(self.store.objects["nodes"].values())
        return self

    def happen(self, what: str, given: dict[str, Any]) -> None:
        """One happening. What it names may be gone: then nothing happens."""
        if not self.is_frozen:
            HAPPENINGS[what](self, **given)

    def freeze(self) -> None:
        """Inputs end, faults stop, and replicas and workloads that are down come back."""
        self.is_frozen = True
        self.wire.clear_up()
        for uid in list(self.store.objects["workloads"]):
            self.store.change("workloads", uid, placing="good")
        self.cpu = Cpu()
        for replica, skew in zip(self.replicas, self.plan.skews, strict=True):
            replica.frozen_until = min(replica.frozen_until, self.agenda.now)
            replica.step_clock(skew)
            if replica.engine is None:
                replica.start()
            for stream in replica.streams.values():
                stream.mend()
            replica.thaw()
        self.lease.calm()

    @property
    def breaches(self) -> list[Any]:
        """All breaches that judges found, in order."""
        return self.record.breaches


def wall(moment: float) -> float:
    """True time as seconds since 1970."""
    return EPOCH + moment
