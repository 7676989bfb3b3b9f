"""Themes from which plans are drawn. Each has its own cluster and its own weights; a seed decides everything else."""

from collections.abc import Callable

from simulated.world.drawing import (
    BAD,
    FLAG,
    GOOD,
    HEALTH,
    NO_LIMITS,
    NOT_READY,
    NOTICE,
    SLA,
    SPOT,
    UNREACHABLE,
    Draw,
    above,
)
from simulated.world.objects import Json, Toleration
from simulated.world.peers import counted, drained, edits, kills, large, paces, places, stamps, taken, unseen
from simulated.world.plan import Plan

Theme = Callable[[Draw], None]
UNFIT: Json = {"key": SLA, "operator": "Lt", "value": "950"}
"""A node that is unhealthy, for zones."""
ADDED = (None, None, "now", "now", "now", 2.0, 5.0, -100.0, "far", "long ago")


def clocks(d: Draw) -> None:
    """Clocks that differ, times that writers state, histories of values, restarts, and reads ahead of a stream."""
    d.settings["writer_skew"] = d.pick((0.0, 0.0, 1.5, 2.0, 4.0, -2.0))
    d.settings["api_skew"] = d.pick((0.0, 0.0, 0.8, -0.8))
    d.cluster(d.chance.randint(2, 4))
    grace = d.pick((20, 60, 200))
    d.policy("p", timing={"violationGraceSeconds": grace})
    d.policy("q", (FLAG,))
    for _ in range(2):
        d.workload(d.chance.randint(2, 5), "any", native=(above(grace=d.pick((None, 30, 90))), _for(d, FLAG, 60, 200)))
    d.operators(d.pick((1, 2, 2)), (0.0, 0.0, 1.0, 2.0, -1.5))

    def value() -> None:
        name, added = d.pick(d.nodes), d.pick(ADDED)
        d.add("taint", name=name, key=SLA, value=d.pick((*GOOD, *BAD)), added=added)

    def flag() -> None:
        d.add("taint", name=d.pick(d.nodes), key=FLAG, value="x", added=d.pick(ADDED))

    def blip() -> None:
        name = d.pick(d.nodes)
        d.bad(name)
        d.wait(1.0, 30.0)
        d.good(name)
        d.wait(0.05, 1.0)
        d.bad(name)

    d.steps(
        d.chance.randint(8, 16),
        [
            (5, value),
            (2, flag),
            (3, blip),
            (1, lambda: d.add("untaint", name=d.pick(d.nodes), key=d.pick((SLA, FLAG)))),
            (3, d.restart),
            (1, d.take_over),
            (1, lambda: d.disturb_stream("nodes")),
            (2, lambda: d.add("clock", name=d.pick("ab"), skew=d.between(-2.0, 2.0))),
        ],
        (0.5, 3.0, 12.0, 40.0),
    )
    d.settings["calm_seconds"] = 700.0


def reads(d: Draw) -> None:
    """Reads of nodes that are ahead of their watch, for pods that are newer than what it has brought."""
    d.cluster(d.chance.randint(1, 3))
    d.policy("p", timing={"violationGraceSeconds": d.pick((20, 60, 120))})
    for _ in range(2):
        d.workload(d.chance.randint(2, 4), "any", native=(above(grace=d.pick((None, 0, 30))),))
    d.operators(d.pick((1, 1, 2)))

    def blip() -> None:
        name = d.pick(d.nodes)
        d.add("touch", uid=d.known_pod(), times=20, seconds=0.2)
        d.add("lag", name="leader", kind="nodes", seconds=d.between(1.0, 3.0), duration=4.0)
        d.wait(0.1, 1.0)
        d.good(name)
        d.wait(0.05, 1.0)
        d.bad(name)

    d.steps(
        d.chance.randint(5, 12),
        [
            (4, blip),
            (2, lambda: d.bad(*d.some(d.nodes))),
            (1, lambda: d.good(*d.some(d.nodes))),
            (1, lambda: d.pod(d.pick(d.nodes), native=(above(grace=0),))),
            (0.3, d.take_over),
        ],
        (0.5, 3.0, 15.0, 40.0),
    )


def restored(d: Draw) -> None:
    """An etcd that is put back while a node is read that is ahead of its watch: versions come a second time."""
    d.cluster(d.chance.randint(1, 3))
    d.policy("p", timing={"violationGraceSeconds": d.pick((0, 10))})
    d.workload(d.chance.randint(2, 4), "any", native=(above(),))
    d.operators(d.pick((1, 2)))
    d.good(*d.nodes)
    d.wait(1.0, 3.0)
    d.add("back_up")
    for _ in range(d.chance.randint(1, 3)):
        d.wait(1.0, 20.0)
        for _ in range(3):
            d.add("touch", uid=d.known_pod(), times=40, seconds=0.1)
        d.bad(*d.nodes)
        d.wait(0.5, 12.0)
        d.add("lag", name="leader", kind="nodes", seconds=d.between(2.0, 4.0), duration=6.0)
        for name in d.nodes:
            d.add("touch", uid=d.pod(name, native=(above(),)), times=20, seconds=0.1)
            d.bad(name)
        d.wait(0.05, 3.0)
        d.add("restore")
        d.wait(0.5, 20.0)
        d.bad(*d.some(d.nodes))


def values(d: Draw) -> None:
    """Values as processes write them: drift, stairs, counters, times, exporters that flap, codes that rotate."""
    d.cluster(d.chance.randint(2, 4))
    grace = d.pick((20, 60, 300))
    d.policy(
        "p", (SLA, FLAG), timing={"violationGraceSeconds": grace, "stabilizationWindowSeconds": d.pick((0, 0, 15))}
    )
    codes = Toleration(FLAG, "In", values=("31", "43"), grace=d.pick((None, 40)))
    version = Toleration(FLAG, "SemverGt", "1.28.0", grace=d.pick((None, 30)))
    below = Toleration(SLA, "Lt", "80")
    for _ in range(d.chance.randint(2, 3)):
        mine = d.pick((above(), above(grace=d.pick((0, 45))), above(seconds=30), below))
        d.workload(
            d.chance.randint(1, 3),
            "any",
            native=(Toleration(FLAG), mine),
            extended=d.pick((None, (codes,), (version,))),
        )
    d.operators(d.pick((1, 2)))
    slow = {"key": SLA, "kind": "drift", "every": 4.0, "begin": 954, "step": -1}
    for name in d.nodes:
        how = slow if name == d.nodes[0] else d.process()
        d.add("process", name=name, **how, until=d.at + d.between(100.0, 400.0))
    d.steps(
        d.chance.randint(2, 5),
        [(2, d.restart), (1, d.take_over), (1, lambda: d.disturb_stream("nodes", "pods"))],
        (20.0, 60.0, 120.0),
    )
    d.wait(20.0, 400.0)


