"""AdmissionReviews (admission.k8s.io/v1) over HTTP: decoded, passed on, answered.

An error here never blocks a request: an object that cannot be processed is admitted.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

import msgspec
import structlog
from aiohttp import web

from taintwarden.fields.field_errors import MAX_LISTED, FieldError, InvalidObject
from taintwarden.fields.text import printable
from taintwarden.kube.errors import NOT_JSON
from taintwarden.serving.log_limiter import LogLimiter
from taintwarden_placement.admission.response import AdmissionResponse
from taintwarden_placement.admission.webhooks import AdmissionRequest
from taintwarden_placement.serving.bodies import Answered, Bodies, Observe, Refuse

MAX_BODY_BYTES = 2**20
"""Larger ones are not read, and the API server stores such an object as if there were no webhook: what is made of JSON
takes twenty times its size. No pod that is meant to run comes near it.
"""
RESULTS = (
    "allowed",
    "warned",
    "patched",
    "refused",
    "failed",
    "stranger",
    "too-large",
    "late",
    "broken-off",
    "malformed",
)
"""How a review ends, as it is counted."""
Judge = Callable[[AdmissionRequest], AdmissionResponse]

log = structlog.get_logger()


class Review(msgspec.Struct, rename="camel"):
    """What the API server sends."""

    api_version: Literal["admission.k8s.io/v1"]
    kind: Literal["AdmissionReview"]
    request: AdmissionRequest


_DECODER = msgspec.json.Decoder(Review)


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
    is_logged = LogLimiter()
    answers = {name: partial(_answer, name, judge, is_logged) for name, judge in judges.items()}
    return Bodies(observe, refuse, answered, max_bytes=MAX_BODY_BYTES).app(answers)


async def _answer(name: str, judge: Judge, is_logged: LogLimiter, body: bytearray) -> tuple[web.Response, str]:
    try:
        request = _DECODER.decode(body).request
    except NOT_JSON as error:
        words = f"no AdmissionReview of admission.k8s.io/v1: {printable(str(error), 300)}\n"
        return web.Response(status=400, text=words), "malformed"
    response, result = _judged(name, judge, is_logged, request)
    return web.Response(body=encode(request, response), content_type="application/json"), result


def _judged(name: str, judge: Judge, is_logged: LogLimiter, request: AdmissionRequest) -> tuple[AdmissionResponse, str]:
    try:
        response = judge(request)
    except Exception as error:
        # An internal error must not block a request.
        if is_logged((name, type(error))):
            about = f"{request.namespace}/{request.name}"
            log.error("admission-failed", webhook=name, kind=request.kind.kind, object=about, exc_info=error)
        return AdmissionResponse(), "failed"
    if response.refusals:
        return response, "refused"
    if response.patch:
        return response, "patched"
    return response, "warned" if response.warnings else "allowed"


def encode(request: AdmissionRequest, response: AdmissionResponse) -> bytes:
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


def _status(request: AdmissionRequest, refusals: tuple[FieldError, ...]) -> dict[str, Any]:
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
    full_kind = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    return {
        "code": 422,
        "reason": "Invalid",
        "message": str(InvalidObject(full_kind, request.name, refusals)),
        "details": {"name": request.name, "group": kind.group, "kind": kind.kind, "causes": causes},
    }
