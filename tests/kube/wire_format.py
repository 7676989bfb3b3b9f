"""Protobuf written by hand, so that what reads it is not what wrote it."""

from collections.abc import Mapping
from typing import Any

from taintwarden.kube.wire.formats import Page, Undecodable


def message(fields: Mapping[int, Any]) -> bytes:
    """Fields by number: text, bytes, numbers, nested mappings, or lists of these for repeated ones."""
    return b"".join(
        _field(number, one)
        for number, value in fields.items()
        for one in (value if isinstance(value, list) else [value])
    )


def enveloped(content: bytes, api_version: str = "v1", kind: str = "Any") -> bytes:
    """What every object of Kubernetes stands in: a magic number, and `runtime.Unknown` with type and content."""
    return b"k8s\0" + message({1: {1: api_version, 2: kind}, 2: content, 3: "", 4: ""})


def framed(kind: str, content: bytes) -> bytes:
    """A frame of a watch, with its length before it."""
    event = message({1: kind, 2: {1: enveloped(content)}})
    return len(event).to_bytes(4, "big") + event


def labels(**values: str) -> list[Any]:
    """A map of strings."""
    return [{1: key, 2: value} for key, value in values.items()]


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
