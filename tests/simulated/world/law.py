"""Who has to leave, and when, by the sentences of docs/concepts.md and docs/policies.md, without code of the engine.

A *scene* is what is asked: the truth at a moment, or what a replica was told by then. A *presence* is one taint (key
and effect) on one node, from when it was put on to now, with its values. Times are seconds since 1970.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Protocol

from simulated.world.objects import Json, Namespace, Node, Pod, Policy, Profile, Taint, Toleration

NEVER = float("inf")
COMPARISONS = ("In", "NotIn", "Gt", "Lt", "SemverGt", "SemverLt", "SemverEq")
NO_EXECUTE = ("NoExecute",)
CONDITIONS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
DEFAULT_LIMITS: Json = {
    "evictionsPerSecond": 10.0,
    "burst": 20,
    "perWorkload": {"maxUnavailable": "25%"},
    "zoneHealth": {},
    "guard": {},
    "bounce": {},
}
DEVICE_SECONDS = 2.0
"""For so long after its binding no device evicts a pod."""
DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


class Scene(Protocol):
    """What is asked."""

    def node(self, name: str) -> Node | None: ...

    def namespace(self, name: str) -> Namespace | None: ...

    def policies(self) -> Iterable[Policy]: ...

    def profiles(self, namespace: str) -> Iterable[Profile]: ...


# -- policies ---------------------------------------------------------------------------------------------------------


class Rules:
    """A policy's spec with its defaults, in plain fields."""

    def __init__(self, policy: Policy) -> None:
        spec = policy.spec
        timing, eviction, exclude = spec.get("timing", {}), spec.get("eviction", {}), spec.get("exclude", {})
        self.name = policy.name
        self.uid = policy.uid
        self.rank = (policy.created_at, policy.name)
        self.mode: str = spec.get("mode", "Enforce")
        self.taints = [(one["key"], tuple(one.get("effects", NO_EXECUTE))) for one in spec.get("taints", ())]
        self.devices = [(one["key"], tuple(one.get("effects", NO_EXECUTE))) for one in spec.get("devices", ())]
        self.nodes = _labels(spec.get("nodeSelector"))
        self.pods = _labels(spec.get("podSelector"))
        self.namespaces = _labels(spec.get("namespaceSelector"))
        self.left_out: tuple[str, ...] = tuple(exclude.get("namespaces", ("kube-system",)))
        self.priority_at_least: int = exclude.get("priorityAtLeast", 2_000_000_000)
        self.leaves_daemon_sets: bool = exclude.get("daemonSets", True)
        self.heeds_do_not_disrupt: bool = exclude.get("respectDoNotDisrupt", True)
        self.heeds_do_not_evict: bool = exclude.get("respectDoNotEvict", True)
        self.grace: int = timing.get("violationGraceSeconds", 0)
        self.window: int = timing.get("stabilizationWindowSeconds", 0)
        self.is_upstream: bool = timing.get("tolerationSecondsMode", "AfterViolation") == "Kubernetes"
        self.holds_invalid: bool = timing.get("onInvalidValue", "Hold") == "Hold"
        self.method: str = eviction.get("method", "Evict")
        self.budget_seconds: int = eviction.get("pdbTimeoutSeconds", 600)
        self.grace_given: int | None = eviction.get("gracePeriodSeconds")
        self.reclaim: int | None = spec["reclaim"]["deadlineSeconds"] if "reclaim" in spec else None
        limits = spec.get("limits", {})
        base: Json = {} if limits.get("base") == "None" else DEFAULT_LIMITS
        self.limits: Json = base | {name: value for name, value in limits.items() if name != "base"}
        self.has_windows = bool(spec.get("windows"))
        self.specificities: dict[tuple[str, str, bool], int] = {}
        """Key, effect and whether it is a device's -> how specifically such a taint is selected, if that was asked."""

    @property
    def is_free(self) -> bool:
        """Whether no limit of its own can delay its evictions."""
        return self.reclaim is not None or not (self.limits or self.has_windows)

    @property
    def guard(self) -> Json | None:
        """The settings of a guard that halts; a policy with ``reclaim`` has none."""
        guard: Json | None = self.limits.get("guard")
        if guard is None or self.reclaim is not None or guard.get("action", "Halt") != "Halt":
            return None
        return {"maxPercent": 20, "windowSeconds": 600, "settleSeconds": 2, "minPods": None} | guard

    def relevant(self) -> tuple[Any, ...]:
        """The parts of the spec by which a pod may have to leave that did not have to before."""
        return (
            self.mode,
            self.taints,
            self.devices,
            self.nodes,
            self.pods,
            self.namespaces,
            self.left_out,
            self.priority_at_least,
            self.leaves_daemon_sets,
            self.heeds_do_not_disrupt,
            self.heeds_do_not_evict,
            self.grace,
            self.window,
            self.is_upstream,
            self.holds_invalid,
            self.reclaim,
        )


