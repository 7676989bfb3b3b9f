"""The bare machine on a bench: values in, commands out, both clocks turned by hand."""

import math
from typing import Any, Self, TypeVar

import msgspec

from simulated import policy
from taintwarden.engine import commands, events
from taintwarden.engine.events import Event, WriteOutcome
from taintwarden.engine.interning import Interner
from taintwarden.engine.limit_settings import ALL_PODS, NO_BACKOFF, GuardSettings, Limits, RateLimit
from taintwarden.engine.machine import ClaimView, Machine, Phase, PolicyReport, Timings, View
from taintwarden.engine.machine.world import World
from taintwarden.engine.model import Budget, Effect, Instant, Node, Owner, Pod, Taint, Toleration, Tolerations
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import Policy
from taintwarden.engine.selectors import LabelSelector, Requirement, SelectorOperator
from taintwarden.fields.spec import MAX_RATE

C = TypeVar("C")
START = 1_700_000_000.0
REACHED = 1_000_000
"""Up to here the node stream has come: pods with a smaller version need no check."""
NO_LIMITS = Limits(
    evictions_per_second=MAX_RATE, per_workload=ALL_PODS, zone_health=None, guard=GuardSettings(100), bounce=NO_BACKOFF
)
ZONE = "topology.kubernetes.io/zone"


class Rig:
    """A machine that is synced and leads by default, with a policy on every NoExecute taint."""

    def __init__(
        self, *policies: Policy, synced: bool = True, leading: bool = True, reached: int = REACHED, **options: Any
    ) -> None:
        options.setdefault("timings", Timings(max_silence=math.inf, namespace_pause=0.0))
        self.machine = Machine(**options)
        self.wall = START
        self.monotonic = 0.0
        self.out: list[Any] = []
        self.ordered: list[commands.Write] = []
        """Writes that were not answered yet."""
        self._interner = Interner()
        self.newest_version = 0
        self.feed(events.PoliciesChanged(policies or (policy(),)))
        if leading:
            self.feed(events.LeadershipChanged(leading=True))
            self.monotonic += 3_600  # buckets are full
        self.feed(events.NodesListed(frozenset(), reached))
        if synced:
            self.feed(events.Synced())
        self.wake()
        self._store_generations()

    def _store_generations(self) -> None:
        """Since when policies enforce is stored."""
        for order in [one for one in self.ordered if isinstance(one, commands.SaveGuard) and not one.record.reserved]:
            self.ordered.remove(order)
            self.written(order)

    @property
    def now(self) -> Instant:
        return Instant(self.wall, self.monotonic)

    def feed(self, *fed: Event) -> None:
        for event in fed:
            out = self.machine.step(event, self.now)
            self.out += out
            self.ordered += [one for one in out if isinstance(one, commands.Write)]

    def process(self, *fed: Event) -> None:
        """Events come, and it acts until it has nothing more to do now."""
        self.feed(*fed)
        self.wake()

    def wake(self) -> None:
        """Let it act until it has nothing more to do now."""
        for _ in range(1_000):
            if self.machine.wake_after(self.now) != 0.0:
                return
            self.feed(events.Tick())
        raise AssertionError("the machine never comes to rest")

    def advance(self, seconds: float, step: float = 0.25) -> None:
        """Let time pass on both clocks, in steps that are exact in floating point; those in which it sleeps are one."""
        left = int(seconds / step)
        while left > 0:
            due = self.machine.wake_after(self.now)
            steps = left if due is None else min(left, max(1, math.ceil(due / step)))
            self.wall += steps * step
            self.monotonic += steps * step
            left -= steps
            self.wake()

    def version(self) -> int:
        self.newest_version += 1
        return self.newest_version

    # -- input ---------------------------------------------------------------------------------------------------------

    def node(self, name: str = "n1", *taints: str | Taint, **more: Any) -> Node:
        """A node is seen; a taint is ``key=value`` or ``key=value:effect``."""
        pairs = self.make_taints(*taints, added=more.get("added"))
        uid, labels = more.get("uid", f"uid-{name}"), more.get("labels", {})
        version, history = more.get("version") or self.version(), more.get("history", "")
        seen = Node(name, uid, labels, pairs, version, history, more.get("do_not_evict", False))
        self.process(events.NodeSeen(seen, more.get("listed", False)))
        return seen

    @staticmethod
    def make_taints(*taints: str | Taint, added: float | None = None) -> tuple[tuple[Taint, float | None], ...]:
        return tuple((parse(taint) if isinstance(taint, str) else taint, added) for taint in taints)

    def pod(self, name: str, *tolerations: Toleration, node: str = "n1", **more: Any) -> Pod:
        """A pod is seen."""
        pod = self.make_pod(name, *tolerations, node=node, **more)
        self.process(events.PodSeen(pod))
        return pod

    def with_pod(self, taint: str, *tolerations: Toleration, **more: Any) -> Self:
        """The node ``n1`` has a taint, and the pod ``a``."""
        self.node("n1", taint)
        self.pod("a", *tolerations, **more)
        return self

    def make_pod(self, name: str, *tolerations: Toleration, node: str = "n1", **more: Any) -> Pod:
        uid, version = more.pop("uid", f"uid-{name}"), more.pop("version", None) or self.version()
        bound_at = more.pop("bound_at", START - 1_000)
        sources = Tolerations(tolerations, tuple(more.pop("extended", ())))
        labels, namespace = more.pop("labels", {}), more.pop("namespace", "shop")
        ready = more.pop("ready", False)
        shared = self._interner.pod_class(namespace, labels, sources, **more)
        return Pod(uid, name, node, shared, bound_at, version, ready)

    def wants(self, owner: Owner, replicas: int | None) -> None:
        """A controller wants `replicas` pods; None: it is gone."""
        gone = replicas is None
        key = ("shop", owner.uid)
        self.process(events.WorkloadSeen(key) if gone else events.WorkloadSeen(key, replicas))

    def budget(self, name: str = "pdb", allowed: int = 0, **more: Any) -> None:
        """A PodDisruptionBudget is seen."""
        self.process(events.BudgetSeen(budget(name, allowed, **more)))

    def settle(self, name: str, outcome: Outcome = Outcome.ACCEPTED, **more: Any) -> None:
        self.process(events.Settled(f"uid-{name}", outcome, **more))

    def gone(self, name: str, node: str = "n1", until: float | None = None) -> None:
        """A pod is gone, or terminates ``until`` then."""
        self.process(events.PodGone(f"uid-{name}", node, until))

    def change(self, *policies: Policy) -> None:
        """Other policies are in force."""
        self.feed(events.PoliciesChanged(policies))
        self.wake()
        self._store_generations()

    def written(self, order: commands.Write, outcome: WriteOutcome = WriteOutcome.DONE) -> None:
        """A write ended. One to a node makes a new version of it."""
        is_new = outcome is WriteOutcome.DONE and isinstance(order, commands.SaveHistory)
        self.process(events.Written(order, outcome, self.version() if is_new else -1))

    def answer(self, kind: type[commands.Write], outcome: WriteOutcome = WriteOutcome.DONE) -> commands.Write:
        """End the oldest write of a kind that is in progress."""
        order = next(one for one in self.ordered if isinstance(one, kind))
        self.ordered.remove(order)
        self.written(order, outcome)
        return order

    def save(self, name: str = "p", *, succeeded: bool = True) -> bool:
        """End the write of the record of a guard. Returns True if one was in progress."""
        orders = [one for one in self.ordered if isinstance(one, commands.SaveGuard) and one.policy.name == name]
        for order in orders:
            self.ordered.remove(order)
        if orders:
            self.written(orders[-1], WriteOutcome.DONE if succeeded else WriteOutcome.FAILED)
        return bool(orders)

    def store(self, seconds: float = 5.0) -> None:
        """Time passes, and all that guards want to be written is written."""
        for _ in range(int(seconds * 4)):
            for name in self.world.limiter.guards.by_policy:
                self.save(name)
            while any(isinstance(one, commands.ClearGuardReset) for one in self.ordered):
                self.answer(commands.ClearGuardReset)
            self.advance(0.25)

    def report(self) -> list[PolicyReport]:
        """One report per policy, by name."""
        slices = self.view.report_in_slices(self.now)
        while True:
            try:
                next(slices)
            except StopIteration as done:
                return done.value

    # -- what came out ------------------------------------------------------------------------------------------------

    def take(self, kind: type[C]) -> list[C]:
        """The commands of one kind since the last time anything was taken; all others are forgotten."""
        found = [command for command in self.out if type(command) is kind]
        self.out = []
        return found

    def evictions(self) -> list[str]:
        """The names of the pods that were to be evicted since the last time."""
        return [command.pod.name for command in self.take(commands.Evict)]

    def notices(self) -> list[str]:
        """All commands since the last time by name and pod."""
        told = [f"{type(one).__name__} {getattr(getattr(one, 'pod', one), 'name', '')}".strip() for one in self.out]
        self.out = []
        return told

    def deadline(self, name: str) -> float | None:
        """Seconds since the start, None if it may stay."""
        claim = self.claim(name)
        return None if claim is None else claim.due_at - START

    def claim(self, name: str) -> ClaimView | None:
        """The first claim on a pod, None if it may stay."""
        return next(iter(self.view.claims(f"uid-{name}")), None)

    def phase(self, name: str) -> Phase | None:
        """Phase of the claim on a pod."""
        claim = self.claim(name)
        return None if claim is None else claim.phase

    def claimed(self) -> list[str]:
        """The names of the pods that have to leave."""
        return list(dict.fromkeys(claim.pod.name for claim in self.view.all_claims()))

    @property
    def world(self) -> World:
        """The state of the machine, for what no view shows: that nothing is left behind."""
        return self.machine._world

    @property
    def view(self) -> View:
        return self.machine.view


