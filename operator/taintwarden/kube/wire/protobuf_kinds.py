"""From protobuf messages to the objects of ``objects``, which JSON is decoded into as well.

There are more pods than anything else, so they are decoded fast: what the pods of a workload share is recognized by its
encoding, and decoded once.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from taintwarden.engine.model import Toleration
from taintwarden.engine.selectors import Requirement, SelectorOperator
from taintwarden.kube.wire.kinds import (
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
_CONDITION = MESSAGES["core.v1.PodCondition"]
_TOLERATION = MESSAGES["core.v1.Toleration"]
_SPREAD = MESSAGES["core.v1.TopologySpreadConstraint"]
_GROUP = MESSAGES["core.v1.PodSchedulingGroup"]
_NAMED = MESSAGES["core.v1.PodResourceClaim"]
_MADE = MESSAGES["core.v1.PodResourceClaimStatus"]


def _first_field(text: str) -> bytes:
    """How a message begins whose field 1 is this short text: every encoder writes fields in order of their numbers."""
    raw = text.encode()
    return b"\n" + bytes([len(raw)]) + raw


_ANNOTATIONS = {field.encode_name: field.name for field in msgspec.structs.fields(PodAnnotations)}
_OUR_ANNOTATIONS = tuple(map(_first_field, _ANNOTATIONS))
_USED_CONDITIONS = (_first_field("PodScheduled"), _first_field("Ready"))
MAX_SHAPE_BYTES = 16_384
"""Of what the pods of a shape have in common, as it is encoded: it is kept. Larger pods are decoded each time."""
_LOCAL = PodVolume(empty_dir=EmptyDir())


class _Common(Shape[Any], kw_only=True, eq=False, weakref=True):
    """What the pods of one shape have in common."""

    labels: dict[str, str]
    annotations: PodAnnotations | None
    owners: list[OwnerReference]
    tolerations: list[Toleration]
    spread: list[SpreadObject]
    volumes: list[PodVolume]
    group: SchedulingGroupObject | None
    claims: tuple[PodClaim, ...]


class PodReader:
    """Decodes pods. Pods whose common parts have the same encoding share their :class:`Shape`."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[object, ...], _Common] = WeakValueDictionary()

    def __call__(self, found: Any) -> ShapedPod:
        """The pod of a message.

        Raises:
            DecodeError, ValueError: a part of it is not what it should be.

        """
        meta, spec, status = found.metadata, found.spec, found.status
        namespace, priority, grace = meta.namespace, spec.priority, spec.terminationGracePeriodSeconds
        # One more than count, so that those who read it see that some were left out.
        labels, tolerations = meta.labels[: MAX_OF_A_POD + 1], spec.tolerations[: MAX_OF_A_POD + 1]
        annotations = [one for one in meta.annotations[:] if one.startswith(_OUR_ANNOTATIONS)]
        owners, spread = meta.ownerReferences[:], spec.topologySpreadConstraints[:MAX_SPREAD_CONSTRAINTS]
        encoded = (*labels, None, *annotations, None, *owners, None, *tolerations, None, *spread)
        group = spec.schedulingGroup
        claims, generated = (spec.resourceClaims[:], status.resourceClaimStatuses[:]) if group else ((), ())
        if group:
            encoded = (*encoded, None, group, *claims, None, *generated)
        is_local = any(map(_is_local, spec.volumes))  # not their encoding: each pod has a volume of its own name
        key = (namespace, priority, grace, is_local, encoded)
        common = self._known.get(key)
        if common is None:
            common = _Common(
                labels=_mapping(labels),
                annotations=_annotations(annotations),
                owners=[_owner(one) for one in owners],
                tolerations=[_toleration(one) for one in tolerations],
                spread=[_spread(one) for one in spread],
                volumes=[_LOCAL] if is_local else [],
                group=SchedulingGroupObject(_text(_GROUP.FromString(group).podGroupName)) if group else None,
                claims=(*[_pod_claim(_NAMED, one) for one in claims], *[_pod_claim(_MADE, one) for one in generated]),
            )
            if sum(len(one) for one in encoded if one is not None) <= MAX_SHAPE_BYTES:
                self._known[key] = common
            else:
                common.is_kept = False
        return ShapedPod(
            PodMeta(
                meta.name,
                namespace,
                meta.uid,
                meta.resourceVersion,
                _time(meta.creationTimestamp),
                _time(meta.deletionTimestamp),
                common.labels,
                common.annotations,
                common.owners,
            ),
            PodSpec(
                spec.nodeName,
                common.tolerations,
                priority,
                grace,
                common.spread,
                common.volumes,
                common.group,
                common.claims,
            ),
            PodStatus(
                status.phase,
                [
                    _object_condition(_CONDITION.FromString(one))
                    for one in status.conditions[:]
                    if one.startswith(_USED_CONDITIONS)
                ],
            ),
            common,
        )


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
        for one in self.message.conditions:
            if one.type == wanted:
                try:
                    return _object_condition(one)
                except (DecodeError, ValueError, OverflowError, OSError):
                    return None
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
        NodeSpec([TaintObject(one.key, one.value, one.effect, _time(one.timeAdded)) for one in taints]),
        EncodedNodeStatus(message=found.status),
    )


