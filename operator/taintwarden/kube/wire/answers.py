"""What a single answer says: a refusal, or the object that was asked for."""

import re
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from taintwarden.fields.text import printable, quoted
from taintwarden.kube.errors import MAX_MESSAGE_LENGTH, NOT_JSON, ApiError, ApiStatus, Unreachable

T = TypeVar("T")

MANAGED_FIELDS: Final = re.compile(
    rb'"managedFields"\s*+:\s*+\[[^"\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"\]]*+)*+\]', re.DOTALL
)
"""The key and its list. Outside of its strings the list contains no other one. Linear: 9 ms a megabyte."""


def decoded_flat(decode: Callable[[bytes], T], body: bytes) -> T:
    """What ``decode`` makes of ``body``, without the managed fields if it cannot follow them.

    The API server takes objects that are nested 10,000 levels deep. Only ``metadata.managedFields`` can be so: a client
    that creates an object may write anything there, and all other fields have a schema. Nothing of it is used.

    Raises:
        RecursionError: something else is nested too deeply.

    """
    try:
        return decode(body)
    except RecursionError:
        return decode(MANAGED_FIELDS.sub(b'"managedFields":[]', body))


def read_refusal(code: int, body: bytes, retry_after: str = "") -> ApiError:
    """Read a refusal, in JSON or protobuf; a body that is no ``Status`` (a proxy's HTML, say) is quoted shortly.

    Args:
        code: the HTTP status.
        body: of the response.
        retry_after: its header of that name.

    """
    try:
        status = msgspec.json.decode(body, type=ApiStatus)
    except NOT_JSON:
        from taintwarden.kube.wire.protobuf_frames import status_of  # noqa: PLC0415 - most commands need no protobuf

        status = status_of(body) or ApiStatus(message=quoted(body))
    return ApiError(code, status, float(retry_after) if retry_after.isascii() and retry_after.isdigit() else None)


def decoded(body: bytes, kind: type[T], what: str) -> T:
    """An answer as what it should be.

    Raises:
        Unreachable: it is something else, as when a gateway answers in the API server's place.

    """
    try:
        return decoded_flat(msgspec.json.Decoder(kind).decode, body)
    except NOT_JSON as error:
        msg = f"the answer is no {what}: {printable(str(error), MAX_MESSAGE_LENGTH)}"
        raise Unreachable(msg) from error
