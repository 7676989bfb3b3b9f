"""Decodes lists and watches: whole pages and lines at once, and one by one where something is not what it should be."""

from typing import Any, Generic

import msgspec

from taintwarden.api.text import printable
from taintwarden.kube.errors import NOT_JSON, ApiError, KubeError, Status, Unreachable, decoded
from taintwarden.kube.objects import Identity, ListMeta, Object, Page, RawPage, WatchFrame

MAX_ERROR_CHARACTERS = 300


class ExpiredError(KubeError):
    """Where the stream was cannot be resumed: it must list again."""

    reason = "expired"


class Undecodable(msgspec.Struct, frozen=True):
    """An object that is not what it should be: what could be read of it, and why the rest could not."""

    identity: Identity
    reason: str


class Decoder(Generic[Object]):
    """Decodes what the API server sends of one kind of objects."""

    def __init__(self, kind: type[Object]) -> None:
        of: Any = kind
        self._pages: msgspec.json.Decoder[Page[Object]] = msgspec.json.Decoder(Page[of])
        self._frames: msgspec.json.Decoder[WatchFrame[Object]] = msgspec.json.Decoder(WatchFrame[of])
        self._objects: msgspec.json.Decoder[Object] = msgspec.json.Decoder(of)

    def page(self, body: bytes) -> tuple[list[Object], list[Undecodable]]:
        """The objects of one page of a list, and those that are not what they should be.

        Raises:
            Unreachable: it is no list.

        """
        try:
            return self._pages.decode(body).items, []
        except NOT_JSON:
            pass
        good: list[Object] = []
        bad: list[Undecodable] = []
        for raw in decoded(body, RawPage, "list").items or ():
            try:
                good.append(self._objects.decode(raw))
            except NOT_JSON as error:
                bad.append(Undecodable(identity_of(raw), str(error)))
        return good, bad

    def frame(self, line: bytes) -> tuple[str, Object | Undecodable]:
        """The type and the object of one line of a watch.

        Raises:
            ExpiredError: it is an ERROR frame. Mostly it is 410; whatever it is, the watch is of no more use.
            Unreachable: it is no frame.

        """
        try:
            frame = self._frames.decode(line)
        except NOT_JSON as error:
            raw = decoded(line, _RawFrame, "frame of a watch")
            if raw.type == "ERROR":  # its object is a Status, in which ``status`` is no struct but "Failure"
                raise _error_of(line) from error
            return raw.type, Undecodable(identity_of(raw.object), str(error))
        if frame.type == "ERROR":
            raise _error_of(line)
        return frame.type, frame.object


def head_of(body: bytes) -> ListMeta:
    """What a list says of itself, with a hundredth of the work of decoding its items.

    Raises:
        Unreachable: another server answered. As an empty list it would remove all known objects.

    """
    head = decoded(body, _Head, "list").metadata
    if not head.resource_version:
        msg = "the answer is no list: it has no resourceVersion"
        raise Unreachable(msg)
    return head


def identity_of(raw: bytes | msgspec.Raw) -> Identity:
    """The identity of an object; each part is read separately, and empty if it is not valid."""
    parts = _read(raw, _Parts, _Parts())
    known = _read(parts.metadata, dict[str, msgspec.Raw], {})
    spec = _read(parts.spec, dict[str, msgspec.Raw], {})
    texts = {field: _read(known.get(name, b""), str, "") for field, name in _METADATA.items()}
    return Identity(**texts, node_name=_read(spec.get("nodeName", b""), str, ""))


def expired_or(error: ApiError) -> KubeError:
    """410 is an answer, too, not only a frame."""
    return ExpiredError(str(error)) if error.code == 410 else error


def _read(raw: bytes | msgspec.Raw, kind: Any, default: Any) -> Any:
    try:
        return msgspec.json.decode(raw, type=kind)
    except NOT_JSON:
        return default


_METADATA = {"name": "name", "namespace": "namespace", "uid": "uid", "resource_version": "resourceVersion"}


class _Parts(msgspec.Struct):
    metadata: msgspec.Raw = msgspec.Raw(b"")
    spec: msgspec.Raw = msgspec.Raw(b"")


class _Head(msgspec.Struct):
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)


class _RawFrame(msgspec.Struct):
    object: msgspec.Raw
    type: str = ""


class _ErrorFrame(msgspec.Struct):
    object: Status = msgspec.field(default_factory=Status)


def _error_of(line: bytes) -> ExpiredError:
    status = _read(line, _ErrorFrame, _ErrorFrame()).object
    return ExpiredError(printable(f"{status.code} {status.reason}: {status.message}", MAX_ERROR_CHARACTERS))
