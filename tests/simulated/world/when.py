"""Pods that have to leave, and when: the rules of docs/concepts.md again, for objects as the API server stores them.

Nothing of the engine is used. Times are seconds since 1970. What an operator cannot have known for certain gives a
deadline two ends: it is due not before ``early``, and not later than ``late``.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

Json = Mapping[str, Any]
NEVER = float("inf")
COMPARISONS = ("In", "NotIn", "Gt", "Lt", "SemverGt", "SemverLt", "SemverEq")
CONDITION = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
LAG, CLOCKS = 1.0, 5.0  # how long a stream takes; and by how much clocks of writers and operators may differ
STEPS = 16  # maximum number of values kept of a taint; beyond, deadlines may be later by a seventh of the span
DERIVED = "from"  # of derived taints: policies read their values from the node
DEVICE_SECONDS = 2.0  # seconds after the binding of a pod in which no device evicts it


class Taint(NamedTuple):
    key: str
    value: str
    effect: str
    added: float | None
    by: str = ""
    """The rule that adds it to a device, which may have several of one key and effect; or ``DERIVED``."""


class Toleration(NamedTuple):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    seconds: int | None = None
    grace: int | None = None
    values: tuple[str, ...] = ()


def moment(text: str | None) -> float | None:
    return None if text is None else datetime.fromisoformat(text).timestamp()


def toleration_of(one: Json) -> Toleration:
    times = one.get("tolerationSeconds"), one.get("violationGraceSeconds")
    what = one.get("key", ""), one.get("operator") or "Equal", one.get("value", ""), one.get("effect", "")
    return Toleration(*what, *times, tuple(one.get("values", ())))


def tolerations_in(entries: Iterable[Json]) -> tuple[Toleration, ...]:
    return tuple(map(toleration_of, entries))


def valid(entries: Iterable[Json]) -> tuple[Toleration, ...]:
    """Those of an annotation or a profile that count."""
    return tuple(one for one in tolerations_in(entries) if is_valid(one))


class Node:
    """A node; or a device, which has taints as well."""

    def __init__(self, obj: Json) -> None:
        meta, spec, status = obj["metadata"], obj.get("spec", {}), obj.get("status", {})
        self.uid, self.labels = meta.get("uid", ""), meta.get("labels") or {}
        self.marks = meta.get("annotations") or {}
        self.is_absent = obj.get("isAbsent", False)
        """True if this is a device that is in no slice."""
        self.taints = [
            Taint(one["key"], one.get("value", ""), one["effect"], moment(one.get("timeAdded")), one.get("by", ""))
            for one in spec.get("taints") or ()
        ]
        conditions = {one["type"]: one for one in status.get("conditions", ())}
        self.carries: Json = {"nodeInfo": status.get("nodeInfo", {}), "label": self.labels, "annotation": self.marks}
        self.carries |= {"condition": conditions}
        """Values that policies may read, by source and name."""
        self.zone = tuple(self.labels.get(f"topology.kubernetes.io/{part}", "") for part in ("region", "zone"))


class Pod:
    def __init__(self, obj: Json) -> None:
        meta, spec, status = obj["metadata"], obj.get("spec", {}), obj.get("status", {})
        self.uid, self.namespace = meta["uid"], meta["namespace"]
        self.labels, self.marks = meta.get("labels") or {}, meta.get("annotations") or {}
        self.created = moment(meta.get("creationTimestamp")) or 0.0
        self.stops = moment(meta.get("deletionTimestamp"))
        self.node, self.priority = spec.get("nodeName") or "", spec.get("priority") or 0
        self.grace = spec.get("terminationGracePeriodSeconds", 30)
        self.native = tolerations_in(spec.get("tolerations") or ())
        owners = [one for one in meta.get("ownerReferences") or () if one.get("controller")]
        self.owner: Json | None = owners[0] if owners else None
        self.phase = status.get("phase", "Running")
        conditions = {one["type"]: one for one in status.get("conditions") or ()}
        self.ready = conditions.get("Ready", {}).get("status") == "True"
        self.bound = moment(conditions.get("PodScheduled", {}).get("lastTransitionTime"))
        try:
            given = json.loads(self.marks.get("taintwarden.io/tolerations", "[]"))
        except ValueError:
            given = []
        self.extended = valid(given)

    @property
    def is_there(self) -> bool:
        """True if the pod can be evicted: it is on a node, runs, and does not stop."""
        is_mirror = "kubernetes.io/config.mirror" in self.marks
        return bool(self.node) and self.stops is None and self.phase in ("Running", "Pending") and not is_mirror


class Rules:
    """A policy with the documented defaults."""

    def __init__(self, obj: Json) -> None:
        meta, spec = obj["metadata"], obj["spec"]
        timing, eviction, exclude = spec.get("timing", {}), spec.get("eviction", {}), spec.get("exclude", {})
        self.spec, self.name, self.uid = spec, meta["name"], meta.get("uid", "")
        self.rank = (moment(meta.get("creationTimestamp")) or 0.0, self.name)
        self.enforces = spec.get("mode", "Enforce") == "Enforce" and not spec.get("paused")
        self.acts = spec.get("mode") != "Paused" and not spec.get("paused")
        self.taints = [(one["key"], tuple(one.get("effects", ("NoExecute",)))) for one in spec.get("taints", ())]
        self.sources = [
            (one["key"], source, one.get("effects", ("NoExecute",)))
            for one in spec.get("taints", ())
            for source in one.get("from", {}).items()
        ]
        self.devices = [(one["key"], tuple(one.get("effects", ("NoExecute",)))) for one in spec.get("devices", ())]
        self.nodes, self.pods, self.namespaces = (
            (spec.get(name) or {}).get("matchLabels", {})
            for name in ("nodeSelector", "podSelector", "namespaceSelector")
        )
        self.exclude = {"namespaces": ["kube-system"], "priorityAtLeast": 2_000_000_000, "daemonSets": True} | exclude
        self.grace = timing.get("violationGraceSeconds", 0)
        self.stabilization = timing.get("stabilizationWindowSeconds", 0)
        self.is_upstream = timing.get("tolerationSecondsMode") == "Kubernetes"
        self.holds_invalid = timing.get("onInvalidValue", "Hold") == "Hold"
        self.method, self.budget_seconds = eviction.get("method", "Evict"), eviction.get("pdbTimeoutSeconds", 600)
        self.grace_given = eviction.get("gracePeriodSeconds")
        self.order = eviction.get("order", ("Priority", "TopologySpread"))
        self.reclaim = spec["reclaim"]["deadlineSeconds"] if "reclaim" in spec else None
        self.reset = (meta.get("annotations") or {}).get("taintwarden.io/guard-reset")
        self.limits: dict[str, Any] = spec.get("limits", {})
        record = obj.get("status", {}).get("guard")
        self.reserved = None if record is None else {one["uid"] for one in record.get("reserved", ())}
        """UIDs of the evictions that the stored record of its guard has; None: there is none."""
        places = obj.get("status", {}).get("places")
        self.places = None if places is None else {one["node"]: one["since"] for one in places.get("nodes", ())}
        """Node with a place -> the time when it took that; None: not known."""


def matches(selector: Json, labels: Json) -> bool:
    return all(labels.get(name) == value for name, value in selector.items())


def specificity(selected: Sequence[tuple[str, tuple[str, ...]]], taint: Taint) -> int:
    """How specifically a taint is selected: an exact key, a prefix, any; 0: not at all."""
    found = 0
    for key, effects in selected:
        if taint.effect in effects:
            if key == taint.key:
                found = 1_000
            elif taint.by != DERIVED and (key == "*" or (key.endswith("/*") and taint.key.startswith(key[:-1]))):
                found = max(found, len(key))
    return found


def duration(text: str) -> float:
    found = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", text, re.ASCII)
    parts = [0 if one is None else int(one) for one in found.groups()] if found else [0, 0, 0]
    return parts[0] * 3600.0 + parts[1] * 60.0 + parts[2]


def selects(rules: Rules, pod: Pod, node: Node, namespace: Json | None) -> bool:
    """Return True if a policy could evict a pod that is on this node."""
    exclude, marks = rules.exclude, pod.marks
    bound = exclude["priorityAtLeast"]
    if pod.namespace in exclude["namespaces"] or (bound is not None and pod.priority >= bound):
        return False
    if exclude["daemonSets"] and pod.owner is not None and pod.owner["kind"] == "DaemonSet":
        return False
    if exclude.get("respectDoNotEvict", True) and "true" in (
        marks.get("taintwarden.io/do-not-evict"),
        node.marks.get("taintwarden.io/do-not-evict"),
    ):
        return False
    if exclude.get("respectDoNotDisrupt", True) and (
        marks.get("karpenter.sh/do-not-disrupt") == "true"
        or marks.get("cluster-autoscaler.kubernetes.io/safe-to-evict") == "false"
    ):
        return False
    if exclude.get("bare") and pod.owner is None:
        return False
    if rules.namespaces and (namespace is None or not matches(rules.namespaces, namespace)):
        return False
    return matches(rules.nodes, node.labels) and matches(rules.pods, pod.labels)


# -- tolerations ------------------------------------------------------------------------------------------------------


def integer(text: str) -> int | None:
    """A canonical 64-bit integer."""
    number = int(text) if re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text, re.ASCII) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


IDENTIFIERS = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
VERSION = re.compile(rf"v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?(?:-({IDENTIFIERS}))?(?:\+({IDENTIFIERS}))?", re.ASCII)


def version(text: str) -> tuple[Any, ...] | None:
    """A version as blang/semver's ``ParseTolerant`` reads it, as a key that sorts by precedence."""
    found = VERSION.fullmatch(text.strip(" \t\n\v\f\r\x85\xa0"))
    if found is None or (found[3] is None and (found[4] or found[5])):
        return None
    numbers = tuple(int(found[part] or 0) for part in (1, 2, 3))
    before = [(0, int(one), "") if one.isdigit() else (1, 0, one) for one in found[4].split(".")] if found[4] else []
    return (*numbers, not before, tuple(before))


