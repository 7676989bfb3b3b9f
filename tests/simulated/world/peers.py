"""Themes in which a peer's answer differs from the outcome for the pod, and records outlive processes."""

from simulated.world.drawing import BAD, FLAG, NO_LIMITS, SLA, Draw, above
from simulated.world.objects import Json, Toleration

EVICTIONS = ("evict",)


def _pods(d: Draw, node: str, number: int, namespace: str, **more: object) -> None:
    for _ in range(number):
        d.pod(node, namespace=namespace, native=(above(),), grace=1, **more)


def taken(d: Draw) -> None:
    """Webhooks that take evictions over: they answer 2xx, 429 or 403, and evict the pod later or never."""
    how = d.turn(("dry-run", "migrate", "take", "dry-run", "migrate"))
    seconds = d.pick((0.0, 20.0, 30.0, 90.0)) if how == "dry-run" else d.pick((20.0, 30.0, 90.0))
    is_guarded = d.turn((True, False))
    d.cluster(4)
    first, second, third, _ = d.nodes
    guard = {"minPods": 10, "maxPercent": 1, "windowSeconds": d.pick((200, 300))}
    limits: Json = {"guard": guard} if is_guarded else {"perWorkload": {"maxUnavailable": "25%"}}
    d.policy("p", limits=NO_LIMITS | limits)
    if is_guarded:
        for node, number in ((first, 8), (second, 8)):
            _pods(d, node, number, "shop")
    else:
        uid = d.workload(8, first, namespace="shop", native=(above(),))
        d.add("place", after=0.001, uid=uid, placing="good")
    _pods(d, third, 6, "bank")
    d.operators(d.pick((1, 2)))
    d.add("weather", behaviour=how, duration=d.between(100.0, 250.0), seconds=seconds, what=EVICTIONS, namespace="shop")
    d.bad(first)
    d.wait(10.0, 60.0)
    if d.maybe(0.3):
        d.restart()
        d.wait(5.0, 30.0)
    d.bad(second)
    d.wait(20.0, 60.0)
    d.bad(third)
    d.wait(60.0, 120.0)


def large(d: Draw) -> None:
    """The status of some pods fills an object of etcd: their evictions are answered 500. Or all requests are."""
    d.cluster(3, namespaces=2)
    d.namespaces += [d.name("ns") for _ in range(d.pick((1, 8, 16)))]
    for namespace in d.namespaces[2:]:
        d.add("namespace", name=namespace, labels={})
    rate = d.turn(({"evictionsPerSecond": 10, "burst": 20}, {}))
    d.policy("p", limits=NO_LIMITS | rate)
    for namespace in d.namespaces[2:]:
        _pods(d, d.nodes[0], d.pick((1, 1, 3)), namespace)
    for namespace in d.namespaces[:2]:
        _pods(d, d.nodes[1], 30, namespace)
    d.operators(d.pick((1, 2)))
    for namespace in d.namespaces[2:]:
        behaviour = d.pick(("large", "large", "error"))
        d.add("weather", behaviour=behaviour, duration=100.0, what=EVICTIONS, namespace=namespace)
    if d.turn((False, True, False)):
        d.add("outage", after=d.between(0.0, 4.0), seconds=d.pick((2.5, 6.0, 9.0, 20.0)))
    d.bad(*d.nodes[:2], gap=d.pick((0.0, 5.0)))
    d.wait(60.0, 90.0)


def stamps(d: Draw) -> None:
    """Values and times written while no operator watches: older than a recorded one, newer, or in the future."""
    d.cluster(d.chance.randint(1, 3))
    grace = d.pick((60, 120, 300))
    d.policy("p", timing={"violationGraceSeconds": grace})
    for native in ((), (above(),), (above(grace=d.pick((None, 90))),)):
        d.workload(d.chance.randint(1, 2), "any", native=native)
    d.operators(1)

    def write(added: str | float | None, *values: str) -> None:
        for name in d.nodes:
            d.add("taint", name=name, key=SLA, value=d.pick(values), added=added)

    apart = d.between(40.0, 60.0)
    stated = d.pick((None, "now"))
    write(stated, "970")
    d.wait(apart, apart)
    if d.maybe(0.7):
        write(stated, "980", "940")
        d.wait(35.0, 50.0)
    for _ in range(d.pick((1, 1, 2))):
        down = d.pick((d.between(3.0, 20.0), d.between(60.0, 280.0)))
        d.add("kill", name="leader", down=down)
        d.wait(1.0, down - 1.0)
        if d.maybe(0.3):
            for name in d.nodes:
                d.add("untaint", name=name, key=SLA)
            d.wait(0.1, 1.0)
        added = d.pick((None, "now", 4000.0, "far", -45.0 - apart / 2, -down / 2, "long ago"))
        write(added, *BAD, "unknown", "980", "990")
        d.wait(40.0, 60.0)
    if d.maybe():
        write(d.pick((None, "now")), "unknown", *BAD)
    d.wait(grace + 40.0, grace + 200.0)


