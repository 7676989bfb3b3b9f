"""Cases for the longest step of the event loop while many claims cause no call: a paused policy, and removed nodes."""

import gc
import time
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from msgspec.structs import replace

from taintwarden.app import COLLECTOR_THRESHOLDS
from taintwarden.engine import commands, events
from taintwarden.engine.interning import Interner
from taintwarden.engine.limit_settings import ALL_PODS, NO_BACKOFF, GuardSettings, Limits
from taintwarden.engine.machine import Machine
from taintwarden.engine.model import Instant, Node, Pod, Taint, Tolerations
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import Mode, Policy, Reclaim, TaintSelector
from taintwarden.fields.spec import MAX_RATE

START = 1_800_000_000.0
PODS_PER_NODE, WORKLOADS = 30, 500
GRACE_SECONDS, DEADLINE_SECONDS, RATE = 30, 120, 100.0
PAUSED, OTHER = Taint("bench.example/paused", "1"), Taint("bench.example/other", "1")
WAKE_SECONDS = 0.25
REPORT_TURNS = 12
NO_LIMITS = Limits(MAX_RATE, per_workload=ALL_PODS, guard=GuardSettings(100), bounce=NO_BACKOFF)
Result = dict[str, float]
T = TypeVar("T")


class Longest:
    """Runs steps of a machine, and records the longest of each kind."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.seconds: dict[str, float] = {}

    def time(self, kind: str, step: Callable[[], T]) -> T:
        began = time.process_time()
        found = step()
        self.seconds[kind] = max(self.seconds.get(kind, 0.0), time.process_time() - began)
        return found

    def feed(self, event: events.Event, at: Instant) -> list[commands.Command]:
        return self.time(type(event).__name__, lambda: self.machine.step(event, at))

    def report(self, at: Instant) -> None:
        slices = self.machine.view.report_in_slices(at)
        while self.time("report", lambda: next(slices, self)) is not self:
            pass

    def run(self, begins: float, ends: float) -> None:
        """Let time pass. Every call is answered, evicted pods are gone at once, and reports are made regularly."""
        for turn in range(int((ends - begins) / WAKE_SECONDS)):
            at = instant(begins + turn * WAKE_SECONDS)
            while self.machine.wake_after(at) == 0:
                for command in self.feed(events.Tick(), at):
                    if isinstance(command, commands.Evict):
                        self.feed(events.Settled(command.pod.uid, Outcome.ACCEPTED), at)
                        self.feed(events.PodGone(command.pod.uid, command.pod.node), at)
            self.feed(events.NodesReached(10**9), at)
            if turn % REPORT_TURNS == 0:
                self.report(at)

    def result(self, pods: int) -> Result:
        named = {f"{kind}_ms": seconds * 1e3 for kind, seconds in sorted(self.seconds.items())}
        return {"pods": pods, "longest_step_ms": max(self.seconds.values()) * 1e3, **named}


def instant(seconds: float) -> Instant:
    return Instant(START + seconds, seconds)


def node(index: int, version: int, *taints: Taint) -> Node:
    return Node(f"node-{index}", f"uid-{index}", {}, tuple((one, START) for one in taints), version)


def filled(pods: int, *policies: Policy, rate: float | None = None) -> Machine:
    """Return the machine of a leader that knows all nodes and pods, with the operator's garbage collection."""
    machine, interner = Machine(overall_rate=rate), Interner()
    kinds = [
        interner.pod_class("bench", {"app": f"app-{number}"}, Tolerations(), grace_seconds=GRACE_SECONDS)
        for number in range(WORKLOADS)
    ]
    machine.step(events.PoliciesChanged(policies), instant(0))
    nodes = pods // PODS_PER_NODE
    for index in range(nodes):
        machine.step(events.NodeSeen(node(index, 1)), instant(0))
    for index in range(pods):
        kind, uid = kinds[index % WORKLOADS], str(UUID(int=index))
        pod = Pod(uid, f"pod-{index}", f"node-{index % nodes}", kind, START - 3600, 1)
        machine.step(events.PodSeen(pod), instant(0))
    for event in (events.NodesReached(10**9), events.Synced(), events.LeadershipChanged(leading=True)):
        machine.step(event, instant(0))
    while machine.wake_after(instant(0)) == 0:
        machine.step(events.Tick(), instant(0))
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    return machine


def paused(scale: float) -> Result:
    """Measure 150,000 pods that a paused policy selects, while another policy evicts some and the first one changes."""
    pods = round(150_000 * scale)
    policy = Policy(name="paused", taints=(TaintSelector(PAUSED.key),), limits=NO_LIMITS, mode=Mode.PAUSED)
    other = Policy(name="other", taints=(TaintSelector(OTHER.key),), limits=NO_LIMITS)
    longest = Longest(filled(pods, policy, other))
    for index in range(pods // PODS_PER_NODE):
        longest.feed(events.NodeSeen(node(index, 2, PAUSED)), instant(10))
    longest.run(10, 15)
    for index in range(pods // PODS_PER_NODE // 50):
        longest.feed(events.NodeSeen(node(index, 3, PAUSED, OTHER)), instant(20))
    longest.run(20, 30)
    longest.feed(events.PoliciesChanged((replace(policy, generation=2), other)), instant(30))
    longest.run(30, 35)
    return longest.result(pods)


def reclaims(scale: float) -> Result:
    """Measure the removal of all nodes of 90,000 pods, most of which miss their deadline at 100 evictions a second."""
    pods = round(90_000 * scale)
    policy = Policy(name="bench", taints=(TaintSelector("*"),), limits=NO_LIMITS, reclaim=Reclaim(DEADLINE_SECONDS))
    longest = Longest(filled(pods, policy, rate=RATE))
    for index in range(pods // PODS_PER_NODE):
        longest.feed(events.NodeSeen(node(index, 2, PAUSED)), instant(1))
    longest.run(1, 15)
    longest.run(DEADLINE_SECONDS - 5, DEADLINE_SECONDS + 5)
    return longest.result(pods)