def is_valid(toleration: Toleration) -> bool:
    """Return True if an entry of an annotation or a profile counts."""
    if toleration.operator in ("In", "NotIn"):
        return bool(toleration.values)
    if toleration.operator in ("Gt", "Lt"):
        return integer(toleration.value) is not None
    return not toleration.operator.startswith("Semver") or version(toleration.value) is not None


def holds(toleration: Toleration, taint: Taint) -> bool | None:
    """Return True if a toleration tolerates a taint, which is on the left; None: a comparison that cannot be made."""
    operator, value = toleration.operator, taint.value
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if operator == "Exists":
        return True
    if operator == "Equal":
        return toleration.key == taint.key and toleration.value == value
    if operator in ("In", "NotIn"):
        return (value in toleration.values) is (operator == "In")
    read = integer if operator in ("Gt", "Lt") else version
    mine, wanted = read(value), read(toleration.value)
    if operator not in COMPARISONS or wanted is None:
        return False
    if mine is None:
        return None
    if operator.endswith("Eq"):
        return mine == wanted
    return mine > wanted if operator.endswith("Gt") else mine < wanted


def tolerations_for(key: str, native: tuple[Toleration, ...], extended: Iterable[Toleration]) -> tuple[Toleration, ...]:
    """Extended tolerations that name a key replace the native ones for it."""
    speaking = tuple(one for one in extended if one.key in ("", key))
    return speaking if any(one.key == key for one in speaking) else (*native, *speaking)