def histories(d: Draw) -> None:
    """Nodes with as many taints as there can be, values that change all the time, times before 1970, and restarts."""
    d.cluster(d.chance.randint(1, 3))
    d.policy("p", (SLA, "example.com/*"), timing={"violationGraceSeconds": d.pick((60, 120))})
    d.workload(d.chance.randint(2, 4), "any", native=(above(),), extended=(Toleration("example.com/x"), *_stays()))
    d.operators(d.pick((1, 2)))
    if d.maybe(0.5):
        for name in d.nodes:
            d.add("many_taints", name=name, number=d.pick((20, 60)), key="example.com", values=("a", "b", "c"))
        d.wait(1.0, 5.0)

    def change_all() -> None:
        for name in d.nodes:
            d.add("many_taints", name=name, number=d.pick((20, 60)), key="example.com", values=("a", "b", "c", "d"))

    def flutter() -> None:
        name = d.pick(d.nodes)
        for _ in range(20):
            d.add("taint", name=name, key=SLA, value=str(d.chance.randint(900, 999)))
            d.wait(0.1, 1.0)
        d.bad(name)

    def old() -> None:
        d.add("taint", name=d.pick(d.nodes), key="example.com/x", value="x", added="long ago")

    def spoil() -> None:
        """Another client writes the annotation while the watch is cut."""
        d.add("cut", name="leader", kind="nodes", seconds=3.0, lists=True)
        d.add("forge", name=d.pick(d.nodes), text=d.pick(("", "garbage", '{"sla:NoExecute": {"added": 9e18}}')))
        d.wait(3.0, 5.0)

    d.steps(
        d.chance.randint(4, 9),
        [
            (1, change_all),
            (1, flutter),
            (1, old),
            (1, spoil),
            (4, lambda: d.bad(d.pick(d.nodes), added=None)),
            (1, lambda: d.good(d.pick(d.nodes))),
            (4, d.restart),
        ],
        (0.5, 5.0, 20.0, 40.0),
    )


def _stays() -> tuple[Toleration, ...]:
    """The tolerations of pods that stay whatever other taints their nodes have."""
    return tuple(Toleration(f"example.com/{index:02}-{'k' * 50}") for index in range(60))


def _for(d: Draw, key: str, low: int, high: int) -> Toleration:
    return Toleration(key, "Exists", seconds=d.chance.randint(low, high))


def rehearsal(d: Draw) -> None:
    """A guard, and pods that come to bad nodes long before a policy enforces, or before its grace ends."""
    d.cluster(d.chance.randint(4, 8), 2)
    guard = {"maxPercent": d.pick((10, 20)), "minPods": d.pick((3, 6)), "windowSeconds": d.pick((60, 300))}
    mode, grace = d.pick((("DryRun", 0), ("DryRun", 0), ("Enforce", 2_592_000), ("Enforce", 0), ("Paused", 0)))
    limits = NO_LIMITS | {"guard": guard}
    d.policy("p", (SLA, FLAG), mode=mode, timing={"violationGraceSeconds": grace}, limits=limits)
    tolerations = (Toleration(FLAG, "Exists", seconds=400_000),)
    for _ in range(d.chance.randint(0, 2)):
        d.workload(d.chance.randint(2, 4), d.pick(("good", "any")), native=tolerations if d.maybe() else ())
    bad, key = d.some(d.nodes, 2), d.pick((SLA, SLA, FLAG))
    if d.maybe(0.7):
        for name in bad:
            d.add("taint", name=name, key=key, value="0")
    d.operators()

    def arrive() -> None:
        for _ in range(d.chance.randint(3, 8)):
            d.pod(d.pick(bad if d.maybe(0.7) else d.nodes), native=tolerations if key == FLAG or d.maybe(0.2) else ())

    def switch() -> None:
        if d.maybe():
            d.edit("p", mode=d.pick(("DryRun", "Enforce", "Enforce", "Paused")))
        else:
            d.edit("p", timing={"violationGraceSeconds": d.pick((0, 0, 30, 2_592_000))})

    d.steps(
        d.chance.randint(2, 7),
        [
            (5, arrive),
            (1, lambda: d.bad(*d.some(d.nodes))),
            (1, lambda: d.good(*d.some(d.nodes))),
            (1, lambda: d.add("taint", name=d.pick(d.nodes), key=FLAG, value="x")),
            (1, switch),
            (0.7, d.restart),
            (0.5, lambda: d.add("reset", name="p")),
            (0.7, lambda: d.add("policy", name="p", spec=d.policies["p"])),
            (0.7, lambda: d.edit("p", nodeSelector={"matchLabels": {"pool": d.pick("xy")}})),
        ],
        (0.5, 5.0, 30.0),
    )
    d.wait(5.0, 60.0)
    if d.maybe(0.3):
        d.bad(*bad)
    d.edit("p", mode="Enforce", nodeSelector=None, timing={"violationGraceSeconds": 0})
    d.wait(20.0, 60.0)


def zones(d: Draw) -> None:
    """Small zones that are all bad, resets, and replacements that return to the same nodes."""
    d.settings["replaced_within"] = 15.0
    how = d.turn(("any", "full", "short"))
    is_one_short = how == "short"
    nodes, parts = d.chance.randint(2, 6), d.pick((1, 2, 3))
    d.cluster(*{"short": (6, 2), "full": (4, 1), "any": (nodes, parts)}[how])
    guard = {"minPods": d.pick((2, 50)), "windowSeconds": 60, "action": d.pick(("Halt", "Halt", "Report"))}
    health = {"unhealthy": [UNFIT], "evictionsPerSecond": d.pick((1, 3))}
    has_guard = d.turn((False, True)) and not is_one_short
    limits = {"zoneHealth": health} | ({"guard": guard} if has_guard else {})
    d.policy("p", limits=NO_LIMITS | limits)
    for name in d.nodes:
        for _ in range(d.pick((1, 2))):
            d.workload(d.chance.randint(1, 5), d.pick((name, name, "any")), native=(above(),))
        for _ in range(5 if is_one_short else 0):
            d.pod(name, native=(above(),))
    d.operators()
    d.good(*d.nodes)
    d.wait(2.0, 10.0)
    bad = d.nodes[:4] if is_one_short else d.nodes if how == "full" or d.maybe(0.7) else d.some(d.nodes)
    if is_one_short:  # one node of each zone is healthy: they are Degraded
        d.bad(*bad)
        d.wait(10.0, 15.0)

    def odd_pod() -> None:
        d.pod(d.pick(d.nodes), native=(Toleration(SLA),), extended=(above(999_999),))

    def reset_without_leader() -> None:
        d.bad(*bad)
        d.wait(15.0, 30.0)
        d.take_over()
        d.wait(0.05, 12.0)
        d.add("reset", name="p")

    d.steps(
        d.chance.randint(2, 5),
        [
            (4, lambda: d.bad(*bad, gap=d.pick((0.0, 0.2)))),
            (1, lambda: d.good(*d.some(d.nodes))),
            (2, lambda: d.add("reset", name="p")),
            (2, reset_without_leader),
            (0.5, odd_pod),
            (0.5, d.restart),
            (0.5, d.take_over),
        ],
        (0.5, 5.0, 30.0),
    )
    d.bad(*bad)
    d.wait(20.0, 60.0)
    if d.maybe(0.6):
        d.add("reset", name="p")
        d.wait(1.0, 100.0)
    d.settings["calm_seconds"] = 300.0


