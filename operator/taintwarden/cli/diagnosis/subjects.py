"""The object that a finding is about, also where not much of it can be read."""

import msgspec


class Subject(msgspec.Struct, frozen=True, order=True):
    """An object by kind, name and, where it has one, namespace."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, ValueError)
"""What reading an object raises that is not what it should be."""


class _Meta(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _Anything(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


def identity(kind: str, raw: bytes) -> Subject:
    """As much of an object's identity as can be read."""
    try:
        meta = msgspec.json.decode(raw, type=_Anything).metadata
    except UNREADABLE:
        return Subject(kind, "unknown")
    return Subject(kind, meta.name or "unknown", meta.namespace)
