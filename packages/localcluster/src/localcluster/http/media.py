"""Bodies and media types: the content of a request, and the form of its response.

Requests are JSON or YAML, responses are JSON, as objects or tables. No protobuf. Forbidden here: kinds.
"""

from typing import Any, NamedTuple

import msgspec
import yaml
from aiohttp import web

from localcluster.errors import ApiError, bad_request
from localcluster.store.entries import decode_json, encode


class Wanted(NamedTuple):
    """The form of the response: "" (the objects) or Table, and the version of that form."""

    form: str = ""
    version: str = "v1"

    @property
    def content_type(self) -> str:
        """That of the response."""
        return f"application/json;as={self.form};v={self.version};g=meta.k8s.io" if self.form else "application/json"


def wanted(accept: str) -> Wanted:
    """The first form of an Accept header that is served. Raises a 406."""
    if not accept:
        return Wanted()
    for part in accept.split(","):
        kind, *parameters = (piece.strip() for piece in part.split(";"))
        if kind not in {"application/json", "application/*", "*/*"}:
            continue
        given = dict(piece.split("=", 1) for piece in parameters if "=" in piece)
        form = given.get("as", "")
        if not form:
            return Wanted()
        if form == "Table" and given.get("g") == "meta.k8s.io":
            return Wanted(form, given.get("v", "v1"))
    text = "only the following media types are accepted: application/json, application/yaml"
    raise ApiError(406, "NotAcceptable", text)


async def body_of(request: web.Request) -> Any:
    """The decoded body, None if it is empty. Raises 400, 413 or 415."""
    try:
        raw = await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        text = "Request entity too large: limit is 3145728"
        raise ApiError(413, "RequestEntityTooLarge", text) from error
    if not raw.strip():
        return None
    kind = request.content_type
    if kind.endswith(("protobuf", "cbor")):
        accepted = "application/json, application/yaml"
        text = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        raise ApiError(415, "UnsupportedMediaType", text)
    try:
        return yaml.safe_load(raw) if "yaml" in kind else decode_json(raw)
    except (msgspec.DecodeError, yaml.YAMLError, ValueError) as error:
        raise bad_request(f"couldn't decode the request body: {error}") from error


def respond(
    value: Any, status: int = 200, *, content_type: str = "application/json", warnings: Any = ()
) -> web.Response:
    """A response; `value` is an object, or bytes that are JSON already."""
    response = web.Response(
        body=value if isinstance(value, bytes) else encode(value), status=status, headers={"Content-Type": content_type}
    )
    for text in warnings:
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{escaped}"')
    return response


def refuse(error: ApiError) -> web.Response:
    """The response for a failure."""
    response = respond(error.status(), error.code)
    if error.retry_after_seconds:
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    return response