def terms(d: Draw) -> None:
    """Leaders that change while their writes are in progress: evictions, deletions, records of guards, histories."""
    d.cluster(d.chance.randint(3, 6))
    guard = {"maxPercent": 20, "minPods": d.pick((6, 30)), "windowSeconds": d.pick((120, 600))}
    method = d.pick(("Evict", "Evict", "Delete", "EvictThenDelete"))
    share = d.turn(({}, {"perWorkload": {"maxUnavailable": 1}}))
    d.policy(
        "p",
        limits=NO_LIMITS | share | ({"guard": guard} if d.maybe(0.7) else {"evictionsPerSecond": 2, "burst": 1}),
        eviction={"method": method, "pdbTimeoutSeconds": 20},
        timing={"violationGraceSeconds": d.pick((0, 5))},
    )
    for _ in range(5):
        d.workload(d.chance.randint(3, 8), "any", native=(above(),))
    d.operators(d.pick((2, 2, 3)))

    def slow() -> None:
        what = d.pick((("guard",), ("guard",), ("evict", "delete"), ("delete",), ("history",), ("evict",)))
        behaviour = d.pick(("slow", "slow", "connect", "slow-answer", "late"))
        given = {"seconds": d.between(1.0, 9.5), "probability": d.pick((0.5, 1.0)), "replica": d.pick(("", "a", "b"))}
        d.add("weather", behaviour=behaviour, duration=d.between(2.0, 10.0), what=what, **given)

    def hand_over() -> None:
        slow()
        d.wait(0.1, 1.0)
        d.bad(d.pick(d.nodes))
        d.wait(1.0, 4.0)
        d.take_over()

    def flip() -> None:
        name = d.pick(d.nodes)
        d.bad(name)
        d.wait(0.5, 6.0)
        d.good(name)

    def pause() -> None:
        d.edit("p", mode=d.pick(("Paused", "Paused", "DryRun", "Enforce")))

    # Calls wait for a connection until no pod has to leave any more.
    d.add("weather", behaviour="connect", duration=8.0, seconds=9.0, what=("evict", "delete"))
    d.bad(d.nodes[0])
    d.wait(8.0, 8.5)
    d.good(d.nodes[0])
    d.wait(8.0, 12.0)
    d.bad(d.nodes[1])
    d.wait(12.0, 15.0)
    d.steps(
        d.chance.randint(10, 18),
        [
            (4, lambda: d.bad(d.pick(d.nodes))),
            (3, flip),
            (2, slow),
            (4, hand_over),
            (2, d.take_over),
            (1, d.restart),
            (1, pause),
            (0.5, lambda: d.add("reset", name="p")),
        ],
        (0.2, 1.0, 4.0, 12.0),
    )
    d.edit("p", mode="Enforce", nodeSelector=None)


def records(d: Draw) -> None:
    """Records of guards whose writes are slow, lost or late while the lease changes its holder, and later crashes."""
    d.cluster(d.chance.randint(5, 8))
    guard = {"maxPercent": 1, "minPods": d.pick((12, 25)), "windowSeconds": d.pick((300, 600))}
    rate = {"evictionsPerSecond": d.pick((3, 10)), "burst": 5} if d.maybe() else {}
    d.policy("p", limits=NO_LIMITS | {"guard": guard} | rate)
    for _ in range(6):
        d.workload(d.chance.randint(6, 9), "any", native=(above(),))
    d.operators(d.pick((1, 2, 2)))

    def overtaken(node: str = "") -> None:
        behaviour = d.pick(("slow", "slow", "slow", "slow-answer", "late", "lost"))
        given = {"seconds": d.between(3.0, 9.5), "probability": d.pick((0.6, 1.0))}
        d.add("weather", behaviour=behaviour, duration=d.between(2.0, 4.0), what=("guard",), **given)
        d.bad(node or d.pick(d.nodes))
        d.wait(2.0, 3.5)
        how = d.pick(("release", "release", "release", "kill", "lose"))
        if how == "release":
            d.add("release")
        elif how == "kill":
            d.add("kill", name="leader", down=d.between(0.5, 20.0))
        else:
            d.add("lease", name="leader", seconds=d.between(8.5, 11.0))
        d.wait(0.5, 3.0)

    for name in d.nodes[:4]:
        overtaken(name)
        d.wait(3.0, 10.0)
    d.steps(
        d.chance.randint(1, 5),
        [
            (4, overtaken),
            (2, lambda: d.bad(d.pick(d.nodes))),
            (1, lambda: d.good(d.pick(d.nodes))),
            (1, lambda: d.add("policy", name="p", spec=d.policies["p"])),
            (1, d.restart),
        ],
        (0.5, 3.0, 10.0),
    )


def webhooks(d: Draw) -> None:
    """Admission that hangs or denies in one namespace, while others have to leave, also from spot nodes."""
    d.options["max_in_flight"] = d.pick((4, 10))
    d.cluster(4, namespaces=3)
    d.policy("p", limits=NO_LIMITS | {"evictionsPerSecond": d.pick((5, 10)), "burst": 10})
    d.policy("spot", (SPOT,), reclaim={"deadlineSeconds": d.pick((60, 120))})
    d.policy("free", (FLAG,))
    for name in d.nodes:
        for namespace in d.namespaces:
            many = namespace == "play"
            for _ in range(12 if many else 3):
                d.pod(name, namespace=namespace, grace=d.pick((1, 10)))
    d.operators()
    how = d.turn((("hang", 10.0), ("deny", 0.0), ("hang", 10.0), ("silly", 0.0), ("throttle", 1.0)))
    d.add("weather", behaviour=how[0], duration=200.0, seconds=how[1], namespace="play")
    d.options["overall_rate"] = d.turn((None, 3.0))
    if how[0] in ("deny", "throttle"):
        d.add("weather", behaviour="slow", duration=200.0, seconds=0.8, what=("evict",))
    d.wait(0.1, 3.0)
    keys = d.turn(((SPOT, FLAG), (FLAG,), (SLA,), (SPOT,)))
    for index, name in enumerate(d.nodes if d.maybe(0.7) else d.some(d.nodes, 2)):
        d.add("taint", name=name, key=keys[index % len(keys)], value="0")
        d.wait(0.0, 0.3)
    d.wait(150.0, 170.0)


