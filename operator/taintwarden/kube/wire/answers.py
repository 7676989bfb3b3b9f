"""What a single answer says: a refusal, or the object that was asked for."""

from typing import TypeVar

import msgspec

from taintwarden.api.text import printable
from taintwarden.kube.errors import MAX_MESSAGE_LENGTH, NOT_JSON, ApiError, ApiStatus, Unreachable
from taintwarden.kube.wire.nesting import decoded_flat

T = TypeVar("T")


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

        quoted = ApiStatus(message=" ".join(body[:200].decode("utf-8", "replace").split()))
        status = status_of(body) or quoted
    return ApiError(code, status, _seconds(retry_after))


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


def _seconds(header: str) -> float | None:
    return float(header) if header.isascii() and header.isdigit() else None
