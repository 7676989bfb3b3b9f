"""Conversion of protobuf messages into the objects of ``kinds``, into which JSON is decoded as well.

Most objects are pods, so these are decoded fast: fields that the pods of a workload share are recognized by their
encoding, and decoded once.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import replace

from taintwarden.engine.model import Toleration
from taintwarden.engine.selectors import Requirement, SelectorOperator
from taintwarden.kube.wire.kinds import (
    EARLIEST,
    LATEST,
    MAX_NODE_LABELS,
    MAX_POD_ENTRIES,
    MAX_SPREAD_CONSTRAINTS,
    MAX_TAINTS,
    EmptyDir,
    Followed,
    NodeConditionObject,
    NodeMeta,
    NodeObject,
    NodeSpec,
    NodeStatus,
    ObjectCondition,
    OwnerReference,
    PodAnnotations,
    PodClaim,
    PodMeta,
    PodObject,
    PodSpec,
    PodStatus,
    PodVolume,
    SchedulingGroupObject,
    SelectorObject,
    Shape,
    ShapedPod,
    SpreadObject,
    TaintObject,
    WorkloadMeta,
    WorkloadObject,
    WorkloadSpec,
)
from taintwarden.kube.wire.protobuf_schema import DecodeError, messages

MESSAGES = messages()
_TIME = MESSAGES["meta.v1.Time"]
_ENTRY = MESSAGES["meta.v1.Entry"]
_OWNER = MESSAGES["meta.v1.OwnerReference"]
_TOLERATION = MESSAGES["core.v1.Toleration"]
_SPREAD = MESSAGES["core.v1.TopologySpreadConstraint"]
_GROUP = MESSAGES["core.v1.PodSchedulingGroup"]
_CLAIM = MESSAGES["core.v1.PodResourceClaim"]
_CLAIM_STATUS = MESSAGES["core.v1.PodResourceClaimStatus"]
_ANNOTATIONS = {field.encode_name: field.name for field in msgspec.structs.fields(PodAnnotations)}
_USED_CONDITIONS = {b"PodScheduled": "PodScheduled", b"Ready": "Ready"}
MAX_SHAPE_BYTES = 16_384
"""Maximum encoded size of the fields that pods of a shape share and keep in memory. Larger pods have no shape."""
_LOCAL = PodVolume(empty_dir=EmptyDir())


class _Common(Shape[Any], kw_only=True, eq=False, weakref=True):
    metadata: PodMeta
    spec: PodSpec


class PodReader:
    """Converts pods. Pods whose common fields have the same encoding share their :class:`Shape`."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[object, ...], _Common] = WeakValueDictionary()

    def __call__(self, found: Any) -> PodObject:
        """Convert the message of a pod.

        Raises:
            DecodeError, ValueError: a part of it is invalid.

        """
        meta, spec, status = found.metadata, found.spec, found.status
        namespace, priority, grace = meta.namespace, spec.priority, spec.terminationGracePeriodSeconds
        # One more than the maximum, so that readers notice that some were left out.
        labels, tolerations = meta.labels[: MAX_POD_ENTRIES + 1], spec.tolerations[: MAX_POD_ENTRIES + 1]
        annotations = [*map(meta.annotations.get, _ANNOTATIONS)]
        owners, spread = meta.ownerReferences[:], spec.topologySpreadConstraints[:MAX_SPREAD_CONSTRAINTS]
        encoded = (*annotations, *labels, None, *owners, None, *tolerations, None, *spread)
        group = spec.schedulingGroup
        claims, generated = (spec.resourceClaims[:], status.resourceClaimStatuses[:]) if group else ((), ())
        if group:
            encoded = (*encoded, None, group, *claims, None, *generated)
        is_local = any(map(_is_local, spec.volumes[:]))  # not the encoded volumes: the name of one differs for each pod
        conditions = [_condition(kind, one) for one in status.conditions[:] if (kind := _USED_CONDITIONS.get(one.type))]
        key = (namespace, priority, grace, is_local, encoded)
        common = self._known.get(key)
        is_known = common is not None
        if common is None:
            common = _Common(
                metadata=PodMeta(
                    namespace=namespace,
                    labels=_mapping(labels),
                    annotations=_annotations(annotations),
                    owner_references=[_owner(owner) for owner in owners],
                ),
                spec=PodSpec(
                    tolerations=[_toleration(toleration) for toleration in tolerations],
                    priority=priority,
                    termination_grace_period_seconds=grace,
                    topology_spread_constraints=[_spread(one) for one in spread],
                    volumes=[_LOCAL] if is_local else [],
                    scheduling_group=_group(group),
                    resource_claims=(
                        *[_pod_claim(_CLAIM, claim) for claim in claims],
                        *[_pod_claim(_CLAIM_STATUS, one) for one in generated],
                    ),
                ),
            )
            is_known = sum(len(one) for one in encoded if one is not None) <= MAX_SHAPE_BYTES
            if is_known:
                self._known[key] = common
        parts = (
            replace(
                common.metadata,
                name=meta.name,
                uid=meta.uid,
                resource_version=meta.resourceVersion,
                creation_timestamp=_seconds(meta.creationTimestamp),
                deletion_timestamp=_seconds(meta.deletionTimestamp),
            ),
            replace(common.spec, node_name=spec.nodeName),
            PodStatus(status.phase, conditions),
        )
        return ShapedPod(*parts, common) if is_known else PodObject(*parts)


