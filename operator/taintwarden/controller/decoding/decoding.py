"""Decoders of pods, nodes, budgets and Jobs into small, interned values with only what a decision needs."""

import re
from collections.abc import Callable, Iterable
from hashlib import blake2b
from sys import intern
from weakref import WeakKeyDictionary, ref

import msgspec
import structlog

from taintwarden.api.opt_outs import (
    DO_NOT_DISRUPT,
    DO_NOT_EVICT,
    NONE,
    SAFE_TO_EVICT,
    check_opt_outs,
    opt_outs,
)
from taintwarden.api.tolerations import parse_tolerations
from taintwarden.controller.clock import Clock
from taintwarden.controller.decoding import bounds
from taintwarden.controller.decoding.node_values import drained_of, values_of
from taintwarden.controller.decoding.selecting import label_selector, spread
from taintwarden.controller.decoding.text_cache import cached_by_text
from taintwarden.controller.decoding.times import latest_moment
from taintwarden.controller.reported_faults import ReportedFaults
from taintwarden.engine.interning import Interner
from taintwarden.engine.model import (
    Budget,
    Node,
    Pod,
    PodClass,
    SchedulingGroup,
    Taint,
    Toleration,
    Tolerations,
    ValueSource,
)
from taintwarden.engine.policy import Policy
from taintwarden.fields.field_errors import FieldError
from taintwarden.fields.text import printable
from taintwarden.kube.calls.node_calls import HISTORY_ANNOTATION
from taintwarden.kube.wire.kinds import (
    FINISHED,
    MAX_SPREAD_CONSTRAINTS,
    MAX_TAINTS,
    BudgetObject,
    NodeObject,
    ObjectCondition,
    OwnerReference,
    PodAnnotations,
    PodObject,
    Shape,
    ShapedPod,
    Timestamp,
    WorkloadObject,
    version_number,
)

MAX_REMEMBERED_REPORTS = 50_000
"""Maximum number of pods whose last report is remembered, at a few dozen bytes each."""
NO_ANNOTATIONS = PodAnnotations()
Faults = tuple[tuple[FieldError, ...], tuple[FieldError, ...]]
"""Errors in the annotation with tolerations, and ignored values in other fields."""
NO_FAULTS: Faults = ((), ())
ALWAYS_ALLOW = "AlwaysAllow"
MAX_PROBLEM_CHARACTERS = 200
"""Maximum characters of the message of the disruption controller about a budget that it cannot compute."""
BUILT_IN_KINDS = {
    "v1": ("ReplicationController",),
    "apps/v1": ("ReplicaSet", "StatefulSet", "DaemonSet"),
    "batch/v1": ("Job",),
}
"""apiVersion -> kinds of controllers of pods that Kubernetes defines in it."""
_INTERVALS = re.compile(r"(?:^|,)([0-9]{1,10})(?:-([0-9]{1,10}))?(?=,|$)")
"""Pattern of one index or interval of indexes in the status of a Job, such as ``1,3-5``."""

log = structlog.get_logger()


class PodIssue(msgspec.Struct, frozen=True):
    """A pod with values that cannot be used.

    Attributes:
        errors: errors of entries in its annotation with tolerations, which count as absent.
        ignored: errors of other values, which have no effect.

    """

    name: str
    namespace: str
    uid: str
    errors: tuple[FieldError, ...]
    ignored: tuple[FieldError, ...] = ()


