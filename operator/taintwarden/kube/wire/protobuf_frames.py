"""Lists and watches in Kubernetes' protobuf: see ``runtime/serializer/protobuf`` and ``framer`` of apimachinery."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, cast

from google.protobuf.message import DecodeError

from taintwarden.kube.errors import ApiStatus, Unreachable
from taintwarden.kube.wire.formats import ExpiredError, Page, Undecodable, error_of
from taintwarden.kube.wire.kinds import Identity, ListMeta, Object
from taintwarden.kube.wire.protobuf_kinds import MESSAGES, reader

MAGIC = b"k8s\x00"
"""Begins every object, inside a ``runtime.Unknown``."""
LENGTH_BYTES = 4
"""Before each frame of a watch: its length, big-endian."""
FAULTS = (DecodeError, ValueError, LookupError, OSError)
"""What is raised for bytes that are not what they should be: no message, no text, no time, no element there."""

_ENVELOPE = MESSAGES["runtime.Unknown"]
_LIST = MESSAGES["meta.v1.List"]
_EVENT = MESSAGES["meta.v1.WatchEvent"]
_STATUS = MESSAGES["meta.v1.Status"]
_OBJECT = MESSAGES["meta.v1.Object"]


class ProtobufFrames(Generic[Object]):
    """Decodes protobuf; the methods are those of :class:`~taintwarden.kube.wire.json_frames.JsonFrames`."""

    def __init__(self, kind: str) -> None:
        self._make = cast("Callable[[Any], Object]", reader(kind))
        self._wrapped, self._bare = MESSAGES[f"runtime.Unknown.{kind}"], MESSAGES[kind]
        self._list = MESSAGES[f"runtime.Unknown.{kind}List"]

    def page(self, body: bytes) -> Page[Object]:
        """The parser reads all items with the head; objects are made later."""
        try:
            found = self._list.FromString(_content(body)).raw
        except FAULTS:
            found = _list(body)
            return Page(_head(found), lambda: self._one_by_one(found.items))
        return Page(_head(found), lambda: self._all(found.items, body))

    def _all(self, items: Sequence[Any], body: bytes) -> tuple[list[Object], list[Undecodable]]:
        try:
            return [self._make(one) for one in items], []
        except FAULTS:
            return self._one_by_one(_list(body).items)

    def _one_by_one(self, items: Sequence[bytes]) -> tuple[list[Object], list[Undecodable]]:
        good: list[Object] = []
        bad: list[Undecodable] = []
        for raw in items:
            try:
                good.append(self._make(self._bare.FromString(raw)))
            except FAULTS as error:
                bad.append(Undecodable(_identity_of(raw), str(error)))
        return good, bad

    def split(self, buffer: bytes) -> tuple[list[bytes], bytes]:
        """Each frame has its length before it."""
        frames, at = [], 0
        while len(buffer) - at >= LENGTH_BYTES:
            begin = at + LENGTH_BYTES
            end = begin + int.from_bytes(buffer[at:begin], "big")
            if end > len(buffer):
                break
            frames.append(buffer[begin:end])
            at = end
        return frames, buffer[at:]

    def frame(self, raw: bytes) -> tuple[str, Object | Identity | Undecodable]:
        """One frame, without its length."""
        try:
            event = _EVENT.FromString(raw)
            kind, content = event.type, _content(event.object.raw)
        except FAULTS as error:
            raise _foreign("frame of a watch") from error
        if kind == "ERROR":
            raise _error_of(content)
        if kind == "DELETED":
            return kind, _identity_of(_bare(content))
        try:
            return kind, self._make(self._wrapped.FromString(content).raw)
        except FAULTS as error:
            return kind, Undecodable(_identity_of(_bare(content)), str(error))


def status_of(body: bytes) -> ApiStatus | None:
    """What a refusal says; None if it is no ``Status``."""
    try:
        found = _STATUS.FromString(_bare(_content(body)))
    except FAULTS:
        return None
    return ApiStatus(found.message, found.reason, found.code) if found.message or found.reason else None


def _content(body: bytes) -> bytes:
    if not body.startswith(MAGIC):
        msg = "the magic number is missing"
        raise ValueError(msg)
    return body[len(MAGIC) :]


def _bare(content: bytes) -> bytes:
    try:
        return cast("bytes", _ENVELOPE.FromString(content).raw)
    except FAULTS:
        return b""


def _list(body: bytes) -> Any:
    """A list whose items stay encoded."""
    try:
        return _LIST.FromString(_ENVELOPE.FromString(_content(body)).raw)
    except FAULTS as error:
        raise _foreign("list") from error


def _head(found: Any) -> ListMeta:
    try:
        return ListMeta(found.metadata.resourceVersion, getattr(found.metadata, "continue"))
    except FAULTS as error:
        raise _foreign("list") from error


def _identity_of(raw: bytes) -> Identity:
    """The identity of an object; each part that is not plain text is not known."""
    try:
        found = _OBJECT.FromString(raw)
    except FAULTS:
        return Identity()
    meta = found.metadata
    return Identity(
        _text(meta.name) or "",
        _text(meta.namespace) or "",
        _text(meta.uid) or "",
        _text(meta.resourceVersion) or "",
        _text(found.spec.nodeName),
    )


def _text(part: bytes) -> str | None:
    return part.decode() if part.isascii() else None


def _error_of(content: bytes) -> ExpiredError:
    try:
        status = _STATUS.FromString(_bare(content))
        return error_of(ApiStatus(status.message, status.reason, status.code))
    except FAULTS:
        return error_of(ApiStatus())


def _foreign(what: str) -> Unreachable:
    return Unreachable(f"the answer is no {what} in Kubernetes' protobuf")
