"""Nobody is forgotten: when all is calm each pod that should leave has left, or what is said to hold it is true."""

from collections import Counter
from fractions import Fraction

import msgspec

from simulated import Simulation, policy
from simulated.drawing import NO_LIMITS, is_open
from simulated.histories import BAD, TOLERATION, Played, Standing, histories
from simulated.onlooker import Onlooker, is_bad, zone_of
from simulated.trace import Calmed, Lifted, Started
from taintwarden.engine.machine import commands, events
from taintwarden.engine.model import GuardSettings, Limits, Pod, Policy, Share, ZoneHealth

ZONE = {"topology.kubernetes.io/zone": "a"}


def after(history: Played, marker: type) -> tuple[Onlooker, float]:
    """What is known then, and the time on the wall."""
    found = ((known, moment.now.wall) for moment, known in history.moments() if isinstance(moment.what, marker))
    return next(found)


def has_to_leave(known: Onlooker) -> dict[str, Pod]:
    return {uid: pod for uid, pod in known.pods.items() if known.acting_on(pod)}


def refuted(one: Standing, known: Onlooker, wall: float) -> str:
    """Why what holds a pod does not; empty if it does."""
    pod = known.pods[one.uid]
    policy = known.policies[one.policy]
    if one.phase == "PAUSED":
        return "" if policy.mode == "Paused" else "it is not paused"
    if one.phase == "REHEARSED":
        return "" if policy.mode == "DryRun" else "it was rehearsed only"
    if one.outcome == "MISCONFIGURED" or one.limit == "several-budgets":
        return "" if len(budgets_of(pod, known)) > 1 else "one budget selects it"
    if one.limit == "window":
        return "a window is open" if any(is_open(window, wall) for window in policy.windows) else ""
    check = CHECKS.get(one.limit or "none")
    if check is None:
        return f"{one.phase} by {one.limit!r}, {one.outcome}"
    return "" if check(pod, policy, known) else f"{one.limit} does not hold it"


def budgets_of(pod: Pod, known: Onlooker) -> list:
    return [
        one
        for one in known.budgets.values()
        if one.namespace == pod.namespace and one.selector.selects(pod.shared.labels)
    ]


def no_budget_allows(pod: Pod, _: Policy, known: Onlooker) -> bool:
    return any(one.allowed == 0 for one in budgets_of(pod, known))


def too_many_missing(pod: Pod, policy: Policy, known: Onlooker) -> bool:
    owner, share = pod.shared.owner, policy.limits.max_unavailable
    ready = sum(one.ready for one in known.pods.values() if one.shared.owner == owner)
    wanted = known.wanted[owner.uid]
    return wanted - ready + 1 > max(1, share.number or int(Fraction(share.percent, 100) * wanted))


def drained(policy: Policy, known: Onlooker) -> Counter[str]:
    """At most: a bad node that is empty may or may not have been."""
    bad: Counter[str] = Counter()
    for node in known.nodes.values():
        bad[zone_of(node)] += any(is_bad(taint) and taint.key == policy.taints[0].key for taint, _ in node.taints)
    return bad


def every_zone_is_full(_: Pod, policy: Policy, known: Onlooker) -> bool:
    nodes = Counter(zone_of(node) for node in known.nodes.values())
    return policy.limits.zone_health is not None and drained(policy, known) == nodes


def zone_halts(pod: Pod, policy: Policy, known: Onlooker) -> bool:
    health, zone = policy.limits.zone_health, zone_of(known.nodes[pod.node])
    nodes = sum(zone_of(node) == zone for node in known.nodes.values())
    return health.halt_small_zones and nodes <= health.small_zone and drained(policy, known)[zone] > 2