class Decoder:
    """Decodes objects into engine values. Equal values become the same object.

    Args:
        clock: gives the time at which a pod without times counts as bound.
        on_issue: called for a pod with values that cannot be used, once while they do not change; and without faults
            when it has none any more.
        reads_drained: True if the condition that says whether a node is drained is read.

    """

    def __init__(
        self, clock: Clock, on_issue: Callable[[PodIssue], None] = lambda _: None, *, reads_drained: bool = False
    ) -> None:
        self.sources: frozenset[ValueSource] = frozenset()
        """Sources of derived taints that are read from nodes."""
        self._clock = clock
        self._on_issue = on_issue
        self._reads_drained = reads_drained
        self._interner = Interner()
        self._shapes: WeakKeyDictionary[PodClass, Shape[PodClass]] = WeakKeyDictionary()
        """Keeps the shape of a class known while a pod has the class; no longer, since every Job brings a new one."""
        self._reported_faults = ReportedFaults(MAX_REMEMBERED_REPORTS)
        self._parse = cached_by_text(parse_tolerations)

    def pod(self, obj: PodObject) -> Pod | None:
        """Decode a pod; None if it cannot be evicted, since it is terminating, finished, unbound or a mirror pod.

        Raises:
            ValueError: a timestamp of the pod is invalid.

        """
        meta = obj.metadata
        if (
            not obj.spec.node_name
            or meta.deletion_timestamp is not None
            or (meta.annotations is not None and meta.annotations.mirror is not None)
            or obj.status.phase in FINISHED
        ):
            return None
        shared, faults = self._class_and_faults(obj)
        if any(faults):
            self._report(PodIssue(meta.name, meta.namespace, meta.uid, *faults))
        elif self._reported_faults.forget(meta.uid):
            self._on_issue(PodIssue(meta.name, meta.namespace, meta.uid, *NO_FAULTS))
        return self._make_pod(obj, shared)

    def bound(self, obj: PodObject) -> Pod:
        """Decode a pod that is bound to a node, even if it is terminating or finished.

        Raises:
            ValueError: a timestamp of the pod is invalid.

        """
        return self._make_pod(obj, self._class_and_faults(obj)[0])

    def pod_class(self, obj: PodObject) -> PodClass:
        """Return the part of a pod that it shares with others of its workload. The pod need not have a name or node."""
        meta, spec = obj.metadata, obj.spec
        annotations = meta.annotations or NO_ANNOTATIONS
        extended, _ = self._extended(annotations)
        is_too_large = bounds.fault(obj, extended) is not None
        labels = {} if is_too_large else meta.labels
        # The owner's kind is not interned: Python 3.12 never frees interned strings, and a tenant may write any kind.
        owner = next(
            (bounds.owner(_kind_of(given), given) for given in meta.owner_references if given.controller), None
        )
        opting = _opting_out(annotations)
        opted = opt_outs(opting.__getitem__) if opting else NONE
        return self._interner.pod_class(
            intern(meta.namespace),
            labels,
            bounds.TOLERATES_ALL if is_too_large else Tolerations(tuple(spec.tolerations), extended),
            priority=spec.priority or 0,
            daemon_set=owner is not None and owner.kind.partition(".")[0] == "DaemonSet",
            do_not_evict=opted.evictions,
            do_not_disrupt=opted.disruptions,
            protected_seconds=opted.protected_seconds,
            owner=owner,
            spread=() if is_too_large else spread(spec.topology_spread_constraints[:MAX_SPREAD_CONSTRAINTS], labels),
            grace_seconds=spec.termination_grace_period_seconds,
            local_storage=spec.has_local_storage,
            group=None if is_too_large else _group(obj),
        )

    def _extended(self, annotations: PodAnnotations) -> tuple[tuple[Toleration, ...], tuple[FieldError, ...]]:
        """Return the tolerations of the annotation, and its errors."""
        return ((), ()) if annotations.tolerations is None else self._parse(annotations.tolerations)

    def _class_and_faults(self, obj: PodObject) -> tuple[PodClass, Faults]:
        """Return the class of a pod and its faults. The class of a shape without faults is made once for its pods."""
        shape: Shape[PodClass] | None = obj.shape if isinstance(obj, ShapedPod) else None
        if shape is not None and (known := shape.memo()) is not None:
            return known, NO_FAULTS
        made = self.pod_class(obj)
        faults = self._faults(obj, made)
        if shape is not None and not any(faults):
            shape.memo = ref(made)
            self._shapes[made] = shape
        return made, faults

    def _faults(self, obj: PodObject, made: PodClass) -> Faults:
        annotations = obj.metadata.annotations or NO_ANNOTATIONS
        extended, errors = self._extended(annotations)
        opting_out = _opting_out(annotations)
        ignored = tuple(check_opt_outs(opting_out)) if opting_out else ()
        if made.tolerations == bounds.TOLERATES_ALL and (fault := bounds.fault(obj, extended)):
            ignored = (fault, *ignored)
        return errors, ignored

    def _make_pod(self, obj: PodObject, shared: PodClass) -> Pod:
        meta, conditions = obj.metadata, obj.status.conditions
        return Pod(
            meta.uid,
            meta.name,
            intern(obj.spec.node_name),
            shared,
            self._bound_at(meta.creation_timestamp, _true_condition(conditions, "PodScheduled")),
            version_number(meta.resource_version),
            _true_condition(conditions, "Ready") is not None,
            obj.status.phase != "Pending",
        )

    def follow(self, policies: Iterable[Policy]) -> bool:
        """Read the sources of these policies from nodes. Returns True if nodes have to be read again for a new one."""
        before = self.sources
        self.sources = frozenset(
            taint.source for policy in policies for taint in policy.taints if taint.source is not None
        )
        return not self.sources <= before

    def node(self, obj: NodeObject) -> Node:
        """Decode a node with its first ``MAX_TAINTS`` taints.

        An invalid ``timeAdded`` counts as not set. It may be in the future, since the clock of another host gave it.
        """
        meta = obj.metadata
        taints = []
        for taint in obj.spec.taints[:MAX_TAINTS]:
            added_at = None
            if taint.time_added is not None:
                try:
                    added_at = latest_moment(taint.time_added)
                except ValueError:
                    log.warning("time-added-unreadable", node=meta.name, taint=taint.key, value=taint.time_added)
            taints.append((Taint(taint.key, taint.value, taint.effect), added_at))
        history = meta.annotation(HISTORY_ANNOTATION) or ""
        opts_out = meta.annotation(DO_NOT_EVICT) == "true"
        version, read = version_number(meta.resource_version), self.sources
        values = values_of(obj, read) if read else {}
        drained = drained_of(obj) if self._reads_drained else None
        return Node(
            intern(meta.name), meta.uid, meta.labels, tuple(taints), version, history, opts_out, values, drained, read
        )

    def _bound_at(self, created: Timestamp | None, scheduled: ObjectCondition | None) -> float:
        """Return the time of the condition PodScheduled, no earlier than the creation and no later than now.

        The bounds are needed because other clients may write the condition.
        """
        times = created, None if scheduled is None else scheduled.last_transition_time
        now = self._clock().wall
        return min(now, max([latest_moment(time_) for time_ in times if time_ is not None], default=now))

    def _report(self, issue: PodIssue) -> None:
        """Report the errors of a pod, unless they were reported already."""
        faults = "\n".join(map(str, (*issue.errors, *issue.ignored)))
        if self._reported_faults.is_new(issue.uid, blake2b(faults.encode("utf-8", "replace"), digest_size=16).digest()):
            self._on_issue(issue)