@lru_cache(maxsize=100_000)
def judged(tolerations: tuple[Toleration, ...], taint: Taint) -> tuple[str, Toleration | None]:
    """``tolerated``, by which toleration; ``violated``; or ``invalid``."""
    invalid = False
    for toleration in tolerations:
        answer = holds(toleration, taint)
        if answer:
            return "tolerated", toleration
        invalid |= answer is None
    return ("invalid" if invalid else "violated"), None


# -- deadlines --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Step:
    """State of one taint from a moment on; without a taint it was absent."""

    at: float
    seen: float
    """When an operator has known it at the latest."""
    sure: bool
    """True if an operator is known to have seen it, and to have stored it for its successor."""
    taint: Taint | None


@dataclass(slots=True)
class Due:
    """One taint by which a policy wants a pod to leave."""

    taint: Taint
    early: float
    late: float
    """Infinite while it cannot be said that the pod has to leave."""
    added: tuple[float, float]
    """From when the taint counts, at the earliest and at the latest."""


def due(
    rules: Rules, tolerations: tuple[Toleration, ...], steps: Sequence[Step], bound: tuple[float, float]
) -> Due | None:
    """When a pod has to leave by the taint of the last step. ``bound``: when it was bound, earliest and latest.

    Operators know all steps; or of those that are not sure what makes the deadline as early or as late as can be.
    """
    taint = steps[-1].taint
    assert taint is not None
    kinds = ["absent" if one.taint is None else judged(tolerations, one.taint)[0] for one in steps]
    found = []
    for unknown in ((), ("absent", "tolerated"), ("violated",)):
        named = [*zip(steps, kinds, strict=True)]
        known = [(one, kind) for one, kind in named if one.sure or kind not in unknown or one is steps[-1]]
        run = [one for one, _ in known]
        new = (_as_new(run, index, known[index][1]) for index in range(1, len(run)))
        found += [_reading(rules, tolerations, one, bound) for one in (run, *filter(None, new))]
    times = [one for one in found if one is not None]
    if not times:
        return None
    late = max(one[1] for one in times) if None not in found else NEVER
    added = min(one[2] for one in times), max(one[3] for one in times)
    return Due(taint, min(one[0] for one in times), late, added)