def guard_is_needed(_: Pod, policy: Policy, known: Onlooker) -> bool:
    guard = policy.limits.guard
    population = sum(pod.node in known.nodes for pod in known.pods.values())
    waiting = sum(policy.name in known.acting_on(pod) for pod in known.pods.values())
    return waiting > max(guard.min_pods, population * guard.max_percent // 100)


CHECKS = {
    "budget": no_budget_allows,
    "max-unavailable": too_many_missing,
    "workload-unknown": lambda pod, _, known: pod.shared.owner.uid not in known.wanted,
    "all-zones-full": every_zone_is_full,
    "zone-halted": zone_halts,
    "guard": guard_is_needed,
}
"""Whether a limit holds a pod although nothing has happened for long. The others let everybody go in time."""


def test_whoever_still_stands_when_all_is_calm_is_held_by_what_is_said_to_hold_it():
    for history in histories("zone-health"):
        known, wall = after(history, Calmed)
        for one in history.standing:
            assert one.uid in known.pods, history
            assert refuted(one, known, wall) == "", (history, str(known.pods[one.uid]))


def test_whoever_has_to_leave_is_known_to_stand_there():
    for history in histories():
        standing = {one.uid for one in history.standing}
        assert has_to_leave(after(history, Calmed)[0]).keys() == standing, history


def test_without_limits_everybody_goes():
    for history in histories():
        assert has_to_leave(after(history, Lifted)[0]) == {}, history


def test_nobody_is_evicted_who_may_stay():
    for history in histories():
        for moment, known in history.moments():
            if isinstance(moment.what, commands.Evict):
                pod = known.pods[moment.what.pod.uid]
                assert moment.what.verdict.policy.name in known.acting_on(pod), (history, moment.at)


def test_nobody_is_evicted_while_the_operator_knows_that_it_hears_nothing():
    for history in histories():
        blind = False
        for moment in history.trace:
            if isinstance(moment.what, events.ViewChanged | Started):
                blind = isinstance(moment.what, events.ViewChanged) and not moment.what.live
            assert not (blind and isinstance(moment.what, commands.Evict)), (history, moment.at)


def test_the_histories_leave_pods_standing():
    held = {one.limit for history in histories() for one in history.standing}
    assert {"budget", "guard", "all-zones-full"} & held


# -- one cause, and its end -------------------------------------------------------------------------------------------


def held(limits: Limits, bad: int = 3, good: int = 0) -> Simulation:
    """Twelve due pods of one workload on bad nodes of one zone, which nobody replaces."""
    sim = Simulation([msgspec.structs.replace(policy(taints=[{"key": "sla"}]), limits=limits)])
    sim.kubelet = lambda pod: (30.0, 30.0)
    for number in range(bad + good):
        sim.create_node(f"n{number}", [BAD] if number < bad else [], ZONE)
    owner = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}]
    for number in range(12):
        ready = [{"type": "Ready", "status": "True"}]
        sim.create_pod(f"p{number}", f"n{number % bad}", [TOLERATION], owners=owner, conditions=ready)
    sim.start()
    sim.feed(events.WorkloadSeen(("default", "web"), 12))
    sim.run(20)
    return sim


def test_when_a_zone_is_better_than_full_they_go():
    sim = held(msgspec.structs.replace(NO_LIMITS, zone_health=ZoneHealth(min_nodes=0, full_evictions_per_second=10)))
    assert sim.calls == []
    sim.create_node("better", labels=ZONE)
    sim.create_node("best", labels=ZONE)
    sim.run(sim.at + 20)
    assert len(sim.evicted) == 12


def test_when_another_zone_is_there_they_go():
    sim = held(msgspec.structs.replace(NO_LIMITS, zone_health=ZoneHealth(min_nodes=0, full_evictions_per_second=10)))
    sim.create_node("elsewhere", labels={"topology.kubernetes.io/zone": "elsewhere"})
    sim.run(sim.at + 20)
    assert len(sim.evicted) == 12


HALTS = msgspec.structs.replace(NO_LIMITS, zone_health=ZoneHealth(halt_small_zones=True, small_zone=5))


def test_when_a_zone_that_halts_recovers_they_go():
    sim = held(HALTS, bad=3, good=1)
    assert sim.calls == []
    sim.create_node("five", labels=ZONE)
    sim.run(sim.at + 1)
    assert sim.calls == []
    sim.set_taints("n0", [])
    sim.run(sim.at + 5)
    assert len(sim.evicted) == 8


def test_when_a_zone_that_halts_is_not_small_any_more_they_go():
    sim = held(HALTS, bad=4, good=1)
    assert sim.calls == []
    sim.create_node("six", labels=ZONE)
    sim.run(sim.at + 30)
    assert len(sim.evicted) == 12


def test_when_their_node_is_in_another_zone_they_go():
    sim = held(HALTS, bad=4, good=1)
    assert sim.calls == []
    sim.set_labels("n0", {"topology.kubernetes.io/zone": "elsewhere"})
    sim.set_labels("n4", {"topology.kubernetes.io/zone": "elsewhere"})
    sim.run(sim.at + 5)
    assert len(sim.evicted) >= 3


def test_when_a_workload_wants_fewer_pods_they_go():
    sim = held(msgspec.structs.replace(NO_LIMITS, max_unavailable=Share(number=1)))
    assert len(sim.evicted) == 1
    sim.feed(events.WorkloadSeen(("default", "web"), 2))
    sim.run(sim.at + 1)
    assert len(sim.evicted) == 11


def test_when_pods_have_stopped_the_next_of_their_node_go():
    sim = held(msgspec.structs.replace(NO_LIMITS, node_max_concurrent=1))
    assert len(sim.evicted) == 3
    sim.run(sim.at + 100)
    assert len(sim.evicted) == 12


def test_when_a_guard_is_reset_they_go():
    sim = held(msgspec.structs.replace(NO_LIMITS, guard=GuardSettings(max_percent=1, min_pods=1)))
    assert sim.calls == []
    sim.reset_guard("p")
    sim.run(sim.at + 5)
    assert len(sim.evicted) == 12
