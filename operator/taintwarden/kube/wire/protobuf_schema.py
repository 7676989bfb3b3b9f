"""The used fields of Kubernetes' own kinds, with their numbers in ``generated.proto`` of ``k8s.io/api``.

The parser skips fields that are not named here. ``bytes`` have the same encoding as messages and text. A message that
is ``bytes`` here stays encoded, so that equal ones are recognized without decoding them. Text is ``bytes`` where the
API server does not check what clients write: an object with text that is not UTF-8 would not be decoded.
"""

from collections.abc import Mapping
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

DecodeError = message.DecodeError

Fields = Mapping[str, tuple[int, str]]
"""Number and type by field name: a scalar, perhaps with a default, a message, ``repeated`` and one of these, or
``map``.
"""

META = "meta.v1.ObjectMeta"
LISTED = ("core.v1.Pod", "core.v1.Node", "apps.v1.ReplicaSet")
"""Kinds whose lists are parsed at once, together with their envelopes."""
SCHEMA: Mapping[str, Fields] = {
    "runtime.Unknown": {"raw": (2, "bytes")},
    "runtime.RawExtension": {"raw": (1, "bytes")},
    "meta.v1.WatchEvent": {"type": (1, "string"), "object": (2, "runtime.RawExtension")},
    "meta.v1.Status": {"message": (3, "string"), "reason": (4, "string"), "code": (6, "int32")},
    "meta.v1.ListMeta": {"resourceVersion": (2, "string"), "continue": (3, "string")},
    "meta.v1.List": {"metadata": (1, "meta.v1.ListMeta"), "items": (2, "repeated bytes")},
    "meta.v1.Object": {"metadata": (1, "meta.v1.ObjectMeta.Identity"), "spec": (2, "core.v1.PodSpec.Identity")},
    "meta.v1.ObjectMeta.Identity": {
        "name": (1, "bytes"),
        "namespace": (3, "bytes"),
        "uid": (5, "bytes"),
        "resourceVersion": (6, "bytes"),
    },
    "core.v1.PodSpec.Identity": {"nodeName": (10, "bytes")},
    "meta.v1.Time": {"seconds": (1, "int64")},
    "meta.v1.ObjectMeta": {
        "name": (1, "string"),
        "namespace": (3, "string"),
        "uid": (5, "string"),
        "resourceVersion": (6, "string"),
        "labels": (11, "map"),
        "annotations": (12, "map"),
    },
    "meta.v1.OwnerReference": {
        "kind": (1, "bytes"),
        "name": (3, "bytes"),
        "uid": (4, "bytes"),
        "apiVersion": (5, "bytes"),
        "controller": (6, "bool"),
    },
    "meta.v1.LabelSelector": {
        "matchLabels": (1, "map"),
        "matchExpressions": (2, "repeated meta.v1.LabelSelectorRequirement"),
    },
    "meta.v1.LabelSelectorRequirement": {
        "key": (1, "string"),
        "operator": (2, "string"),
        "values": (3, "repeated string"),
    },
    "core.v1.Pod": {
        "metadata": (1, "meta.v1.ObjectMeta.Pod"),
        "spec": (2, "core.v1.PodSpec"),
        "status": (3, "core.v1.PodStatus"),
    },
    "meta.v1.ObjectMeta.Pod": {
        "name": (1, "string"),
        "namespace": (3, "string"),
        "uid": (5, "string"),
        "resourceVersion": (6, "string"),
        "creationTimestamp": (8, "bytes"),
        "deletionTimestamp": (9, "bytes"),
        "labels": (11, "repeated bytes"),
        "annotations": (12, "map"),
        "ownerReferences": (13, "repeated bytes"),
    },
    "meta.v1.Entry": {"key": (1, "string"), "value": (2, "bytes")},
    "core.v1.PodSpec": {
        "volumes": (1, "repeated core.v1.Volume"),
        "terminationGracePeriodSeconds": (4, "int64 = 30"),
        "nodeName": (10, "string"),
        "tolerations": (22, "repeated bytes"),
        "priority": (25, "int32"),
        "topologySpreadConstraints": (33, "repeated bytes"),
        "resourceClaims": (39, "repeated bytes"),
        "schedulingGroup": (43, "bytes"),
    },
    "core.v1.Volume": {"volumeSource": (2, "core.v1.VolumeSource")},
    "core.v1.VolumeSource": {"hostPath": (1, "bytes"), "emptyDir": (2, "core.v1.EmptyDirVolumeSource")},
    "core.v1.EmptyDirVolumeSource": {"medium": (1, "bytes")},
    "core.v1.PodResourceClaim": {"resourceClaimName": (3, "bytes")},
    "core.v1.PodSchedulingGroup": {"podGroupName": (1, "bytes")},
    "core.v1.PodResourceClaimStatus": {"resourceClaimName": (2, "bytes")},
    "core.v1.PodStatus": {
        "phase": (1, "string"),
        "conditions": (2, "repeated core.v1.PodCondition"),
        "resourceClaimStatuses": (15, "repeated bytes"),
    },
    "core.v1.PodCondition": {"type": (1, "bytes"), "status": (2, "bytes"), "lastTransitionTime": (4, "bytes")},
    "core.v1.Toleration": {
        "key": (1, "string"),
        "operator": (2, "string"),
        "value": (3, "string"),
        "effect": (4, "string"),
        "tolerationSeconds": (5, "int64"),
    },
    "core.v1.TopologySpreadConstraint": {
        "topologyKey": (2, "string"),
        "labelSelector": (4, "meta.v1.LabelSelector"),
        "matchLabelKeys": (8, "repeated string"),
    },
    "core.v1.Node": {
        "metadata": (1, META),
        "spec": (2, "core.v1.NodeSpec"),
        "status": (3, "core.v1.NodeStatus"),
    },
    "core.v1.NodeStatus": {
        "conditions": (4, "repeated core.v1.NodeCondition"),
        "nodeInfo": (7, "core.v1.NodeSystemInfo"),
    },
    "core.v1.NodeCondition": {
        "type": (1, "bytes"),
        "status": (2, "bytes"),
        "lastTransitionTime": (4, "bytes"),
        "reason": (5, "bytes"),
        "message": (6, "bytes"),
    },
    "core.v1.NodeSystemInfo": {
        "kernelVersion": (4, "bytes"),
        "osImage": (5, "bytes"),
        "containerRuntimeVersion": (6, "bytes"),
        "kubeletVersion": (7, "bytes"),
        "kubeProxyVersion": (8, "bytes"),
        "operatingSystem": (9, "bytes"),
        "architecture": (10, "bytes"),
    },
    "core.v1.NodeSpec": {"taints": (5, "repeated core.v1.Taint")},
    "core.v1.Taint": {"key": (1, "string"), "value": (2, "string"), "effect": (3, "string"), "timeAdded": (4, "bytes")},
    "apps.v1.ReplicaSet": {"metadata": (1, "meta.v1.ObjectMeta.Owned"), "spec": (2, "apps.v1.ReplicaSetSpec")},
    "apps.v1.ReplicaSetSpec": {"replicas": (1, "int32 = 1"), "template": (3, "core.v1.PodTemplateSpec")},
    "core.v1.PodTemplateSpec": {"metadata": (1, "meta.v1.ObjectMeta.Labels")},
    "meta.v1.ObjectMeta.Labels": {"labels": (11, "map"), "annotations": (12, "map")},
    "meta.v1.ObjectMeta.Owned": {
        "namespace": (3, "string"),
        "uid": (5, "string"),
        "resourceVersion": (6, "string"),
        "ownerReferences": (13, "repeated bytes"),
    },
    **{f"runtime.Unknown.{kind}List": {"raw": (2, f"{kind}List")} for kind in LISTED},
    **{f"{kind}List": {"metadata": (1, "meta.v1.ListMeta"), "items": (2, f"repeated {kind}")} for kind in LISTED},
}
"""``meta.v1.List`` is any list with encoded items, ``meta.v1.Object`` any object, ``meta.v1.Entry`` an entry of a map.
A last part such as ``.Pod`` or ``.Identity`` names a selection of the fields of one message, for one use."""

