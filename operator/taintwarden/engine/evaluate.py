"""Verdicts on a pod: for each taint that concerns it, the acting policy, and for how long the taint is tolerated.

Verdicts apply to a pod class on a node, not to a pod: a pod adds only the time at which it was bound.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, StrEnum, auto
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from taintwarden.engine.derived import concerns
from taintwarden.engine.history import TaintHistory
from taintwarden.engine.model import (
    DeviceOrigin,
    Gates,
    PodClass,
    SharedTolerations,
    Taint,
    Toleration,
    Tolerations,
    WallTime,
    matching_key,
    names_key,
)
from taintwarden.engine.operators import ALL_GATES, ROWS, TYPED, Match, applies, match
from taintwarden.engine.policy import AnySelector, OnInvalidValue, Policy, Timing, TolerationSecondsMode, ValueType


class VerdictKind(StrEnum):
    """Effect of a taint on a pod."""

    TOLERATED = "Tolerated"
    TOLERATED_FOR = "ToleratedFor"
    VIOLATED = "Violated"
    HELD = "Held"
    """*Retained*: neither the value nor an earlier one can be compared, so the taint does not evict the pod."""


_EVICTING = (VerdictKind.TOLERATED_FOR, VerdictKind.VIOLATED)
_NO_TOLERATIONS = Tolerations()
OTHER_NODES = "nodeSelector does not select the node"
"""Reason why a policy does not act on a node."""


class TaintVerdict(msgspec.Struct, frozen=True, cache_hash=True, gc=False):
    """Effect of a taint on a pod class. ``seconds`` run from ``counts_from``, or from a later binding of the pod."""

    taint: Taint
    policy: Policy
    kind: VerdictKind
    toleration: Toleration | None = None
    counts_from: float = 0.0
    seconds: int = 0
    judged_value: str | None = None
    """The last valid value, if it decides because the current one cannot be compared."""
    invalid: bool = False
    """True if the current value cannot be compared."""
    hard_at: float | None = None
    """When the node is removed (``reclaim``); None: never."""
    latest_at: float = math.inf
    """Latest time to evict a pod so that it stops gracefully before ``hard_at``."""
    protected_seconds: float = 0.0
    """Seconds after its binding for which a pod opts out of disruptions."""
    settle_seconds: float = 0.0
    """Seconds after its binding for which a pod stays, since the known state of the taint may be older than the pod."""
    tolerations: Tolerations = Tolerations()
    """All tolerations of the pod class that were evaluated, from all sources."""

    @property
    def evicts(self) -> bool:
        """True if pods have to leave because of the taint, now or later."""
        return self.kind in _EVICTING

    def due_at(self, bound_at: float) -> WallTime | None:
        """Return when a pod bound at ``bound_at`` must leave because of this taint; None: never."""
        return self.evicts_at(bound_at) if self.evicts else None

    def evicts_at(self, bound_at: float) -> WallTime:
        """Return when a pod bound at ``bound_at`` must leave. The verdict must be one that evicts."""
        begins = self.counts_from if self.counts_from > bound_at else bound_at
        due = max(begins + self.seconds, bound_at + self.protected_seconds, bound_at + self.settle_seconds)
        if self.hard_at is None:
            return due  # type: ignore[return-value] # a maximum of wall times is a wall time
        return min(due, max(self.latest_at, bound_at))  # type: ignore[return-value]


class Concern(NamedTuple):
    """A taint that may concern pods of a class, with its history.

    ``native``: tolerations of a claim for a device, which replace the native ones of the pods; None: a taint of a node.
    ``settle_seconds``: seconds after its binding for which a pod stays: the known state of the taint may be older.
    """

    taint: Taint
    history: TaintHistory
    native: tuple[Toleration, ...] | None = None
    settle_seconds: float = 0.0


class Grounds(msgspec.Struct, frozen=True, gc=False):
    """The verdicts by which one policy evicts pods of a class from a node."""

    policy: Policy
    verdicts: tuple[TaintVerdict, ...]

    def first(self, bound_at: float) -> tuple[WallTime, TaintVerdict]:
        """Return when a pod bound at ``bound_at`` must leave, and the verdict that sets this time."""
        if len(self.verdicts) == 1:  # nearly all grounds
            only = self.verdicts[0]
            return only.evicts_at(bound_at), only
        return min([(verdict.evicts_at(bound_at), verdict) for verdict in self.verdicts], key=_when)

    def due(self, bound_at: float, now: WallTime) -> Iterator[TaintVerdict]:
        """Iterate over the verdicts that are due ``now`` for a pod bound at ``bound_at``."""
        return (verdict for verdict in self.verdicts if verdict.evicts_at(bound_at) <= now)

    def next_due_at(self, bound_at: float, now: WallTime) -> WallTime | None:
        """Return when the next verdict is due for a pod bound at ``bound_at``; None if no other will be."""
        return min((at for verdict in self.verdicts if (at := verdict.evicts_at(bound_at)) > now), default=None)

    @property
    def hard_at(self) -> float | None:
        """When the node is removed, by the taint with the earliest such time (``reclaim``); None: never."""
        if self.policy.reclaim is None:
            return None
        return min((verdict.hard_at for verdict in self.verdicts if verdict.hard_at is not None), default=None)


def _when(due: tuple[WallTime, TaintVerdict]) -> WallTime:
    return due[0]


def grounds_of(verdicts: Iterable[TaintVerdict]) -> tuple[Grounds, ...]:
    """Group the evicting verdicts on one pod class on one node by policy."""
    found: dict[str, list[TaintVerdict]] = {}
    for verdict in verdicts:
        if verdict.evicts:
            found.setdefault(verdict.policy.name, []).append(verdict)
    return tuple(Grounds(of_policy[0].policy, tuple(of_policy)) for of_policy in found.values())


class Judgement(msgspec.Struct, frozen=True):
    """Result of comparing one value of a taint with a pod's tolerations, independent of time."""

    toleration: Toleration | None = None
    seconds: int | None = None
    """Seconds for which the value is tolerated (None: indefinitely), or else the grace (None: that of the policy)."""
    invalid: bool = False
    """True if the value is not tolerated, and cannot be compared."""
    exact: bool = False
    """True if the value is not tolerated, and the result may depend on one exact value rather than on a threshold."""

    @property
    def tolerated(self) -> bool:
        """True if a toleration holds."""
        return self.toleration is not None


