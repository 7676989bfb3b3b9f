"""Every point of a scenario at which something may go wrong: a crash, a hidden event, a view that goes back in time.

For each command *k* of a scenario its replica is killed before and after the effect. For each event *k* that a watch
brings to the leader, the event is hidden until the next list, or the view goes back to what it was before it (as
"Sieve", OSDI '22, does with controllers). Every history is judged by all judges.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from simulated.world.adapter import Order
from simulated.world.drawing import BAD, FLAG, NO_LIMITS, SLA, SPOT, Draw, above
from simulated.world.objects import Toleration
from simulated.world.plan import Plan
from simulated.world.wire import Request
from simulated.world.world import World

if TYPE_CHECKING:
    from simulated.world.judges.base import Breach
    from simulated.world.replica import Replica
    from simulated.world.streams import Stream

DOWN_SECONDS = 1.0
HIDDEN_SECONDS = 8.0


@dataclass(frozen=True)
class Point:
    """One thing that goes wrong: ``crash-before``, ``crash-after``, ``hide`` or ``rewind``, at the number *k*."""

    scenario: str
    what: str
    number: int

    def __str__(self) -> str:
        return f"{self.scenario}, {self.what} {self.number}"


class Spoiled(World):
    """A world in which something goes wrong at one point. It counts commands, and events of watches to the leader."""

    def __init__(self, plan: Plan, point: Point | None) -> None:
        self.commands = 0
        self.events = 0
        self._point = point
        self._order: Order | None = None
        super().__init__(plan)

    def _is_at(self, what: str, number: int) -> bool:
        return self._point is not None and (self._point.what, self._point.number) == (what, number)

    def on_order(self, replica: "Replica", order: Order) -> bool:
        """A command was ordered. Returns whether it is carried out."""
        self.commands += 1
        if self._is_at("crash-before", self.commands):
            self._kill(replica)
            return False
        if self._is_at("crash-after", self.commands):
            self._order = order
        return True

    def on_effect(self, request: Request) -> None:
        """A request took effect."""
        if request.order is self._order and request.verb != "GET":
            self._order = None
            self._kill(request.replica)

    def _kill(self, replica: "Replica") -> None:
        if replica.engine is not None:
            replica.kill()
            self.agenda.after(DOWN_SECONDS, replica.start)

    def on_event(self, stream: "Stream", kind: str, version: int) -> bool:
        """A watch brings an event to a replica. Returns whether it arrives."""
        if stream.replica is not self.lease.holder or kind not in ("nodes", "pods", "budgets"):
            return True
        self.events += 1
        if self._is_at("hide", self.events):
            self.agenda.after(HIDDEN_SECONDS, stream.relist)
            return False
        if self._is_at("rewind", self.events):
            self.agenda.after(0.0, lambda: stream.rewind(version))
        return True


def play_point(plan: Plan, point: Point | None) -> Spoiled:
    """The history of a scenario with a point."""
    world = Spoiled(plan, point)
    world.play()
    return world


def points_of(name: str) -> Iterator[Point]:
    """Every point of a scenario."""
    world = play_point(SCENARIOS[name](), None)
    for what, most in (
        ("crash-before", world.commands),
        ("crash-after", world.commands),
        ("hide", world.events),
        ("rewind", world.events),
    ):
        for number in range(1, most + 1):
            yield Point(name, what, number)


def breaches_at(point: Point) -> list["Breach"]:
    """What judges find at a point."""
    return play_point(SCENARIOS[point.scenario](), point).judges.breaches


# -- scenarios --------------------------------------------------------------------------------------------------------


def _drawn(name: str, happen: Callable[[Draw], None], **policy: Any) -> Plan:
    d = Draw(1, name)
    d.options = {"max_in_flight": 10, "slice_size": 500}
    d.cluster(3)
    d.policy("p", **({"keys": (SLA, FLAG)} | policy))
    happen(d)
    d.settings |= {"calm_seconds": 120.0, "lifts": False}
    plan = d.plan()
    return replace(plan, freeze_at=plan.freeze_at + 5.0)


def _tied(d: Draw, replicas: int, node: str, **template: Any) -> None:
    """Pods on one node, whose replacements go elsewhere."""
    d.add("place", uid=d.workload(replicas, node, **template), placing="good")


def fall_and_recovery() -> Plan:
    """A value falls, recovers within the grace, and falls again."""

    def happen(d: Draw) -> None:
        _tied(d, 2, d.nodes[0], native=(above(),))
        d.operators()
        for value, seconds in (("980", 5.0), ("940", 10.0), ("980", 5.0), ("940", 30.0)):
            d.add("taint", name=d.nodes[0], key=SLA, value=value)
            d.at += seconds

    return _drawn("fall", happen, timing={"violationGraceSeconds": 15})


def guard_and_reset() -> Plan:
    """A guard trips, the values are repaired one by one, fall again, and a person resets it."""

    def happen(d: Draw) -> None:
        for name in d.nodes:
            _tied(d, 2, name, native=(above(),))
        d.operators()
        d.bad(*d.nodes)
        d.at += 8.0
        d.good(d.nodes[0])
        d.at += 4.0
        d.add("reset", name="p")
        d.at += 20.0

    guard = {"minPods": 2, "maxPercent": 1, "windowSeconds": 600}
    return _drawn("guard", happen, limits=NO_LIMITS | {"guard": guard})


def budget() -> Plan:
    """A budget allows one pod at a time, and the policy deletes who waited for long."""

    def happen(d: Draw) -> None:
        uid = d.workload(3, "good", native=(above(),))
        d.add("budget", namespace=d.workloads[uid][0], name="b", app=uid, max_unavailable=1)
        d.operators()
        d.bad(*d.nodes[:2])
        d.at += 40.0

    return _drawn("budget", happen, eviction={"method": "EvictThenDelete", "pdbTimeoutSeconds": 20})


def spot() -> Plan:
    """A node will be gone."""

    def happen(d: Draw) -> None:
        d.policy("spot", (SPOT,), reclaim={"deadlineSeconds": 60})
        _tied(d, 2, d.nodes[0], native=(Toleration(SPOT, seconds=300),), grace=10)
        d.operators()
        d.add("taint", name=d.nodes[0], key=SPOT, value="x", added="now")
        d.at += 70.0

    return _drawn("spot", happen)


def deletion() -> Plan:
    """A policy that deletes, and a node that recovers in time for some."""

    def happen(d: Draw) -> None:
        _tied(d, 3, d.nodes[0], native=(above(),))
        d.operators()
        d.bad(d.nodes[0])
        d.at += 1.0
        d.good(d.nodes[0])
        d.at += 10.0
        d.bad(d.nodes[0])
        d.at += 20.0

    limits = NO_LIMITS | {"evictionsPerSecond": 1, "burst": 1}
    return _drawn("deletion", happen, eviction={"method": "Delete"}, limits=limits)


def take_over() -> Plan:
    """The lease changes hands twice while pods wait for their deadlines."""

    def happen(d: Draw) -> None:
        _tied(d, 3, d.nodes[0], native=(above(),))
        d.operators()
        d.bad(*d.nodes)
        d.at += 5.0
        d.add("release")
        d.at += 8.0
        d.add("release")
        d.at += 20.0

    return _drawn("take over", happen, timing={"violationGraceSeconds": 10})


def two_taints() -> Plan:
    """A taint that is tolerated for a while, and a value that falls meanwhile."""

    def happen(d: Draw) -> None:
        _tied(d, 2, d.nodes[0], native=(above(), Toleration(FLAG, seconds=30)))
        d.operators()
        d.add("taint", name=d.nodes[0], key=FLAG, value="x")
        d.at += 10.0
        d.add("taint", name=d.nodes[0], key=SLA, value=BAD[0])
        d.at += 5.0
        d.add("untaint", name=d.nodes[0], key=FLAG)
        d.at += 30.0

    return _drawn("two taints", happen, timing={"violationGraceSeconds": 12})


SCENARIOS: dict[str, Callable[[], Plan]] = {
    one.__name__: one for one in (fall_and_recovery, guard_and_reset, budget, spot, deletion, take_over, two_taints)
}