_PACKAGE = "taintwarden"
_EDITION = descriptor_pb2.EDITION_2023
"""Unset fields are recognized, as in proto2, which Kubernetes uses. Unlike in proto2, text must be UTF-8."""
_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "string": _Field.TYPE_STRING,
    "bytes": _Field.TYPE_BYTES,
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "bool": _Field.TYPE_BOOL,
}


def messages() -> dict[str, Any]:
    """Return the classes of the messages, by the names of ``SCHEMA``."""
    file = descriptor_pb2.FileDescriptorProto(
        name="taintwarden.proto", package=_PACKAGE, syntax="editions", edition=_EDITION
    )
    for name, fields in SCHEMA.items():
        message = file.message_type.add(name=_flat(name))
        for field, (number, kind) in fields.items():
            _add_field(message, field, number, kind)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{_flat(name)}"))
        for name in SCHEMA
    }


def _add_field(message: Any, name: str, number: int, kind: str) -> None:
    repeated, kind = kind.startswith("repeated "), kind.removeprefix("repeated ")
    kind, _, default = kind.partition(" = ")
    label = _Field.LABEL_REPEATED if repeated or kind == "map" else _Field.LABEL_OPTIONAL
    added = message.field.add(name=name, number=number, label=label)
    if default:
        added.default_value = default
    if kind in _SCALARS:
        added.type = _SCALARS[kind]
    elif kind == "map":
        entry = message.nested_type.add(name=f"{name[0].upper()}{name[1:]}Entry")
        entry.options.map_entry = True
        _add_field(entry, "key", 1, "string")
        _add_field(entry, "value", 2, "bytes")
        added.type, added.type_name = _Field.TYPE_MESSAGE, f".{_PACKAGE}.{message.name}.{entry.name}"
    else:
        added.type, added.type_name = _Field.TYPE_MESSAGE, f".{_PACKAGE}.{_flat(kind)}"


def _flat(name: str) -> str:
    return name.replace(".", "_")