def _group(obj: PodObject) -> SchedulingGroup | None:
    """Return the PodGroup of a pod with the pod's ResourceClaims by name; None without a group or ResourceClaims."""
    group, claims = obj.spec.scheduling_group, set(bounds.resource_claims(obj))
    if group is None or not group.pod_group_name or not claims:
        return None
    return SchedulingGroup(group.pod_group_name, tuple(sorted(claims)))


def _opting_out(annotations: PodAnnotations) -> dict[str, str]:
    """Return the annotations against disruption; empty if none is set, as on nearly every pod."""
    if not (annotations.do_not_evict or annotations.do_not_disrupt or annotations.safe_to_evict):
        return {}
    return {
        DO_NOT_EVICT: annotations.do_not_evict,
        DO_NOT_DISRUPT: annotations.do_not_disrupt,
        SAFE_TO_EVICT: annotations.safe_to_evict,
    }


def _kind_of(reference: OwnerReference) -> str:
    """Return the kind of an owner, with its group unless Kubernetes defines the kind in it.

    Other groups may define a StatefulSet, too. A kind that Kubernetes does not serve, such as a ReplicaSet of
    ``batch/v1``, also gets its group: the garbage collector cannot look up such an owner and leaves the pod alone, and
    the operator would wait for a workload that it never sees.
    """
    if reference.kind in BUILT_IN_KINDS.get(reference.api_version, ()):
        return reference.kind
    group = reference.api_version.rpartition("/")[0]
    return f"{reference.kind}.{group or reference.api_version}"


def _true_condition(conditions: Iterable[ObjectCondition], kind: str) -> ObjectCondition | None:
    """Return the condition of this type if its status is True."""
    for condition in conditions:
        if condition.type == kind and condition.status == "True":
            return condition
    return None


def desired_parallelism(obj: WorkloadObject) -> int:
    """Return the number of pods that a Job should have at once, as its controller computes it (``manageJob``)."""
    spec, status = obj.spec, obj.status
    if spec.suspend:
        return 0
    if spec.completions is not None:
        # An index that has failed too often gets no more pods (``firstPendingIndexes``).
        ended = status.succeeded + _number_of_indexes(status.failed_indexes)
        return max(0, min(spec.parallelism, spec.completions - ended))
    # Without completions the Job is a work queue, whose pods are not replaced after the first success.
    return status.active if status.succeeded else spec.parallelism


def _number_of_indexes(text: str) -> int:
    """Return the number of indexes in a text such as ``1,3-5``. Invalid parts count as none."""
    return sum(max(0, int(last or first) - int(first) + 1) for first, last in _INTERVALS.findall(text))


def budget(obj: BudgetObject) -> Budget | None:
    """Decode a budget as ``pkg/registry/core/pod/storage/eviction.go`` reads it; None if it selects no pods.

    Raises:
        ValueError: the selector is too large to keep.

    """
    if obj.spec.selector is None:
        return None
    meta, status = obj.metadata, obj.status
    if bounds.size_of_selector(obj.spec.selector) > bounds.MAX_SELECTED:
        msg = f"its selector has more than {bounds.MAX_SELECTED} labels and values"
        raise ValueError(msg)
    selector = label_selector(obj.spec.selector)
    always = obj.spec.unhealthy_pod_eviction_policy == ALWAYS_ALLOW
    if status is None:
        return Budget(meta.namespace, meta.name, selector, allowed=0, observed=False, healthy_enough=always)
    return Budget(
        meta.namespace,
        meta.name,
        selector,
        allowed=status.disruptions_allowed,
        observed=status.observed_generation >= meta.generation,
        healthy_enough=always or status.current_healthy >= status.desired_healthy > 0,
        problem=printable(status.problem, MAX_PROBLEM_CHARACTERS),
    )