def lanes(d: Draw) -> None:
    """More pods than a rate admits, in lanes of which most are denied, one hangs, or one fails repeatedly."""
    how = d.turn(("deny", "hang", "again", "stuck", "windows", "alone", "outage"))
    rate, burst = {"deny": (2, 2), "hang": (4, 4), "alone": (10, 20), "outage": (10, 10)}.get(
        how, (d.pick((1, 3)), d.pick((1, 3)))
    )
    d.cluster(3, namespaces=1 if how == "alone" else 3)
    if how == "deny":
        d.namespaces += [d.name("ns") for _ in range(6)]
        for namespace in d.namespaces[3:]:
            d.add("namespace", name=namespace, labels={})
    elif how in ("hang", "alone"):
        d.options["max_in_flight"] = d.pick((2, 4))
    limits = {
        "stuck": {"perNode": {"maxConcurrent": 3}},
        "windows": {"perWorkload": {"maxUnavailable": 1}},
    }.get(how, {})
    windows = {"windows": [{"schedule": "*/2 * * * *", "duration": "1m"}]} if how == "windows" else {}
    d.policy("p", limits=NO_LIMITS | {"evictionsPerSecond": rate, "burst": burst} | limits, **windows)
    for index, namespace in enumerate(d.namespaces):
        for _ in range(3 if index > 2 else {"hang": 24, "deny": 24, "alone": 40}.get(how, d.chance.randint(8, 16))):
            native, priority = (above(),), d.pick((0, 0, 10))
            d.pod(d.pick(d.nodes), namespace=namespace, native=native, grace=5, priority=priority)
    d.workload(3, "any", namespace=d.pick(d.namespaces), native=(above(),))
    d.operators(d.pick((1, 2)))
    if how == "stuck":
        d.add("stuck", name=d.nodes[0])
    d.bad(*d.nodes, gap=d.pick((0.0, 20.0)) if how == "stuck" else 0.0)

    def fails(namespace: str, seconds: float, behaviour: str = "deny", after: float = 0.0) -> None:
        d.add("weather", after, behaviour=behaviour, duration=seconds, seconds=10.0, namespace=namespace)

    if how == "deny":
        for namespace in d.namespaces[3:]:
            fails(namespace, 60.0)
    elif how == "hang":
        fails("play", d.between(10.0, 30.0), "hang", after=6.0)
    elif how == "alone":
        d.add("weather", behaviour="slow", duration=20.0, seconds=0.8, what=("evict",))
    elif how == "outage":
        d.add("weather", behaviour="error", duration=d.between(3.0, 6.0), what=("evict",))
    elif how == "again":  # it is denied for a long time, continues, and is denied once more
        fails("play", 10.0)
        fails("play", 1.5, after=d.between(16.5, 18.0))
        fails("bank", d.between(10.0, 60.0), d.pick(("hang", "deny")), after=2.0)
    else:
        fails("play", d.between(10.0, 60.0), d.pick(("deny", "hang")))
    d.wait(70.0, 100.0)


def waves(d: Draw) -> None:
    """Waves of namespaces of different sizes around what a guard allows, repaired node by node, or released."""
    d.cluster(d.chance.randint(3, 6), namespaces=3)
    most, window = d.pick((8, 10, 12)), d.turn((60, 120, 300))
    guard = {"minPods": most, "maxPercent": 1, "windowSeconds": window}
    d.policy("p", limits=NO_LIMITS | {"guard": guard, "perWorkload": {"maxUnavailable": d.pick(("50%", "100%"))}})
    for namespace in d.namespaces:
        for _ in range(d.pick((1, 2, 4, 12))):
            d.pod(d.pick(d.nodes), namespace=namespace, native=(above(),))
        d.workload(d.chance.randint(1, 5), "any", namespace=namespace, native=(above(),))
    again = [d.add_node() for _ in range(3)]
    for name in again:
        for _ in range(most - 2):
            d.pod(name, namespace=d.pick(d.namespaces), native=(above(),))
    d.operators(d.pick((1, 1, 2)))

    def mend() -> None:
        for name in d.some(d.nodes):
            d.good(name)
            d.wait(1.0, 8.0)

    # Nearly as many as may leave, as many again after the window is over, and as many again before it is.
    d.bad(again[0])
    d.wait(1.3 * window, 1.5 * window)
    how = d.turn((("", 0.0), ("lost", 0.3), ("error", 0.0), ("throttle", 4.0)))  # lost: evictions happen
    if how[0]:
        d.add("weather", behaviour=how[0], duration=20.0, seconds=how[1], what=("evict",))
    d.bad(again[1])
    d.wait(0.6 * window, 0.8 * window)
    others = d.some(d.nodes[:2])
    d.bad(again[2], *others)
    d.wait(5.0, 20.0)
    d.good(again[2])
    if d.maybe():  # the next leader holds what is left
        d.restart()
    d.wait(0.6 * window, 0.8 * window)
    d.good(*others)
    d.wait(1.0, 5.0)
    d.steps(
        d.chance.randint(1, 3),
        [
            (4, lambda: d.bad(*d.some(d.nodes, 2))),
            (2, mend),
            (0.7, lambda: d.add("reset", name="p")),
            (0.5, d.restart),
        ],
        (5.0, 50.0, 120.0),
    )


def trips(d: Draw) -> None:
    """Guards: evictions of the last window, what restarts and releases keep, and who may go beside a namespace."""
    how = d.turn(("again", "repaired", "released", "blocked", "room"))
    d.cluster(4, namespaces=3)
    first, second, third, fourth = d.nodes
    window = 300 if how == "room" else d.pick((80, 100))
    rate = {"evictionsPerSecond": 0.5, "burst": 1} if how == "released" else {}
    guard = {"minPods": 10, "maxPercent": 1, "windowSeconds": window}
    d.policy("p", limits=NO_LIMITS | {"guard": guard} | rate)

    def pods(node: str, number: int, *namespaces: str) -> None:
        for index in range(number):
            d.pod(node, namespace=namespaces[index % len(namespaces)], native=(above(),), grace=1)

    if how == "again":
        for name in (first, second, third):
            pods(name, d.pick((7, 9)), *d.some(d.namespaces))
    elif how in ("repaired", "released"):
        for name in (first, second, third):
            pods(name, 4 if how == "repaired" else 9, *d.some(d.namespaces))
    elif how == "blocked":
        pods(first, 12, "shop", "bank")
        uid = d.workload(14, second, namespace="play", native=(above(),))
        d.add("budget", namespace="play", name="b", app=uid, max_unavailable=0)
    else:
        pods(first, 9, "play")
        pods(second, 6, "play")
        pods(third, 4, "shop")
        pods(fourth, 3, "bank")
    d.operators(d.pick((1, 2)))

    if how == "again":  # as many again before the window is over are held, and after it they go
        d.bad(first)
        d.wait(0.6 * window, 0.8 * window)
        d.bad(second)
        d.wait(5.0, 10.0)
        d.good(second)
        d.wait(0.6 * window, 0.8 * window)
        d.bad(third)
    elif how == "repaired":
        d.bad(first, second, third)
        for name in (first, second):
            d.wait(5.0, 10.0)
            d.good(name)
        d.wait(1.0, 3.0)
        d.add("kill", name="leader", down=d.between(0.5, 5.0))
        d.wait(40.0, 50.0)
        d.good(third)  # none of those has to leave any more
        d.wait(5.0, 10.0)
        d.bad(second)
    elif how == "released":
        d.bad(first, second, third)
        d.wait(5.0, 10.0)
        d.add("reset", name="p")
        d.wait(5.0, 8.0)
        d.add("kill", name="leader", down=d.between(0.5, 5.0))
        d.wait(60.0, 70.0)
    elif how == "blocked":
        d.bad(first, second)
        d.wait(5.0, 10.0)
        d.add("reset", name="p")
        d.wait(5.0, 10.0)
        d.add("budget_gone", namespace="play", name="b")
    else:
        d.bad(first)
        d.wait(8.0, 12.0)
        d.bad(second)
        d.wait(70.0, 90.0)
        d.bad(third)
        d.wait(15.0, 20.0)
        d.bad(fourth)
    d.wait(20.0, 30.0)
    d.settings["calm_seconds"] = 150.0


