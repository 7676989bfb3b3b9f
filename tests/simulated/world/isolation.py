"""The same history with one tenant, or one node, more that does anything: everybody else fares as without it.

Of pods that existed from the start and belong to others: no eviction is later by more than ``LATER_SECONDS``, none is
earlier by more than ``EARLIER_SECONDS``, none is lost, none is added. A guard trips if the adversary has more pods on a
node that falls than may leave; for a minute after the last fall it holds all pods, and then the adversary's only. (An
adversary with fewer pods there weighs as any other tenant: together they may be more than may leave, and that is an
incident that a person looks at.)
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from simulated.world.drawing import SLA, SPOT, Draw, Step, above
from simulated.world.judges import Breach
from simulated.world.objects import ZONE, Toleration
from simulated.world.plan import Happening, Plan
from simulated.world.world import World

LATER_SECONDS = 30.0
EARLIER_SECONDS = 15.0
"""Replacements come within ten seconds, by chance."""
NARROW_SECONDS = 60.0
"""After the last growth of a wave, a guard holds only the one namespace that is the reason."""
EVIL = "evil"
BEGINS = 12.0
"""When the adversary comes: everybody else is there by then."""


def shared(seed: int) -> Draw:
    """A cluster that several tenants share, the limits that a policy has by default, and three bad nodes in turn."""
    d = Draw(seed, "shared")
    d.options = {"max_in_flight": 64, "slice_size": 500, "overall_rate": 50.0}
    d.cluster(9, 3, namespaces=3)
    d.add("namespace", name=EVIL)
    limits = {"perNode": {"maxConcurrent": 5}} if d.maybe(0.3) else {}
    d.policy("p", limits=limits)
    d.policy("spot", (SPOT,), reclaim={"deadlineSeconds": 120})
    for name in d.nodes:
        for _ in range(2):
            uid = d.workload(d.chance.randint(1, 3), name, native=(above(),))
            d.add("place", uid=uid, placing="good")
    d.good(*d.nodes)
    d.operators()
    d.at = 30.0
    d.bad(d.nodes[0])
    d.at += d.between(5.0, 20.0)
    d.add("taint", name=d.nodes[1], key=SPOT, value="x")
    d.at += d.between(5.0, 20.0)
    d.bad(d.nodes[2])
    d.at += 100.0
    d.settings |= {"lifts": False, "calm_seconds": 100.0, "replaced_within": 10.0}
    return d


# -- adversaries ------------------------------------------------------------------------------------------------------


def tenant(d: Draw) -> list[Happening]:
    """What a tenant does with the rights on its namespace."""
    mine = Draw(d.seed, "tenant", prefix="x")
    mine.nodes, mine.namespaces, mine.at = d.nodes, [EVIL], BEGINS
    bad, spot, healthy = d.nodes[0], d.nodes[1], d.nodes[3:]

    def odd_pod() -> None:
        mine.pod(mine.pick(healthy), native=(Toleration(SLA),), extended=(above(999_999),))

    def crowd() -> None:
        native = (above(),) if mine.maybe() else ()
        mine.workload(60, mine.pick((bad, spot, healthy[0])), native=native, grace=1)

    def flip() -> None:
        uid = mine.workload(60, "any", native=(Toleration(SLA),))
        mine.wait(3.0, 20.0)
        mine.add("profile", namespace=EVIL, name="x", tolerations=(above(999_999),), selector={"app": uid})

    def churn() -> None:
        mine.add("churn", namespace=EVIL, name="y", every=0.2, until=mine.at + 60.0)

    def forge_owners() -> None:
        for number, uid in enumerate(list(d.workloads) * 3):
            owner = ("apps/v1", "ReplicaSet", uid if mine.maybe() else f"nobody-{number}")
            mine.pod(mine.pick((bad, *healthy)), owner=owner, native=(above(),))

    def linger() -> None:
        for _ in range(8):
            uid = mine.pod(mine.pick((bad, spot, d.nodes[2])), grace=10_000_000, native=(Toleration(),))
            mine.add("delete_pod", after=1.0, uid=uid)

    def hide() -> None:
        uid = mine.workload(10, bad, native=(above(),))
        mine.add("budget", namespace=EVIL, name=uid, app=uid, max_unavailable=0)

    def hang() -> None:
        mine.workload(60, bad, native=(above(),), grace=1)
        mine.add("weather", behaviour="hang", duration=150.0, seconds=10.0, namespace=EVIL)

    often, rarely = (odd_pod, crowd, flip), (churn, forge_owners, linger, hide, hang)
    return _some(mine, [*((2, one) for one in often), *((1, one) for one in rarely)])


def node(d: Draw) -> list[Happening]:
    """What a kubelet does to its own node and the pods on it."""
    mine = Draw(d.seed, "node", prefix="x")
    name = d.nodes[5]
    mine.nodes, mine.namespaces, mine.at = [name], d.namespaces, BEGINS
    uids = [mine.pod(name, native=(Toleration(SLA),)) for _ in range(60)]
    mine.at += 5.0

    def annotate_all() -> None:
        for uid in uids:
            mine.add("annotate", uid=uid, extended=(above(999_999),))

    def forge() -> None:
        text = '{"sla:NoExecute":{"added":1.0,"values":[["980",1.0,null],["0",2.0,null]],"drains":true}}'
        mine.add("forge", name=name, text=mine.pick((text, "garbage")))

    def move() -> None:
        mine.add("relabel", name=name, labels={ZONE: mine.pick(("zone-0", "zone-1", "elsewhere"))})

    def touch() -> None:
        for uid in uids[:10]:
            mine.add("touch", uid=uid, times=100, seconds=0.3)

    def unready() -> None:
        for uid in uids:
            mine.add("ready", uid=uid, is_ready=False)

    return _some(mine, [(3, annotate_all), (2, forge), (1, move), (1, touch), (1, unready)])


def _some(d: Draw, steps: Sequence[Step]) -> list[Happening]:
    d.steps(d.chance.randint(1, 4), steps, (0.5, 10.0, 30.0))
    return list(d.plan().happenings)


# -- comparison -------------------------------------------------------------------------------------------------------


def compare(seed: int, adversary: Callable[[Draw], list[Happening]]) -> list[Breach]:
    """How others fare with an adversary, compared with how they fare without it."""
    drawing = shared(seed)
    plan = drawing.plan()
    happenings = sorted((*plan.happenings, *adversary(drawing)), key=lambda one: one.at)
    alone, beside = World(plan).play(), World(replace(plan, happenings=tuple(happenings))).play()
    return list(_differences(plan, alone, beside, drawing.nodes[5] if adversary is node else ""))


def _differences(plan: Plan, alone: World, beside: World, apart: str) -> list[Breach]:
    before, after = _evicted(alone), _evicted(beside)
    found = []
    narrowed_at = max(one.at for one in plan.happenings if one.what == "taint") + NARROW_SECONDS
    for uid, past in alone.store.past["pods"].items():
        pod = past.at(BEGINS)
        if pod is None or pod.node == apart:
            continue
        sentence = _difference(uid, before.get(uid), after.get(uid), narrowed_at)
        if sentence:
            found.append(Breach("isolation", after.get(uid, 0.0), sentence))
    return found


def _difference(uid: str, before: float | None, after: float | None, narrowed_at: float) -> str:
    if before is None:
        return "" if after is None else f"{uid} was evicted at {after:.1f}, and stays without the other"
    if after is None:
        return f"{uid} was not evicted, and is evicted at {before:.1f} without the other"
    if after > max(before, narrowed_at) + LATER_SECONDS:
        return f"{uid} was evicted {after - before:.1f} s later than without the other"
    if after < before - EARLIER_SECONDS:
        return f"{uid} was evicted {before - after:.1f} s earlier than without the other"
    return ""


def _evicted(world: World) -> dict[str, float]:
    return {one.pod.uid: one.at for one in world.judges.evictions}