class _Part(msgspec.Struct, frozen=True):
    """Result of one part of a pod's tolerations for a value. :meth:`then` adds the result of the next part."""

    toleration: Toleration | None = None
    seconds: int | None = None
    """Seconds for which ``toleration`` tolerates the value; None: indefinitely."""
    compared: bool = False
    """True if a comparison applies to the taint. The first one sets ``grace``."""
    grace: int | None = None
    unread: frozenset[ValueType | None] = frozenset()
    """Value types of the comparisons that cannot read the value."""
    exact: bool = False

    def then(self, rest: "_Part") -> "_Part":
        """Combine this result with that of the next part, ``rest``."""
        if self.toleration is not None or rest.toleration is not None:
            return self if self.toleration is not None else rest
        return _Part(
            grace=self.grace if self.compared else rest.grace,
            unread=self.unread | rest.unread,
            exact=self.exact or rest.exact,
        )

    def judgement(self, value: str, value_type: ValueType | None) -> Judgement:
        """Convert the combined result of all parts."""
        if self.toleration is not None:
            return Judgement(self.toleration, self.seconds)
        invalid = is_invalid(value, value_type, self.unread)
        return Judgement(None, self.grace, invalid=invalid, exact=self.exact)


def judge(
    tolerations: Sequence[Toleration],
    taint: Taint,
    mode: TolerationSecondsMode,
    value_type: ValueType | None = None,
    gates: Gates = ALL_GATES,
) -> Judgement:
    """Judge a taint by the first toleration that holds, as in Kubernetes; else the first comparison sets the grace."""
    return _part(tolerations, taint, mode, gates).judgement(taint.value, value_type)