def reader(kind: str) -> Callable[[Any], Followed]:
    """Return a function that converts messages of this kind into objects.

    It raises ``DecodeError`` or ``ValueError`` for an invalid message.
    """
    match kind:
        case "core.v1.Pod":
            return PodReader()
        case "core.v1.Node":
            return _node
    return _replica_set


class EncodedNodeMeta(NodeMeta):
    """The metadata of a node. Annotations, of which there may be any number, are decoded when they are read."""

    def annotation(self, name: str) -> str | None:
        """Return the text of an annotation; None if there is none."""
        entries: Mapping[str, Any] = self.annotations
        return _text(entries[name]) if name in entries else None


class EncodedNodeStatus(NodeStatus):
    """The status of a node. Every heartbeat brings one, so fields are decoded only when they are read."""

    message: Any = None

    def condition(self, kind: str) -> NodeConditionObject | None:
        """Return the condition of this type; None if there is none or it is invalid."""
        wanted = kind.encode()
        found = next((condition for condition in self.message.conditions if condition.type == wanted), None)
        with suppress(DecodeError, ValueError):
            return found and NodeConditionObject(
                kind, _text(found.status), _seconds(found.lastTransitionTime), _text(found.reason), _text(found.message)
            )
        return None

    def info(self, field: str) -> str:
        """Return a field of ``nodeInfo`` by its name there; empty if it is not set."""
        return _text(getattr(self.message.nodeInfo, field))


def _node(found: Any) -> NodeObject:
    meta, taints = found.metadata, found.spec.taints[: MAX_TAINTS + 1]  # one more than the maximum, as for a pod
    if len(meta.labels) > MAX_NODE_LABELS:
        msg = f"has more than {MAX_NODE_LABELS} labels"
        raise ValueError(msg)
    return NodeObject(
        EncodedNodeMeta(
            meta.name,
            uid=meta.uid,
            resource_version=meta.resourceVersion,
            labels=_texts(meta.labels),
            annotations=meta.annotations,
        ),
        NodeSpec([TaintObject(taint.key, taint.value, taint.effect, _seconds(taint.timeAdded)) for taint in taints]),
        EncodedNodeStatus(message=found.status),
    )


