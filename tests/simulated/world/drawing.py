"""Draws a plan: names, times and values by chance, with nothing asked of an engine."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeVar

from limits_off import LIMITS_OFF
from simulated.world.objects import ZONE, Json, Toleration
from simulated.world.plan import Happening, Plan

T = TypeVar("T")
GOOD, BAD = ("980", "960"), ("940", "900", "0")
SLA, FLAG, SPOT, NOTICE = "sla", "flag", "spot", "example.com/notice"
HEALTH = "gpu.example.com/health"
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
NO_LIMITS: Json = LIMITS_OFF
NAMESPACES = ("shop", "bank", "play")
PROCESSES = (
    *((SLA, kind) for kind in ("drift", "stairs", "counter", "time", "flap", "jitter")),
    *((FLAG, kind) for kind in ("codes", "versions", "flap")),
)
Step = tuple[float, Callable[[], None]]
"""Weight, and what adds its happenings to the plan."""


def above(number: int = 950, seconds: int | None = None, grace: int | None = None, key: str = SLA) -> Toleration:
    """A comparison: more than ``number``."""
    return Toleration(key, "Gt", str(number), seconds=seconds, grace=grace)


class Draw:
    """A plan in the making. ``at`` is the time of what is added next.

    Args:
        seed: of all its chance.
        theme: its name.
        prefix: of the names that it gives, if another one draws for the same plan.

    """

    def __init__(self, seed: int, theme: str, prefix: str = "") -> None:
        self._prefix = prefix
        self.seed = seed
        self.theme = theme
        self.chance = Random(f"{theme}/{seed}")
        self.at = 0.0
        self.nodes: list[str] = []
        self.namespaces: list[str] = []
        self.workloads: dict[str, tuple[str, int]] = {}
        """UID -> namespace and number of pods."""
        self.pods: list[str] = []
        """UIDs of pods without a controller."""
        self.policies: dict[str, Json] = {}
        self.skews: tuple[float, ...] = (0.0, 0.0)
        self.options: Json = {"max_in_flight": self.pick((2, 10, 64)), "slice_size": self.pick((5, 500))}
        self.settings: Json = {}
        self._added: list[Happening] = []
        self._numbers = 0
        self._turns = 0

    # -- chance -------------------------------------------------------------------------------------------------------

    def pick(self, among: Sequence[T]) -> T:
        """One of several."""
        return self.chance.choice(among)

    def turn(self, among: Sequence[T]) -> T:
        """One of several, another one for the next seed and each time: so that few seeds meet all of them."""
        self._turns += 1
        return among[(self.seed + self._turns) % len(among)]

    def some(self, among: Sequence[T], least: int = 1) -> list[T]:
        """Some of several, or all."""
        if not among:
            return []
        return self.chance.sample(list(among), self.chance.randint(min(least, len(among)), len(among)))

    def maybe(self, probability: float = 0.5) -> bool:
        """Yes or no."""
        return self.chance.random() < probability

    def between(self, low: float, high: float) -> float:
        """A time or number, in milliseconds."""
        return round(self.chance.uniform(low, high), 3)

    def name(self, prefix: str) -> str:
        """A name that nothing else has."""
        self._numbers += 1
        return f"{self._prefix}{prefix}{self._numbers}"

    # -- what happens -------------------------------------------------------------------------------------------------

    def add(self, happening: str, /, after: float = 0.0, **given: Any) -> None:
        """Something happens at ``at``, or some seconds later."""
        self._added.append(Happening(round(self.at + after, 3), happening, given))

    def wait(self, low: float, high: float) -> None:
        """Time passes."""
        self.at += self.between(low, high)

    def steps(
        self, number: int, among: Sequence[Step], pauses: tuple[float, ...] = (0.0, 0.05, 0.5, 3.0, 12.0)
    ) -> None:
        """Add ``number`` random steps, with a pause after each."""
        weights = [weight for weight, _ in among]
        for _ in range(number):
            self.chance.choices([step for _, step in among], weights)[0]()
            pause = self.pick(pauses)
            self.wait(pause / 2, pause)

    @property
    def given(self) -> int:
        """Number of names that were given."""
        return self._numbers

    def taken(self) -> tuple[Happening, ...]:
        """Happenings added since the last call, in the order of their times."""
        self._added, taken = [], self._added
        return tuple(sorted(taken, key=lambda one: one.at))

    def plan(self) -> Plan:
        """The plan that was drawn. Inputs end shortly after its last happening."""
        self.wait(0.5, 10.0)
        return Plan(self.seed, self.theme, self.taken(), self.at, self.skews, self.options, **self.settings)

    # -- a cluster ----------------------------------------------------------------------------------------------------

    def cluster(self, nodes: int, zones: int = 1, namespaces: int = 2) -> None:
        """Nodes in zones, and namespaces."""
        for name in NAMESPACES[:namespaces]:
            self.namespaces.append(name)
            self.add("namespace", name=name, labels={"team": self.pick("ab")})
        for number in range(nodes):
            self.add_node(f"zone-{number % zones}" if zones else "")

    def add_node(self, zone: str = "", **labels: str) -> str:
        """A node joins."""
        name = self.name("n")
        self.nodes.append(name)
        self.add("node", name=name, labels=({ZONE: zone} if zone else {}) | labels)
        return name

    def workload(self, replicas: int, placing: str = "good", **template: Any) -> str:
        """A controller with its pods."""
        uid = self.name("w")
        namespace = template.pop("namespace", None) or self.pick(self.namespaces)
        self.workloads[uid] = (namespace, replicas)
        self.add("workload", uid=uid, namespace=namespace, replicas=replicas, placing=placing, **template)
        return uid

    def pod(self, node: str, **more: Any) -> str:
        """A pod without a controller."""
        uid = self.name("p")
        self.pods.append(uid)
        namespace = more.pop("namespace", None) or self.pick(self.namespaces)
        self.add("pod", uid=uid, namespace=namespace, node=node, **more)
        return uid

    def policy(self, name: str, keys: Sequence[str] = (SLA,), **spec: Any) -> None:
        """A policy on NoExecute taints with these keys."""
        spec.setdefault("limits", NO_LIMITS)
        self.policies[name] = {"taints": [{"key": key} for key in keys]} | spec
        self.add("policy", name=name, spec=self.policies[name])

    def edit(self, name: str, **changes: Any) -> None:
        """Sections of a policy are replaced."""
        self.policies[name] = self.policies[name] | changes
        self.add("edit", name=name, **changes)

    def operators(self, number: int = 2, skews: Sequence[float] = (0.0,)) -> None:
        """Operators start, the second some time after the first."""
        self.skews = tuple(self.pick(skews) for _ in range(number))
        for name in ("a", "b", "c")[:number]:
            self.add("start", name=name)
            self.wait(0.2, 1.0)
        self.wait(3.0, 6.0)

    def known_pod(self) -> str:
        """The UID of a pod that may exist."""
        if self.pods and (not self.workloads or self.maybe(0.4)):
            return self.pick(self.pods)
        uid = self.pick(list(self.workloads))
        return f"{uid}-{self.chance.randint(1, self.workloads[uid][1] + 3)}"

    # -- values -------------------------------------------------------------------------------------------------------

    def bad(self, *nodes: str, gap: float = 0.0, **more: Any) -> None:
        """The value of nodes falls."""
        for index, name in enumerate(nodes):
            self.add("taint", after=index * gap, name=name, key=SLA, value=self.pick(BAD), **more)

    def good(self, *nodes: str, gap: float = 0.0, **more: Any) -> None:
        """The value of nodes is good."""
        for index, name in enumerate(nodes):
            self.add("taint", after=index * gap, name=name, key=SLA, value=self.pick(GOOD), **more)

    def process(self) -> Json:
        """A process that writes values: its key, its kind, and how often it writes."""
        key, kind = self.pick(PROCESSES)
        given = {"begin": self.pick((985, 955, 949, 60, 90)), "step": self.pick((-1, -1, -7, 1, 3))}
        return {"key": key, "kind": kind, "every": self.pick((3.0, 5.0, 17.0, 30.0)), **given}

    # -- disturbances -------------------------------------------------------------------------------------------------

    def restart(self) -> None:
        """The leader is killed; another leads, or it itself later."""
        self.add("kill", name=self.pick(("leader", "leader", "a", "b")), down=self.between(0.1, 20.0))

    def take_over(self) -> None:
        """Let the lease change its holder, or be lost for a while."""
        how = self.pick(("release", "lose", "lose", "freeze"))
        if how == "release":
            self.add("release")
        elif how == "lose":
            self.add("lease", name="leader", seconds=self.between(5.0, 25.0))
        else:
            self.add("freeze", name="leader", seconds=self.between(5.0, 30.0))

    def disturb_stream(self, *kinds: str) -> None:
        """A watch lags, breaks or is silent for a while."""
        name, kind = self.pick(("leader", "a", "b")), self.pick(kinds or ("nodes", "pods"))
        how = self.pick(("lag", "cut", "cut", "relist"))
        if how == "lag":
            self.add("lag", name=name, kind=kind, seconds=self.between(0.3, 3.0), duration=self.between(3.0, 20.0))
        else:
            self.add("cut", name=name, kind=kind, seconds=self.between(0.2, 8.0), lists=how == "relist")

    def storm(self, *behaviours: str, **more: Any) -> None:
        """Requests fare badly for a while."""
        behaviour = self.pick(behaviours or ("slow", "error", "lost", "late", "drop", "twice", "throttle"))
        given = {"seconds": self.between(0.5, 8.0), "probability": self.pick((0.2, 0.5, 1.0))} | more
        self.add("weather", behaviour=behaviour, duration=self.between(5.0, 30.0), **given)