def counted(d: Draw) -> None:
    """Counting by a guard: growth after a trip, drips, replaced pods, and records whose writes are refused."""
    how = d.turn(("grown", "drip", "refused", "replaced", "old"))
    d.settings["calm_seconds"] = 100.0
    d.cluster(6)
    bad, others = d.nodes[:4], d.nodes[4:]
    if how == "replaced":
        return _replaced(d, bad, others)
    guard = {"minPods": 8, "maxPercent": 1, "windowSeconds": 600}
    d.policy("p", limits=NO_LIMITS | {"guard": guard})
    _pods(d, bad[0], {"refused": 3, "old": 6}.get(how, 12), "shop")
    _pods(d, bad[1], 3, "bank")
    _pods(d, bad[2], 1 if how == "drip" else 3, "bank")
    drips = [d.add_node() for _ in range(16 if how == "drip" else 0)]
    for name in drips:
        _pods(d, name, 1, "shop")
    d.operators(d.pick((1, 2)))
    if how == "grown":
        d.bad(bad[0])
        d.wait(4.0, 8.0)
        d.bad(bad[1], bad[2])
        d.wait(5.0, 15.0)
        d.good(bad[1])
        d.wait(3.0, 6.0)
        d.restart()
        d.wait(60.0, 120.0)
    elif how == "drip":
        d.bad(bad[0], bad[2])
        for name in drips:
            d.bad(name)
            d.wait(18.0, 20.0)
    elif how == "refused":
        behaviour, seconds = d.pick(("deny", "error", "throttle")), d.pick((45.0, 110.0))
        d.add("weather", behaviour=behaviour, duration=seconds, what=("guard",))
        d.bad(bad[0])
        d.wait(seconds + 20.0, seconds + 30.0)
        d.bad(bad[1])
    else:
        d.add("old_definition")
        d.bad(bad[0])
        d.wait(10.0, 20.0)
        d.restart()
        d.wait(25.0, 30.0)
        d.bad(bad[1])
        d.wait(60.0, 90.0)
    d.wait(20.0, 30.0)
    return None


def _replaced(d: Draw, bad: list[str], others: list[str]) -> None:
    """Waves of pods that are replaced elsewhere, while others scale down or up what the policy could evict."""
    d.policy("p", limits=NO_LIMITS | {"guard": {"windowSeconds": 600}})
    sizes = (6, d.chance.randint(18, 24), d.chance.randint(12, 18))
    waves = [d.workload(size, node, native=(above(),)) for size, node in zip(sizes, bad, strict=False)]
    rest = d.workload(57, others[0], native=(above(),))
    d.operators(d.pick((1, 2)))
    for uid in waves:
        d.add("place", uid=uid, placing=others[1])
    d.bad(bad[0])
    d.wait(10.0, 15.0)
    d.add("scale", uid=rest, replicas=d.pick((17, 17, 57, 100)))
    d.wait(10.0, 15.0)
    if d.maybe(0.3):
        d.restart()
        d.wait(25.0, 30.0)
    d.bad(bad[1])
    d.wait(25.0, 40.0)
    d.bad(bad[2])
    d.wait(40.0, 60.0)


def kills(d: Draw) -> None:
    """Processes that end at writes of their guard's record and at evictions, before and after they are carried out."""
    d.cluster(5)
    window = d.pick((100, 300))
    guard = {"minPods": d.pick((8, 12)), "maxPercent": 1, "windowSeconds": window}
    d.policy("p", limits=NO_LIMITS | {"guard": guard} | d.pick(({}, {"evictionsPerSecond": 2, "burst": 1})))
    for name in d.nodes[:4]:
        _pods(d, name, d.chance.randint(2, 6), d.pick(d.namespaces))
    d.workload(d.chance.randint(2, 6), "any", native=(above(),))
    d.operators(d.pick((1, 2)))

    def doom() -> None:
        behaviour, what = d.pick(("kill", "kill-first")), d.pick((("guard",), ("guard",), EVICTIONS))
        seconds, duration = d.between(0.2, 20.0), d.between(1.0, 8.0)
        d.add(
            "weather",
            behaviour=behaviour,
            duration=duration,
            seconds=seconds,
            what=what,
            probability=d.pick((0.3, 1.0)),
        )
        d.wait(0.0, 2.0)
        d.bad(*d.some(d.nodes))

    d.steps(
        d.chance.randint(4, 9),
        [
            (5, doom),
            (2, lambda: d.bad(d.pick(d.nodes))),
            (2, lambda: d.good(*d.some(d.nodes))),
            (1, lambda: d.add("reset", name="p")),
            (1, lambda: d.add("delete_pod", uid=d.known_pod())),
            (0.5, d.take_over),
        ],
        (1.0, 10.0, 30.0, 70.0),
    )


