"""Decoding of single answers: refusals and requested objects."""

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
"""The key and its list, which outside of strings contains no other list. Takes linear time: 9 ms a megabyte."""


def decoded_flat(decode: Callable[[bytes], T], body: bytes) -> T:
    """Decode ``body`` with ``decode``, without its managed fields if they are nested too deeply.

    The API server accepts objects that are nested 10,000 levels deep. Only the unused ``metadata.managedFields`` can
    be: a client that creates an object may write anything there, and all other fields have a schema.

    Raises:
        RecursionError: another field is nested too deeply.

    """
    try:
        return decode(body)
    except RecursionError:
        return decode(MANAGED_FIELDS.sub(b'"managedFields":[]', body))


def read_refusal(code: int, body: bytes, retry_after: str = "") -> ApiError:
    """Read a refusal, in JSON or protobuf. A body that is not a ``Status``, such as a proxy's HTML, is quoted in part.

    Args:
        code: the HTTP status.
        body: body of the response.
        retry_after: header ``Retry-After`` of the response.

    """
    try:
        status = msgspec.json.decode(body, type=ApiStatus)
    except NOT_JSON:
        from taintwarden.kube.wire.protobuf_frames import status_of  # noqa: PLC0415 - most commands need no protobuf

        status = status_of(body) or ApiStatus(message=quoted(body))
    return ApiError(code, status, float(retry_after) if retry_after.isascii() and retry_after.isdigit() else None)


def decoded(body: bytes, kind: type[T], what: str) -> T:
    """Decode an answer as ``kind``, which errors call ``what``.

    Raises:
        Unreachable: the answer is something else, for example that of a gateway.

    """
    try:
        return decoded_flat(msgspec.json.Decoder(kind).decode, body)
    except NOT_JSON as error:
        msg = f"the answer is not a valid {what}: {printable(str(error), MAX_MESSAGE_LENGTH)}"
        raise Unreachable(msg) from error