class EncodedWorkload(WorkloadObject, gc=False):
    """A ReplicaSet, of which there are many. Labels of its pods are decoded only if they are asked for."""

    message: Any = None

    def template_label(self, key: str) -> str:
        """The value of a label of its pods; empty if they have none."""
        labels = self.message.spec.template.metadata.labels
        return _text(labels[key]) if key in labels else ""


def _replica_set(found: Any) -> EncodedWorkload:
    meta = found.metadata
    return EncodedWorkload(
        WorkloadMeta(meta.namespace, meta.uid, meta.resourceVersion), WorkloadSpec(found.spec.replicas), message=found
    )


def _mapping(entries: Sequence[bytes]) -> dict[str, str]:
    decoded = map(_ENTRY.FromString, entries)
    return {entry.key: _text(entry.value) for entry in decoded}


def _annotations(entries: Sequence[bytes]) -> PodAnnotations | None:
    if not entries:
        return None
    return PodAnnotations(**{_ANNOTATIONS[key]: value for key, value in _mapping(entries).items()})


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


def _pod_claim(kind: Any, raw: bytes) -> PodClaim:
    return PodClaim(_text(kind.FromString(raw).resourceClaimName) or None)


def _is_local(volume: Any) -> bool:
    """Whether a volume's data stay on the disk of the node."""
    source = volume.volumeSource
    is_on_disk = source.HasField("emptyDir") and source.emptyDir.medium != b"Memory"
    return bool(source.HasField("hostPath") or is_on_disk)


def _object_condition(found: Any) -> ObjectCondition:
    return ObjectCondition(_text(found.type), _text(found.status), _time(found.lastTransitionTime))


def _texts(entries: Mapping[str, bytes]) -> dict[str, str]:
    # Not items(): that of a protobuf map is Python's own for any mapping, and takes twice as long.
    try:  # nearly always, and in 60% of the time that decoding with a way to replace takes
        return {_same(key): _same(entries[key].decode()) for key in entries}
    except UnicodeDecodeError:
        return {key: _text(entries[key]) for key in entries}


@lru_cache(maxsize=4_096)
def _same(text: str) -> str:
    """The same object for equal texts: labels of nodes have few keys, and few values but their names.

    Not interned: Python 3.12 never frees what is interned, and these are labels of namespaces, too.
    """
    return text


def _text(raw: bytes) -> str:
    """What is not UTF-8 is replaced, as the API server does when it writes JSON."""
    return raw.decode(errors="replace")


@lru_cache(maxsize=10_000)
def _time(raw: bytes) -> str | None:
    """The text that JSON has: whole seconds, as the API server writes them in both encodings."""
    if not raw:
        return None
    return datetime.fromtimestamp(_TIME.FromString(raw).seconds, UTC).isoformat().replace("+00:00", "Z")
