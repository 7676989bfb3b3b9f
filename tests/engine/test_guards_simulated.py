"""A guard lets no more pods go in one window of time than it may, whatever happens to the operator meanwhile."""

from collections import defaultdict
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

import msgspec
import pytest

from simulated import Simulation, policy
from simulated.drawing import NO_LIMITS
from simulated.histories import BAD, TOLERATION, Played, histories
from simulated.onlooker import Onlooker
from simulated.trace import CarriedOut, Started
from simulated.workloads import Workloads
from taintwarden.engine.machine import commands, events
from taintwarden.engine.model import GuardAction, GuardSettings

COUNTED_SECONDS = 1.0
"""All pods are counted at most that often."""


class Allowed(NamedTuple):
    """What a guard allows from one moment on."""

    at: float
    pods: int
    window: float


class Guarded:
    """One policy while one guard halts it: what that allowed, and what went."""

    def __init__(self, accepted: set[str]) -> None:
        self.allowed: list[Allowed] = []
        self.went: list[tuple[float, str]] = []
        self.accepted = accepted
        """Pods that somebody saw and let go."""

    def exceeded(self) -> list[str]:
        """A pod that is asked for again, since nobody knows how a call ended, leaves once."""
        went = [(at, uid) for at, uid in self.went if uid not in self.accepted]
        found = []
        for first, (begin, _) in enumerate(went):
            pods: set[str] = set()
            for end, uid in went[first:]:
                pods.add(uid)
                then = [one for one in self.allowed if begin - COUNTED_SECONDS <= one.at <= end]
                earlier = [one for one in self.allowed if one.at < begin - COUNTED_SECONDS]
                then += earlier[-1:]
                if end - begin >= min(one.window for one in then):
                    break
                if len(pods) > (most := max(one.pods for one in then)):
                    found.append(f"{len(pods)} from {begin} to {end}, and {most} may")
        return found


def population(name: str, known: Onlooker) -> int:
    """The policies of histories select every pod on every node."""
    return sum(pod.node in known.nodes for pod in known.pods.values())


