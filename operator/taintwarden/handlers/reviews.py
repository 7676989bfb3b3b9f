"""AdmissionReviews (admission.k8s.io/v1) over HTTP: decoded, passed on, answered.

An error here never blocks a request: an object that cannot be processed is admitted.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from enum import StrEnum
from typing import Any, Literal

import msgspec
import structlog
from aiohttp import web

from taintwarden.admission.response import AdmissionResponse
from taintwarden.admission.webhooks import Kind, Request
from taintwarden.api.errors import MAX_LISTED, FieldError, InvalidObject
from taintwarden.api.text import printable

MAX_BODY_BYTES = 3 * 2**20
"""As much as an API server takes of a client. A review of a change has two objects, but what is stored has 1.5 MiB."""
LOOKED_AT_BYTES = 2**20
"""Objects in larger bodies are admitted unread: what is made of JSON takes twenty times its size. No pod that
is meant to run comes near it: etcd takes 1.5 MiB of an object.
"""
SMALL_BODY_BYTES = 64 * 2**10
MAX_LARGE_BODIES = 4
"""Bodies above the small size that are in memory at once. Of small ones there are as many as connections."""
BODY_SECONDS = 3.0
"""For a body to arrive. No API server waits for an answer for longer than its webhook's timeoutSeconds, which is 2."""


class Result(StrEnum):
    """How a review ended, as it is counted."""

    ALLOWED = "allowed"
    WARNED = "warned"
    PATCHED = "patched"
    REFUSED = "refused"
    FAILED = "failed"
    STRANGER = "stranger"
    TOO_LARGE = "too-large"
    LATE = "late"
    BROKEN_OFF = "broken-off"
    MALFORMED = "malformed"


Judge = Callable[[Request], AdmissionResponse]
Observe = Callable[[str, Result, float], None]
Refuse = Callable[[web.Request], str]
"""Why a caller is not answered; empty if it is."""
Answered = Callable[[web.Request], None]

log = structlog.get_logger()


class Review(msgspec.Struct, rename="camel"):
    """What the API server sends."""

    api_version: Literal["admission.k8s.io/v1"]
    kind: Literal["AdmissionReview"]
    request: Request


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    """A request without its objects."""

    uid: str
    kind: Kind
    name: str = ""
    namespace: str = ""


class _ReviewHead(msgspec.Struct, rename="camel"):
    api_version: Literal["admission.k8s.io/v1"]
    kind: Literal["AdmissionReview"]
    request: _Head


_DECODER = msgspec.json.Decoder(Review)
_HEAD_DECODER = msgspec.json.Decoder(_ReviewHead)
_TOO_LARGE = AdmissionResponse(
    warnings=(f"the object is larger than {LOOKED_AT_BYTES} bytes, and taintwarden does not look at it",)
)


def decode(body: bytes | bytearray) -> tuple[Request, AdmissionResponse | None]:
    """The request in an AdmissionReview, and the response if it is too large to be looked at.

    Raises:
        msgspec.DecodeError, UnicodeDecodeError, RecursionError: it is none.

    """
    if len(body) <= LOOKED_AT_BYTES:
        return _DECODER.decode(body).request, None
    head = _HEAD_DECODER.decode(body).request
    return Request(uid=head.uid, kind=head.kind, name=head.name, namespace=head.namespace), _TOO_LARGE


def review_app(
    judges: Mapping[str, Judge], observe: Observe, refuse: Refuse = lambda _: "", answered: Answered = lambda _: None
) -> web.Application:
    """Build the web application.

    Args:
        judges: decide on the objects that are sent to ``/<name>``.
        observe: told of each review: name, result, seconds.
        refuse: says which callers are not answered.
        answered: told of each request that was a review.

    """
    app = web.Application(client_max_size=MAX_BODY_BYTES)
    large = asyncio.Semaphore(MAX_LARGE_BODIES)
    app.add_routes(
        [
            web.post(f"/{name}", _handler(name, judge, observe, refuse, answered, large))
            for name, judge in judges.items()
        ]
    )
    return app


