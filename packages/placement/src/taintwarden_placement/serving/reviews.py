"""The web application for AdmissionReviews (admission.k8s.io/v1).

An internal error never blocks a request: the object is admitted.
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
from taintwarden_placement.serving.bounded_handlers import Answered, BoundedHandlers, Observe, Refuse

MAX_BODY_BYTES = 2**20
"""Maximum size of a review, since decoded JSON takes twenty times its size. No real pod is nearly as large.
The API server admits a larger object without the webhook (``failurePolicy: Ignore``).
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
"""Results of reviews, as counted by metrics."""
Decide = Callable[[AdmissionRequest], AdmissionResponse]

log = structlog.get_logger()


class Review(msgspec.Struct, rename="camel"):
    """An AdmissionReview as the API server sends it."""

    api_version: Literal["admission.k8s.io/v1"]
    kind: Literal["AdmissionReview"]
    request: AdmissionRequest


_DECODER = msgspec.json.Decoder(Review)


def review_app(
    webhooks: Mapping[str, Decide], observe: Observe, refuse: Refuse = lambda _: "", answered: Answered = lambda _: None
) -> web.Application:
    """Build the web application.

    Args:
        webhooks: path name -> function that decides on the objects sent to ``/<name>``.
        observe: called with name, result and seconds of each review.
        refuse: returns why a caller gets no answer; empty if it gets one.
        answered: called with each request that got status 200.

    """
    may_log = LogLimiter()
    answers = {name: partial(_answer, name, decide, may_log) for name, decide in webhooks.items()}
    return BoundedHandlers(observe, refuse, answered, max_bytes=MAX_BODY_BYTES).app(answers)


async def _answer(name: str, decide: Decide, may_log: LogLimiter, body: bytearray) -> tuple[web.Response, str]:
    try:
        request = _DECODER.decode(body).request
    except NOT_JSON as error:
        words = f"not an AdmissionReview of admission.k8s.io/v1: {printable(str(error), 300)}\n"
        return web.Response(status=400, text=words), "malformed"
    response, result = _review(name, decide, may_log, request)
    return web.Response(body=encode(request, response), content_type="application/json"), result


def _review(name: str, decide: Decide, may_log: LogLimiter, request: AdmissionRequest) -> tuple[AdmissionResponse, str]:
    try:
        response = decide(request)
    except Exception as error:
        # An internal error must not block a request.
        if may_log((name, type(error))):
            about = f"{request.namespace}/{request.name}"
            log.error("admission-failed", webhook=name, kind=request.kind.kind, object=about, exc_info=error)
        return AdmissionResponse(), "failed"
    if response.refusals:
        return response, "refused"
    if response.patch:
        return response, "patched"
    return response, "warned" if response.warnings else "allowed"


def encode(request: AdmissionRequest, response: AdmissionResponse) -> bytes:
    """Return the AdmissionReview that answers ``request``."""
    fields: dict[str, Any] = {"uid": request.uid, "allowed": not response.refusals}
    if response.warnings:
        fields["warnings"] = _first(response.warnings)
    if response.refusals:
        fields["status"] = _status(request, response.refusals)
    elif response.patch:
        fields |= {"patchType": "JSONPatch", "patch": msgspec.json.encode(response.patch)}  # bytes become base64
    return msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": fields})


def _first(warnings: tuple[str, ...]) -> tuple[str, ...]:
    """Return the first warnings. Each becomes a header of the API server's answer."""
    if len(warnings) <= MAX_LISTED:
        return warnings
    return (*warnings[: MAX_LISTED - 1], f"and {len(warnings) - MAX_LISTED + 1} more")


def _status(request: AdmissionRequest, refusals: tuple[FieldError, ...]) -> dict[str, Any]:
    """Return a status as the API server returns it for an invalid object. kubectl prints the causes."""
    kind = request.kind
    causes = [
        {
            "field": refusal.path,
            "reason": refusal.error_type.cause,
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