class Latecomers:
    """Pods that came when a taint of their node made them leave already, as this operator saw it."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._late: set[str] = set()
        self._is_synced = False

    def hear(self, what: object, known: Onlooker) -> None:
        match what:
            case Started():
                self.__init__()
            case events.Synced():
                self._is_synced = True
            case events.PodSeen(pod) if pod.uid not in self._seen:
                self._seen.add(pod.uid)
                if self._is_synced and known.acting_on(pod):
                    self._late.add(pod.uid)

    def __contains__(self, uid: str) -> bool:
        return uid in self._late


def guarded(history: Played) -> Iterator[Guarded]:
    happened = {(one.what.uid, one.what.sent_at) for one in history.trace if isinstance(one.what, CarriedOut)}
    current: dict[str, Guarded] = {}
    accepted: dict[str, set[str]] = defaultdict(set)
    latecomers = Latecomers()
    for moment, known in history.moments():
        latecomers.hear(moment.what, known)
        for name in {*current, *known.policies}:
            one = known.policies.get(name)
            guard = known.limits(name).guard if one else None
            if guard is None or guard.action is GuardAction.REPORT:
                if name in current:
                    yield current.pop(name)
                continue
            most = max(guard.min_pods, population(name, known) * guard.max_percent // 100)
            allowed = current.setdefault(name, Guarded(accepted[name])).allowed
            if not allowed or allowed[-1][1:] != (most, guard.window_seconds):
                allowed.append(Allowed(moment.at, most, guard.window_seconds))
        match moment.what:
            case commands.Evict(pod, verdict) if (pod.uid, moment.at) in happened and verdict.policy.name in current:
                if pod.uid not in latecomers:
                    current[verdict.policy.name].went.append((moment.at, pod.uid))
            case commands.GuardArmed(one, pods) if pods is not None:
                accepted[one.name] |= {pod.uid for pod in known.pods.values() if one.name in known.acting_on(pod)}
    yield from current.values()


@pytest.mark.parametrize("without", [("clock",), ("restart", "crash")], ids=["with restarts", "with clock steps"])
def test_no_window_holds_more_evictions_than_the_guard_lets_go(without):
    """Not both: nobody can know how long nobody was there if the clock was set meanwhile."""
    for history in histories("guard", without):
        for one in guarded(history):
            assert one.exceeded() == [], history


def test_the_histories_try_the_guard():
    seen = defaultdict(int)
    for history in histories("guard", ("clock",)):
        for moment in history.trace:
            seen[type(moment.what).__name__] += 1
    assert seen["GuardTripped"] > 5
    assert seen["GuardArmed"] > 5


# -- one wave ----------------------------------------------------------------------------------------------------


class Wave:
    """Forty pods on ten nodes, of which eight may leave in a minute."""

    def __init__(self, seed: int = 1, *, settle: int = 2, rate: float | None = None, **more: object) -> None:
        self.chance = Random(seed)
        guard = GuardSettings(max_percent=20, min_pods=1, window_seconds=60, settle_seconds=settle, **more)
        limits = msgspec.structs.replace(NO_LIMITS, guard=guard, evictions_per_second=rate, burst=1)
        self.sim = Simulation([msgspec.structs.replace(policy(taints=[{"key": "sla"}]), limits=limits)])
        for number in range(10):
            self.sim.create_node(f"n{number}")
        self.workloads = Workloads(self.sim, self.chance)
        self.workloads.create("web", 40, tolerations=[TOLERATION], labels={"app": "web"})
        self.sim.start()
        self.sim.run(5)

    def hit(self, nodes: int, within: float) -> None:
        for name in list(self.sim.nodes)[:nodes]:
            self.sim.set_taints(name, [BAD])
            self.sim.run(self.sim.at + within / nodes)

    def hit_pods(self) -> set[str]:
        bad = {name for name, node in self.sim.nodes.items() if node["spec"]["taints"]}
        return {pod["metadata"]["uid"] for pod in self.sim.pods.values() if pod["spec"]["nodeName"] in bad}


@pytest.mark.parametrize("seed", range(5))
def test_a_wave_that_is_too_large_evicts_nobody(seed):
    wave = Wave(seed)
    wave.hit(8, within=1.9)
    wave.sim.run(wave.sim.at + 300)
    assert wave.sim.calls == []


@pytest.mark.parametrize("seed", range(5))
def test_a_wave_that_is_small_enough_goes(seed):
    wave = Wave(seed)
    wave.hit(1, within=0.1)
    hit = wave.hit_pods()
    assert len(hit) <= 8
    wave.sim.run(wave.sim.at + 60)
    assert set(wave.sim.evicted) == hit


@pytest.mark.parametrize("seed", range(10))
def test_killing_the_operator_lets_nobody_go_that_the_guard_holds(seed):
    wave = Wave(seed)
    wave.hit(8, within=wave.chance.uniform(0, 1.9))
    for _ in range(8):
        wave.sim.run(wave.sim.at + wave.chance.uniform(0.0, 4.0))
        wave.sim.restart(wave.chance.choice([0.0, 0.1, 70.0]))
    wave.sim.run(wave.sim.at + 100)
    assert wave.sim.calls == []


@pytest.mark.parametrize("seed", range(5))
def test_a_reset_lets_exactly_those_go_whom_the_guard_holds(seed):
    wave = Wave(seed)
    wave.hit(6, within=1.0)
    held = wave.hit_pods()
    wave.sim.run(wave.sim.at + 30)
    wave.sim.reset_guard("p")
    wave.sim.run(wave.sim.at + 30)
    assert set(wave.sim.evicted) == held
    assert wave.sim.resets_wanted == {}


def test_a_reset_lets_nobody_go_of_the_next_wave():
    wave = Wave()
    wave.hit(4, within=1.0)
    wave.sim.run(wave.sim.at + 10)
    wave.sim.reset_guard("p")
    wave.sim.run(wave.sim.at + 100)
    first = set(wave.sim.evicted)
    for name in list(wave.sim.nodes)[5:]:
        wave.sim.set_taints(name, [BAD])
    wave.sim.run(wave.sim.at + 200)
    assert set(wave.sim.evicted) == first


def test_a_wave_that_joins_those_let_go_is_held_and_holds_none_of_them():
    wave = Wave(rate=1.0)
    wave.hit(5, within=1.0)
    wave.sim.run(wave.sim.at + 10)
    held = wave.hit_pods()
    wave.sim.reset_guard("p")
    wave.sim.run(wave.sim.at + 5)
    assert wave.sim.calls
    wave.hit(10, within=1.0)
    wave.sim.run(wave.sim.at + 100)
    assert set(wave.sim.evicted) == held


def test_nobody_goes_before_it_is_stored_that_somebody_may():
    wave = Wave()
    wave.sim.guard_fault = lambda: True
    wave.hit(1, within=0.1)
    hit = wave.hit_pods()
    wave.sim.run(wave.sim.at + 30)
    assert wave.sim.calls == []
    wave.sim.guard_fault = lambda: False
    wave.sim.run(wave.sim.at + 30)
    assert set(wave.sim.evicted) == hit


@pytest.mark.parametrize("seed", range(10))
def test_killed_at_every_call_the_operator_lets_no_more_go_than_it_may(seed):
    """Node after node turns bad, and each operator dies while it begins to evict."""
    wave = Wave(seed, settle=0)
    wave.sim.guard_fault = lambda: wave.chance.random() < 0.3

    def die(_: str) -> None:
        wave.sim.witness = lambda uid: None
        wave.sim.later(wave.chance.choice([0.0, 0.02, 0.06]), wave.sim.kill)

    for name in list(wave.sim.nodes)[:6]:
        wave.sim.set_taints(name, [BAD])
        wave.sim.witness = die
        wave.sim.run(wave.sim.at + wave.chance.uniform(0.1, 6.0))
        wave.sim.restart(0.1)
    wave.sim.run(wave.sim.at + 100)
    times = sorted(wave.sim.evicted.values())
    for begin in times:
        assert sum(begin <= at < begin + 60 for at in times) <= 8


def test_when_the_cause_is_gone_the_guard_closes_and_replays_nothing():
    wave = Wave()
    wave.hit(8, within=1.0)
    wave.sim.run(wave.sim.at + 30)
    for name in wave.sim.nodes:
        wave.sim.set_taints(name, [])
    wave.sim.run(wave.sim.at + 100)
    assert wave.sim.calls == []
    assert wave.sim.guard_records["p"].open_since is None


def test_a_guard_that_only_reports_holds_nobody():
    wave = Wave(action=GuardAction.REPORT)
    wave.hit(8, within=1.0)
    held = wave.hit_pods()
    wave.sim.run(wave.sim.at + 60)
    assert set(wave.sim.evicted) == held
    assert any(isinstance(notice, commands.GuardTripped) for _, notice in wave.sim.notices)
