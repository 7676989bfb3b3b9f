"""Protobuf written by hand, so that what reads it is not what wrote it."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from taintwarden.kube.wire.formats import Page, Undecodable

_FIELDS: dict[str, dict[str, tuple[int, str]]] = {
    "pod": {"metadata": (1, "meta"), "spec": (2, "spec"), "status": (3, "status")},
    "meta": {
        "name": (1, ""),
        "namespace": (3, ""),
        "uid": (5, ""),
        "resourceVersion": (6, ""),
        "creationTimestamp": (8, "time"),
        "deletionTimestamp": (9, "time"),
        "labels": (11, "map"),
        "annotations": (12, "map"),
        "ownerReferences": (13, "owner"),
    },
    "owner": {"kind": (1, ""), "name": (3, ""), "uid": (4, ""), "apiVersion": (5, ""), "controller": (6, "")},
    "spec": {
        "volumes": (1, "volume"),
        "terminationGracePeriodSeconds": (4, ""),
        "nodeName": (10, ""),
        "tolerations": (22, "toleration"),
        "priority": (25, ""),
    },
    "volume": {"name": (1, ""), "hostPath": (2, "host"), "emptyDir": (2, "empty")},
    "toleration": {
        "key": (1, ""),
        "operator": (2, ""),
        "value": (3, ""),
        "effect": (4, ""),
        "tolerationSeconds": (5, ""),
    },
    "status": {"phase": (1, ""), "conditions": (2, "condition")},
    "condition": {"type": (1, ""), "status": (2, ""), "lastTransitionTime": (4, "time")},
}
"""Number and kind of each field, as ``generated.proto`` has them."""
UNREAD = 1_000
"""From this number on no field has a meaning."""


def message(fields: Mapping[int, Any]) -> bytes:
    """Fields by number: text, bytes, numbers, nested mappings, or lists of these for repeated ones."""
    return b"".join(
        _field(number, one)
        for number, value in fields.items()
        for one in (value if isinstance(value, list) else [value])
    )


def enveloped(content: bytes, api_version: str = "v1", kind: str = "Any") -> bytes:
    """The envelope of every object of Kubernetes: a magic number, and `runtime.Unknown` with type and content."""
    return b"k8s\0" + message({1: {1: api_version, 2: kind}, 2: content, 3: "", 4: ""})


def framed(kind: str, content: bytes) -> bytes:
    """A frame of a watch, with its length before it."""
    event = message({1: kind, 2: {1: enveloped(content)}})
    return len(event).to_bytes(4, "big") + event


def labels(**values: str) -> list[Any]:
    """A map of strings."""
    return [{1: key, 2: value} for key, value in values.items()]


def pod_message(pod: Mapping[str, Any]) -> bytes:
    """A pod that is given as in JSON. What the operator does not read is text in fields of other numbers."""
    return message(_converted(pod, "pod"))


def _converted(value: Any, kind: str) -> Any:
    if isinstance(value, list):
        return [_converted(one, kind) for one in value]
    match kind:
        case "time":
            return {1: int(datetime.fromisoformat(value).timestamp())}
        case "map":
            return [{1: key, 2: text} for key, text in value.items()]
        case "host":
            return {1: {1: value["path"]}}
        case "empty":
            return {2: {1: value.get("medium", "")}}
        case "opaque":
            return json.dumps(value)
        case "":
            return value
    found: dict[int, Any] = {}
    for name, one in value.items():
        number, its_kind = _FIELDS[kind].get(name, (UNREAD + len(found), "opaque"))
        found[number] = _converted(one, its_kind)
    return found


def _field(number: int, value: Any) -> bytes:
    if isinstance(value, bool | int):
        return _varint(number << 3) + _varint(int(value))
    if isinstance(value, Mapping):
        value = message(value)
    encoded = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(encoded)) + encoded


def _varint(value: int) -> bytes:
    value %= 2**64
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def read(page: Page[Any]) -> tuple[list[Any], list[Undecodable]]:
    """The objects of a page, and those that are not what they should be."""
    found = [page.read(one) for one in page.items]
    bad = [one for one in found if isinstance(one, Undecodable)]
    return [one for one in found if not isinstance(one, Undecodable)], bad