def paces(d: Draw) -> None:
    """A tripped guard that lets its allowance leave in each window, while replacements come to bad nodes."""
    how = d.turn(("all", "kills", "one", "mended", "released"))
    d.cluster(4)
    window = d.pick((60, 100))
    guard = {"minPods": d.pick((6, 8)), "maxPercent": 1, "windowSeconds": window, "action": "Pace"}
    d.policy("p", limits=NO_LIMITS | {"guard": guard} | d.pick(({}, {"evictionsPerSecond": 2, "burst": 1})))
    for name in d.nodes:
        _pods(d, name, d.chance.randint(4, 7), "shop" if how == "one" else d.pick(d.namespaces))
    if how == "one":
        _pods(d, d.nodes[0], 2, "bank")
    d.workload(d.chance.randint(2, 6), "any", native=(above(),))
    d.operators(d.pick((1, 2)))
    d.bad(*d.nodes)
    for _ in range(3):
        if how == "kills":
            behaviour, what = d.pick(("kill", "kill-first")), d.pick((("guard",), EVICTIONS))
            d.add("weather", behaviour=behaviour, duration=d.between(5.0, 30.0), seconds=2.0, what=what)
        elif how == "mended":
            d.good(d.pick(d.nodes))
        d.wait(0.7 * window, 1.1 * window)
        if how == "released" and d.maybe():
            d.add("reset", name="p")
        elif d.maybe(0.3):
            d.restart()
    d.wait(2.0 * window, 3.0 * window)


def edits(d: Draw) -> None:
    """Two policies on the same pods, with guards, whose limits, modes and selectors are edited in waves."""
    d.cluster(4)
    guards: list[Json] = [
        {"guard": {"minPods": most, "maxPercent": 1, "windowSeconds": seconds}}
        for most in (4, 10)
        for seconds in (60, 300)
    ]
    others: list[Json] = [{}, {"perWorkload": {"maxUnavailable": 1}}, {"perNode": {"maxConcurrent": 2}}]

    def limits() -> Json:
        return NO_LIMITS | d.pick((*guards, *others)) | d.pick((*others, {"evictionsPerSecond": 1, "burst": 2}))

    for name, key in (("p", SLA), ("q", FLAG)):
        d.policy(name, (key,), limits=limits(), timing={"violationGraceSeconds": d.pick((0, 0, 15))})
    for _ in range(3):
        native = (above(), Toleration(FLAG, seconds=d.pick((0, 20, 400))))
        d.workload(d.chance.randint(2, 6), d.pick(("any", "good")), native=native if d.maybe(0.7) else native[:1])
    for name in d.nodes[:2]:
        _pods(d, name, d.chance.randint(1, 6), d.pick(d.namespaces))
    d.operators(d.pick((1, 2)))

    def edit() -> None:
        name = d.pick("pq")
        how = d.pick(("mode", "limits", "limits", "timing", "nodeSelector", "again"))
        if how == "again":
            d.add("policy", name=name, spec=d.policies[name])
        elif how == "mode":
            d.edit(name, mode=d.pick(("Enforce", "Enforce", "DryRun", "Paused")))
        elif how == "limits":
            d.edit(name, limits=limits())
        elif how == "timing":
            d.edit(name, timing={"violationGraceSeconds": d.pick((0, 0, 15, 100))})
        else:
            d.edit(name, nodeSelector=d.pick((None, None, {"matchLabels": {"pool": "x"}})))

    d.steps(
        d.chance.randint(8, 18),
        [
            (4, lambda: d.bad(*d.some(d.nodes))),
            (3, lambda: d.good(*d.some(d.nodes))),
            (3, lambda: d.add("taint", name=d.pick(d.nodes), key=FLAG, value="x")),
            (1, lambda: d.add("untaint", name=d.pick(d.nodes), key=FLAG)),
            (5, edit),
            (1, lambda: d.add("reset", name=d.pick("pq"))),
            (1, lambda: d.add("scale", uid=d.pick(list(d.workloads)), replicas=d.chance.randint(1, 8))),
            (1, lambda: d.add("relabel", name=d.pick(d.nodes), labels={"pool": d.pick("xy")})),
            (1, d.restart),
        ],
        (0.5, 3.0, 15.0, 60.0),
    )


