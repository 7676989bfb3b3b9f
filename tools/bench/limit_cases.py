"""What limits cost: one decision pass over all due pods of a large cluster, with none of them, and with all."""

import time
from uuid import UUID

from msgspec.structs import replace

from taintwarden.engine.interning import Interner
from taintwarden.engine.machine import Machine, WriteOutcome, commands, events
from taintwarden.engine.model import (
    Budget,
    EvictionSettings,
    GuardSettings,
    Instant,
    Limits,
    MonotonicTime,
    Node,
    OrderBy,
    Owner,
    Pod,
    PodClass,
    Policy,
    Share,
    SpreadConstraint,
    Taint,
    TaintSelector,
    Tolerations,
    WallTime,
    Window,
    ZoneHealth,
)
from taintwarden.engine.selectors import LabelSelector, Requirement, SelectorOperator

START = 1_800_000_000.0
PODS, PODS_PER_NODE, WORKLOADS, NAMESPACES, DRAINED_SHARE = 50_000, 30, 500, 50, 10
OUTAGE = Taint("bench.example/outage", "1")
ZONES = ("a", "b", "c")
NONE = Limits(None, max_unavailable=None, zone_health=None, guard=None, bounce=None)
WITH_GUARD = Limits(
    evictions_per_second=1e6,
    burst=1_000_000,
    node_max_concurrent=1_000,
    namespace_evictions_per_second=1e6,
    zone_evictions_per_second=1e6,
    max_unavailable=Share(percent=99),
    zone_health=ZoneHealth(),
    guard=GuardSettings(max_percent=90, settle_seconds=0),
)
"""Every limit is asked and admits, so that as many pods go as without any."""
GENEROUS = replace(WITH_GUARD, guard=None)
"""The same without a guard, whose records are stored in between: one for each hundred pods."""
BY_PRIORITY = EvictionSettings(order=(OrderBy.PRIORITY,))
BY_SPREAD = EvictionSettings(order=(OrderBy.PRIORITY, OrderBy.TOPOLOGY_SPREAD))
ROUNDS = 3
WINDOWS = (Window("0 0 * * *", 24 * 3600 - 60, "Europe/Berlin"),)


def decision_pass(scale: float) -> dict[str, float]:
    """CPU time of the step that lets every due pod go, and of one that finds 5,000 of them held."""
    pods = round(PODS * scale)
    bare = _best(pods, NONE, (), BY_PRIORITY)
    limited = _best(pods, GENEROUS, WINDOWS, BY_PRIORITY)
    guarded = _best(pods, WITH_GUARD, WINDOWS, BY_PRIORITY)
    spread_bare = _best(pods, NONE, (), BY_SPREAD)
    spread_limited = _best(pods, GENEROUS, WINDOWS, BY_SPREAD)
    held = _pass(pods, Limits(max_unavailable=Share(number=1)), (), BY_SPREAD, held=True)
    due = bare["due"]
    return {
        "pods": pods,
        "due": due,
        "us_per_pod": bare["seconds"] / due * 1e6,
        "us_per_pod_limited": limited["seconds"] / due * 1e6,
        "us_per_pod_guarded": guarded["seconds"] / due * 1e6,
        "ratio": limited["seconds"] / bare["seconds"],
        "us_per_pod_spread": spread_bare["seconds"] / due * 1e6,
        "us_per_pod_spread_limited": spread_limited["seconds"] / due * 1e6,
        "ratio_spread": spread_limited["seconds"] / spread_bare["seconds"],
        "held_again_ms": held["again"] * 1e3,
    }


def _best(pods: int, limits: Limits, windows: tuple[Window, ...], order: EvictionSettings) -> dict[str, float]:
    return min((_pass(pods, limits, windows, order) for _ in range(ROUNDS)), key=lambda one: one["seconds"])


