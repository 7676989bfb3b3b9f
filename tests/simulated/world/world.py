"""A world: a cluster with its API server, operators, and what happens to them. One plan, one history."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from limits_off import LIMITS_OFF
from simulated.world.adapter import Order
from simulated.world.agenda import EPOCH, Agenda, Noise
from simulated.world.cluster import Cluster
from simulated.world.devices import DevicesOverTime
from simulated.world.happenings import HAPPENINGS
from simulated.world.judges import Judges
from simulated.world.lease import Lease
from simulated.world.objects import Namespace, Node, Policy, Profile
from simulated.world.plan import Plan
from simulated.world.replica import Replica
from simulated.world.server import Server
from simulated.world.store import Store
from simulated.world.streams import Stream
from simulated.world.wire import Request, Wire

CALM_SECONDS = 400.0
"""After the last deadline: whatever failed has been tried again, and every rate has admitted whom it could."""
QUIET_SECONDS = 800.0
"""Twice that: nothing more is commanded."""


@dataclass
class Cpu:
    """Seconds of the processor that a step takes: for an event, and for a wake that the machine wanted at once."""

    event: float = 0.0
    wake: float = 0.0


class Truth:
    """What is stored now: a scene for the law."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def node(self, name: str) -> Node | None:
        return self._store.get("nodes", name)

    def namespace(self, name: str) -> Namespace | None:
        return self._store.get("namespaces", name)

    def policies(self) -> Iterable[Policy]:
        return self._store.objects["policies"].values()

    def profiles(self, namespace: str) -> Iterable[Profile]:
        profiles = self._store.objects["profiles"]
        return [one for one in profiles.values() if one.namespace == namespace] if profiles else ()


class TruthAt:
    """What was stored at a moment: the same."""

    def __init__(self, store: Store, moment: float) -> None:
        self._store = store
        self._moment = moment

    def node(self, name: str) -> Node | None:
        past = self._store.past["nodes"].get(name)
        return None if past is None else past.at(self._moment)

    def namespace(self, name: str) -> Namespace | None:
        past = self._store.past["namespaces"].get(name)
        return None if past is None else past.at(self._moment)

    def policies(self) -> Iterable[Policy]:
        found = (past.at(self._moment) for past in self._store.pasts_since("policies", self._moment))
        return [one for one in found if one is not None]

    def profiles(self, namespace: str) -> Iterable[Profile]:
        found = (past.at(self._moment) for past in self._store.pasts_since("profiles", self._moment))
        return [one for one in found if one is not None and one.namespace == namespace]


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
        self.truth = Truth(self.store)
        self.devices = DevicesOverTime(self)
        self.cpu = Cpu(plan.event_seconds, plan.wake_seconds)
        self.api_skew = plan.api_skew
        self.writer_skew = plan.writer_skew
        self.is_frozen = False
        """Inputs happen no more."""
        self.frozen_at = float("inf")
        self.judges = Judges(self)
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

    def truth_at(self, moment: float) -> TruthAt:
        """What was stored at a moment."""
        return TruthAt(self.store, moment)

    @property
    def leader(self) -> Replica | None:
        """The replica whose machine leads and that holds the lease."""
        for one in self.replicas:
            if one.engine is not None and one.term and self.lease.holds(one):
                return one
        return None

    # -- what a world may spoil, see ``points`` -----------------------------------------------------------------------

    def on_order(self, replica: Replica, order: Order) -> bool:
        """A command was ordered. Returns whether it is carried out."""
        return replica.engine is not None or order is None

    def on_effect(self, request: Request) -> None:
        """A request took effect."""

    def on_event(self, stream: Stream, kind: str, version: int) -> bool:
        """A watch brings an event. Returns whether it arrives."""
        return stream.kind == kind or version < 0

    def _changed(self, kind: str, key: str, before: Any, after: Any) -> None:
        for replica in self.replicas:
            if replica.engine is not None and kind in replica.streams:
                replica.streams[kind].changed(key)
        self.judges.stored(kind, key, before, after)

    def _restored(self) -> None:
        self.judges.restored()
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
        self.judges.calm_begins()
        agenda.run(agenda.now + plan.calm_seconds)
        self.judges.calm_ends()
        if plan.lifts:
            self.lift()
            agenda.run(agenda.now + CALM_SECONDS)
            self.judges.lifted()
            self.judges.quiet_begins()
            agenda.run(agenda.now + QUIET_SECONDS)
            self.judges.quiet_ends()
        return self

    def happen(self, what: str, given: dict[str, Any]) -> None:
        """One happening. What it names may be gone: then nothing happens."""
        if not self.is_frozen:
            HAPPENINGS[what](self, **given)

    def freeze(self) -> None:
        """Inputs end, faults stop, and whoever is down comes back."""
        self.is_frozen, self.frozen_at = True, self.agenda.now
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

    def lift(self) -> None:
        """Every policy enforces without any limit, and no budget is left."""
        for key in list(self.store.objects["budgets"]):
            self.store.delete("budgets", key)
        for name, policy in list(self.store.objects["policies"].items()):
            spec = {key: value for key, value in policy.spec.items() if key != "windows"}
            spec |= {"mode": "Enforce", "limits": LIMITS_OFF}
            self.store.change("policies", name, spec=spec, generation=policy.generation + 1)

    @property
    def breaches(self) -> list[Any]:
        """What judges found, in order."""
        return self.judges.breaches


def wall(moment: float) -> float:
    """True time as seconds since 1970."""
    return EPOCH + moment
