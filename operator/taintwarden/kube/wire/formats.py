"""What lists and watches come in: protobuf or JSON, as the API server chooses among what we accept.

Protobuf costs the server about half as much, and is shorter: it is accepted for the kinds that have many objects.
Servers that only resemble Kubernetes' own have no other encoding than JSON.
"""

from collections.abc import Callable
from typing import Generic, Protocol

import msgspec

from taintwarden.api.text import printable
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
    """One page of a list, whose objects are not decoded yet.

    Attributes:
        head: what the list says of itself.
        decode: decodes its objects; second are those that are not what they should be.

    """

    head: ListMeta
    decode: Callable[[], tuple[list[Object], list[Undecodable]]]


class Encoding(Protocol, Generic[Object]):
    """Decodes what the API server sends of one kind of objects."""

    def page(self, body: bytes) -> Page[Object]:
        """One page of a list.

        Raises:
            Unreachable: it is no list.

        """

    def split(self, buffer: bytes) -> tuple[list[bytes], bytes]:
        """The whole frames of a watch in the buffer, and the rest, which begins with the next frame."""

    def frame(self, raw: bytes) -> tuple[str, Object | Identity | Undecodable]:
        """The type and the object of one frame of a watch; of a deleted object only its identity is read.

        Raises:
            ExpiredError: it is an ERROR frame. Mostly it is 410; whatever it is, the watch is of no more use.
            Unreachable: it is no frame.

        """


def error_of(status: ApiStatus) -> ExpiredError:
    """What an ERROR frame says."""
    return ExpiredError(printable(f"{status.code} {status.reason}: {status.message}", MAX_ERROR_CHARACTERS))


def expired_or(error: ApiError) -> KubeError:
    """410 is an answer, too, not only a frame."""
    return ExpiredError(str(error)) if error.code == 410 else error
