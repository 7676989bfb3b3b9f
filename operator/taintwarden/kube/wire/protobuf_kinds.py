"""From protobuf messages to the objects of ``objects``, which JSON is decoded into as well.

There are more pods than anything else, so they are decoded fast: what the pods of a workload share is recognized by its
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
    MAX_OF_A_POD,
    MAX_SPREAD_CONSTRAINTS,
    MAX_TAINTS,
    EmptyDir,
    Followed,
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
_NAMED = MESSAGES["core.v1.PodResourceClaim"]
_MADE = MESSAGES["core.v1.PodResourceClaimStatus"]
_ANNOTATIONS = {field.encode_name: field.name for field in msgspec.structs.fields(PodAnnotations)}
_USED_CONDITIONS = {b"PodScheduled": "PodScheduled", b"Ready": "Ready"}
MAX_SHAPE_BYTES = 16_384
"""Maximum size of what pods of a shape have in common, as it is encoded. It is kept; larger pods have no shape."""
_LOCAL = PodVolume(empty_dir=EmptyDir())


class _Common(Shape[Any], kw_only=True, eq=False, weakref=True):
    """What the pods of one shape have in common."""

    metadata: PodMeta
    spec: PodSpec


class PodReader:
    """Decodes pods. Pods whose common parts have the same encoding share their :class:`Shape`."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[object, ...], _Common] = WeakValueDictionary()

    def __call__(self, found: Any) -> PodObject:
        """The pod of a message.

        Raises:
            DecodeError, ValueError: a part of it is not what it should be.

        """
        meta, spec, status = found.metadata, found.spec, found.status
        namespace, priority, grace = meta.namespace, spec.priority, spec.terminationGracePeriodSeconds
        # One more than count, so that those who read it see that some were left out.
        labels, tolerations = meta.labels[: MAX_OF_A_POD + 1], spec.tolerations[: MAX_OF_A_POD + 1]
        annotations = [*map(meta.annotations.get, _ANNOTATIONS)]
        owners, spread = meta.ownerReferences[:], spec.topologySpreadConstraints[:MAX_SPREAD_CONSTRAINTS]
        encoded = (*annotations, *labels, None, *owners, None, *tolerations, None, *spread)
        group = spec.schedulingGroup
        claims, generated = (spec.resourceClaims[:], status.resourceClaimStatuses[:]) if group else ((), ())
        if group:
            encoded = (*encoded, None, group, *claims, None, *generated)
        is_local = any(map(_is_local, spec.volumes[:]))  # not their encoding: each pod has a volume of its own name
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
                    owner_references=[_owner(one) for one in owners],
                ),
                spec=PodSpec(
                    tolerations=[_toleration(one) for one in tolerations],
                    priority=priority,
                    termination_grace_period_seconds=grace,
                    topology_spread_constraints=[_spread(one) for one in spread],
                    volumes=[_LOCAL] if is_local else [],
                    scheduling_group=_group(group),
                    resource_claims=(
                        *[_pod_claim(_NAMED, one) for one in claims],
                        *[_pod_claim(_MADE, one) for one in generated],
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
    """What makes an object of a message of this kind.

    It raises ``DecodeError`` or ``ValueError`` for one that is not what it should be.
    """
    match kind:
        case "core.v1.Pod":
            return PodReader()
        case "core.v1.Node":
            return _node
    return _replica_set


class EncodedNodeMeta(NodeMeta):
    """The metadata of a node. Of its annotations, which may be any number, few are read: the others stay encoded."""

    def annotation(self, name: str) -> str | None:
        """The text of one."""
        entries: Mapping[str, Any] = self.annotations
        return _text(entries[name]) if name in entries else None


class EncodedNodeStatus(NodeStatus):
    """The status of a node. Every heartbeat brings it: nothing is made of what is not asked for."""

    message: Any = None

    def condition(self, kind: str) -> ObjectCondition | None:
        """The condition of this type. Read after the object was: what is not what it should be is not there."""
        wanted = kind.encode()
        found = next((one for one in self.message.conditions if one.type == wanted), None)
        with suppress(DecodeError, ValueError):
            return found and _condition(kind, found)
        return None

    def info(self, field: str) -> str:
        """A field of ``nodeInfo`` by its name there; empty if it is not set."""
        return _text(getattr(self.message.nodeInfo, field))


def _node(found: Any) -> NodeObject:
    meta, taints = found.metadata, found.spec.taints[: MAX_TAINTS + 1]  # one more than count, as of a pod
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
        NodeSpec([TaintObject(one.key, one.value, one.effect, _seconds(one.timeAdded)) for one in taints]),
        EncodedNodeStatus(message=found.status),
    )


class EncodedWorkload(WorkloadObject, gc=False):
    """A ReplicaSet, of which there are many. Labels of its pods are decoded only if they are asked for."""

    message: Any = None

    def template_label(self, key: str) -> str:
        """The value of a label of its pods; empty if they have none."""
        labels = self.message.spec.template.metadata.labels
        return _text(labels[key]) if key in labels else ""

    def template_annotation(self, key: str) -> str:
        """The value of an annotation of its pods; empty if they have none."""
        annotations = self.message.spec.template.metadata.annotations
        return _text(annotations[key]) if key in annotations else ""

    def controller(self) -> OwnerReference | None:
        """The Deployment that controls it; None: none does."""
        return next((one for one in map(_owner, self.message.metadata.ownerReferences) if one.controller), None)


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
    """Whether a volume's data stay on the disk of the node."""
    source = volume.volumeSource
    is_on_disk = source.HasField("emptyDir") and source.emptyDir.medium != b"Memory"
    return bool(source.HasField("hostPath") or is_on_disk)


def _condition(kind: str, found: Any) -> ObjectCondition:
    return ObjectCondition(kind, _text(found.status), _seconds(found.lastTransitionTime))


def _texts(entries: Mapping[str, bytes]) -> dict[str, str]:
    # Not items(): that of a protobuf map is Python's own for any mapping, and takes twice as long.
    return {_key(key): _value(entries[key]) for key in entries}


def _text(raw: bytes) -> str:
    """What is not UTF-8 is replaced, as the API server does when it writes JSON."""
    return raw.decode(errors="replace")


_key, _value = lru_cache(4_096)(str), lru_cache(4_096)(_text)
"""The same object for equal texts: labels of nodes have few keys, and few values but their names.

Not interned: Python 3.12 never frees what is interned.
"""


def _seconds(time: bytes) -> int | None:
    """Whole seconds, as the API server writes them in both encodings."""
    if not time:
        return None
    seconds: int = _TIME.FromString(time).seconds
    if not EARLIEST <= seconds <= LATEST:
        msg = f"{seconds} s since the epoch are beyond the calendar"
        raise ValueError(msg)
    return seconds