def tries(d: Draw) -> None:
    """Repetitions that must not happen: rates that are edited, failures, pauses, doubts, and calls of another term."""
    how = d.turn(("air", "edit", "lead", "doubt", "outage", "term"))
    d.options["max_in_flight"] = {"outage": 4}.get(how, 10)
    d.cluster(2)
    rate = {"evictionsPerSecond": 2, "burst": 20} if how == "edit" else {}
    d.policy("p", limits=NO_LIMITS | rate)
    d.policy("q", (FLAG,), limits=NO_LIMITS | {"perNode": {"maxConcurrent": 1}})
    for index in range({"edit": 60, "outage": 60, "doubt": 1}.get(how, 8)):
        d.pod(d.nodes[0], namespace=d.namespaces[index % 2], native=(above(), Toleration(FLAG)), grace=1)
    for _ in range(3):
        d.pod(d.nodes[0], native=(Toleration(SLA),), grace=1)
    d.operators(1 if how in ("lead", "term") else d.pick((1, 2)))
    d.wait(8.0, 10.0)
    evictions = ("evict",)
    if how == "air":  # those in progress at the first failure count no more
        d.add("weather", behaviour="slow", duration=1.0, seconds=0.8, what=evictions)
        d.add("weather", behaviour="deny", duration=d.pick((1.0, 4.0)), namespace="shop")
    elif how == "lead":
        d.add("weather", behaviour="deny", duration=6.0, namespace="shop")
        d.add("weather", after=6.0, behaviour="hang", duration=3.0, seconds=25.0, namespace="shop")
        d.add("release", after=d.between(9.0, 12.0))
    elif how == "doubt":
        d.add("weather", behaviour="drop", duration=3.0, seconds=0.3, what=evictions)
        d.add("edit", after=1.0, name="p", mode="Paused")
        d.add("taint", after=d.between(2.0, 4.0), name=d.nodes[0], key=FLAG, value="x")
    elif how == "outage":
        seconds = d.between(8.0, 25.0)
        d.add("weather", behaviour="error", duration=seconds, what=evictions)
        d.add("weather", after=seconds, behaviour="slow", duration=20.0, seconds=0.5, what=evictions)
    elif how == "term":
        d.add("weather", behaviour="connect", duration=1.0, seconds=d.between(5.0, 8.0), what=evictions)
        d.add("release", after=d.between(0.3, 1.0))
        for after, value in ((2.0, "980"), (4.0, "960")):  # the node stream is alive
            d.add("taint", after=after, name=d.nodes[1], key=SLA, value=value)
    d.bad(d.nodes[0])
    for rate in (1, 4) if how == "edit" else ():
        d.wait(5.0, 8.0)
        d.edit("p", limits=NO_LIMITS | {"evictionsPerSecond": rate, "burst": 20})
    d.wait(60.0, 80.0)
    d.settings["calm_seconds"] = 100.0


def silence(d: Draw) -> None:
    """Watches that are open and bring nothing, while values recover or fall."""
    d.cluster(d.chance.randint(2, 4))
    d.policy("p", timing={"violationGraceSeconds": d.pick((0, 30, 60))})
    for _ in range(2):
        d.workload(d.chance.randint(2, 5), d.pick(("any", "good")), native=(above(grace=d.pick((None, 20, 45))),))
    d.operators(d.pick((1, 2)))

    def fall_silent() -> None:
        d.bad(d.pick(d.nodes))
        d.wait(0.5, 15.0)
        d.add(
            "silence",
            name=d.pick(("leader", "leader", "a")),
            kind=d.pick(("nodes", "nodes", "pods")),
            seconds=d.between(5.0, 90.0),
        )
        if d.maybe():
            d.add("touch", uid=d.known_pod(), times=30, seconds=1.0)
        d.wait(0.5, 10.0)
        if d.maybe(0.8):
            d.good(*d.some(d.nodes))

    d.steps(
        d.chance.randint(3, 8),
        [
            (5, fall_silent),
            (1, lambda: d.bad(*d.some(d.nodes))),
            (1, lambda: d.good(*d.some(d.nodes))),
            (0.5, d.restart),
            (0.5, lambda: d.disturb_stream("nodes", "pods")),
        ],
        (1.0, 10.0, 40.0),
    )
    d.wait(30.0, 90.0)