def _pass(
    pods: int, limits: Limits, windows: tuple[Window, ...], eviction: EvictionSettings, *, held: bool = False
) -> dict[str, float]:
    taints = (TaintSelector("*"),)
    policy = Policy(name="bench", uid="bench", taints=taints, limits=limits, windows=windows, eviction=eviction)
    machine = Machine(overall_rate=None, max_in_flight=pods, slice_size=pods * 2)
    _fill(machine, policy, pods)
    at = _instant(60.0)
    drained = range(pods // PODS_PER_NODE // DRAINED_SHARE)
    for index in drained:
        machine.step(events.NodeSeen(_node(index, 2, OUTAGE)), at)
    later = _instant(90.0)
    for spoke_at in (_instant(87.0), later):  # what is known of the nodes is not old
        machine.step(events.NodesReached(10**9), spoke_at)
    began = time.process_time()
    issued = _evict_all(machine, later)
    seconds = time.process_time() - began
    began = time.process_time()
    machine.step(events.Woke(), later)
    again = time.process_time() - began
    due = sum(1 for _ in machine.view.all_claims())
    assert held or issued > 0.9 * due, f"{issued} of {due}"
    return {"seconds": seconds, "due": due, "issued": issued, "again": again}


def _evict_all(machine: Machine, at: Instant) -> int:
    """One pass; with a guard one for each of its records, which are stored at once."""
    issued = 0
    event: events.Event | None = events.Woke()
    while event is not None:
        found = [*machine.step(event, at), *machine.step(events.Woke(), at)]
        issued += sum(isinstance(command, commands.Evict) for command in found)
        saved = next((command for command in found if isinstance(command, commands.SaveGuard)), None)
        event = None if saved is None else events.Written(saved, WriteOutcome.DONE)
    return issued


def _instant(seconds: float) -> Instant:
    return Instant(WallTime(START + seconds), MonotonicTime(seconds))


def _fill(machine: Machine, policy: Policy, pods: int) -> None:
    began = _instant(0.0)
    nodes = pods // PODS_PER_NODE
    kinds = _classes()
    machine.step(events.PoliciesChanged((policy,)), began)
    for workload in range(WORKLOADS):
        machine.step(events.WorkloadSeen((kinds[workload].namespace, f"owner-{workload}"), pods // WORKLOADS), began)
        if workload % 3 == 0:
            chosen = LabelSelector((Requirement("app", SelectorOperator.IN, (f"app-{workload}",)),))
            budget = Budget(kinds[workload].namespace, f"budget-{workload}", chosen, allowed=pods)
            machine.step(events.BudgetSeen(budget), began)
    for index in range(nodes):
        machine.step(events.NodeSeen(_node(index, 1)), began)
    for index in range(pods):
        uid = str(UUID(int=index))
        pod = Pod(uid, f"pod-{index}", f"node-{index % nodes}", kinds[index % WORKLOADS], START - 3600, 1, ready=True)
        machine.step(events.PodSeen(pod), began)
    for event in (events.NodesReached(10**9), events.Synced(), events.LeadershipChanged(leading=True)):
        machine.step(event, began)
    while machine.wake_after(began) == 0:
        for command in machine.step(events.Woke(), began):
            if isinstance(command, commands.SaveGuard):
                machine.step(events.Written(command, WriteOutcome.DONE), began)


def _node(index: int, version: int, *taints: Taint) -> Node:
    labels = {
        "topology.kubernetes.io/region": "r",
        "topology.kubernetes.io/zone": ZONES[index % len(ZONES)],
        "kubernetes.io/hostname": f"node-{index}",
    }
    return Node(f"node-{index}", f"uid-{index}", labels, tuple((taint, None) for taint in taints), version)


def _classes() -> list[PodClass]:
    """Each workload spreads over zones and hosts; a third of them have a PodDisruptionBudget."""
    interner = Interner()
    found = []
    for workload in range(WORKLOADS):
        app = f"app-{workload}"
        chosen = LabelSelector((Requirement("app", SelectorOperator.IN, (app,)),))
        keys = ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
        found.append(
            interner.pod_class(
                f"namespace-{workload % NAMESPACES}",
                {"app": app},
                Tolerations(),
                owner=Owner("ReplicaSet", app, f"owner-{workload}"),
                spread=tuple(SpreadConstraint(key, chosen) for key in keys),
            )
        )
    return found