def unseen(d: Draw) -> None:
    """Evictions that are undone by an older etcd, or that a live stream of pods does not bring."""
    how = d.turn(("restored", "silent", "silent"))
    d.cluster(4)
    guard = {"minPods": 10, "maxPercent": 1, "windowSeconds": 300}
    d.policy("p", limits=NO_LIMITS | ({"guard": guard} if how == "silent" or d.maybe() else {}))
    _pods(d, d.nodes[0], 7, "shop")
    _pods(d, d.nodes[1], 3, "bank")
    d.operators(d.pick((1, 2)))
    if how == "restored":
        d.add("back_up", after=d.between(0.2, 1.0))
        d.bad(d.nodes[0])
        d.wait(3.0, 20.0)
        d.add("restore")
        d.wait(25.0, 45.0)
    else:
        d.bad(d.nodes[0])
        d.add("silence", after=d.between(0.0, 2.0), name="leader", kind="pods", seconds=d.between(40.0, 90.0))
        d.wait(60.0, 80.0)
    d.bad(d.nodes[1])
    d.wait(60.0, 90.0)
    d.settings["calm_seconds"] = 100.0


def places(d: Draw) -> None:
    """Many nodes fall at once, and few may lose pods at once: some are blocked, repaired, deleted, or come back."""
    how = d.turn(("blocked", "mixed", "lowered", "blocked", "again"))
    most = d.turn((1, 2, "40%"))
    d.cluster(6)
    limits: Json = {"concurrentNodes": most}
    d.policy("p", limits=NO_LIMITS | limits | d.pick(({}, {"guard": {"minPods": 400}}, {"evictionsPerSecond": 1})))
    for node in d.nodes:
        for namespace in d.namespaces:
            _pods(d, node, d.pick((1, 2)), namespace)
    if how == "blocked":
        node = d.pick(d.nodes)
        uid = d.workload(1, node, namespace="shop", native=(above(),))
        d.add("budget", namespace="shop", name="never", app=uid, max_unavailable=0, counts="soon", always_allow=False)
    elif how == "again":
        d.workload(2, d.nodes[0], namespace="shop", native=(above(),))
    d.operators(d.pick((1, 2)))
    d.bad(*d.some(d.nodes, 5), gap=d.pick((0.0, 1.0)))
    d.wait(1.0, 8.0)
    if how == "lowered":
        d.edit("p", limits=NO_LIMITS | {"concurrentNodes": 1})
    elif how == "mixed":
        d.good(d.pick(d.nodes))
        d.wait(0.5, 4.0)
        d.add("node_gone", name=d.pick(d.nodes))
    if d.maybe():
        d.restart()
    d.wait(400.0 if how == "blocked" else 60.0, 420.0 if how == "blocked" else 120.0)


def drained(d: Draw) -> None:
    """Nodes that are said to be drained while pods come: late watches, writes that wait, and processes that end."""
    d.options["drained_condition"] = True
    d.cluster(d.chance.randint(1, 3))
    d.policy("p", timing={"violationGraceSeconds": d.pick((0, 5, 600))})
    d.workload(d.chance.randint(1, 3), d.pick(("any", "good")), native=(above(),))
    d.operators(d.pick((1, 2)))

    def add_pod(node: str) -> None:
        d.pod(node, native=(above(grace=d.pick((None, 600))),), grace=d.pick((2, 30)))

    def add_pod_late() -> None:
        node = d.pick(d.nodes)
        d.bad(node)
        d.wait(8.0, 12.0)
        d.add("lag", name="leader", kind="pods", seconds=d.between(1.0, 3.0), duration=6.0)
        add_pod(node)
        d.wait(0.05, 1.0)
        d.bad(node)  # what is said names another value

    def write_late() -> None:
        node = d.pick(d.nodes)
        how = d.pick(("connect", "connect", "slow", "late", "twice", "kill-first", "kill"))
        d.storm(how, seconds=d.pick((0.5, 4.0)), probability=1.0, what=("condition",))
        d.bad(node)
        d.wait(0.05, 6.0)
        add_pod(node)

    d.steps(
        d.chance.randint(5, 10),
        [
            (3, add_pod_late),
            (3, write_late),
            (1, lambda: add_pod(d.pick(d.nodes))),
            (1, lambda: d.good(d.pick(d.nodes))),
            (1, lambda: d.add("untaint", name=d.pick(d.nodes), key=SLA)),
            (1, lambda: d.add("delete_pod", uid=d.known_pod())),
            (1, lambda: d.disturb_stream("pods")),
            (1, d.restart),
            (0.5, d.take_over),
        ],
        (0.5, 3.0, 12.0),
    )
