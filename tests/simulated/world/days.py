"""Days of one operator, in which every name changes: what it holds on to must not grow.

Nodes, namespaces, workloads, pods, policies, profiles and budgets come and go under new names, values fall and recover,
and pods are evicted and replaced. All judges look on. Every hour the objects are counted that the operator holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import linear_regression

from simulated.world.drawing import FLAG, GOOD, SLA, Draw, above
from simulated.world.judges import Breach
from simulated.world.plan import Happening
from simulated.world.world import World

HOUR_SECONDS = 3600
NODES, WORKLOADS = 10, 8
WARM_SHARE = 0.25
"""Of the time, in which what is held may grow to what the operator needs."""
LIMITS = {
    "evictionsPerSecond": 1,
    "burst": 5,
    "guard": {"minPods": 200, "maxPercent": 90, "windowSeconds": 600, "settleSeconds": 5},
    "bounce": {"afterEvictions": 3, "withinSeconds": 600, "maxBackoffSeconds": 1800},
    "perWorkload": {"maxUnavailable": "50%"},
}


@dataclass(frozen=True)
class Hour:
    """What was there at the end of an hour."""

    hours: int
    objects: int
    """That the operator holds, of every kind."""
    evictions: int
    names: int
    """That were given so far."""


@dataclass(frozen=True)
class Held:
    """What was seen of all hours."""

    hours: list[Hour]
    breaches: list[Breach]
    of_the_past: list[str]
    """Names of what is gone by which the operator still holds something, each with where."""

    @property
    def per_name(self) -> float:
        """Objects that stay for each name that was given, after the first quarter."""
        later = self.hours[int(WARM_SHARE * len(self.hours)) :]
        return linear_regression([one.names for one in later], [one.objects for one in later]).slope


def play(hours: int, seed: int, every_seconds: float = 10.0) -> Held:
    """One operator for so many hours, at least one; something changes every so many seconds."""
    days = _Days(seed, every_seconds)
    world = World(days.draw.plan())
    for one in world.plan.happenings:
        world.agenda.at(one.at, partial(world.happen, one.what, one.given))
    counted: list[Hour] = []
    for hour in range(1, hours + 1):
        for one in days.until(hour * HOUR_SECONDS):
            world.agenda.at(one.at, partial(world.happen, one.what, one.given))
        world.agenda.run(hour * HOUR_SECONDS)
        engine = world.replicas[0].engine
        assert engine is not None
        counted.append(Hour(hour, engine.held(), len(world.judges.evictions), days.draw.given))
    assert engine is not None
    return Held(counted, world.judges.breaches, engine.kept(*_gone(world)))


def _gone(world: World) -> set[str]:
    """The names that nothing has any more."""
    now, ever = set[str](), set[str]()
    for kind, past in world.store.past.items():
        ever.update(*(key.split("/") for key in past))
        now.update(*(key.split("/") for key in world.store.objects[kind]))
    return ever - now


class _Days:
    """What happens, hour by hour."""

    def __init__(self, seed: int, every_seconds: float) -> None:
        self.draw = Draw(seed, "days")
        self._every_seconds = every_seconds
        self._budgets: list[tuple[str, str]] = []
        self._profiles: list[tuple[str, str]] = []
        self._policies: list[str] = []
        draw = self.draw
        draw.cluster(NODES, zones=2)
        draw.policy("p", limits=LIMITS, timing={"violationGraceSeconds": 5})
        for _ in range(WORKLOADS):
            self._workload()
        draw.operators(1)

    def until(self, end: float) -> Sequence[Happening]:
        """What happens until then."""
        changes = [
            (4, self._value),
            (2, self._node),
            (1, self._workload_again),
            (1, self._namespace),
            (1, self._policy),
            (1, self._profile),
            (1, self._budget),
            (1, self._pod),
        ]
        while self.draw.at < end - self._every_seconds:
            self.draw.steps(1, changes, (2 * self._every_seconds,))
        return self.draw.taken()

    def _value(self) -> None:
        draw = self.draw
        name = draw.pick(draw.nodes)
        draw.bad(name)
        draw.add("taint", after=draw.between(10, 100), name=name, key=SLA, value=draw.pick(GOOD))

    def _node(self) -> None:
        self.draw.add("node_gone", name=self.draw.nodes.pop(0))
        self.draw.add_node(f"zone-{self.draw.pick('01')}")

    def _workload(self) -> None:
        native = (above(grace=self.draw.pick((None, 0, 30))), above(key=FLAG))
        self.draw.workload(self.draw.pick((1, 3, 5)), "good", native=native)

    def _workload_again(self) -> None:
        gone = next(iter(self.draw.workloads))
        del self.draw.workloads[gone]
        self.draw.add("workload_gone", uid=gone)
        self._workload()

    def _namespace(self) -> None:
        name = self.draw.name("ns")
        self.draw.namespaces.append(name)
        self.draw.add("namespace", name=name, labels={"team": name})
        if len(self.draw.namespaces) > 4:
            gone = self.draw.namespaces.pop(0)
            self.draw.add("namespace_gone", name=gone)
            for uid in [uid for uid, (namespace, _) in self.draw.workloads.items() if namespace == gone]:
                del self.draw.workloads[uid]
                self._workload()

    def _policy(self) -> None:
        draw = self.draw
        self._policies.append(draw.name("q"))
        draw.policy(self._policies[-1], (FLAG,), limits=LIMITS)
        node = draw.pick(draw.nodes)
        draw.add("taint", after=1.0, name=node, key=FLAG, value="940")
        draw.add("untaint", after=30.0, name=node, key=FLAG)
        if len(self._policies) > 1:
            draw.add("policy_gone", name=self._policies.pop(0))

    def _profile(self) -> None:
        draw = self.draw
        self._profiles.append((draw.pick(draw.namespaces), draw.name("profile")))
        namespace, name = self._profiles[-1]
        draw.add("profile", namespace=namespace, name=name, tolerations=(above(draw.pick((900, 970))),))
        if len(self._profiles) > 3:
            namespace, name = self._profiles.pop(0)
            draw.add("profile_gone", namespace=namespace, name=name)

    def _budget(self) -> None:
        draw = self.draw
        uid = draw.pick(list(draw.workloads))
        self._budgets.append((draw.workloads[uid][0], draw.name("budget")))
        namespace, name = self._budgets[-1]
        draw.add("budget", namespace=namespace, name=name, app=uid, max_unavailable=1)
        if len(self._budgets) > 3:
            namespace, name = self._budgets.pop(0)
            draw.add("budget_gone", namespace=namespace, name=name)

    def _pod(self) -> None:
        draw = self.draw
        draw.pod(draw.pick(draw.nodes), native=(above(),))
        if len(draw.pods) > 3:
            draw.add("delete_pod", uid=draw.pods.pop(0))