def _as_new(steps: Sequence[Step], index: int, kind: str) -> list[Step]:
    """The steps as if the taint had been added again at its time, with a value that is not known; none: it was not.

    That is so after a gap, if the time is later than all that was recorded; but where nothing else changed, the time is
    not recorded, and the next process compares it.
    """
    before, step, one = steps[index - 1].taint, steps[index], steps[index].taint
    if before is None or one is None or one.added is None or one.added == before.added:
        return []
    is_after_gap = step.seen > step.at + LAG or before.value == one.value
    recorded = max(_recorded(steps[:index]), default=-NEVER)
    ahead = 120.0 if before.value == one.value else CLOCKS  # it may have passed at the next restart
    if not is_after_gap or not recorded - CLOCKS < one.added <= step.seen + ahead:
        return []
    first = Step(one.added, max(step.seen, one.added + 1.0), True, before._replace(added=one.added))
    return [*([first] if kind != "invalid" else ()), *steps[index:]]


def _recorded(steps: Iterable[Step]) -> Iterator[float]:
    """The times that are surely recorded of a taint: of its values, and its own ones that were not in the future."""
    value: str | None = None
    for step in steps:
        if step.sure and step.taint is not None:
            added = step.taint.added
            if step.taint.value != value:
                yield step.at if value is not None or added is None else min(step.at, added)
            if added is not None and added <= step.at:
                yield added
            value = step.taint.value


def _reading(
    rules: Rules, tolerations: tuple[Toleration, ...], steps: list[Step], bound: tuple[float, float]
) -> tuple[float, float, float, float] | None:
    """(early, late, added early, added late) for operators that know these steps.

    A taint counts from the later of its ``timeAdded`` and when the node was last seen without it; ``timeAdded`` alone
    counts where no operator was there. A time in the future is none, and so is one that is older than a record.
    """
    begin = max((index + 1 for index, one in enumerate(steps) if one.taint is None), default=0)
    was_seen_without = begin > 0 and steps[begin - 1].sure and steps[begin].seen <= steps[begin].at + LAG
    steps = steps[begin:]
    taints = [one.taint for one in steps if one.taint is not None]
    first_known = next((index for index, one in enumerate(steps) if one.sure), len(steps))
    stated = [one.added for one in taints[: first_known + 1] if one.added is not None and not was_seen_without]
    added = [min([steps[0].at, *stated]), steps[0].seen]
    known: list[tuple[str, Toleration | None]] = []
    for taint in taints:
        kind, used = judged(tolerations, taint)
        if kind == "invalid" and rules.holds_invalid:
            kind, used = known[-1] if known else ("tolerated", None)
        known.append((kind, used))
    kind, used = known[-1]
    since = added
    if kind == "tolerated":
        if used is None or used.seconds is None or (used.operator in COMPARISONS and not rules.is_upstream):
            return None
        seconds = max(0, used.seconds)
    else:
        run = next((index for index in range(len(known) - 1, -1, -1) if known[index][0] == "tolerated"), -1) + 1
        if run:
            since = [steps[run].at, max(steps[run].seen, added[1])]
        seconds = max(_grace(rules, tolerations, taints[-1]), rules.stabilization)
    early, late = max(since[0], bound[0]) + seconds, max(since[1], bound[1]) + seconds
    merged = (late - steps[0].at) / 7 if len(steps) > STEPS else 0.0
    return early, late + merged, added[0], added[1]


def _grace(rules: Rules, tolerations: Sequence[Toleration], taint: Taint) -> int:
    for one in tolerations:
        if one.operator in COMPARISONS and one.key == taint.key and one.effect in ("", taint.effect):
            own = one.grace if one.grace is not None else None if rules.is_upstream else one.seconds
            return rules.grace if own is None else max(0, own)
    return rules.grace


State = tuple[float, float, bool, Node | None]
"""A node from a moment on: (at, when an operator has seen it at the latest, whether it surely has, node)."""