def _handler(
    name: str, judge: Judge, observe: Observe, refuse: Refuse, answered: Answered, large: asyncio.Semaphore
) -> Callable[[web.Request], Any]:
    async def review(http: web.Request) -> web.Response:
        if reason := refuse(http):
            observe(name, Result.STRANGER, 0.0)
            return _declined(403, reason)
        length = http.content_length
        if length is None:
            return _declined(411, "Content-Length is required")
        if length > MAX_BODY_BYTES:
            observe(name, Result.TOO_LARGE, 0.0)
            return _declined(413, f"at most {MAX_BODY_BYTES} bytes are read")
        slot = large if length > SMALL_BODY_BYTES else nullcontext()
        try:
            async with asyncio.timeout(BODY_SECONDS), slot:
                return _answered(http, await _read(http))
        except TimeoutError:
            observe(name, Result.LATE, BODY_SECONDS)
            return _declined(408, f"the body did not arrive within {BODY_SECONDS:g} s")
        except ConnectionError:
            observe(name, Result.BROKEN_OFF, 0.0)
            return _declined(400, "the connection ended before the body")

    def _answered(http: web.Request, body: bytearray) -> web.Response:
        began = time.perf_counter()
        try:
            request, left_alone = decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            observe(name, Result.MALFORMED, time.perf_counter() - began)
            return web.Response(
                status=400, text=f"no AdmissionReview of admission.k8s.io/v1: {printable(str(error), 300)}\n"
            )
        response, result = _judged(name, judge, request) if left_alone is None else (left_alone, Result.TOO_LARGE)
        answer = web.Response(body=encode(request, response), content_type="application/json")
        observe(name, result, time.perf_counter() - began)
        answered(http)
        return answer

    return review


async def _read(http: web.Request) -> bytearray:
    """The body. aiohttp's own ``read`` copies it, and lets a connection buffer as much as the largest body has."""
    body = bytearray()
    try:
        while chunk := await http.content.readany():
            body += chunk
    except BaseException:
        body.clear()  # the error may be kept with this frame, and so with what had arrived
        raise
    return body


def _declined(status: int, reason: str) -> web.Response:
    """An answer after which the connection is closed: what was sent on it is not read."""
    answer = web.Response(status=status, text=reason + "\n")
    answer.force_close()
    return answer


def _judged(name: str, judge: Judge, request: Request) -> tuple[AdmissionResponse, Result]:
    try:
        response = judge(request)
    except Exception as error:
        # An internal error must not block a request.
        about = f"{request.namespace}/{request.name}"
        log.error("admission-failed", webhook=name, kind=request.kind.kind, object=about, exc_info=error)
        return AdmissionResponse(), Result.FAILED
    if response.refusals:
        return response, Result.REFUSED
    if response.patch:
        return response, Result.PATCHED
    return response, Result.WARNED if response.warnings else Result.ALLOWED


def encode(request: Request, response: AdmissionResponse) -> bytes:
    """The AdmissionReview that answers ``request``."""
    fields: dict[str, Any] = {"uid": request.uid, "allowed": not response.refusals}
    if response.warnings:
        fields["warnings"] = _first(response.warnings)
    if response.refusals:
        fields["status"] = _status(request, response.refusals)
    elif response.patch:
        fields |= {"patchType": "JSONPatch", "patch": msgspec.json.encode(response.patch)}  # bytes become base64
    return msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": fields})


def _first(warnings: tuple[str, ...]) -> tuple[str, ...]:
    """As many as a person reads: each is a header of the API server's answer."""
    if len(warnings) <= MAX_LISTED:
        return warnings
    return (*warnings[: MAX_LISTED - 1], f"and {len(warnings) - MAX_LISTED + 1} more")


def _status(request: Request, refusals: tuple[FieldError, ...]) -> dict[str, Any]:
    """As the API server says that an object is invalid; kubectl prints the causes."""
    kind = request.kind
    causes = [
        {
            "field": refusal.path,
            "reason": "FieldValueRequired" if refusal.is_missing else "FieldValueInvalid",
            "message": refusal.detail,
        }
        for refusal in refusals[:MAX_LISTED]
    ]
    return {
        "code": 422,
        "reason": "Invalid",
        "message": str(InvalidObject(_full_kind(kind), request.name, refusals)),
        "details": {"name": request.name, "group": kind.group, "kind": kind.kind, "causes": causes},
    }


def _full_kind(kind: Kind) -> str:
    return f"{kind.kind}.{kind.group}" if kind.group else kind.kind