def _part(tolerations: Sequence[Toleration], taint: Taint, mode: TolerationSecondsMode, gates: Gates) -> _Part:
    grace: int | None = None
    compared = False
    unread: frozenset[ValueType | None] = frozenset()
    exact = False
    for toleration in tolerations:
        answer = match(toleration, taint, gates)
        row = ROWS.get(toleration.operator)
        is_comparison = row is not None and row.is_comparison
        after_violation = is_comparison and mode is TolerationSecondsMode.AFTER_VIOLATION
        if answer is Match.HOLDS:
            return _Part(toleration, None if after_violation else toleration.toleration_seconds)
        if answer is Match.INVALID_TAINT and row is not None:
            unread |= {row.family.value_type}
        if not applies(toleration, taint):
            continue
        exact |= row is not None and row.is_exact
        if is_comparison and not compared:
            compared = True
            grace = toleration.violation_grace_seconds
            if grace is None and after_violation:
                grace = toleration.toleration_seconds
    return _Part(compared=compared, grace=grace, unread=unread, exact=exact)


def is_invalid(
    value: str, value_type: ValueType | None, unread: frozenset[ValueType | None] = frozenset[ValueType | None]()
) -> bool:
    """Return True if a value is not of the policy's type, or a comparison of that type (None: any) cannot read it."""
    if value_type is None:
        return bool(unread)
    return value_type in unread or TYPED[value_type].parse(value) is None


K = TypeVar("K", Tolerations, SharedTolerations)
V = TypeVar("V")
_NOTHING_SAID = _Part()
_NONE: dict[Hashable, Judgement] = {}
_NO_PARTS: dict[Hashable, tuple[bool, _Part]] = {}


MAX_JUDGEMENTS = 100_000
"""Maximum results cached. Beyond it, all are dropped, since tenants may create any number of tolerations."""
MAX_ACTING = 1_000
"""Maximum combinations of a taint with policies cached. Beyond it, all are dropped, and old policies with them."""


