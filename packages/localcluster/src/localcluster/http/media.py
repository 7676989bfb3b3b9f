"""Bodies and media types of requests and responses.

Requests and responses are JSON, lists also as tables. Forbidden here: kinds.
"""

from typing import Any

import msgspec
from aiohttp import web

from localcluster.errors import ApiError, bad_request
from localcluster.store.entries import decode_json, encode


def check_accept(accept: str) -> None:
    """Raise a 406 unless the client accepts JSON."""
    kinds = {part.partition(";")[0].strip() for part in accept.split(",")}
    if not kinds & {"", "application/json", "application/*", "*/*"}:
        text = "only the following media types are accepted: application/json"
        raise ApiError(406, "NotAcceptable", text)


async def body_of(request: web.Request) -> Any:
    """Return the decoded body; None if it is empty. Raises 400 or 415."""
    raw = await request.read()
    if request.content_type.endswith(("protobuf", "cbor")):
        text = "the body of the request was in an unknown format - accepted media types include: application/json"
        raise ApiError(415, "UnsupportedMediaType", text)
    try:
        return decode_json(raw) if raw.strip() else None
    except (msgspec.DecodeError, ValueError) as error:
        raise bad_request(f"couldn't decode the request body: {error}") from error


def respond(value: Any, status: int = 200, *, content_type: str = "application/json") -> web.Response:
    """Return a response. `value` is an object, or bytes of JSON."""
    body = value if isinstance(value, bytes) else encode(value)
    return web.Response(body=body, status=status, headers={"Content-Type": content_type})


def refuse(error: ApiError) -> web.Response:
    """Return the response for a failure."""
    response = respond(error.status(), error.code)
    if error.retry_after_seconds:
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    return response