def spot(d: Draw) -> None:
    """Nodes that will be gone: two taints of one policy, budgets that never allow, pods that opt out."""
    d.settings["replaced_within"] = 30.0
    d.cluster(d.chance.randint(2, 4))
    deadline = d.pick((60, 120))
    method = d.pick(("Evict", "EvictThenDelete", "EvictThenDelete"))
    d.policy(
        "spot",
        (SPOT, NOTICE),
        reclaim={"deadlineSeconds": deadline},
        eviction={"method": method, "pdbTimeoutSeconds": 600},
    )
    d.add("namespace", name="kube-system")
    for name in d.nodes:
        native = (Toleration(SPOT, "Exists", seconds=d.pick((20, 300))),) if d.maybe() else ()
        uid = d.workload(d.chance.randint(1, 3), name, native=native, grace=d.pick((1, 10, 30)))
        if d.maybe(0.6):
            d.add("budget", namespace=d.workloads[uid][0], name=f"b-{uid}", app=uid, max_unavailable=0)
        if d.maybe(0.6):
            marks = {d.pick(("karpenter.sh/do-not-disrupt", "taintwarden.io/do-not-evict")): "true"}
            d.pod(name, marks=marks if d.maybe() else {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"})
        if d.maybe(0.3):
            d.pod(name, namespace="kube-system")
    d.operators()

    def taint(key: str) -> None:
        d.add("taint", name=d.pick(d.nodes), key=key, value="x", added=d.pick((None, "now")))

    def one_after_the_other() -> None:
        name = d.pick(d.nodes)
        d.add("taint", name=name, key=SPOT, value="x")
        d.wait(5.0, 0.8 * deadline)
        d.add("taint", name=name, key=NOTICE, value="x")

    d.steps(
        d.chance.randint(3, 6),
        [
            (3, one_after_the_other),
            (2, lambda: taint(SPOT)),
            (2, lambda: taint(NOTICE)),
            (0.5, d.restart),
            (0.5, d.take_over),
        ],
        (1.0, 30.0, 60.0),
    )
    d.wait(deadline + 10.0, deadline + 60.0)


def budgets(d: Draw) -> None:
    """Budgets that allow now and then, that count late or not at all, and deletions after a time-out."""
    d.cluster(3)
    rate = {"evictionsPerSecond": d.pick((0.05, 0.1, 1)), "burst": 1}
    limits = d.pick(({}, {}, rate, {"perNode": {"maxConcurrent": 1}}))
    method = d.pick(("Evict", "EvictThenDelete", "EvictThenDelete"))
    timeout = d.pick((30, 60))
    d.policy("p", limits=NO_LIMITS | limits, eviction={"method": method, "pdbTimeoutSeconds": timeout})
    for _ in range(d.chance.randint(2, 3)):
        uid = d.workload(d.chance.randint(2, 5), d.pick(("any", "good")), native=(above(),))
        d.add(
            "budget",
            namespace=d.workloads[uid][0],
            name=f"b-{uid}",
            app=uid,
            max_unavailable=d.pick((0, 1, 1, 2)),
            counts=d.pick(("soon", "soon", "late", "never")),
            always_allow=d.maybe(0.2),
        )
    d.operators()

    def change_budget() -> None:
        uid = d.pick(list(d.workloads))
        if d.maybe(0.2):
            d.add("budget_gone", namespace=d.workloads[uid][0], name=f"b-{uid}")
        else:
            counts = d.pick(("soon", "soon", "late", "never"))
            given = {"namespace": d.workloads[uid][0], "name": f"b-{uid}", "app": uid, "counts": counts}
            d.add("budget", max_unavailable=d.pick((0, 0, 1, 2)), **given)

    def scale() -> None:
        uid = d.pick(list(d.workloads))
        d.add("scale", uid=uid, replicas=d.chance.randint(1, 6))

    def flap() -> None:
        for _ in range(3):
            d.add("ready", uid=d.known_pod(), is_ready=False, seconds=d.pick((0.0, 1.0, 8.0)))

    def flap_unseen() -> None:
        """Pods fail their probes, and their watch brings it when they have left."""
        d.add("lag", name="leader", kind="pods", seconds=d.between(0.5, 3.0), duration=5.0)
        d.wait(0.1, 1.0)
        for _ in range(5):
            d.add("ready", uid=d.known_pod(), is_ready=False, seconds=d.pick((0.0, 8.0)))
        d.wait(0.05, 0.4)
        d.bad(*d.nodes)

    d.steps(
        d.chance.randint(6, 14),
        [
            (4, lambda: d.bad(*d.some(d.nodes))),
            (1, lambda: d.good(*d.some(d.nodes))),
            (3, change_budget),
            (1, scale),
            (3, flap),
            (2, flap_unseen),
            (1, d.take_over),
            (1, lambda: d.storm("slow", "error", "lost", "throttle")),
            (0.5, lambda: d.disturb_stream("budgets", "pods")),
        ],
        (0.05, 0.5, 5.0, 20.0),
    )
    d.wait(timeout, 2.0 * timeout)


def labels(d: Draw) -> None:
    """A policy selects by labels of nodes that change with the taint, and just before or after it."""
    d.cluster(d.chance.randint(2, 4))
    label = "class"
    d.policy(
        "p",
        nodeSelector={"matchLabels": {label: d.pick(("980", "900"))}},
        timing={"violationGraceSeconds": d.pick((0, 10, 30))},
        taints=[{"key": SLA}],
        **(windows := d.turn(({}, {"windows": [{"schedule": "*/2 * * * *", "duration": "1m"}]}))),
    )
    for _ in range(2):
        d.workload(d.chance.randint(2, 4), "any", native=(above(),))
    d.operators()

    def move() -> None:
        name, value = d.pick(d.nodes), d.pick(("980", "900"))
        d.add("taint", name=name, key=SLA, value=value)
        d.add("relabel", name=name, labels={label: value})

    def select() -> None:
        d.edit("p", nodeSelector=d.pick((None, {"matchLabels": {label: "900"}}, {"matchLabels": {label: "980"}})))

    d.steps(
        d.chance.randint(5, 10),
        [
            (5, move),
            (1, select),
            (1, lambda: d.add("namespace", name=d.pick(d.namespaces), labels={"team": d.pick("ab")})),
            (0.5, d.restart),
        ],
        (0.5, 5.0, 40.0),
    )
    if not windows:
        d.add("weather", behaviour="postpone", duration=80.0, probability=0.5, what=("evict",))
    d.edit("p", nodeSelector=None)
    d.bad(*d.nodes)
    d.wait(80.0, 100.0)
    d.settings["calm_seconds"] = 150.0


def dead_nodes(d: Draw) -> None:
    """The policy ``dead-nodes`` of docs/operating.md; nodes that are not ready become unreachable, and back."""
    d.cluster(d.chance.randint(2, 4))
    d.policy(
        "dead-nodes",
        (NOT_READY, UNREACHABLE, "node.kubernetes.io/out-of-service"),
        exclude={"namespaces": [], "priorityAtLeast": 2147483647, "respectDoNotDisrupt": False},
        eviction={"method": "Delete"},
        limits=NO_LIMITS | (limits := d.turn(({}, {"perNode": {"maxConcurrent": d.pick((1, 2))}}))),
    )
    seconds = d.pick((40, 60))
    tolerations = tuple(Toleration(key, "Exists", seconds=seconds) for key in (NOT_READY, UNREACHABLE))
    for name in d.nodes:
        d.workload(d.chance.randint(1, 3) + len(limits), name, native=tolerations)
    d.operators()
    if limits:
        d.add("stuck", name=d.nodes[0])
        d.add("swap", name=d.nodes[0], off=NOT_READY, on=UNREACHABLE)

    def swap() -> None:
        keys = [NOT_READY, UNREACHABLE]
        off, on = keys if d.maybe() else keys[::-1]
        d.add("swap", name=d.pick(d.nodes), off=off, on=on)

    d.steps(
        d.chance.randint(4, 12),
        [
            (6, swap),
            (1, lambda: d.add("untaint", name=d.pick(d.nodes), key=d.pick((NOT_READY, UNREACHABLE)))),
            (0.5, d.restart),
        ],
        (3.0, 15.0, 35.0),
    )
    d.settings["calm_seconds"] = 300.0


def marks(d: Draw) -> None:
    """Annotations by which pods stay, with values of newer forms, odd ones, and those that come and go."""
    d.cluster(d.chance.randint(2, 3))
    limits = NO_LIMITS | d.turn(({}, {"perWorkload": {"maxUnavailable": 1}}))
    d.policy("p", timing={"violationGraceSeconds": d.pick((0, 0, 20))}, limits=limits)
    d.workload(d.chance.randint(2, 6), "good", native=(above(),))
    ours, karpenter = "taintwarden.io/do-not-evict", "karpenter.sh/do-not-disrupt"

    def mark() -> dict[str, str]:
        odd = {ours: d.pick(("yes", "True", "1"))}
        return d.pick(({karpenter: d.pick(("4h", "20m", "1h30m"))}, odd, {ours: "true"}, {karpenter: "true"}, {}))

    def opt_out() -> None:
        d.bad(*d.nodes)
        d.wait(0.05, 10.0)
        for _ in range(3):
            d.add("mark", uid=d.known_pod(), marks={ours: "true"})

    d.operators()
    d.steps(
        d.chance.randint(3, 8),
        [
            (4, lambda: d.bad(*d.some(d.nodes))),
            (2, lambda: d.good(*d.some(d.nodes))),
            (4, lambda: d.pod(d.pick(d.nodes), marks=mark())),
            (3, lambda: d.add("mark", uid=d.known_pod(), marks=mark())),
            (2, opt_out),
            (0.5, d.restart),
        ],
        (1.0, 10.0, 40.0),
    )


def bounces(d: Draw) -> None:
    """Pods that return to the node that they were evicted from, and a second taint there."""
    d.cluster(d.chance.randint(2, 3))
    bounce = {"maxBackoffSeconds": 3600}
    d.policy("p", (SLA, FLAG), limits=NO_LIMITS | {"bounce": bounce}, timing={"violationGraceSeconds": d.pick((0, 10))})
    home = d.nodes[0]
    d.workload(d.chance.randint(1, 3), home, native=(above(),))
    d.workload(2, "any", native=(above(),))
    d.operators()
    d.bad(home)

    def second() -> None:
        d.add("taint", name=home, key=FLAG, value=d.pick("xy"))

    d.steps(
        d.chance.randint(3, 6),
        [
            (3, second),
            (1, lambda: d.add("untaint", name=home, key=FLAG)),
            (1, lambda: d.bad(*d.some(d.nodes))),
            (0.5, lambda: d.good(home)),
            (0.3, d.restart),
        ],
        (60.0, 120.0, 240.0),
    )
    d.bad(home)
    d.settings["calm_seconds"] = 150.0


def nodes(d: Draw) -> None:
    """Nodes that are deleted, created again, and moved between zones, and an etcd that is put back."""
    d.cluster(d.chance.randint(3, 5), 2)
    d.policy("p", timing={"violationGraceSeconds": d.pick((0, 20, 60))})
    d.workload(d.chance.randint(3, 6), "any", native=(above(),))
    d.operators()

    def delete_or_add_node() -> None:
        name = d.pick(d.nodes)
        if d.maybe(0.7):
            d.bad(name)
            d.wait(1.0, 10.0)
        d.add("node_gone" if d.maybe(0.6) else "node", name=name)

    d.steps(
        d.chance.randint(4, 9),
        [
            (3, lambda: d.bad(*d.some(d.nodes))),
            (2, lambda: d.good(*d.some(d.nodes))),
            (3, delete_or_add_node),
            (1, lambda: d.add("node", name=d.pick(d.nodes), labels={})),
            (1, lambda: d.add("back_up")),
            (1, lambda: d.add("restore")),
            (0.5, d.restart),
            (1, lambda: d.disturb_stream("nodes", "pods")),
        ],
        (0.5, 5.0, 30.0),
    )


def mixed(d: Draw) -> None:
    """Everything, on a cluster with several policies and any limits."""
    d.settings["writer_skew"] = d.pick((0.0, 0.0, 2.0, -2.0))
    d.settings["replaced_within"] = 10.0
    d.options["overall_rate"] = d.pick((None, None, 5.0, 50.0))
    d.cluster(d.chance.randint(3, 8), d.pick((1, 2, 3)), namespaces=3)
    d.policy(
        "p",
        limits=NO_LIMITS | _limits(d),
        mode=d.pick(("Enforce", "Enforce", "Enforce", "DryRun")),
        timing=_timing(d),
        eviction={"method": d.pick(("Evict", "Evict", "EvictThenDelete", "Delete")), "pdbTimeoutSeconds": 30},
    )
    if d.maybe(0.7):
        effects = {"effects": d.pick((["NoExecute"], ["NoExecute"], ["NoSchedule"]))}
        d.policy("q", taints=[{"key": FLAG} | effects], limits=NO_LIMITS | _limits(d), timing=_timing(d))
    if d.maybe(0.2):
        d.policy("rest", ("*",), mode=d.pick(("DryRun", "Enforce")), timing=_timing(d))
    if d.maybe(0.4):
        d.policy("spot", (SPOT, NOTICE), reclaim={"deadlineSeconds": d.pick((60, 120))})
    for _ in range(d.chance.randint(2, 5)):
        native = (above(grace=d.pick((None, None, 20))), *((_for(d, FLAG, 5, 60),) if d.maybe() else ()))
        uid = d.workload(d.chance.randint(1, 7), d.pick(("good", "good", "any", d.nodes[0])), native=native)
        if d.maybe(0.3):
            counts = d.pick(("soon", "soon", "late", "never"))
            given = {"namespace": d.workloads[uid][0], "name": f"b-{uid}", "app": uid, "counts": counts}
            d.add("budget", max_unavailable=d.pick((0, 1, 2)), **given)
    d.operators(d.pick((1, 2, 2, 3)), (0.0, 0.0, 1.0, -1.0))
    d.steps(d.chance.randint(8, 20), _anything(d), (0.0, 0.05, 0.5, 3.0, 12.0, 30.0))
    d.wait(5.0, 30.0)


def _limits(d: Draw) -> Json:
    """Some limits."""
    guard = {"maxPercent": d.pick((10, 20, 50)), "minPods": d.pick((3, 8, 20)), "windowSeconds": d.pick((60, 600))}
    every: Json = {
        "guard": guard,
        "zoneHealth": {"unhealthy": [d.pick((UNFIT, {"key": FLAG}))], "threshold": d.pick((0.3, 0.55))},
        "bounce": {"maxBackoffSeconds": d.pick((60, 600))},
        "perWorkload": {"maxUnavailable": d.pick(("25%", "50%", 1))},
        "perNode": {"maxConcurrent": d.pick((1, 3))},
        "evictionsPerSecond": d.pick((0.5, 2, 10)),
    }
    if d.maybe(0.3):
        return {}
    chosen = d.some(list(every)) if d.maybe(0.3) else [d.pick(list(every))]
    return {name: every[name] for name in every if name in chosen}


def _timing(d: Draw) -> Json:
    return {"violationGraceSeconds": d.pick((0, 0, 10, 40)), "stabilizationWindowSeconds": d.pick((0, 0, 15))}


def _anything(d: Draw) -> list[tuple[float, Callable[[], None]]]:
    """Steps of a mixed history."""

    def taint() -> None:
        effect = d.pick(("NoExecute", "NoExecute", "NoSchedule"))
        key = d.pick((FLAG, FLAG, SPOT, "example.com/other"))
        d.add("taint", name=d.pick(d.nodes), key=key, value="x", effect=effect, added=d.pick(ADDED))

    def edit() -> None:
        name = d.pick(list(d.policies))
        if d.policies[name].get("reclaim"):
            return
        change = d.pick(("mode", "limits", "timing", "nodeSelector"))
        if change == "mode":
            d.edit(name, mode=d.pick(("Enforce", "Enforce", "DryRun", "Paused")))
        elif change == "limits":
            d.edit(name, limits=NO_LIMITS | _limits(d))
        elif change == "timing":
            d.edit(name, timing=_timing(d))
        else:
            d.edit(name, nodeSelector=d.pick((None, {"matchLabels": {"pool": d.pick("xy")}})))

    def recreate() -> None:
        name = d.pick(list(d.policies))
        d.add("policy_gone", name=name)
        d.wait(0.1, 5.0)
        d.add("policy", name=name, spec=d.policies[name])

    def profile() -> None:
        entry = above(d.pick((0, 500, 950, 990)))
        d.add("profile", namespace=d.pick(d.namespaces), name="x", tolerations=(entry,))

    def blip() -> None:
        name = d.pick(d.nodes)
        d.good(name)
        d.wait(0.05, 2.0)
        d.bad(name)

    def quiet() -> None:
        kind = d.pick(("nodes", "pods"))
        d.add("silence", name=d.pick(("leader", "a")), kind=kind, seconds=d.between(1.0, 60.0))

    return [
        (5, lambda: d.bad(*d.some(d.nodes), gap=d.pick((0.0, 0.1)))),
        (3, lambda: d.good(*d.some(d.nodes), added=d.pick(ADDED))),
        (3, lambda: d.bad(d.pick(d.nodes), added=d.pick(ADDED))),
        (2, blip),
        (1, lambda: d.add("taint", name=d.pick(d.nodes), key=SLA, value=d.pick(("high", "", "99.5", "0950")))),
        (3, taint),
        (1, lambda: d.add("untaint", name=d.pick(d.nodes), key=d.pick((SLA, FLAG, SPOT)))),
        (2, lambda: d.pod(d.pick(d.nodes), native=(above(),))),
        (2, edit),
        (0.5, recreate),
        (1, lambda: d.add("reset", name=d.pick(list(d.policies)))),
        (1, profile),
        (1, lambda: d.add("scale", uid=d.pick(list(d.workloads)), replicas=d.chance.randint(0, 8))),
        (1, lambda: d.add("ready", uid=d.known_pod(), is_ready=False, seconds=d.pick((0.0, 5.0)))),
        (0.5, lambda: d.add("annotate", uid=d.known_pod(), extended=d.pick((None, (above(970),), (above(0),))))),
        (1, lambda: d.add("mark", uid=d.known_pod(), marks=d.pick(({}, {"taintwarden.io/do-not-evict": "true"})))),
        (1, lambda: d.add("node_gone" if d.maybe() else "node", name=d.pick(d.nodes))),
        (0.5, lambda: d.add("relabel", name=d.pick(d.nodes), labels={"pool": d.pick("xy")})),
        (1, lambda: d.add("delete_pod", uid=d.known_pod())),
        (2, d.restart),
        (2, d.take_over),
        (2, lambda: d.disturb_stream("nodes", "pods", "budgets", "workloads", "namespaces")),
        (1, quiet),
        (2, d.storm),
        (0.5, lambda: d.add("clock", name=d.pick("ab"), skew=d.between(-30.0, 30.0))),
        (0.3, lambda: d.add("back_up")),
        (0.3, lambda: d.add("restore")),
    ]


def devices(d: Draw) -> None:
    """Devices with values, drivers that replace slices, rules, claims that come and go, restarts, and late streams."""
    d.settings["has_devices"] = True
    d.cluster(d.chance.randint(2, 3))
    numbers = {name: d.chance.randint(2, 4) for name in d.nodes}
    for name, number in numbers.items():
        d.add("publish", name=name, devices=number)
    d.policy("p", devices=[{"key": HEALTH}], timing={"violationGraceSeconds": d.pick((0, 0, 20, 60))})
    if d.maybe(0.3):
        d.policy("q", ("other",), devices=[{"key": "gpu.example.com/*", "effects": ["NoExecute", "NoSchedule"]}])
    exists = Toleration(HEALTH, "Exists")
    for _ in range(2):
        claim = d.pick(((exists,), (exists,), ()))
        d.workload(
            d.chance.randint(1, 4),
            d.pick(("good", "any")),
            claim=claim,
            extended=(above(key=HEALTH, grace=d.pick((None, None, 30))),) if claim else None,
        )
    d.workload(2, "any", native=(above(),))
    d.operators(d.pick((1, 2, 2)))

    def device() -> Json:
        name = d.pick(d.nodes)
        return {"name": name, "device": f"gpu-{d.chance.randrange(numbers[name])}"}

    def value() -> None:
        d.add("device_taint", **device(), key=HEALTH, value=d.pick((*GOOD, *BAD)), added=d.pick((None, "now", -30.0)))

    def blip() -> None:
        one = device()
        d.add("device_taint", **one, key=HEALTH, value=d.pick(BAD), added="now")
        d.wait(0.05, 30.0)
        how = d.pick(("republish", "unpublish", "well"))
        if how == "republish":
            d.add("republish", name=one["name"], slices=d.pick((1, 2)), seconds=d.between(0.05, 3.0), renews=d.maybe())
        elif how == "unpublish":
            d.add("unpublish", name=one["name"], seconds=d.between(0.1, 5.0), keeps=d.maybe(0.7), renews=d.maybe())
        else:
            d.add("device_taint", **one, key=HEALTH, value=None)
        d.wait(0.05, 2.0)
        d.add("device_taint", **one, key=HEALTH, value=d.pick((*GOOD, *BAD)))

    def rule() -> None:
        one = device()
        where = d.pick(({"pool": one["name"]}, {"pool": one["name"], "device": one["device"]}))
        d.add("rule", name=d.pick("rs"), key=HEALTH, value=d.pick((*GOOD, *BAD)), **where)

    d.steps(
        d.chance.randint(8, 16),
        [
            (5, value),
            (3, blip),
            (2, rule),
            (1, lambda: d.add("rule_gone", name=d.pick("rs"))),
            (1, lambda: d.add("republish", name=d.pick(d.nodes), slices=2, seconds=d.between(0.05, 3.0))),
            (1, lambda: d.add("delete_pod", uid=d.known_pod())),
            (1, lambda: d.bad(d.pick(d.nodes)) if d.maybe() else d.good(d.pick(d.nodes))),
            (1, lambda: d.add("node", name=d.pick(d.nodes)) if d.maybe(0.3) else None),
            (2, lambda: d.disturb_stream("slices", "claims", "rules", "pods", "nodes")),
            (1, d.storm),
            (2, d.restart),
            (1, d.take_over),
        ],
        (0.5, 3.0, 12.0, 40.0),
    )


def shares(d: Draw) -> None:
    """Waves near the share that a guard allows, slower than a second, of pods that are replaced late or never."""
    d.settings |= {"replaced_within": d.pick((3.0, 60.0, 900.0)), "calm_seconds": 300.0}
    d.cluster(3)
    guard = {"windowSeconds": 600, "maxPercent": d.pick((10, 20, 40))}
    part = {"evictionsPerSecond": 0.5}
    rate = d.turn(({"evictionsPerSecond": d.pick((0.5, 2)), "burst": 1}, {"perNamespace": part}, {"perZone": part}))
    d.policy("p", limits=NO_LIMITS | {"guard": guard} | rate)
    for number, name in enumerate(d.nodes):
        for _ in range(d.chance.randint(8, 12) if number else d.chance.randint(6, 20)):
            d.pod(name, native=(above(grace=0),))
    d.workload(d.chance.randint(2, 12), "any", native=(above(grace=0),))
    d.operators(d.pick((1, 2)))

    def scale_down() -> None:
        for _ in range(d.chance.randint(1, 10)):
            d.add("delete_pod", uid=d.known_pod())

    d.steps(
        d.chance.randint(2, 5),
        [
            (4, lambda: d.bad(d.nodes[0])),
            (1, lambda: d.good(d.nodes[0])),
            (1, lambda: d.bad(d.pick(d.nodes))),
            (1, scale_down),
            (0.5, d.take_over),
        ],
        (0.5, 5.0, 20.0),
    )


THEMES: dict[str, Theme] = {
    one.__name__: one
    for one in (
        clocks,
        reads,
        restored,
        values,
        histories,
        rehearsal,
        zones,
        terms,
        records,
        webhooks,
        lanes,
        waves,
        trips,
        tries,
        silence,
        spot,
        budgets,
        labels,
        dead_nodes,
        marks,
        bounces,
        nodes,
        mixed,
        devices,
        shares,
        taken,
        large,
        stamps,
        counted,
        kills,
        edits,
        paces,
        unseen,
        places,
        drained,
    )
}


def draw(seed: int, theme: str = "") -> Plan:
    """The plan of a seed. Without a theme, the seed decides on it."""
    names = list(THEMES)
    name = theme or names[seed % len(names)]
    drawing = Draw(seed, name)
    THEMES[name](drawing)
    return drawing.plan()
