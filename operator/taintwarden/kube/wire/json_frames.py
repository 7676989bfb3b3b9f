"""Lists and watches in JSON: whole pages and lines at once, and one by one where something is not what it should be."""

from typing import Any, Generic

import msgspec

from taintwarden.kube.errors import NOT_JSON, ApiStatus
from taintwarden.kube.wire.answers import decoded, decoded_flat
from taintwarden.kube.wire.formats import Page, Undecodable, error_of
from taintwarden.kube.wire.kinds import Identity, Items, ListMeta, Object, RawItems, WatchFrame


class JsonFrames(Generic[Object]):
    """Decodes what the API server sends of one kind of objects in JSON."""

    def __init__(self, kind: type[Object]) -> None:
        of: Any = kind
        self._pages: msgspec.json.Decoder[Items[Object]] = msgspec.json.Decoder(Items[of])
        self._frames: msgspec.json.Decoder[WatchFrame[Object]] = msgspec.json.Decoder(WatchFrame[of])
        self._objects: msgspec.json.Decoder[Object] = msgspec.json.Decoder(of)

    def page(self, body: bytes) -> Page[Object]:
        """One page of a list. The head is a hundredth of the work of decoding the items.

        Raises:
            Unreachable: it is no list.

        """
        return Page(decoded(body, _Head, "list").metadata, lambda: self._objects_of(body))

    def _objects_of(self, body: bytes) -> tuple[list[Object], list[Undecodable]]:
        try:
            return decoded_flat(self._pages.decode, body).items, []
        except NOT_JSON:
            pass
        good: list[Object] = []
        bad: list[Undecodable] = []
        for raw in decoded(body, RawItems, "list").items or ():
            try:
                good.append(self._objects.decode(raw))  # without its managed fields, if it was nested too deeply
            except NOT_JSON as error:
                bad.append(Undecodable(identity_of(raw), str(error)))
        return good, bad

    def split(self, buffer: bytes) -> tuple[list[bytes], bytes]:
        """The whole frames of a watch in the buffer, lines, and the rest, which begins with the next frame."""
        *lines, rest = buffer.split(b"\n")
        return [line for line in lines if line.strip()], rest

    def frame(self, line: bytes) -> tuple[str, Object | Identity | Undecodable]:
        """The type and the object of one frame of a watch; of a deleted object only its identity is read.

        Raises:
            ExpiredError: it is an ERROR frame. Mostly it is 410; whatever it is, the watch is of no more use.
            Unreachable: it is no frame.

        """
        fault = ""
        try:
            frame = decoded_flat(self._frames.decode, line)
            if frame.type not in ("DELETED", "ERROR"):
                return frame.type, frame.object
        except NOT_JSON as error:
            fault = str(error)
        raw = decoded(line, _RawFrame, "frame of a watch")
        if raw.type == "ERROR":
            raise error_of(_read(line, _ErrorFrame, _ErrorFrame()).object)
        identity = identity_of(raw.object)
        return raw.type, identity if raw.type == "DELETED" else Undecodable(identity, fault)


def identity_of(raw: bytes | msgspec.Raw) -> Identity:
    """The identity of an object; each part is read separately, and is not known if it is not valid."""
    parts = _read(raw, _Parts, _Parts(spec=msgspec.Raw(b"")))
    known = _read(parts.metadata, dict[str, msgspec.Raw], {})
    spec = _read(parts.spec, dict[str, msgspec.Raw], {"nodeName": b""})
    texts = {field: _read(known.get(name, b""), str, "") for field, name in _METADATA.items()}
    return Identity(**texts, node_name=_read(spec.get("nodeName", b'""'), str, None))


def _read(raw: bytes | msgspec.Raw, kind: Any, default: Any) -> Any:
    try:
        return msgspec.json.decode(raw, type=kind)
    except NOT_JSON:
        return default


_METADATA = {"name": "name", "namespace": "namespace", "uid": "uid", "resource_version": "resourceVersion"}


class _Parts(msgspec.Struct):
    metadata: msgspec.Raw = msgspec.Raw(b"")
    spec: msgspec.Raw = msgspec.Raw(b"{}")


class _Head(msgspec.Struct):
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)


class _RawFrame(msgspec.Struct):
    object: msgspec.Raw
    type: str = ""


class _ErrorFrame(msgspec.Struct):
    object: ApiStatus = msgspec.field(default_factory=ApiStatus)