def parse(text: str) -> Taint:
    pair, _, effect = text.partition(":")
    key, _, value = pair.partition("=")
    return Taint(key, value, effect or Effect.NO_EXECUTE)


def gt(value: str = "950", **more: Any) -> Toleration:
    return Toleration(key="sla", operator="Gt", value=value, **more)


def exists(key: str = "sla", **more: Any) -> Toleration:
    return Toleration(key=key, operator="Exists", **more)


def limited(name: str = "p", *, spec: dict[str, Any] | None = None, **limits: Any) -> Policy:
    """A policy with these limits, by the names of the engine, and no others."""
    given = policy(name, **(spec or {}))
    return msgspec.structs.replace(given, limits=msgspec.structs.replace(NO_LIMITS, **limits))


def rate(limit: str, per_second: float) -> dict[str, Any]:
    """The fields of a limit that is a rate."""
    return {limit: per_second if limit == "evictions_per_second" else RateLimit(per_second)}


def owner(name: str = "web", kind: str = "ReplicaSet") -> Owner:
    return Owner(kind, name, f"uid-of-{name}")


def budget(name: str = "pdb", allowed: int = 0, **more: Any) -> Budget:
    """A PodDisruptionBudget in ``shop`` that selects all pods, or those with the label ``app``."""
    app = more.pop("app", None)
    selector = LabelSelector((Requirement("app", SelectorOperator.IN, (app,)),)) if app else LabelSelector()
    return Budget(more.pop("namespace", "shop"), name, more.pop("selector", selector), allowed, **more)
