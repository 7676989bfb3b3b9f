"""Decodes lists and watches, in whichever encoding they come."""

from typing import Generic

from taintwarden.kube.errors import Unreachable
from taintwarden.kube.http.client import JSON
from taintwarden.kube.wire.formats import PROTOBUF, Format, Page
from taintwarden.kube.wire.json_frames import JsonFrames
from taintwarden.kube.wire.kinds import Object
from taintwarden.kube.wire.protobuf_frames import MAGIC, ProtobufFrames
from taintwarden.kube.wire.resources import Resource


class FrameDecoder(Generic[Object]):
    """Decodes what the API server sends of one resource.

    The answer itself says what it is. In protobuf a list begins with a magic number, and a watch with the length of a
    frame, whose first byte is 0 below 16 MiB; etcd holds no larger object. JSON begins with neither.

    Attributes:
        accept: the header for lists and watches.

    """

    def __init__(self, resource: Resource[Object]) -> None:
        self._json: Format[Object] = JsonFrames(resource.type)
        self._protobuf: Format[Object] = self._json
        if resource.message:
            self._protobuf = ProtobufFrames(resource.message)
        self.accept = PROTOBUF if resource.message else JSON

    def page(self, body: bytes) -> Page[Object]:
        """One page of a list.

        Raises:
            Unreachable: another server answered. As an empty list it would remove all known objects.

        """
        found = (self._protobuf if body.startswith(MAGIC) else self._json).page(body)
        if not found.head.resource_version:
            msg = "the answer is no list: it has no resourceVersion"
            raise Unreachable(msg)
        return found

    def of_watch(self, buffer: bytes) -> Format[Object]:
        """What decodes a watch of which this is the beginning, or the beginning of a frame."""
        return self._protobuf if buffer.startswith(b"\0") else self._json