class EncodedWorkload(WorkloadObject, gc=False):
    """A ReplicaSet, of which there are many. Labels of its pods are decoded only when they are read."""

    message: Any = None

    def template_label(self, key: str) -> str:
        """Return the value of a label of its pods; empty if they have none."""
        labels = self.message.spec.template.metadata.labels
        return _text(labels[key]) if key in labels else ""

    def template_annotation(self, key: str) -> str:
        """Return the value of an annotation of its pods; empty if they have none."""
        annotations = self.message.spec.template.metadata.annotations
        return _text(annotations[key]) if key in annotations else ""

    def controller(self) -> OwnerReference | None:
        """Return the object that controls it; None if there is none."""
        return next((owner for owner in map(_owner, self.message.metadata.ownerReferences) if owner.controller), None)


def _replica_set(found: Any) -> EncodedWorkload:
    meta = found.metadata
    return EncodedWorkload(
        WorkloadMeta(meta.namespace, meta.uid, meta.resourceVersion), WorkloadSpec(found.spec.replicas), message=found
    )


def _mapping(entries: Sequence[bytes]) -> dict[str, str]:
    decoded = map(_ENTRY.FromString, entries)
    return {entry.key: _text(entry.value) for entry in decoded}


def _annotations(values: Sequence[bytes | None]) -> PodAnnotations | None:
    fields = zip(_ANNOTATIONS.values(), values, strict=True)
    given = {field: _text(value) for field, value in fields if value is not None}
    return PodAnnotations(**given) if given else None


def _owner(raw: bytes) -> OwnerReference:
    found = _OWNER.FromString(raw)
    return OwnerReference(
        _text(found.apiVersion), _text(found.kind), _text(found.name), _text(found.uid), found.controller
    )


def _toleration(raw: bytes) -> Toleration:
    found = _TOLERATION.FromString(raw)
    seconds = found.tolerationSeconds if found.HasField("tolerationSeconds") else None
    return Toleration(found.key, found.operator, found.value, found.effect, seconds)


def _spread(raw: bytes) -> SpreadObject:
    found = _SPREAD.FromString(raw)
    selector, given = None, found.labelSelector
    if found.HasField("labelSelector"):
        required = [
            Requirement(one.key, SelectorOperator(one.operator), tuple(one.values)) for one in given.matchExpressions
        ]
        selector = SelectorObject(_texts(given.matchLabels), required)
    return SpreadObject(found.topologyKey, selector, list(found.matchLabelKeys))


def _group(raw: bytes) -> SchedulingGroupObject | None:
    return SchedulingGroupObject(_text(_GROUP.FromString(raw).podGroupName)) if raw else None


def _pod_claim(kind: Any, raw: bytes) -> PodClaim:
    return PodClaim(_text(kind.FromString(raw).resourceClaimName) or None)


def _is_local(volume: Any) -> bool:
    source = volume.volumeSource
    is_on_disk = source.HasField("emptyDir") and source.emptyDir.medium != b"Memory"
    return bool(source.HasField("hostPath") or is_on_disk)


def _condition(kind: str, found: Any) -> ObjectCondition:
    return ObjectCondition(kind, _text(found.status), _seconds(found.lastTransitionTime))


def _texts(entries: Mapping[str, bytes]) -> dict[str, str]:
    # Not items(), which takes twice as long: a protobuf map inherits that of any Python mapping.
    return {_key(key): _value(entries[key]) for key in entries}


def _text(raw: bytes) -> str:
    """Decode text. Invalid UTF-8 is replaced, as by the API server when it writes JSON."""
    return raw.decode(errors="replace")


_key, _value = lru_cache(4_096)(str), lru_cache(4_096)(_text)
"""Caches that return one object for equal texts: labels of nodes have few keys, and few values besides names.

Not interned: Python 3.12 never frees interned texts.
"""


def _seconds(time: bytes) -> int | None:
    """Return whole seconds since the epoch. The API server writes no fractions, in either encoding."""
    if not time:
        return None
    seconds: int = _TIME.FromString(time).seconds
    if not EARLIEST <= seconds <= LATEST:
        msg = f"{seconds} s since the epoch are beyond the calendar"
        raise ValueError(msg)
    return seconds
