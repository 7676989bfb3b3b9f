"""Judges: each has one rule, and judges from the world's truth. None asks the engine what it believes."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from simulated.world import law
from simulated.world.agenda import EPOCH
from simulated.world.judges.base import Breach, Judge
from simulated.world.judges.calls import Calls, Withheld, Writes
from simulated.world.judges.guards import GuardRecords, GuardWindows, Resets, Trips
from simulated.world.judges.knowledge import Knowledge
from simulated.world.judges.limits import BudgetTimeouts, FullZones, Rates, Spared
from simulated.world.judges.liveness import Held, Lost, Quiet
from simulated.world.judges.notices import Notices, Silence
from simulated.world.judges.safety import Eviction, Fence, Late, Leader, Right, bound_since
from simulated.world.judges.sometimes import Sometimes
from simulated.world.judges.trace import Trace
from simulated.world.objects import Pod, Taint
from simulated.world.store import last_change
from simulated.world.wire import Request

if TYPE_CHECKING:
    from simulated.world.replica import Replica
    from simulated.world.world import World

__all__ = ["Breach", "Judges"]

JUDGES: tuple[type[Judge], ...] = (
    Right,
    Fence,
    Leader,
    Late,
    GuardWindows,
    GuardRecords,
    Resets,
    Rates,
    FullZones,
    BudgetTimeouts,
    Spared,
    Calls,
    Writes,
    Withheld,
    Held,
    Lost,
    Quiet,
    Notices,
    Silence,
)
LONGEST_BACKOFF_SECONDS = 80.0
"""After that long whatever was refused, denied or lost has been tried again."""
RULES_SECONDS = 1.0
"""So late the streams of policies, profiles and namespaces may be compared with that of pods."""
HOOKS = (
    "stored",
    "restored",
    "told",
    "led",
    "lease_changed",
    "about_to_die",
    "noticed",
    "ordered",
    "sent",
    "withheld",
    "arrives",
    "effect",
    "answered",
    "calm_begins",
    "calm_ends",
    "lifted",
    "quiet_begins",
    "quiet_ends",
)


class Judges:
    """All judges of one world, and what several of them ask of the truth."""

    stored: Callable[..., None]
    restored: Callable[..., None]
    told: Callable[..., None]
    led: Callable[..., None]
    lease_changed: Callable[..., None]
    about_to_die: Callable[..., None]
    noticed: Callable[..., None]
    ordered: Callable[..., None]
    sent: Callable[..., None]
    withheld: Callable[..., None]
    arrives: Callable[..., None]
    effect: Callable[..., None]
    answered: Callable[..., None]
    calm_begins: Callable[..., None]
    calm_ends: Callable[..., None]
    lifted: Callable[..., None]
    quiet_begins: Callable[..., None]
    quiet_ends: Callable[..., None]

    def __init__(self, world: "World") -> None:
        self.world = world
        self.breaches: list[Breach] = []
        self.evictions: list[Eviction] = []
        self.on_eviction: list[Callable[[Eviction], None]] = []
        self.under_way: Pod | None = None
        """The pod of the request that is being carried out."""
        self.reached: dict[str, int] = {}
        """How often each named state was reached: see ``sometimes``."""
        self.bound: dict[tuple[str, str], float] = {}
        """UID and node -> since when a pod is there, as far as it was asked."""
        self._terms: list[tuple[float, str, int]] = []
        self.knowledge = Knowledge(self)
        self.trips = Trips(self)
        self.sometimes = Sometimes(self)
        others = [one(self) for one in JUDGES]
        self.trace = Trace(self)
        self.all: list[Judge] = [self.knowledge, self.trips, self.trace, self.sometimes, *others]
        self.guard_windows = next(one for one in others if isinstance(one, GuardWindows))
        self.zones = next(one for one in others if isinstance(one, FullZones))
        for hook in HOOKS:
            methods = [getattr(one, hook) for one in self.all if getattr(type(one), hook) is not getattr(Judge, hook)]
            setattr(self, hook, _all_of(methods))

    def note_term(self, replica: "Replica", term: int) -> None:
        """A replica leads from now on, or (0) no longer."""
        self._terms.append((self.world.agenda.now, replica.name, term))

    def has_led(self, begin: float, end: float) -> bool:
        """Whether a replica led at some time of an interval, as its machine knew."""
        before: dict[str, int] = {}
        for at, name, term in self._terms:
            if at <= begin:
                before[name] = term
            elif at <= end and term:
                return True
        return begin <= end and any(before.values())

    def bound_since(self, pod: Pod) -> float:
        """True time since which a pod is on its node, seconds since 1970."""
        return bound_since(self, pod)

    def crashed(self, replica: "Replica", error: Exception) -> None:
        """An error that nobody expected ends a process."""
        sentence = f"{replica.name} ended by {type(error).__name__}: {error}"
        if all(one.sentence != sentence for one in self.breaches):
            self.breaches.append(Breach("crash", self.world.agenda.now, sentence))

    def evicted(self, eviction: Eviction) -> None:
        """An eviction took effect."""
        self.evictions.append(eviction)
        for listener in self.on_eviction:
            listener(eviction)

    # -- what the truth says ----------------------------------------------------------------------------------------

    def moments(self, begin: float, end: float, *concerned: Any) -> list[float]:
        """The moments of an interval from which on one of these pasts differs, and its two ends."""
        begin = max(begin, 0.0)
        found = {begin: None, end: None}
        for past in concerned:
            if past is not None:
                found.update((max(at, begin), None) for at, _ in past.since(begin, end))
        return sorted(found)

    def rules_about(self, pod: Pod) -> list[Any]:
        """The pasts of all that says what a pod may and must: policies, its namespace, profiles there."""
        past = self.world.store.past
        profiles = [one for key, one in past["profiles"].items() if key.startswith(f"{pod.namespace}/")]
        return [*past["policies"].values(), past["namespaces"].get(pod.namespace), *profiles]

    def demands_at(self, pod: Pod, moment: float) -> Iterator[law.Demand]:
        """What policies demand of a pod at a moment by the truth, with the true times."""
        state = self.pod_at(pod.uid, moment)
        if state is not None and state.node:
            yield from self.demands_of(state, moment)

    def demands_of(self, state: Pod, moment: float) -> Iterator[law.Demand]:
        """What policies demand at a moment of a pod that is on its node in this state."""
        scene = self.world.truth_at(moment)
        states = self.knowledge.states_for(state, moment)
        if scene.node(state.node) is not None and states:
            yield from law.demands(scene, state, states[-1][1], states, bound_since(self, state), EPOCH + moment)

    def pod_at(self, uid: str, moment: float) -> Pod | None:
        """A pod as it was, if it ran then."""
        past = self.world.store.past["pods"].get(uid)
        state: Pod | None = None if past is None else past.at(moment)
        return None if state is None or state.stopping_until is not None else state

    def earliest(self, request: Request, pod: Pod, begin: float) -> Iterator[tuple[law.Demand, float]]:
        """Each demand of the order's policy since ``begin``, with the seconds by which the request came too early.

        Each stream may be late by itself: any state of the pod, of its node and of the rules of that time may be meant.
        """
        past, end, slack = self.world.store.past, self.world.agenda.now, self.clock_spread + 0.05
        rules_begin, created_at = begin, 0.0
        if (created := past["pods"].get(pod.uid)) is not None:  # what was so before concerns it as far as it is late
            created_at = created.times[0]
            rules_begin = max(begin, created_at - RULES_SECONDS)
            begin = max(begin, created_at - 0.001)  # the node may change in the same moment, after it
        pods = self.moments(begin, end, created)
        states_of_pod = {one.serial: one for one in (self.pod_at(pod.uid, at) or pod for at in pods)}
        for state in states_of_pod.values():
            bound_at = bound_since(self, state)
            for at in self.moments(begin, end, past["nodes"].get(state.node), *self.world.devices.pasts(state)):
                states = self.knowledge.states_for(state, at, uses_at=end)
                if not states:
                    continue
                known = self.knowledge.known(request.replica, states) or states
                if known[-1][1] is not states[-1][1]:
                    known = [*known, states[-1]]
                for when in self.moments(rules_begin, end, *self.rules_about(pod)):
                    scene = self.world.truth_at(when)
                    for reading in (states, known):
                        moment = max(when, created_at)
                        for demand in self._by(request.order.policy, scene, state, reading, bound_at, moment):
                            yield demand, demand.due - EPOCH - request.sent_at - slack

    def _by(
        self, policy: str, scene: law.Scene, pod: Pod, states: Any, bound_at: float, moment: float
    ) -> Iterator[law.Demand]:
        for demand in law.demands(scene, pod, states[-1][1], states, bound_at, EPOCH + moment):
            if demand.rules.name == policy and demand.rules.mode == "Enforce":
                yield demand

    @property
    def clock_spread(self) -> float:
        """By how much the clocks of operators have differed from the true time, the later minus the earlier."""
        skews = [skew for replica in self.world.replicas for skew in replica.skews]
        return max(0.0, *skews) - min(0.0, *skews)

    def latest(self, pod: Pod, rules: law.Rules, moment: float, *, hard: bool = False) -> tuple[float, Taint] | None:
        """(seconds since 1970, taint) when a policy's first demand of a pod is due at the latest, if it has one.

        ``hard``: when it leaves the pod just its grace before its node is gone.
        """
        leader = self.world.leader
        state = self.pod_at(pod.uid, moment)
        scene = self.world.truth_at(moment)
        node = None if state is None else scene.node(state.node)
        if leader is None or state is None or node is None:
            return None
        states = self.knowledge.states_for(state, moment)
        bound_at = bound_since(self, state) + 2.0
        late = self.knowledge.late(leader, states)
        readings = [late, self.knowledge.late(leader, self.knowledge.known(leader, states) or states)]
        first, second = (self._dues(rules, scene, state, one, bound_at, moment, hard=hard) for one in readings)
        both = [(max(due, second[taint]), taint) for taint, due in first.items() if taint in second]
        if not both:
            return None
        due, taint = min(both, key=lambda one: one[0])
        return max(due, EPOCH + self.changed_since(pod, moment)), taint

    def _dues(
        self, rules: law.Rules, scene: law.Scene, pod: Pod, states: Any, bound_at: float, moment: float, *, hard: bool
    ) -> dict[Taint, float]:
        grace = pod.grace if rules.grace_given is None else rules.grace_given
        found = law.demands(scene, pod, states[-1][1], states, bound_at, EPOCH + moment, written=False)
        return {one.taint: one.hard - grace if hard else one.due for one in found if one.rules.name == rules.name}

    def changed_since(self, pod: Pod, moment: float) -> float:
        """When policies, profiles, the pod, its namespace or the labels of its node were changed last."""
        past = self.world.store.past
        times = [0.0]
        concerned = [past["namespaces"].get(pod.namespace), *self.world.devices.claims_of(pod)]
        concerned += [one for key, one in past["profiles"].items() if key.startswith(f"{pod.namespace}/")]
        times += [one.times[-1] for one in concerned if one is not None]
        for policy in past["policies"].values():
            times.append(last_change(policy, moment, lambda one: one and (one.spec, one.uid)))
        times.append(last_change(past["pods"][pod.uid], moment, _what_counts_of_a_pod))
        if pod.node in past["nodes"]:
            times.append(last_change(past["nodes"][pod.node], moment, lambda one: one and (dict(one.labels), one.uid)))
        return max(at for at in times if at <= moment)

    def caused_at(self, pod: Pod, moment: float) -> float:
        """True time since which a pod is on its node with the tolerations that it has."""
        past = self.world.store.past
        found = last_change(past["pods"][pod.uid], moment, lambda one: one and (one.node, one.native, one.extended))
        for profile in self.world.store.pasts_since("profiles", found):
            if next(one for one in profile.states if one).namespace == pod.namespace:
                found = max(found, last_change(profile, moment, lambda one: one and one.tolerations))
        return found

    def well_since(self, pod: Pod) -> float:
        """True time since which nothing hinders the leader to evict a pod; now, if something does."""
        world = self.world
        leader, now = world.leader, world.agenda.now
        if leader is None or leader.synced_at is None or not leader.is_alive:
            return now
        times = [leader.led_since, leader.synced_at, world.lease.changed_at, leader.frozen_until]
        times += [stream.well_since for stream in leader.streams.values()]
        for one in world.wire.weather:
            if one.namespace in ("", pod.namespace) or one.behaviour in ("throttle", "silly"):  # all calls pause
                times.append(min(now, one.end + one.seconds + LONGEST_BACKOFF_SECONDS))
        if leader.skew != world.plan.skews[world.replicas.index(leader)]:
            return now
        return max(times) + self.clock_spread


def _what_counts_of_a_pod(pod: Pod | None) -> object:
    if pod is None:
        return None
    return (pod.node, pod.native, pod.extended, dict(pod.marks), dict(pod.labels), pod.ready, pod.grace)


def _all_of(methods: list[Callable[..., None]]) -> Callable[..., None]:
    if len(methods) == 1:
        return methods[0]

    def tell(*args: object) -> None:
        for method in methods:
            method(*args)

    return tell
