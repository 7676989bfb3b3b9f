"""From objects of the API to values of the engine: interned, small, and only what a decision needs."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import blake2b
from sys import intern
from weakref import WeakKeyDictionary, ref

import msgspec
import structlog

from taintwarden.api.errors import FieldError
from taintwarden.api.tolerations import parse_tolerations
from taintwarden.controller.clock import Clock
from taintwarden.controller.remembered import Remembered
from taintwarden.controller.selecting import Spreads, label_selector
from taintwarden.controller.times import latest_moment
from taintwarden.engine.interning import Interner
from taintwarden.engine.model import (
    Budget,
    Node,
    Owner,
    Pod,
    PodClass,
    SpreadConstraint,
    Taint,
    Toleration,
    Tolerations,
)
from taintwarden.kube.objects import (
    BudgetObject,
    NodeObject,
    OwnerReference,
    PodAnnotations,
    PodMeta,
    PodObject,
    Shape,
    ShapedPod,
    WorkloadObject,
    version_number,
)

MAX_REMEMBERED_REPORTS = 50_000
"""Number of pods whose reported errors are stored, a few dozen bytes each."""
MAX_NATIVE_TOLERATIONS = 1_000
"""Maximum number per pod. The API server has no limit, and all of them stay in memory."""
NO_ANNOTATIONS = PodAnnotations()
ALWAYS_ALLOW = "AlwaysAllow"
OWN_VERSIONS = ("v1", "apps/v1", "batch/v1")
"""Of the workloads that Kubernetes defines."""

log = structlog.get_logger()


class PodIssue(msgspec.Struct, frozen=True):
    """A pod whose annotation has entries that cannot be used; they count as absent."""

    name: str
    namespace: str
    uid: str
    errors: tuple[FieldError, ...]


class Decoder:
    """Decodes objects into engine values. Equal values become the same object."""

    def __init__(self, clock: Clock, on_issue: Callable[[PodIssue], None] = lambda _: None) -> None:
        self._clock = clock
        self._on_issue = on_issue
        self._interner = Interner()
        self._spreads = Spreads()
        self._shapes: WeakKeyDictionary[PodClass, Shape[PodClass]] = WeakKeyDictionary()
        """Keeps shapes known while their pods exist. Without pods they are forgotten: every Job has a new one."""
        self._reported: OrderedDict[str, bytes] = OrderedDict()
        self._parse = Remembered(parse_tolerations)

    def pod(self, obj: PodObject) -> Pod | None:
        """The pod, or None where there is nothing to evict: terminating, finished, unbound or mirror pods.

        Raises:
            ValueError: a timestamp of the pod is none.

        """
        meta, spec = obj.metadata, obj.spec
        annotations = meta.annotations or NO_ANNOTATIONS
        if (
            not spec.node_name
            or meta.deletion_timestamp is not None
            or annotations.mirror is not None
            or obj.status.phase in ("Succeeded", "Failed")
        ):
            return None
        if errors := self._faults(annotations, len(spec.tolerations)):
            self._report(meta, errors)
        bound_at = self._bound_at(obj)
        version = version_number(meta.resource_version)
        return Pod(
            meta.uid,
            meta.name,
            intern(spec.node_name),
            self._shared_class(obj) if isinstance(obj, ShapedPod) else self.pod_class(obj),
            bound_at,
            version,
            is_ready(obj),
            obj.status.phase != "Pending",
        )

    def pod_class(self, obj: PodObject) -> PodClass:
        """What the pod shares with others of its workload. It need not run, nor have a name yet."""
        meta, spec = obj.metadata, obj.spec
        annotations = meta.annotations or NO_ANNOTATIONS
        extended: tuple[Toleration, ...] = ()
        if annotations.tolerations is not None:
            extended, _ = self._parse(annotations.tolerations)
        owner = self._owner(meta.owner_references)
        spread: tuple[SpreadConstraint, ...] = ()
        if spec.topology_spread_constraints:
            spread = self._spreads.of(owner.uid if owner else "", spec.topology_spread_constraints, meta.labels)
        return self._interner.pod_class(
            intern(meta.namespace),
            meta.labels,
            Tolerations(tuple(spec.tolerations[:MAX_NATIVE_TOLERATIONS]), extended),
            priority=spec.priority or 0,
            daemon_set=owner is not None and owner.kind.partition(".")[0] == "DaemonSet",
            do_not_evict=annotations.do_not_evict == "true",
            do_not_disrupt=annotations.do_not_disrupt == "true" or annotations.safe_to_evict == "false",
            owner=owner,
            spread=spread,
            grace_seconds=spec.termination_grace_period_seconds,
        )

    def _shared_class(self, obj: ShapedPod) -> PodClass:
        shape: Shape[PodClass] = obj.shape
        made = shape.memo()
        if made is None:
            made = self.pod_class(obj)
            shape.memo = ref(made)
            self._shapes[made] = shape
        return made

    def node(self, obj: NodeObject) -> Node:
        """The node with its taints. A ``timeAdded`` that is not a time counts as not set."""
        meta = obj.metadata
        now = self._clock().wall
        taints = []
        for taint in obj.spec.taints:
            added_at = None
            if taint.time_added is not None:
                try:
                    added_at = latest_moment(taint.time_added, now)
                except ValueError:
                    log.warning("time-added-unreadable", node=meta.name, taint=taint.key, value=taint.time_added)
            taints.append((Taint(taint.key, taint.value, taint.effect), added_at))
        history = meta.annotations.history if meta.annotations else ""
        version = version_number(meta.resource_version)
        return Node(intern(meta.name), meta.uid, meta.labels, tuple(taints), version, history)

    def _owner(self, references: Sequence[OwnerReference]) -> Owner | None:
        for reference in references:
            if reference.controller:
                # Not interned: Python 3.12 never frees what is interned, and a tenant may write any kind.
                return Owner(_kind_of(reference), reference.name, reference.uid)
        return None

    def _bound_at(self, obj: PodObject) -> float:
        now = self._clock().wall
        for condition in obj.status.conditions:
            if condition.type == "PodScheduled" and condition.status == "True" and condition.last_transition_time:
                return latest_moment(condition.last_transition_time, now)
        created = obj.metadata.creation_timestamp
        return latest_moment(created, now) if created else now

    def _faults(self, annotations: PodAnnotations, native: int) -> tuple[FieldError, ...]:
        errors: tuple[FieldError, ...] = ()
        if annotations.tolerations is not None:
            _, errors = self._parse(annotations.tolerations)
        if native > MAX_NATIVE_TOLERATIONS:
            reason = f"has {native} items, and only the first {MAX_NATIVE_TOLERATIONS} count"
            errors = (*errors, FieldError("spec.tolerations", native, reason))
        return errors

    def _report(self, meta: PodMeta, errors: tuple[FieldError, ...]) -> None:
        """Report the errors of a pod, unless they were reported already."""
        seen = blake2b("\n".join(map(str, errors)).encode("utf-8", "replace"), digest_size=16).digest()
        if self._reported.get(meta.uid) == seen:
            self._reported.move_to_end(meta.uid)
            return
        if len(self._reported) >= MAX_REMEMBERED_REPORTS:
            self._reported.popitem(last=False)
        self._reported[meta.uid] = seen
        self._on_issue(PodIssue(meta.name, meta.namespace, meta.uid, errors))


def _kind_of(reference: OwnerReference) -> str:
    """The kind, with its group unless that is one of Kubernetes' own: others have a StatefulSet, too.

    A version that Kubernetes does not serve is not Kubernetes' own. The garbage collector cannot look up such an owner,
    so it leaves the pod alone, and the operator would wait for a workload that it never sees.
    """
    if reference.api_version in OWN_VERSIONS:
        return reference.kind
    group = reference.api_version.rpartition("/")[0]
    return f"{reference.kind}.{group or reference.api_version}"


def is_ready(obj: PodObject) -> bool:
    """Whether the pod's condition Ready is True."""
    for one in obj.status.conditions:
        if one.type == "Ready":
            return one.status == "True"
    return False


def desired_replicas(obj: WorkloadObject) -> int:
    """The number of desired pods of a ReplicaSet, StatefulSet or ReplicationController."""
    return obj.spec.replicas


def desired_on_nodes(obj: WorkloadObject) -> int:
    """The number of desired pods of a DaemonSet: one for each matching node."""
    return obj.status.desired_number_scheduled


def desired_parallelism(obj: WorkloadObject) -> int:
    """The number of desired pods of a Job at one time, as its controller computes it (``manageJob``)."""
    spec, status = obj.spec, obj.status
    if spec.suspend:
        return 0
    if spec.completions is not None:
        return max(0, min(spec.parallelism, spec.completions - status.succeeded))
    # A queue of unknown length: after the first success no pod is replaced any more.
    return status.active if status.succeeded else spec.parallelism


def budget(obj: BudgetObject) -> Budget | None:
    """The budget, as ``pkg/registry/core/pod/storage/eviction.go`` reads it; None where it selects no pod."""
    if obj.spec.selector is None:
        return None
    meta, status = obj.metadata, obj.status
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
    )
