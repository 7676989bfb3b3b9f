"""What lists and watches come in: protobuf or JSON, as the API server chooses among what we accept.

Protobuf costs the server about half as much, and is shorter: it is accepted for the kinds that have many objects.
Servers that only resemble Kubernetes' own have no other encoding than JSON.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic

import msgspec

from taintwarden.fields.text import printable
from taintwarden.kube.errors import ApiError, ApiStatus, KubeError
from taintwarden.kube.wire.kinds import Identity, ListMeta, Object

PROTOBUF = "application/vnd.kubernetes.protobuf,application/json"
"""Accepts JSON, too."""
MAX_ERROR_CHARACTERS = 300


class ExpiredError(KubeError):
    """Where the stream was cannot be resumed: it must list again."""

    reason = "expired"


class Undecodable(msgspec.Struct, frozen=True):
    """An object that is not what it should be: what could be read of it, and why the rest could not."""

    identity: Identity
    reason: str


class Page(msgspec.Struct, Generic[Object], frozen=True):
    """One page of a list.

    Attributes:
        head: what the list says of itself.
        items: its objects, as ``read`` takes them.
        read: makes the object of one of them.

    """

    head: ListMeta
    items: Sequence[Any]
    read: Callable[[Any], Object | Undecodable]


class Change(msgspec.Struct, Generic[Object], frozen=True, gc=False):
    """One frame of a watch: its type and the object. Of a deleted object, or a bookmark, only its identity is read."""

    type: str
    found: Object | Identity | Undecodable

    @property
    def version(self) -> str:
        """The resourceVersion of the change; empty if it is not known."""
        if isinstance(self.found, Undecodable):
            return self.found.identity.resource_version
        if isinstance(self.found, Identity):
            return self.found.resource_version
        version: str = self.found.metadata.resource_version
        return version


class Format(ABC, Generic[Object]):
    """Decodes what the API server sends of one kind of objects in one encoding."""

    faults: ClassVar[tuple[type[Exception], ...]]
    """What is raised for bytes that are not what they should be."""

    @abstractmethod
    def page(self, body: bytes) -> Page[Object]:
        """One page of a list.

        Raises:
            Unreachable: it is no list.

        """

    @abstractmethod
    def split(self, buffer: bytes) -> tuple[list[bytes], bytes]:
        """The whole frames of a watch in the buffer, and the rest, which begins with the next frame."""

    @abstractmethod
    def event(self, frame: bytes) -> tuple[str, bytes]:
        """The type of one frame, and its object.

        Raises:
            Unreachable: it is no frame.

        """

    @abstractmethod
    def make(self, raw: Any) -> Object:
        """The object. Raises one of ``faults``."""

    @abstractmethod
    def identity(self, raw: Any) -> Identity:
        """The identity of an object; each part is read separately, and is not known if it is not valid."""

    @abstractmethod
    def status(self, raw: bytes) -> ApiStatus:
        """A ``Status``. Raises one of ``faults``."""

    def read(self, raw: Any) -> Object | Undecodable:
        """The object, or what is known of one that is not what it should be."""
        try:
            return self.make(raw)
        except self.faults as error:
            return Undecodable(self.identity(raw), str(error))

    def change(self, frame: bytes) -> Change[Object]:
        """One frame of a watch.

        Raises:
            ExpiredError: it is an ERROR frame. Mostly it is 410; whatever it is, the watch is of no more use.
            Unreachable: it is no frame.

        """
        kind, raw = self.event(frame)
        if kind == "ERROR":
            try:
                status = self.status(raw)
            except self.faults:
                status = ApiStatus()
            raise ExpiredError(printable(f"{status.code} {status.reason}: {status.message}", MAX_ERROR_CHARACTERS))
        return Change(kind, self.identity(raw) if kind in ("DELETED", "BOOKMARK") else self.read(raw))


def expired_or(error: ApiError) -> KubeError:
    """410 is an answer, too, not only a frame."""
    return ExpiredError(str(error)) if error.code == 410 else error