def carried_over(states: Sequence[State]) -> list[State]:
    """The states of a device as their times count: drivers replace slices.

    In no slice it has only taints of rules; but one that comes back with the same time was never gone.
    """
    found: list[State] = []
    for index, (at, seen, sure, node) in enumerate(states):
        before = found[-1][3] if found else None
        if node is not None and node.is_absent and before is not None:
            later = next((one.taints for *_, one in states[index:] if one is not None and not one.is_absent), [])
            back = {(one.key, one.effect, one.added) for one in later if not one.by}
            kept = copy(node)
            kept.taints = [*node.taints, *(t for t in before.taints if not t.by and (t.key, t.effect, t.added) in back)]
            found.append((at, seen, sure, kept))
        else:
            found.append((at, seen, sure, node))
    return found


def derived(states: Sequence[State], policies: Iterable[Rules]) -> Sequence[State]:
    """The states of a node with the taints that policies read from it. Of two sources the older policy's counts."""
    sources: dict[str, tuple[str, str]] = {}
    for rules in sorted((one for one in policies if one.sources), key=lambda one: one.rank):
        for key, source, effects in rules.sources:
            if sources.setdefault(key, source) == source:
                states = [(*rest, node and _with(node, key, source, effects)) for *rest, node in states]
    return states


def _with(node: Node, key: str, source: tuple[str, str], effects: Iterable[str]) -> Node:
    found, since = node.carries[source[0]].get(source[1]), None
    if isinstance(found, Mapping):  # a condition
        found, since = found["status"], moment(found.get("lastTransitionTime"))
    if not found:
        return node
    value = re.sub(r"[^\w.+-]", "_", found.split("://")[-1])
    new, taken = copy(node), {(one.key, one.effect) for one in node.taints}
    new.taints = node.taints + [Taint(key, value, one, since, DERIVED) for one in effects if (key, one) not in taken]
    return new


def steps_of(states: Sequence[State], taint: Taint) -> list[Step]:
    """The steps of a taint, without its value, in the states of its node, the oldest first."""
    names = [(key, taint.effect, taint.by) for key in (CONDITION if taint.key in CONDITION else (taint.key,))]
    found: list[Step] = []
    for at, seen, sure, node in states:
        one = next((t for t in (node.taints if node else ()) if (t.key, t.effect, t.by) in names), None)
        if found and found[-1].taint == one:
            if sure and not found[-1].sure:
                found[-1].sure, found[-1].seen = True, max(found[-1].seen, seen)
        else:
            found.append(Step(at, seen, sure, one))
    return found


def demands(
    policies: Sequence[Rules],
    pod: Pod,
    node: Node,
    namespace: Json | None,
    extended: tuple[Toleration, ...],
    states: Sequence[State],
    bound: tuple[float, float],
    claim: tuple[Toleration, ...] | None = None,
    *,
    paused: bool = False,
) -> Iterator[tuple[Rules, Due]]:
    """Demands of policies for a pod on ``node`` with these states; or the states of a device of its ``claim``.

    Of several policies that select a taint the one with the most specific key acts, then the oldest, then by name.
    ``paused``: what those that are paused would demand if they acted.
    """
    states = derived(states, policies) if claim is None else states
    of = states[-1][3]
    for taint in of.taints if of is not None else ():
        found = []
        for rules in policies:
            how = specificity(rules.taints if claim is None else rules.devices, taint)
            if how and selects(rules, pod, node, namespace):
                found.append((-how, *rules.rank, rules))
        rules = min(found, key=lambda one: one[:3])[-1] if found else None
        is_unknown = taint.by == DERIVED and not any(one.key == taint.key for one in (*pod.native, *extended))
        if rules is None or rules.acts is paused or is_unknown:
            continue
        tolerations = tolerations_for(taint.key, pod.native if claim is None else claim, extended)
        one = due(rules, tolerations, steps_of(states, taint), bound)
        if one is None:
            continue
        if rules.reclaim is not None and one.late < NEVER:
            left = rules.reclaim - (pod.grace if rules.grace_given is None else rules.grace_given)
            one.early, one.late = (
                min(time, max(added + left, at))
                for time, added, at in zip((one.early, one.late), one.added, bound, strict=True)
            )
        opted = rules.exclude.get("respectDoNotDisrupt", True) and pod.marks.get("karpenter.sh/do-not-disrupt")
        stays = max(duration(opted or ""), DEVICE_SECONDS if claim is not None else 0.0)
        one.early, one.late = max(one.early, bound[0] + stays), max(one.late, bound[1] + stays)
        yield rules, one
