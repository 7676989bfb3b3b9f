"""Lists and watches in Kubernetes' protobuf: see ``runtime/serializer/protobuf`` and ``framer`` of apimachinery."""

from collections.abc import Callable
from typing import Any, cast

from google.protobuf.message import DecodeError

from taintwarden.kube.errors import ApiStatus, Unreachable
from taintwarden.kube.wire.formats import Format, Page
from taintwarden.kube.wire.kinds import Identity, ListMeta, Object
from taintwarden.kube.wire.protobuf_kinds import MESSAGES, reader

MAGIC = b"k8s\x00"
"""Prefix of every object, before the ``runtime.Unknown`` that contains it."""
LENGTH_BYTES = 4
"""Size of the length before each frame of a watch, big-endian."""
FAULTS = (DecodeError, ValueError, LookupError, OSError)
"""Errors raised for bytes that are not a valid message, text or time, or lack an element."""

_ENVELOPE = MESSAGES["runtime.Unknown"]
_LIST = MESSAGES["meta.v1.List"]
_EVENT = MESSAGES["meta.v1.WatchEvent"]
_STATUS = MESSAGES["meta.v1.Status"]
_OBJECT = MESSAGES["meta.v1.Object"]


class ProtobufFrames(Format[Object]):
    """Decodes protobuf. Each frame of a watch has its length before it."""

    faults = FAULTS

    def __init__(self, kind: str) -> None:
        self._make = cast("Callable[[Any], Object]", reader(kind))
        self._message = MESSAGES[kind]
        self._list = MESSAGES[f"runtime.Unknown.{kind}List"]

    def page(self, body: bytes) -> Page[Object]:
        """Parse all items in one call. If one of them is not a message, each is parsed by itself."""
        try:
            found = self._parse_list(body)
            head = ListMeta(found.metadata.resourceVersion, getattr(found.metadata, "continue"))
        except FAULTS as error:
            raise _foreign("list") from error
        return Page(head, found.items, self.read)

    def _parse_list(self, body: bytes) -> Any:
        try:
            return self._list.FromString(body[len(MAGIC) :]).raw
        except DecodeError:
            return _LIST.FromString(_unwrapped(body))

    def split(self, buffer: bytes) -> tuple[list[bytes], bytes]:
        """Return the complete frames without their lengths, and the rest."""
        frames, at = [], 0
        while len(buffer) - at >= LENGTH_BYTES:
            begin = at + LENGTH_BYTES
            end = begin + int.from_bytes(buffer[at:begin], "big")
            if end > len(buffer):
                break
            frames.append(buffer[begin:end])
            at = end
        return frames, buffer[at:]

    def parse_frame(self, frame: bytes) -> tuple[str, bytes]:
        """Return type and object of an event."""
        try:
            event = _EVENT.FromString(frame)
            return event.type, _unwrapped(event.object.raw)
        except FAULTS as error:
            raise _foreign("frame of a watch") from error

    def decode_object(self, raw: Any) -> Object:
        """Convert a message, parsed or not, into its object."""
        return self._make(self._message.FromString(raw) if isinstance(raw, bytes) else raw)

    def identity(self, raw: Any) -> Identity:
        """Read the identity of an object. Each part that is not ASCII counts as unknown."""
        try:
            found = _OBJECT.FromString(raw if isinstance(raw, bytes) else raw.SerializeToString())
        except FAULTS:
            return Identity()
        meta = found.metadata
        parts = (meta.name, meta.namespace, meta.uid, meta.resourceVersion)
        name, namespace, uid, version = (_text(part) or "" for part in parts)
        return Identity(name, namespace, uid, version, _text(found.spec.nodeName))

    def status(self, raw: bytes) -> ApiStatus:
        """Decode the ``Status`` of an ERROR frame."""
        return _status(raw)


def status_of(body: bytes) -> ApiStatus | None:
    """Return the ``Status`` of a refusal; None if the body is not one."""
    try:
        found = _status(_unwrapped(body))
    except FAULTS:
        return None
    return found if found.message or found.reason else None


def _status(raw: bytes) -> ApiStatus:
    found = _STATUS.FromString(raw)
    return ApiStatus(found.message, found.reason, found.code)


def _unwrapped(body: bytes) -> bytes:
    if not body.startswith(MAGIC):
        msg = "the magic number is missing"
        raise ValueError(msg)
    return cast("bytes", _ENVELOPE.FromString(body[len(MAGIC) :]).raw)


def _text(part: bytes) -> str | None:
    return part.decode() if part.isascii() else None


def _foreign(what: str) -> Unreachable:
    return Unreachable(f"the answer is not a valid {what} in Kubernetes' protobuf")
