"""The state after P1 ... Pn is the state after Pn alone (as "Acto", SOSP '23, does with operators).

Policies, profiles and the values of nodes are edited while no policy enforces; at last everything is as in the last
edit, and the policy enforces. Another operator sees how that is built, and nothing of what was before. Both evict the
same pods, trip the same guards, and hold the same zones for Full: what was once so, and is not, must not count.

A guard that tripped during the edits is left out: a lower number does not arm it again, and what was repaired counts,
because values are repaired one by one (docs/concepts.md).
"""

from dataclasses import dataclass, replace

from simulated.world.drawing import FLAG, NO_LIMITS, SLA, Draw, above
from simulated.world.judges import Breach
from simulated.world.objects import Json, Toleration
from simulated.world.plan import Happening, Plan
from simulated.world.world import World

TAINTED_AT = 4.0
SAME_TIME_SECONDS = 1.5
"""Times in objects have whole seconds: a pod that came so soon before a taint came with it."""
CALM_SECONDS = 150.0
QUIET = ("DryRun", "DryRun", "Paused")


@dataclass(frozen=True)
class State:
    """What an operator has done, and what it holds, when nothing more happens."""

    evicted: tuple[str, ...]
    pending: tuple[tuple[str, str], ...]
    guards: tuple[tuple[str, bool], ...]
    full: tuple[tuple[str, bool], ...]


class Edits:
    """A cluster, a number of edits, and the state that they end in."""

    def __init__(self, seed: int) -> None:
        self.draw = d = Draw(seed, "edits")
        d.options = {"max_in_flight": 64, "slice_size": d.pick((5, 500))}
        d.cluster(d.chance.randint(3, 6), d.pick((1, 2)))
        self.spec: Json = {"taints": [{"key": SLA}, {"key": FLAG}], "mode": d.pick(QUIET), "limits": self._limits()}
        d.add("policy", name="p", spec=self.spec)
        for _ in range(d.chance.randint(4, 14)):
            d.pod(d.pick(d.nodes), labels={"app": d.pick("xy")}, native=(above(),) if d.maybe(0.7) else ())
        self.profiles: dict[str, tuple[Toleration, ...]] = {}
        self.taints: dict[str, dict[str, str]] = {name: {} for name in d.nodes}
        for name in d.some(d.nodes):
            self._put(name, SLA, "0")
        self.labels: dict[str, str] = {}

    def _limits(self) -> Json:
        guard = {"minPods": self.draw.pick((2, 4, 50)), "maxPercent": 1, "windowSeconds": 60}
        limits = {"guard": guard} if self.draw.maybe(0.6) else {}
        if self.draw.maybe(0.4):
            limits["zoneHealth"] = {"minNodes": self.draw.pick((0, 3))}
        return NO_LIMITS | limits

    def edit(self) -> None:
        """One edit of anything."""
        d = self.draw
        match d.pick(("spec", "spec", "spec", "value", "value", "value", "profile", "label", "pod", "pod")):
            case "spec":
                self._change(d)
            case "value":
                name, key = d.pick(d.nodes), d.pick((SLA, SLA, FLAG))
                self._put(name, key, d.pick(("980", "940", "0", "0", "")))
            case "profile":
                namespace = d.pick(d.namespaces)
                self.profiles[namespace] = (above(d.pick((0, 950, 990))),)
                d.add("profile", namespace=namespace, name="x", tolerations=self.profiles[namespace])
            case "label":
                name = d.pick(d.nodes)
                self.labels[name] = d.pick("xy")
                d.add("relabel", name=name, labels={"pool": self.labels[name]})
            case _:
                for _ in range(d.chance.randint(1, 4)):
                    d.pod(d.pick(d.nodes), labels={"app": d.pick("xy")}, native=(above(),))

    def _put(self, name: str, key: str, value: str) -> None:
        self.taints[name][key] = value
        if value:
            self.draw.add("taint", name=name, key=key, value=value)
        else:
            self.draw.add("untaint", name=name, key=key)

    def _change(self, d: Draw) -> None:
        changes: Json = d.pick(
            (
                {"mode": d.pick(QUIET)},
                {"limits": self._limits()},
                {"timing": {"violationGraceSeconds": d.pick((0, 10, 2_592_000))}},
                {"nodeSelector": d.pick((None, None, {"matchLabels": {"pool": d.pick("xy")}}))},
                {"podSelector": d.pick((None, None, {"matchLabels": {"app": d.pick("xy")}}))},
                {"taints": d.pick(([{"key": SLA}], [{"key": SLA}, {"key": FLAG}], [{"key": "*"}]))},
            )
        )
        self.spec = {key: value for key, value in {**self.spec, **changes}.items() if value is not None}
        d.add("edit", name="p", **changes)


