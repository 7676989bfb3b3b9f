"""Encodings of lists and watches: protobuf or JSON, as the API server chooses among those that a client accepts.

Protobuf is shorter and costs the server about half as much, so it is accepted for kinds with many objects. Servers that
only resemble Kubernetes' own support only JSON.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic

import msgspec

from taintwarden.fields.text import printable
from taintwarden.kube.errors import ApiError, ApiStatus, KubeError
from taintwarden.kube.wire.kinds import Identity, ListMeta, Object

PROTOBUF = "application/vnd.kubernetes.protobuf,application/json"
"""Also accepts JSON."""
MAX_ERROR_CHARACTERS = 300


class ExpiredError(KubeError):
    """The stream cannot be resumed, and has to list again."""

    reason = "expired"


class Undecodable(msgspec.Struct, frozen=True):
    """An object that cannot be decoded: what could be read of its identity, and the reason."""

    identity: Identity
    reason: str


class Page(msgspec.Struct, Generic[Object], frozen=True):
    """One page of a list.

    Attributes:
        head: metadata of the list.
        items: its objects, not decoded yet.
        read: decodes one of them.

    """

    head: ListMeta
    items: Sequence[Any]
    read: Callable[[Any], Object | Undecodable]


class Change(msgspec.Struct, Generic[Object], frozen=True, gc=False):
    """One frame of a watch: its type and object. Of a deleted object or a bookmark, only the identity is read."""

    type: str
    found: Object | Identity | Undecodable

    @property
    def version(self) -> str:
        """The resourceVersion of the change; empty if unknown."""
        if isinstance(self.found, Undecodable):
            return self.found.identity.resource_version
        if isinstance(self.found, Identity):
            return self.found.resource_version
        version: str = self.found.metadata.resource_version
        return version


class Format(ABC, Generic[Object]):
    """Decodes lists and watches of one kind of objects in one encoding."""

    faults: ClassVar[tuple[type[Exception], ...]]
    """Errors raised for bytes that are invalid."""

    @abstractmethod
    def page(self, body: bytes) -> Page[Object]:
        """Decode one page of a list.

        Raises:
            Unreachable: it is not a list.

        """

    @abstractmethod
    def split(self, buffer: bytes) -> tuple[list[bytes], bytes]:
        """Return the complete frames of a watch in the buffer, and the rest, which begins with the next frame."""

    def may_end_frame(self, chunk: bytes) -> bool:
        """Return True if a frame of a watch may end in this chunk."""
        return True

    @abstractmethod
    def parse_frame(self, frame: bytes) -> tuple[str, bytes]:
        """Return the type of one frame, and its encoded object.

        Raises:
            Unreachable: it is not a frame.

        """

    @abstractmethod
    def decode_object(self, raw: Any) -> Object:
        """Decode an object. Raises one of ``faults``."""

    @abstractmethod
    def identity(self, raw: Any) -> Identity:
        """Read the identity of an object. Each part is read separately, and counts as unknown if it is invalid."""

    @abstractmethod
    def status(self, raw: bytes) -> ApiStatus:
        """Decode a ``Status``. Raises one of ``faults``."""

    def read(self, raw: Any) -> Object | Undecodable:
        """Decode an object. Return its identity and the reason if it is invalid."""
        try:
            return self.decode_object(raw)
        except self.faults as error:
            return Undecodable(self.identity(raw), str(error))

    def change(self, frame: bytes) -> Change[Object]:
        """Decode one frame of a watch.

        Raises:
            ExpiredError: it is an ERROR frame, mostly 410. After any of them the watch is useless.
            Unreachable: it is not a frame.

        """
        kind, raw = self.parse_frame(frame)
        if kind == "ERROR":
            try:
                status = self.status(raw)
            except self.faults:
                status = ApiStatus()
            raise ExpiredError(printable(f"{status.code} {status.reason}: {status.message}", MAX_ERROR_CHARACTERS))
        return Change(kind, self.identity(raw) if kind in ("DELETED", "BOOKMARK") else self.read(raw))


def expired_or(error: ApiError) -> KubeError:
    """Return an ExpiredError for an answer about a version that the server does not have, else the error itself.

    That is 410, which a watch may also send as a frame; 400 for a version that it cannot read; or 504 for one that it
    has not reached. A retry with it may fail forever.
    """
    is_expired = error.code in (400, 410) or (error.code == 504 and "Too large resource version" in error.message)
    return ExpiredError(str(error)) if is_expired else error
