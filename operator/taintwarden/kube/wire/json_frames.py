"""Lists and watches in JSON."""

from typing import Any

import msgspec

from taintwarden.kube.errors import NOT_JSON, ApiStatus
from taintwarden.kube.wire.answers import decoded, decoded_flat
from taintwarden.kube.wire.formats import Format, Page
from taintwarden.kube.wire.kinds import Identity, ListMeta, Object

_METADATA = {"name": "name", "namespace": "namespace", "uid": "uid", "resource_version": "resourceVersion"}


class JsonFrames(Format[Object]):
    """Decodes JSON. Each frame of a watch is a line."""

    faults = NOT_JSON

    def __init__(self, kind: type[Object]) -> None:
        self._objects: msgspec.json.Decoder[Object] = msgspec.json.Decoder(kind)

    def page(self, body: bytes) -> Page[Object]:
        """Decode the list. Its items are decoded later."""
        found = decoded(body, _Page, "list")
        return Page(found.metadata, found.items or (), self.read)

    def split(self, buffer: bytes) -> tuple[list[bytes], bytes]:
        """Return the complete lines that are not empty, and the rest."""
        *lines, rest = buffer.split(b"\n")
        return [line for line in lines if line.strip()], rest

    def may_end_frame(self, chunk: bytes) -> bool:
        """Return True if the chunk contains the end of a line."""
        return b"\n" in chunk

    def parse_frame(self, frame: bytes) -> tuple[str, bytes]:
        """Return type and object of a line."""
        found = decoded(frame, _Frame, "frame of a watch")
        return found.type, found.object

    def decode_object(self, raw: bytes) -> Object:
        """Decode the object, without its managed fields if it is nested too deeply."""
        return decoded_flat(self._objects.decode, raw)

    def identity(self, raw: bytes) -> Identity:
        """Read the identity of an object, which may be nested in any way."""
        parts = _read(raw, _Parts, _Parts(spec=msgspec.Raw(b"")))
        known = _read(parts.metadata, dict[str, msgspec.Raw], {})
        spec = _read(parts.spec, dict[str, msgspec.Raw], {"nodeName": b""})
        texts = {field: _read(known.get(name, b""), str, "") for field, name in _METADATA.items()}
        return Identity(**texts, node_name=_read(spec.get("nodeName", b'""'), str, None))

    def status(self, raw: bytes) -> ApiStatus:
        """Decode the ``Status`` of an ERROR frame."""
        return msgspec.json.decode(raw, type=ApiStatus)


def _read(raw: bytes | msgspec.Raw, kind: Any, default: Any) -> Any:
    try:
        return msgspec.json.decode(raw, type=kind)
    except NOT_JSON:
        return default


class _Parts(msgspec.Struct):
    metadata: msgspec.Raw = msgspec.Raw(b"")
    spec: msgspec.Raw = msgspec.Raw(b"{}")


class _Page(msgspec.Struct):
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | None = None


class _Frame(msgspec.Struct):
    object: msgspec.Raw
    type: str = ""
