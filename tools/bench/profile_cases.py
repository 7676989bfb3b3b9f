"""What a change of a profile costs in a namespace that has many, and a class of its own for each pod."""

import time
from uuid import UUID

from taintwarden.engine.interning import Interner
from taintwarden.engine.machine import Machine, events
from taintwarden.engine.model import (
    Instant,
    Limits,
    MonotonicTime,
    Node,
    Pod,
    Policy,
    Profile,
    Taint,
    TaintSelector,
    Toleration,
    Tolerations,
    WallTime,
)
from taintwarden.engine.selectors import LabelSelector, Requirement, SelectorOperator

START = 1_800_000_000.0
PODS, NODES, PROFILES, TOLERATIONS, CHANGES = 500, 10, 60, 14, 20
SLOW = Taint("sla", "940")
POLICY = Policy(
    name="bench",
    taints=(TaintSelector("*"),),
    limits=Limits(None, max_unavailable=None, zone_health=None, guard=None, bounce=None),
)


def profile_change(scale: float) -> dict[str, float]:
    """One of 60 profiles changes, each for one of 500 pods; then the same with profiles that are for every pod."""
    pods = round(PODS * scale)
    one, longest_one = _change(pods, is_for_all=False)
    every, longest_every = _change(pods, is_for_all=True)
    return {
        "pods": pods,
        "for_one_ms": one * 1e3,
        "for_one_longest_step_ms": longest_one * 1e3,
        "for_all_ms": every * 1e3,
        "for_all_longest_step_ms": longest_every * 1e3,
    }


def _change(pods: int, *, is_for_all: bool) -> tuple[float, float]:
    """CPU seconds from a change until every pod is judged again, and of the longest step of these."""
    machine, interner = Machine(), Interner()
    machine.step(events.PoliciesChanged((POLICY,)), _now())
    for index in range(NODES):
        machine.step(events.NodeSeen(Node(f"node-{index}", f"uid-{index}", {}, ((SLOW, START),), 1)), _now())
    for index in range(pods):
        tolerations = Tolerations((Toleration("sla", "Exists"), Toleration(f"own-{index}", "Exists")))
        kind = interner.pod_class("shop", {"app": f"app-{index}"}, tolerations)
        pod = Pod(str(UUID(int=index)), f"pod-{index}", f"node-{index % NODES}", kind, START - 3600, 1)
        machine.step(events.PodSeen(pod), _now())
    for index in range(PROFILES):
        machine.step(events.ProfileSeen(_profile(index, 0, is_for_all=is_for_all)), _now())
    machine.step(events.NodesReached(10**9), _now())
    machine.step(events.Synced(), _now())
    machine.step(events.LeadershipChanged(leading=True), _now())
    _settle(machine, _now())
    total, longest = 0.0, 0.0
    for change in range(1, CHANGES + 1):
        profile = _profile(change % PROFILES, change, is_for_all=is_for_all)
        began = time.process_time()
        machine.step(events.ProfileSeen(profile), _now(change))
        longest = max(longest, time.process_time() - began, _settle(machine, _now(change)))
        total += time.process_time() - began
    return total / CHANGES, longest


def _settle(machine: Machine, now: Instant) -> float:
    """Work until nothing is left; the CPU seconds of the longest step."""
    longest = 0.0
    while machine.wake_after(now) == 0:
        began = time.process_time()
        machine.step(events.Woke(), now)
        longest = max(longest, time.process_time() - began)
    return longest


def _profile(index: int, change: int, *, is_for_all: bool) -> Profile:
    one = Requirement("app", SelectorOperator.IN, (f"app-{index}",))
    entries = tuple(Toleration("sla", "Gt", str(980 - number - change)) for number in range(TOLERATIONS))
    return Profile("shop", f"profile-{index}", LabelSelector(() if is_for_all else (one,)), entries)


def _now(seconds: float = 0.0) -> Instant:
    return Instant(WallTime(START + seconds), MonotonicTime(seconds))
