"""The only module that knows the engine: objects of the world in, orders and notices in words of the world out.

It uses what the operator itself puts around the machine: the decoder, the parsers of policies and profiles, the guard
store, and the table of outcomes.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from simulated.world import jsons
from simulated.world import objects as world
from taintwarden.api.policies import parse_policy
from taintwarden.api.profiles import parse_profile
from taintwarden.controller.decoding import decoding
from taintwarden.controller.decoding.decoding import Decoder
from taintwarden.controller.stores import guard_record
from taintwarden.controller.stores.guard_store import GuardStore
from taintwarden.engine import commands, events
from taintwarden.engine.events import WriteOutcome
from taintwarden.engine.machine import Machine
from taintwarden.engine.model import Instant, MonotonicTime, Profile, StoredPod, WallTime
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import Policy
from taintwarden.kube.calls.evictor import outcome_of
from taintwarden.kube.wire.answers import read_refusal
from taintwarden.kube.wire.kinds import BudgetObject, NodeObject, PodObject
from taintwarden.telemetry.metrics import Metrics
from taintwarden_devices import events as device_events
from taintwarden_devices.handlers import (
    EVERY_DRIVER,
    ClaimHandler,
    DeviceHandler,
    SliceHandler,
    TaintRuleHandler,
)
from taintwarden_devices.objects import DeviceClaimObject, SliceObject, TaintRuleObject
from taintwarden_devices.source import Devices

Json = dict[str, Any]
SERVED = {
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("v1", "ReplicationController"),
    ("batch/v1", "Job"),
}
"""Controllers of pods that an API server has; it has no ``batch/v1 ReplicaSet``."""
DRIVER = "gpu.example.com"
_START = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Order:
    """A call that the machine orders.

    ``what``: evict, delete, check, check-pod, history, condition, guard, places or reset.
    """

    what: str
    raw: Any
    key: str
    """UID of the pod, name of the node, or name of the policy."""
    policy: str = ""
    grace: int | None = None
    content: Any = None
    uid: str = ""
    """UID of the node or policy that is written."""
    version: int = -1
    """Version of the node on which a write is based; -1: any."""


class Engine:
    """One machine in one process.

    Args:
        wall: the wall clock of the process, seconds since 1970.
        monotonic: its monotonic clock.
        options: of the machine.

    """

    def __init__(self, wall: Callable[[], float], monotonic: Callable[[], float], **options: Any) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self.machine = Machine(source=Devices, **options)
        self._decoder = Decoder(lambda: self.now, reads_drained=True)
        self._pending: list[events.Event] = []
        self._guards = GuardStore(self._pending.append)
        parts, drivers = (self._pending.append, Metrics()), frozenset((EVERY_DRIVER,))
        self._devices: dict[str, DeviceHandler[Any]] = {
            "slices": SliceHandler("resourceslices", *parts, drivers),
            "claims": ClaimHandler("resourceclaims", *parts, drivers),
            "rules": TaintRuleHandler("devicetaintrules", *parts),
        }
        self._newest = -1
        self._policies: dict[str, tuple[Json, int, Policy]] = {}
        self._profiles: dict[str, Profile] = {}
        self._replicas: dict[tuple[str, str], int] = {}

    @property
    def now(self) -> Instant:
        """Both clocks."""
        return Instant(WallTime(self._wall()), MonotonicTime(self._monotonic()))

    # -- steps ------------------------------------------------------------------------------------------------------

    def step(self, *fed: events.Event) -> list[Order]:
        """Feed events. Returns what the machine orders, in order."""
        out: list[Order] = []
        for event in fed:
            if isinstance(event, events.PodSeen):
                self._newest = max(self._newest, event.pod.resource_version)
            elif isinstance(event, events.PodsListed):
                self._newest = event.resource_version
            out += filter(None, map(_ordered, self.machine.step(event, self.now)))
        return out

    def wake(self) -> list[Order]:
        """The time that ``wake_after`` returned has passed."""
        return self.step(events.Tick())

    def wake_after(self) -> float | None:
        """Seconds until the machine wants to run."""
        return self.machine.wake_after(self.now)

    def may_send(self, order: Order, *, holds_lease: bool) -> bool:
        """True if the request of an order may go to its socket now."""
        return holds_lease and self.machine.is_still_valid(order.raw, self.now)

    def knows_pods(self, order: Order, pods: Iterable[world.Pod]) -> bool:
        """Return True if the operator knows the pods that a read found on the node of an order, as they are stored."""
        found = [StoredPod(one.uid, one.version, terminates=one.stopping_until is not None) for one in pods]
        return self.machine.knows_pods(order.raw, found)

    # -- objects ------------------------------------------------------------------------------------------------------

    def saw(self, kind: str, key: str, obj: Any, before: Any, *, listed: bool) -> list[Order]:
        """An object is like this, or gone (None); ``before``: as this process knew it."""
        match kind:
            case "nodes":
                return self.step(events.NodeGone(key) if obj is None else events.NodeSeen(self.node(obj), listed))
            case "pods":
                event = self._pod(key, obj, before)
                return [] if event is None else self.step(event)
            case "namespaces":
                gone = obj is None
                return self.step(events.NamespaceSeen(key) if gone else events.NamespaceSeen(key, dict(obj.labels)))
            case "workloads":
                return self._workload(obj or before, gone=obj is None)
            case "budgets":
                if obj is None:
                    return [] if before is None else self.step(events.BudgetGone(before.namespace, before.name))
                budget = decoding.budget(msgspec.convert(jsons.budget(obj), BudgetObject))
                return [] if budget is None else self.step(events.BudgetSeen(budget))
            case "slices" | "claims" | "rules":
                return self._device(kind, key, obj, listed=listed)
            case _:
                raise ValueError(kind)

    def _device(self, kind: str, key: str, obj: Any, *, listed: bool) -> list[Order]:
        handler, stored = self._devices[kind], _DEVICES[kind]
        if obj is None:
            handler.withdraw(key)
        else:
            found = msgspec.convert(stored.written(obj), stored.type)
            if listed:
                handler.listed([found])
            else:
                handler.seen(found)
        return self._feed_pending()

    def devices_known(self) -> list[Order]:
        """Slices, claims and rules were listed."""
        return self.step(device_events.DevicesKnown(known=True))

    def node(self, obj: world.Node) -> Any:
        """A node in the words of the engine."""
        return self._decoder.node(msgspec.convert(jsons.node(obj), NodeObject))

    def _pod(self, uid: str, obj: world.Pod | None, before: world.Pod | None) -> events.Event | None:
        if obj is None:
            return None if before is None or not before.node else events.PodGone(uid, before.node)
        found = msgspec.convert(jsons.pod(obj), PodObject)
        pod = self._decoder.pod(found)
        if pod is not None:
            return events.PodSeen(pod)
        leaving = self._decoder.bound(found) if obj.stopping_until is not None else None
        return events.PodGone(uid, obj.node, obj.stopping_until, leaving) if obj.node else None

    def _workload(self, workload: world.Workload | None, *, gone: bool) -> list[Order]:
        if workload is None or not is_watched(workload):
            return []
        key = (workload.namespace, workload.uid)
        if gone:
            self._replicas.pop(key, None)
            return self.step(events.WorkloadSeen(key))
        if self._replicas.get(key) == workload.replicas:
            return []
        self._replicas[key] = workload.replicas
        return self.step(events.WorkloadSeen(key, workload.replicas))

    def listed(self, kind: str, known: Mapping[str, Any], version: int) -> list[Order]:
        """A list of a kind ended; ``known``: its objects. What it lacks was reported as gone before, but for these."""
        if kind == "nodes":
            return self.step(events.NodesListed(frozenset(known), version))
        if kind == "pods":
            return self.step(events.PodsListed({uid: pod.node for uid, pod in known.items()}, version))
        return []

    def reached(self, version: int) -> list[Order]:
        """The node stream has delivered everything up to a version."""
        return self.step(events.NodesReached(version))

    def live(self, kind: str, *, live: bool) -> list[Order]:
        """Report to the machine if a stream is up to date."""
        of_devices = device_events.StreamChanged(kind, live)
        return self.step(of_devices if kind in _DEVICES else events.ViewChanged(kind, live))

    def synced(self) -> list[Order]:
        """Everything was listed once."""
        return self.step(events.Synced())

    # -- policies and profiles ----------------------------------------------------------------------------------------

    def policies(self, stored: Iterable[world.Policy], *, changed: Iterable[str]) -> list[Order]:
        """These policies are stored; those named ``changed`` differ from what was known."""
        stored = list(stored)
        by_name = {one.name: one for one in stored}
        out: list[Order] = []
        for name in changed:
            if name in by_name:
                self._guards.seen(jsons.policy(by_name[name]))
            else:
                self._guards.gone(name)
            out += self._feed_pending()
        parsed = {one.name: self._parse(one) for one in stored}
        if parsed != {name: known[2] for name, known in self._policies.items()}:
            self._policies = {one.name: (one.spec, one.generation, parsed[one.name]) for one in stored}
            out += self.step(events.PoliciesChanged(tuple(parsed.values())))
        self._guards.apply_resets()
        return out + self._feed_pending()

    def _parse(self, stored: world.Policy) -> Policy:
        known = self._policies.get(stored.name)
        if known is None or known[0] is not stored.spec or (known[1], known[2].uid) != (stored.generation, stored.uid):
            return parse_policy(jsons.policy(stored))
        return known[2]

    def profile(self, key: str, stored: world.Profile | None) -> list[Order]:
        """A profile is stored like this, or gone. Only a new generation is an event, as in the profile store."""
        known = self._profiles.get(key)
        if stored is None:
            namespace, _, name = key.partition("/")
            return [] if self._profiles.pop(key, None) is None else self.step(events.ProfileGone(namespace, name))
        parsed = parse_profile(jsons.profile(stored))
        if parsed == known:
            return []
        self._profiles[key] = parsed
        return self.step(events.ProfileSeen(parsed))

    def lead(self, *, leading: bool, term: int) -> list[Order]:
        """Leadership is gained, after the policies were read again, or lost."""
        out: list[Order] = []
        if leading:
            self._guards.restore_records()
            out += self._feed_pending()
        out += self.step(events.LeadershipChanged(leading, term))
        self._guards.set_leading(leading)
        return out + self._feed_pending()

    def renewed(self, *, succeeded: bool) -> list[Order]:
        """The last renewal of the Lease succeeded, or it failed or has no answer."""
        return self.step(events.LeaseRenewal(succeeded))

    def _feed_pending(self) -> list[Order]:
        fed, self._pending[:] = list(self._pending), []
        return self.step(*fed)

    # -- answers ------------------------------------------------------------------------------------------------------

    def settled(self, order: Order, code: int, body: bytes, retry_after: str = "") -> list[Order]:
        """An eviction call was answered; code 0: it got no answer."""
        if code == 0:
            return self.step(events.Settled(order.key, Outcome.FAILED, "no answer"))
        if 200 <= code < 300:
            return self.step(events.Settled(order.key, Outcome.ACCEPTED))
        result = outcome_of(read_refusal(code, body, retry_after))
        return self.step(events.Settled(order.key, result.outcome, result.message, result.retry_after))

    def not_sent(self, order: Order) -> list[Order]:
        """An order was not carried out, since the lease is lost or the order stands no longer."""
        if order.what in ("evict", "delete"):
            return self.step(events.Settled(order.key, Outcome.NOT_SENT))
        if order.what == "check":
            return self.step(events.NodeChecked(order.key))
        if order.what == "check-pod":
            return self.pod_checked(order.key, None)
        return self.step(events.Written(order.raw, WriteOutcome.FAILED))

    def written(self, order: Order, outcome: str, version: int, pruned: tuple[str, ...] = ()) -> list[Order]:
        """A write ended: done, gone, refused, outdated or failed. ``version``: of the node that it made."""
        return self.step(events.Written(order.raw, WriteOutcome(outcome), version, pruned=pruned))

    @property
    def newest_version(self) -> int:
        """The newest version that a pod brought: a read that begins now is at least as new."""
        return self._newest

    def checked(self, name: str, obj: world.Node | None, begun_at: int) -> list[Order]:
        """A node was read. ``begun_at``: ``newest_version`` when the read began."""
        return self.step(events.NodeChecked(name, None if obj is None else obj.version, begun_at))

    def pod_checked(self, uid: str, runs: bool | None) -> list[Order]:
        """A pod was read: whether it runs; None: no answer came."""
        return self.step(events.PodChecked(uid, runs))

    def check_failed(self, name: str) -> list[Order]:
        """A node could not be read."""
        return self.step(events.NodeChecked(name))


def _ordered(command: commands.Command) -> Order | None:
    match command:
        case commands.Evict():
            policy = command.verdict.policy.name
            what = "delete" if command.delete else "evict"
            version = command.pod.resource_version if command.as_seen else -1
            return Order(what, command, command.pod.uid, policy, command.grace_period_seconds, version=version)
        case commands.CheckNode():
            return Order("check", command, command.name)
        case commands.CheckPod():
            return Order("check-pod", command, command.pod.uid)
        case commands.SaveHistory():
            return Order(
                "history", command, command.node, content=command.text, uid=command.uid, version=command.version
            )
        case commands.SaveCondition():
            content = None if command.condition is None else msgspec.structs.astuple(command.condition)
            return Order("condition", command, command.node, content=content, uid=command.uid, version=command.version)
        case commands.SaveGuard():
            name, record = command.policy.name, guard_record.encode_guard(command.record)
            return Order("guard", command, name, name, content=record, uid=command.policy.uid)
        case commands.SavePlaces():
            name, record = command.policy.name, guard_record.encode_places(command.places, command.term)
            return Order("places", command, name, name, content=record, uid=command.policy.uid)
        case commands.ClearGuardReset():
            return Order("reset", command, command.policy.name, command.policy.name, uid=command.policy.uid)
        case _:
            return None


def is_watched(workload: world.Workload) -> bool:
    """Return True if operators watch a controller: it exists, and its kind is served."""
    return workload.exists and (workload.api_version, workload.kind) in SERVED


class _Stored(NamedTuple):
    type: type[Any]
    written: Callable[[Any], Json]


_DEVICES = {
    "slices": _Stored(SliceObject, jsons.device_slice),
    "claims": _Stored(DeviceClaimObject, jsons.device_claim),
    "rules": _Stored(TaintRuleObject, jsons.taint_rule),
}