def guard_limit(guard: Json, population: int) -> int:
    """How many of so many pods may be evicted in one window: the table of docs/concepts.md."""
    least = guard["minPods"]
    if least is None:
        least = min(50, max(5, population // 2))
    return max(int(least), population * int(guard["maxPercent"]) // 100)


def _labels(selector: Json | None) -> Mapping[str, str]:
    labels: Mapping[str, str] = (selector or {}).get("matchLabels", {})
    return labels


_known: dict[int, tuple[Json, Rules]] = {}


def rules_of(policy: Policy) -> Rules:
    """The rules of a policy. A spec is never changed in place, so it is read once."""
    known = _known.get(id(policy.spec))
    if known is None or known[0] is not policy.spec or known[1].name != policy.name or known[1].uid != policy.uid:
        if len(_known) > 10_000:
            _known.clear()
        known = _known[id(policy.spec)] = (policy.spec, Rules(policy))
    return known[1]


def specificity(rules: Rules, taint: Taint) -> int:
    """How specifically a policy selects a taint; 0: not at all."""
    what = (taint.key, taint.effect, bool(taint.device))
    found = rules.specificities.get(what)
    if found is None:
        found = rules.specificities[what] = _specificity(rules, taint)
    return found


def _specificity(rules: Rules, taint: Taint) -> int:
    found = 0
    for key, effects in rules.devices if taint.device else rules.taints:
        if taint.effect not in effects:
            continue
        if key == taint.key:
            found = max(found, 1_000)
        elif key == "*":
            found = max(found, 1)
        elif key.endswith("/*") and taint.key.startswith(key[:-1]):
            found = max(found, 1 + len(key))
    return found


def matches(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether labels satisfy ``matchLabels``."""
    return all(labels.get(name) == value for name, value in selector.items())


def opts_out(rules: Rules, pod: Pod, wall: float) -> str:
    """The annotation by which a pod stays. A duration protects a pod until it is so long on its node."""
    if rules.heeds_do_not_evict and pod.marks.get("taintwarden.io/do-not-evict") == "true":
        return "do-not-evict"
    if not rules.heeds_do_not_disrupt:
        return ""
    if pod.marks.get("cluster-autoscaler.kubernetes.io/safe-to-evict") == "false":
        return "safe-to-evict"
    asked = pod.marks.get("karpenter.sh/do-not-disrupt", "")
    if asked == "true" or wall < protected_until(rules, pod):
        return "do-not-disrupt"
    return ""


def protected_until(rules: Rules, pod: Pod) -> float:
    """When the time ends for which a pod that is on a node opts out."""
    asked = pod.marks.get("karpenter.sh/do-not-disrupt", "")
    return pod.bound_at + duration(asked) if rules.heeds_do_not_disrupt else 0.0


def duration(text: str) -> float:
    """Seconds of a duration such as ``4h`` or ``1h30m``; 0 for anything else."""
    found = DURATION.fullmatch(text)
    if not text or found is None:
        return 0.0
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return hours * 3600.0 + minutes * 60.0 + seconds


def selects(rules: Rules, scene: Scene, pod: Pod, wall: float, *, whatever_it_asks: bool = False) -> bool:
    """Whether a policy may evict a pod at all, wherever it is. ``whatever_it_asks``: annotations do not count."""
    if pod.namespace in rules.left_out or pod.priority >= rules.priority_at_least:
        return False
    if rules.leaves_daemon_sets and pod.owner is not None and pod.owner.kind == "DaemonSet":
        return False
    if not matches(rules.pods, pod.labels) or (not whatever_it_asks and opts_out(rules, pod, wall)):
        return False
    if rules.namespaces:
        namespace = scene.namespace(pod.namespace)
        return namespace is not None and matches(rules.namespaces, namespace.labels)
    return True


def acting(scene: Scene, pod: Pod, node: Node, taint: Taint, wall: float) -> Rules | None:
    """The policy that acts on a taint for a pod: the most specific key, then the oldest, then the name."""
    best: Rules | None = None
    best_rank: tuple[Any, ...] = ()
    for policy in scene.policies():
        rules = rules_of(policy)
        how = specificity(rules, taint)
        if not how or not matches(rules.nodes, node.labels) or not selects(rules, scene, pod, wall):
            continue
        rank = (-how, *rules.rank)
        if best is None or rank < best_rank:
            best, best_rank = rules, rank
    return best


# -- tolerations ------------------------------------------------------------------------------------------------------


def integer(text: str) -> int | None:
    """A canonical 64-bit integer."""
    if not re.fullmatch(r"0|-?[1-9][0-9]{0,18}", text, re.ASCII):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def release(text: str) -> tuple[int, ...] | None:
    """A version without pre-release, which is all that worlds write."""
    found = re.fullmatch(r"v?(\d+)\.(\d+)\.(\d+)", text, re.ASCII)
    return tuple(map(int, found.groups())) if found else None


def is_valid(toleration: Toleration) -> bool:
    """Whether an entry of an annotation or a profile counts."""
    if toleration.operator in ("In", "NotIn"):
        return bool(toleration.values)
    if toleration.operator in ("Gt", "Lt"):
        return integer(toleration.value) is not None
    return not toleration.operator.startswith("Semver") or release(toleration.value) is not None


def holds(toleration: Toleration, key: str, effect: str, value: str) -> bool | None:
    """Whether a toleration tolerates a taint; None: a comparison that cannot be made."""
    if toleration.effect not in ("", effect) or toleration.key not in ("", key):
        return False
    operator = toleration.operator
    if operator == "Exists":
        return True
    if operator in ("", "Equal"):
        return toleration.key == key and toleration.value == value
    if operator in ("In", "NotIn"):
        return (value in toleration.values) is (operator == "In")
    if operator in ("Gt", "Lt"):
        ours, theirs = integer(value), integer(toleration.value)
        if ours is None or theirs is None:
            return None if theirs is not None else False
        return ours > theirs if operator == "Gt" else ours < theirs
    mine, wanted = release(value), release(toleration.value)
    if mine is None or wanted is None:
        return None if wanted is not None else False
    return {"SemverGt": mine > wanted, "SemverLt": mine < wanted, "SemverEq": mine == wanted}[operator]


def tolerations_of(scene: Scene, pod: Pod, taint: Taint) -> tuple[Toleration, ...]:
    """The tolerations of a pod that count for a taint: extended ones that name its key replace the native ones.

    For a taint of a device these are the ones of the claim.
    """
    key = taint.key
    extended = [one for one in pod.extended or () if is_valid(one)]
    for profile in sorted(scene.profiles(pod.namespace), key=lambda one: one.name):
        if matches(profile.selector, pod.labels):
            extended += [one for one in profile.tolerations if is_valid(one)]
    speaking = [one for one in extended if one.key in ("", key)]
    if any(one.key == key for one in speaking):
        return tuple(speaking)
    return (*(taint.native if taint.device else pod.native), *speaking)


# -- deadlines --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Presence:
    """One taint on one node, oldest value first."""

    taint: Taint
    values: list[tuple[float, str]]
    written: tuple[float, ...] = ()
    """Every ``timeAdded`` that it had and that counts."""

    @property
    def added(self) -> float:
        """Since when it is there, or an earlier time that a writer stated."""
        return min([self.values[0][0], *self.written])


def presence_of(states: Sequence[tuple[float, Node]], taint: Taint) -> Presence:
    """The presence of a taint of the last of ``states``, which are states of one node in order, with their times.

    A device that is in no slice for a while may come back with the same taint: then its ``timeAdded`` is the same, or
    its driver was seen to renew it.
    ``not-ready`` and ``unreachable`` are one condition: node-lifecycle-controller swaps the taints, and the built-in
    controller keeps the first timer of a pod.
    """
    values: list[tuple[float, str]] = []
    written: list[float] = []
    keys = CONDITIONS if taint.key in CONDITIONS else (taint.key,)
    later, is_bridged = taint, False
    for index in range(len(states) - 1, -1, -1):
        at, node = states[index]
        found = next((one for one in node.taints if one.key in keys and _is_same(one, taint)), None)
        if found is None and taint.device in node.unpublished and not taint.rule:
            is_bridged = True
            continue
        if found is None or (is_bridged and found.added != later.added and not _is_renewed(states[: index + 1], taint)):
            break
        later, is_bridged = found, False
        if values and values[-1][1] == found.value:
            values.pop()
        values.append((at, found.value))
        if found.added is not None:
            written.append(found.added)
    return Presence(taint, values[::-1], tuple(written))


def _is_renewed(states: Sequence[tuple[float, Node]], taint: Taint) -> bool:
    """Whether the writer of a taint gave it another ``timeAdded`` although its value stayed: then that says nothing."""
    found = [
        next((one for one in node.taints if one.key == taint.key and _is_same(one, taint)), None) for _, node in states
    ]
    return any(
        one is not None and other is not None and one.value == other.value and one.added != other.added
        for one, other in pairwise(found)
    )


def _is_same(one: Taint, other: Taint) -> bool:
    return (one.effect, one.device, one.rule) == (other.effect, other.device, other.rule)


@dataclass(slots=True)
class Demand:
    """One taint by which one policy wants a pod to leave."""

    rules: Rules
    taint: Taint
    due: float
    since: float
    """Since when it is like that: the addition of the taint, or the value."""
    met: float
    """The same, whatever a writer stated: before that, pods that came to the node did not meet it."""
    hard: float = NEVER
    """When the node is removed (``reclaim``)."""


def demands(
    scene: Scene,
    pod: Pod,
    node: Node,
    states: Sequence[tuple[float, Node]],
    bound_at: float,
    wall: float,
    *,
    written: bool = True,
) -> Iterator[Demand]:
    """What policies demand of a pod on ``node``, the last of ``states``; those in mode Paused demand nothing.

    ``written``: whether a ``timeAdded`` before a state's own time counts.
    """
    for taint in node.taints:
        rules = acting(scene, pod, node, taint, wall)
        if rules is None or rules.mode == "Paused":
            continue
        presence = presence_of(states, taint)
        presence.written = presence.written if written else ()
        found = _demand(rules, tolerations_of(scene, pod, taint), presence, bound_at)
        if found is None:
            continue
        due, since = found
        demand = Demand(rules, taint, due, since, max(since, presence.values[0][0]))
        if rules.reclaim is not None:
            grace = pod.grace if rules.grace_given is None else rules.grace_given
            demand.hard = presence.added + rules.reclaim
            demand.due = min(due, max(presence.added, demand.hard - grace, bound_at))
        demand.due = max(demand.due, protected_until(rules, pod))
        if taint.device:
            demand.due = max(demand.due, pod.bound_at + DEVICE_SECONDS)
        yield demand


def _demand(
    rules: Rules, tolerations: tuple[Toleration, ...], presence: Presence, bound_at: float
) -> tuple[float, float] | None:
    """(due, since), None: the taint does not make the pod leave."""
    key, effect = presence.taint.key, presence.taint.effect
    steps = [(at, *_judged(tolerations, key, effect, value)) for at, value in presence.values]
    if rules.holds_invalid:  # an invalid value counts as the one before it; before all, as tolerated for ever
        known: list[tuple[float, str, Toleration | None]] = []
        for at, kind, used in steps:
            before = known[-1][1:] if known else ("tolerated", None)
            known.append((at, *(before if kind == "invalid" else (kind, used))))
        steps = known
    _, kind, used = steps[-1]
    if kind == "tolerated":
        after_violation = used is not None and used.operator in COMPARISONS and not rules.is_upstream
        if used is None or used.seconds is None or after_violation:
            return None
        return max(presence.added, bound_at) + max(0, used.seconds), presence.added
    since = presence.added
    for index in range(len(steps) - 2, -1, -1):
        if steps[index][1] == "tolerated":
            since = steps[index + 1][0]
            break
    return max(since, bound_at) + max(_grace(rules, tolerations, key, effect), rules.window), since


@lru_cache(maxsize=100_000)
def _judged(tolerations: tuple[Toleration, ...], key: str, effect: str, value: str) -> tuple[str, Toleration | None]:
    invalid = False
    for toleration in tolerations:
        answer = holds(toleration, key, effect, value)
        if answer:
            return "tolerated", toleration
        invalid |= answer is None
    return ("invalid" if invalid else "violated"), None


def _grace(rules: Rules, tolerations: Sequence[Toleration], key: str, effect: str) -> int:
    for one in tolerations:
        if one.operator in COMPARISONS and one.key in ("", key) and one.effect in ("", effect):
            own = one.grace if one.grace is not None else None if rules.is_upstream else one.seconds
            return rules.grace if own is None else max(0, own)
    return rules.grace


def tolerates(scene: Scene, pod: Pod, taint: Taint) -> bool:
    """Whether a pod tolerates a taint as it is, at least for a while."""
    kind, _ = _judged(tolerations_of(scene, pod, taint), taint.key, taint.effect, taint.value)
    return kind == "tolerated"


def stays(scene: Scene, pod: Pod, taint: Taint) -> bool:
    """Whether a pod tolerates a taint as it is for ever."""
    kind, used = _judged(tolerations_of(scene, pod, taint), taint.key, taint.effect, taint.value)
    return kind == "tolerated" and used is not None and (used.seconds is None or used.operator in COMPARISONS)


def untolerated_since(scene: Scene, pod: Pod, presence: Presence) -> float | None:
    """Since when a pod has not tolerated a taint, whatever the policy makes of it; None: it does."""
    key, effect = presence.taint.key, presence.taint.effect
    tolerations, since = tolerations_of(scene, pod, presence.taint), None
    for at, value in presence.values:
        kind, _ = _judged(tolerations, key, effect, value)
        since = None if kind == "tolerated" else at if since is None else since
    return since


def was_good_before(scene: Scene, pod: Pod, presence: Presence, bound_at: float) -> bool:
    """Whether a pod tolerated an earlier value of a taint, or was there before the taint."""
    key, effect = presence.taint.key, presence.taint.effect
    tolerations = tolerations_of(scene, pod, presence.taint)
    return bound_at < presence.values[0][0] - 1.0 or any(
        _judged(tolerations, key, effect, value)[0] == "tolerated" for _, value in presence.values
    )
