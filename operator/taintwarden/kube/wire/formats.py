"""What lists and watches come in: protobuf or JSON, as the API server chooses among what we accept.

Protobuf costs the server about half as much, and is shorter: it is accepted for the kinds that have many objects.
Servers that only resemble Kubernetes' own have no other encoding than JSON.
"""

from collections.abc import Callable
from typing import Generic

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
    """One page of a list, whose objects are not decoded yet.

    Attributes:
        head: what the list says of itself.
        decode: decodes its objects; second are those that are not what they should be.

    """

    head: ListMeta
    decode: Callable[[], tuple[list[Object], list[Undecodable]]]


def error_of(status: ApiStatus) -> ExpiredError:
    """What an ERROR frame says."""
    return ExpiredError(printable(f"{status.code} {status.reason}: {status.message}", MAX_ERROR_CHARACTERS))


def expired_or(error: ApiError) -> KubeError:
    """410 is an answer, too, not only a frame."""
    return ExpiredError(str(error)) if error.code == 410 else error
