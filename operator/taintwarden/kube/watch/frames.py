"""Decoding of lists and watches in either encoding."""

from typing import Generic

from taintwarden.kube.errors import Unreachable
from taintwarden.kube.http.client import JSON
from taintwarden.kube.wire.formats import PROTOBUF, Format, Page
from taintwarden.kube.wire.json_frames import JsonFrames
from taintwarden.kube.wire.kinds import Object
from taintwarden.kube.wire.protobuf_frames import MAGIC, ProtobufFrames
from taintwarden.kube.wire.resources import Resource


class FrameDecoder(Generic[Object]):
    """Decodes the lists and watches of one resource.

    The first bytes show the encoding. A list in protobuf begins with a magic number, a watch with the length of a
    frame, whose first byte is 0 below 16 MiB; etcd stores no larger object. JSON begins with neither.

    Attributes:
        accept: the header ``Accept`` for lists and watches.

    """

    def __init__(self, resource: Resource[Object]) -> None:
        self._json: Format[Object] = JsonFrames(resource.type)
        self._protobuf: Format[Object] = self._json
        if resource.message:
            self._protobuf = ProtobufFrames(resource.message)
        self.accept = PROTOBUF if resource.message else JSON

    def page(self, body: bytes) -> Page[Object]:
        """Decode one page of a list.

        Raises:
            Unreachable: another server answered. Taken for an empty list, its answer would remove all known objects.

        """
        found = (self._protobuf if body.startswith(MAGIC) else self._json).page(body)
        if not found.head.resource_version:
            msg = "the answer is not a list: it has no resourceVersion"
            raise Unreachable(msg)
        return found

    def watch_format(self, buffer: bytes | bytearray) -> Format[Object]:
        """Return the format of a watch whose next frame begins with ``buffer``."""
        return self._protobuf if buffer.startswith(b"\0") else self._json
