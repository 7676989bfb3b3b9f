"""Nobody is forgotten: when all is calm each pod that should leave has left, or what is said to hold it is true."""

from collections import Counter
from fractions import Fraction

from simulated.histories import Played, Standing, histories
from simulated.onlooker import Onlooker, is_bad, zone_of
from simulated.trace import Calmed, Lifted, Started
from taintwarden.engine.machine import commands, events
from taintwarden.engine.model import Pod, Policy


def after(history: Played, marker: type) -> Onlooker:
    return next(known for moment, known in history.moments() if isinstance(moment.what, marker))


def has_to_leave(known: Onlooker) -> dict[str, Pod]:
    return {uid: pod for uid, pod in known.pods.items() if known.acting_on(pod)}


def refuted(one: Standing, known: Onlooker) -> str:
    """Why what holds a pod does not; empty if it does."""
    pod = known.pods[one.uid]
    policy = known.policies[one.policy]
    if one.phase == "REHEARSED":
        return "" if policy.mode == "DryRun" else "it was rehearsed only"
    if one.outcome == "MISCONFIGURED" or one.limit == "several-budgets":
        return "" if len(budgets_of(pod, known)) > 1 else "one budget selects it"
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
    for history in histories():
        known = after(history, Calmed)
        for one in history.standing:
            assert one.uid in known.pods, history
            assert refuted(one, known) == "", (history, str(known.pods[one.uid]))


def test_whoever_has_to_leave_is_known_to_stand_there():
    for history in histories():
        standing = {one.uid for one in history.standing}
        assert has_to_leave(after(history, Calmed)).keys() == standing, history


def test_without_limits_everybody_goes():
    for history in histories():
        assert has_to_leave(after(history, Lifted)) == {}, history


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