def plans(seed: int) -> tuple[Plan, Plan]:
    """With all edits, and with the last state of everything only."""
    edits = Edits(seed)
    d = edits.draw
    d.operators(1)
    for _ in range(d.chance.randint(3, 10)):
        edits.edit()
        d.wait(0.2, d.pick((1.0, 5.0, 40.0)))
    d.wait(5.0, 10.0)
    edits.spec = edits.spec | {"mode": "Enforce", "timing": {"violationGraceSeconds": 0}}
    d.add("edit", name="p", mode="Enforce", timing={"violationGraceSeconds": 0})
    d.settings |= {"calm_seconds": CALM_SECONDS, "lifts": False}
    plan = d.plan()
    return plan, _last(edits, plan)


def _last(edits: Edits, plan: Plan) -> Plan:
    """The same cluster, as it is in the end, before the policy enforces: pods that came to a bad node come late."""
    tainted_at = _tainted_at(plan)
    happenings = []
    for one in plan.happenings:
        if one.what in ("namespace", "node"):
            happenings.append(replace(one, at=0.0))
        elif one.what == "pod":
            bad_at = tainted_at.get(one.given["node"], float("inf"))
            is_late = one.at > 0 and bad_at < one.at + SAME_TIME_SECONDS  # a taint that is there first has no time
            happenings.append(replace(one, at=TAINTED_AT + 4.0 if is_late else 0.0))
    for name, labels in edits.labels.items():
        happenings.append(Happening(0.0, "relabel", {"name": name, "labels": {"pool": labels}}))
    for name, taints in edits.taints.items():
        for key, value in taints.items():
            if value:
                happenings.append(Happening(TAINTED_AT, "taint", {"name": name, "key": key, "value": value}))
    for namespace, tolerations in edits.profiles.items():
        given = {"namespace": namespace, "name": "x", "tolerations": tolerations}
        changed_at = max(
            one.at for one in plan.happenings if one.what == "profile" and one.given["namespace"] == namespace
        )
        is_late = changed_at > max(tainted_at.values(), default=changed_at)
        happenings.append(Happening(TAINTED_AT + 3.0 if is_late else 0.0, "profile", given))
    happenings.append(Happening(0.0, "policy", {"name": "p", "spec": edits.spec | {"mode": "Paused"}}))
    happenings.append(Happening(TAINTED_AT + 1.0, "start", {"name": "a"}))
    happenings.append(Happening(TAINTED_AT + 8.0, "edit", {"name": "p", "mode": "Enforce"}))
    happenings.sort(key=lambda one: one.at)
    return replace(plan, happenings=tuple(happenings), freeze_at=20.0)


def _tainted_at(plan: Plan) -> dict[str, float]:
    """Node -> when one of its taints got another value last."""
    found: dict[str, float] = {}
    values: dict[tuple[str, str], str | None] = {}
    for one in plan.happenings:
        if one.what in ("taint", "untaint"):
            name, key, value = one.given["name"], one.given["key"], one.given.get("value")
            if values.get((name, key)) != value:
                values[name, key], found[name] = value, one.at
    return found


def state_of(world: World) -> State:
    """What the operator of a world has done and holds."""
    leader = world.leader
    assert leader is not None
    assert leader.engine is not None
    engine = leader.engine
    names = sorted(world.store.objects["policies"])
    tripped = tuple((name, bool((found := engine.guard_of(name)) and found[0])) for name in names)
    evicted = tuple(sorted(one.pod.uid for one in world.judges.evictions))
    return State(evicted, tuple(sorted(engine.pending())), tripped, tuple(sorted(engine.full().items())))


def compare(seed: int) -> list[Breach]:
    """How the state after all edits differs from the state after the last alone."""
    first, second = (World(plan).play() for plan in plans(seed))
    one, other = state_of(first), state_of(second)
    if any(tripped for _, tripped in one.guards):
        return []
    return [
        Breach("differential", first.agenda.now, f"{name} after all edits: {mine}; after the last alone: {theirs}")
        for name in ("evicted", "pending", "guards", "full")
        if (mine := getattr(one, name)) != (theirs := getattr(other, name))
    ]