class Evaluator:
    """Computes verdicts; each judgement is computed once for all pods that share it.

    Args:
        gates: settings that enable operators.

    """

    def __init__(self, gates: Gates = ALL_GATES) -> None:
        self.gates = gates
        self._judgements: WeakKeyDictionary[Tolerations, dict[Hashable, Judgement]] = WeakKeyDictionary()
        """Judgements by tolerations, dropped with the last pod that has them, since tenants may create any number."""
        self._parts: WeakKeyDictionary[SharedTolerations, dict[Hashable, tuple[bool, _Part]]] = WeakKeyDictionary()
        self._number = 0
        self._acting: dict[
            tuple[str, str, str, DeviceOrigin | None, tuple[Policy, ...]], tuple[Policy, AnySelector] | None
        ] = {}
        self.computed = 0
        """Number of judgements computed. Cached ones do not count."""

    def verdicts(
        self,
        pod_class: PodClass,
        tolerations: Tolerations,
        taints: Iterable[Concern],
        policies: tuple[Policy, ...],
    ) -> tuple[TaintVerdict, ...]:
        """Return the verdict for each taint that one of ``policies`` acts on, and that concerns the pods.

        ``tolerations``: all tolerations of the class, including those of its profiles. ``policies``: those that select
        both the node and the pod class, see :func:`exclusion` and :func:`selects_node`.
        """
        found = []
        for taint, history, native, settle_seconds in taints:
            acting = self.acting_on(taint, policies)
            if acting is None or (taint.source and not concerns(taint, tolerations)):
                continue
            policy, selector = acting
            counted = tolerations
            if policy.quarantine:
                counted = _NO_TOLERATIONS
            elif native is not None:
                counted = Tolerations(native, tolerations.annotated, tolerations.shared)
            verdict = self._verdict(counted, taint, history, policy, selector)
            if verdict.evicts:
                if settle_seconds:
                    verdict = msgspec.structs.replace(verdict, settle_seconds=settle_seconds)
                if pod_class.protected_seconds and policy.exclude.respect_do_not_disrupt:
                    verdict = msgspec.structs.replace(verdict, protected_seconds=pod_class.protected_seconds)
                if policy.reclaim:
                    verdict = _reclaimed(verdict, pod_class, history)
            found.append(verdict)
        return tuple(found)

    def acting_on(self, taint: Taint, policies: tuple[Policy, ...]) -> tuple[Policy, AnySelector] | None:
        """Return the policy that acts on the taint, if one does, and its selector.

        Results are cached by all fields of a taint except for its value, which selectors do not compare.
        """
        key = (taint.key, taint.effect, taint.source, taint.origin, policies)
        try:
            return self._acting[key]
        except KeyError:
            if len(self._acting) >= MAX_ACTING:
                self._acting.clear()
            found = self._acting[key] = acting_on(taint, policies)
            return found

    def _verdict(
        self, tolerations: Tolerations, taint: Taint, history: TaintHistory, policy: Policy, selector: AnySelector
    ) -> TaintVerdict:
        timing, value_type = policy.timing, selector.value_type

        def judged(value: str) -> Judgement:
            return self._judgement(tolerations, taint, value, timing.toleration_seconds_mode, value_type)

        def verdict(
            kind: VerdictKind, used: Toleration | None = None, counts_from: float = 0.0, seconds: int = 0
        ) -> TaintVerdict:
            return TaintVerdict(taint, policy, kind, used, counts_from, seconds, held, invalid, tolerations=tolerations)

        judgement = judged(taint.value)
        invalid = judgement.invalid
        held: str | None = None
        if invalid and timing.on_invalid_value is OnInvalidValue.HOLD:
            held = next((value for value in history.values if not judged(value).invalid), None)
            if held is None:
                return verdict(VerdictKind.HELD)
            judgement = judged(held)
        used = judgement.toleration
        if used is not None:
            if judgement.seconds is None:
                return verdict(VerdictKind.TOLERATED, used)
            seconds = max(judgement.seconds, 0)
            return verdict(VerdictKind.TOLERATED_FOR, used, history.added_at, seconds)
        since = violated_since(history, judged, timing, exact=judgement.exact)
        grace = timing.violation_grace_seconds if judgement.seconds is None else max(judgement.seconds, 0)
        seconds = max(grace, timing.stabilization_window_seconds)
        return verdict(VerdictKind.VIOLATED, None, since, seconds)

    def _judgement(
        self,
        tolerations: Tolerations,
        taint: Taint,
        value: str,
        mode: TolerationSecondsMode,
        value_type: ValueType | None,
    ) -> Judgement:
        key = (taint.key, value, taint.effect, mode, value_type)
        found = self._judgements.get(tolerations, _NONE).get(key)
        if found is None:
            asked = taint if value == taint.value else Taint(taint.key, value, taint.effect)
            found = self._all(tolerations, asked, mode).judgement(value, value_type)
            self._keep(self._judgements, tolerations, key, found)
            self.computed += 1
        return found

    def _all(self, tolerations: Tolerations, taint: Taint, mode: TolerationSecondsMode) -> _Part:
        """Combine own and shared tolerations. The shared part is computed once for all pods that a profile selects."""
        shared_names, shared = self._shared(tolerations.shared, taint, mode)
        own = matching_key(taint.key, tolerations.annotated)
        if not shared_names and not names_key(taint.key, own):
            own = tolerations.native + own
        return _part(own, taint, mode, self.gates).then(shared)

    def _shared(self, tolerations: SharedTolerations, taint: Taint, mode: TolerationSecondsMode) -> tuple[bool, _Part]:
        """Return True if the tolerations of profiles name the taint's key, and their result."""
        if not tolerations.entries:
            return False, _NOTHING_SAID
        key = (taint, mode)
        found = self._parts.get(tolerations, _NO_PARTS).get(key)
        if found is None:
            relevant = matching_key(taint.key, tolerations.entries)
            found = names_key(taint.key, relevant), _part(relevant, taint, mode, self.gates)
            self._keep(self._parts, tolerations, key, found)
        return found

    def _keep(self, kept: WeakKeyDictionary[K, dict[Hashable, V]], tolerations: K, key: Hashable, value: V) -> None:
        self._number += 1
        if self._number > MAX_JUDGEMENTS:
            self._judgements.clear()
            self._parts.clear()
            self._number = 1
        kept.setdefault(tolerations, {})[key] = value


def _reclaimed(verdict: TaintVerdict, pod_class: PodClass, history: TaintHistory) -> TaintVerdict:
    """Add the hard deadline of a node that will be removed: pods are evicted early enough to stop before that."""
    reclaim, given = verdict.policy.reclaim, verdict.policy.eviction.grace_period_seconds
    assert reclaim is not None  # noqa: S101 - checked by the caller
    hard_at = history.added_at + reclaim.deadline_seconds
    grace = pod_class.grace_seconds if given is None else given
    return msgspec.structs.replace(verdict, hard_at=hard_at, latest_at=max(history.added_at, hard_at - grace))


