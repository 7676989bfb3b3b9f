"""AdmissionReviews (admission.k8s.io/v1) over HTTP: decoded, handed over, answered.

What goes wrong here never keeps anybody from running a pod: an object that we stumble over is let through.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec
import structlog
from aiohttp import web

from taintwarden.admission.door import Kind, Request
from taintwarden.admission.ruling import Ruling
from taintwarden.api.errors import FieldError, InvalidObject

MAX_BODY_BYTES = 8 * 2**20
"""The API server takes objects of 3 MiB, and a review may have two."""

Judge = Callable[[Request], Ruling]
Observe = Callable[[str, str, float], None]

log = structlog.get_logger()


class Review(msgspec.Struct, rename="camel"):
    """What the API server sends."""

    api_version: Literal["admission.k8s.io/v1"]
    kind: Literal["AdmissionReview"]
    request: Request


_DECODER = msgspec.json.Decoder(Review)


def review_app(judges: Mapping[str, Judge], observe: Observe) -> web.Application:
    """Build the web application.

    Args:
        judges: who rules on what is sent to ``/<name>``.
        observe: told of each review: name, result, seconds.

    """
    app = web.Application(client_max_size=MAX_BODY_BYTES)
    app.add_routes([web.post(f"/{name}", _handler(name, judge, observe)) for name, judge in judges.items()])
    return app


def _handler(name: str, judge: Judge, observe: Observe) -> Callable[[web.Request], Any]:
    async def review(http: web.Request) -> web.Response:
        body = await http.read()
        began = time.perf_counter()
        try:
            request = _DECODER.decode(body).request
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            observe(name, "malformed", time.perf_counter() - began)
            return web.Response(status=400, text=f"no AdmissionReview of admission.k8s.io/v1: {error}\n")
        ruling, result = _judged(name, judge, request)
        answer = web.Response(body=encode(request, ruling), content_type="application/json")
        observe(name, result, time.perf_counter() - began)
        return answer

    return review


def _judged(name: str, judge: Judge, request: Request) -> tuple[Ruling, str]:
    try:
        ruling = judge(request)
    except Exception as error:
        # A fault of ours must not keep anybody from running a pod.
        about = f"{request.namespace}/{request.name}"
        log.error("admission-failed", webhook=name, kind=request.kind.kind, object=about, exc_info=error)
        return Ruling(), "failed"
    if ruling.refusals:
        return ruling, "refused"
    if ruling.patch:
        return ruling, "patched"
    return ruling, "warned" if ruling.warnings else "allowed"


def encode(request: Request, ruling: Ruling) -> bytes:
    """The AdmissionReview that answers ``request``."""
    response: dict[str, Any] = {"uid": request.uid, "allowed": not ruling.refusals}
    if ruling.warnings:
        response["warnings"] = ruling.warnings
    if ruling.refusals:
        response["status"] = _status(request, ruling.refusals)
    elif ruling.patch:
        response |= {"patchType": "JSONPatch", "patch": msgspec.json.encode(ruling.patch)}  # bytes become base64
    return msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})


def _status(request: Request, refusals: tuple[FieldError, ...]) -> dict[str, Any]:
    """As the API server says that an object is invalid; kubectl prints the causes."""
    kind = request.kind
    causes = [
        {
            "field": refusal.path,
            "reason": "FieldValueRequired" if refusal.is_missing else "FieldValueInvalid",
            "message": refusal.detail,
        }
        for refusal in refusals
    ]
    return {
        "code": 422,
        "reason": "Invalid",
        "message": str(InvalidObject(_full_kind(kind), request.name, refusals)),
        "details": {"name": request.name, "group": kind.group, "kind": kind.kind, "causes": causes},
    }


def _full_kind(kind: Kind) -> str:
    return f"{kind.kind}.{kind.group}" if kind.group else kind.kind
