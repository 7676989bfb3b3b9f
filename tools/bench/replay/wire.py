"""Protobuf messages around encoded objects, as kube-apiserver writes them: lists, and frames of a watch."""

from collections.abc import Iterable

from taintwarden.kube.wire.protobuf_frames import LENGTH_BYTES, MAGIC

_BYTES = 2
"""Wire type of text, bytes and messages."""


def field(number: int, content: bytes) -> bytes:
    """A field of a message whose type has a length."""
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content


def wrapped(api_version: str, kind: str, content: bytes) -> bytes:
    """An object or a list as a whole answer: ``runtime.Unknown`` after the magic number."""
    type_meta = field(1, api_version.encode()) + field(2, kind.encode())
    return MAGIC + field(1, type_meta) + field(2, content)


def listed(version: int, token: str, items: Iterable[bytes]) -> bytes:
    """The content of a list, with the token for its next page."""
    metadata = field(2, str(version).encode()) + field(3, token.encode())
    return field(1, metadata) + b"".join(field(2, item) for item in items)


def frame(event: str, wrapped_object: bytes) -> bytes:
    """An event of a watch, with its length before it."""
    content = field(1, event.encode()) + field(2, field(1, wrapped_object))
    return len(content).to_bytes(LENGTH_BYTES, "big") + content


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