def violated_since(history: TaintHistory, judged: Callable[[str], Judgement], timing: Timing, *, exact: bool) -> float:
    """Return when the value last changed from one that was tolerated to one that is not, or the taint was added.

    Values that cannot be compared count as the value before them (``Hold``) or as untolerated (``Evict``). In a span
    with several values, the latest possible time counts. ``exact``: True if a value that is no longer stored may be the
    one that a pod tolerates.
    """
    hold = timing.on_invalid_value is OnInvalidValue.HOLD
    since, until = history.held_since, math.inf
    for span in reversed(history.spans):
        states = [None if value is None else _state(judged(value), hold=hold) for value in span.values]
        if _State.TOLERATED in states or (exact and None in states):
            last = max(at for at, state in enumerate(states) if state in (None, _State.TOLERATED))
            return until if _State.VIOLATED in states[last:] else since
        if _State.VIOLATED in states:
            since = until if _State.INVALID in states else span.since
        until = span.since
    return since


class _State(Enum):
    """Effect of one value on a pod. ``INVALID``: the value is held, so the value before it decides."""

    TOLERATED = auto()
    VIOLATED = auto()
    INVALID = auto()


def _state(judgement: Judgement, *, hold: bool) -> _State:
    if judgement.tolerated:
        return _State.TOLERATED
    return _State.INVALID if judgement.invalid and hold else _State.VIOLATED


def acting_on(taint: Taint, policies: Iterable[Policy]) -> tuple[Policy, AnySelector] | None:
    """Return the policy that acts on ``taint``, and its selector: by most specific key, then by age, then by name."""
    selecting = ((policy, selector) for policy in policies if (selector := policy.selector_for(taint)) is not None)
    return min(selecting, key=lambda one: (-one[1].specificity(taint), one[0].created_at, one[0].name), default=None)


def exclusion(policy: Policy, pod_class: PodClass, namespace_labels: Mapping[str, str] | None) -> str | None:
    """Return why ``policy`` does not evict pods of this class, None if it may.

    A namespace selector with requirements does not select a namespace that is not known yet.
    """
    exclude = policy.exclude
    if pod_class.do_not_evict and exclude.respect_do_not_evict:
        return "the pod opts out with taintwarden.io/do-not-evict"
    if pod_class.do_not_disrupt and exclude.respect_do_not_disrupt:
        return "the pod opts out of disruptions and exclude.respectDoNotDisrupt is true"
    if pod_class.namespace in exclude.namespaces:
        return f"exclude.namespaces lists {pod_class.namespace}"
    if exclude.priority_at_least is not None and pod_class.priority >= exclude.priority_at_least:
        return f"its priority {pod_class.priority} is at or above exclude.priorityAtLeast"
    if pod_class.owner is None and exclude.bare:
        return "it has no controller that would replace it, and exclude.bare is true"
    if pod_class.local_storage and exclude.local_storage:
        return "it has an emptyDir or hostPath volume, and exclude.localStorage is true"
    if pod_class.daemon_set and exclude.daemon_sets:
        return "it belongs to a DaemonSet and exclude.daemonSets is true"
    if not policy.pod_selector.selects(pod_class.labels):
        return "podSelector does not select it"
    if not selects_namespace(policy, namespace_labels):
        return "namespaceSelector does not select its namespace"
    return None


def selects_namespace(policy: Policy, labels: Mapping[str, str] | None) -> bool:
    """Return True if ``policy`` may act on pods of a namespace with these labels; None: the labels are not known."""
    selector = policy.namespace_selector
    return not selector.requirements or (labels is not None and selector.selects(labels))


def selects_node(policy: Policy, labels: Mapping[str, str], *, do_not_evict: bool = False) -> bool:
    """Return True if ``policy`` acts on a node with these labels. ``do_not_evict``: True if the node opts out."""
    return not node_exclusion(policy, labels, do_not_evict=do_not_evict)


def node_exclusion(policy: Policy, labels: Mapping[str, str], *, do_not_evict: bool = False) -> str | None:
    """Return why ``policy`` does not act on a node, None if it does."""
    if not policy.node_selector.selects(labels):
        return OTHER_NODES
    opts_out = do_not_evict and policy.exclude.respect_do_not_evict
    return "the node opts out with taintwarden.io/do-not-evict" if opts_out else None
