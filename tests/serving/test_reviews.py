"""AdmissionReviews over HTTP are answered in the API server's form, and internal errors allow the object."""

import base64
import io
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from msgspec import UNSET
from structlog.testing import capture_logs

from admission.workloads import Json, review
from taintwarden.fields.field_errors import ErrorType, FieldError, duplicate, forbidden, too_long, too_many
from taintwarden_placement.admission.response import AdmissionResponse, PatchOperation
from taintwarden_placement.admission.webhooks import AdmissionRequest
from taintwarden_placement.serving.reviews import MAX_BODY_BYTES, review_app

WRONG = FieldError("spec.a", "0950", "leading zeros are not allowed", "write 950, not 0950")


class Bench:
    """A server whose judge gives the answer of the test."""

    session: aiohttp.ClientSession
    port: int

    def __init__(self) -> None:
        self.judged: AdmissionResponse | Exception = AdmissionResponse()
        self.asked: list[AdmissionRequest] = []
        self.observed: list[tuple[str, str]] = []

    def judge(self, request: AdmissionRequest) -> AdmissionResponse:
        self.asked.append(request)
        if isinstance(self.judged, Exception):
            raise self.judged
        return self.judged

    async def post(self, body: Any, path: str = "/validate") -> tuple[int, str]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self.session.post(path, data=io.BytesIO(data)) as response:
            return response.status, await response.text()

    async def response(self, **request: Any) -> Json:
        status, text = await self.post(review(**request))
        answer = json.loads(text)
        assert (status, answer["apiVersion"], answer["kind"]) == (200, "admission.k8s.io/v1", "AdmissionReview")
        return answer["response"]


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    app = review_app({"validate": bench.judge}, lambda name, result, _: bench.observed.append((name, result)))
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    bench.port = runner.addresses[0][1]
    async with aiohttp.ClientSession(f"http://127.0.0.1:{bench.port}") as bench.session:
        yield bench
    await runner.cleanup()


async def test_an_object_without_faults_is_allowed(bench):
    assert await bench.response() == {"uid": "u", "allowed": True}
    assert bench.observed == [("validate", "allowed")]


async def test_the_judge_gets_the_object_and_the_old_object(bench):
    await bench.response(oldObject={"metadata": {"name": "old"}}, operation="UPDATE")
    (asked,) = bench.asked
    assert (asked.kind.group, asked.kind.kind, asked.namespace) == ("apps", "Deployment", "shop")
    assert asked.object == {"metadata": {"name": "web"}}
    assert asked.old_object == {"metadata": {"name": "old"}}


async def test_a_refusal_has_the_form_of_the_api_server(bench):
    bench.judged = AdmissionResponse(refusals=(WRONG,))
    response = await bench.response()
    assert response["allowed"] is False
    status = response["status"]
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert status["message"] == (
        'Deployment.apps "web" is invalid: spec.a: Invalid value: "0950": '
        "leading zeros are not allowed; write 950, not 0950"
    )
    assert status["details"] == {
        "name": "web",
        "group": "apps",
        "kind": "Deployment",
        "causes": [
            {
                "field": "spec.a",
                "reason": "FieldValueInvalid",
                "message": 'Invalid value: "0950": leading zeros are not allowed; write 950, not 0950',
            }
        ],
    }
    assert bench.observed == [("validate", "refused")]


@pytest.mark.parametrize(
    ("fault", "reason", "message"),
    [
        (FieldError("a", UNSET, "must be given"), "FieldValueRequired", "Required value: must be given"),
        (
            duplicate("a", "b", "is listed in [0]", "remove it"),
            "FieldValueDuplicate",
            'Duplicate value: "b": is listed',
        ),
        (FieldError("a", "b", "", "", ErrorType.NOT_SUPPORTED), "FieldValueNotSupported", 'Unsupported value: "b": '),
        (forbidden("a", "may not be", "remove it"), "FieldValueForbidden", "Forbidden: may not be; remove it"),
        (too_long("a", "bb", 1), "FieldValueTooLong", "Too long: may not be more than 1 characters"),
        (too_many("a", 3, 2), "FieldValueTooMany", "Too many: 3: must have at most 2 items"),
    ],
)
async def test_each_type_of_fault_has_its_cause(bench, fault, reason, message):
    bench.judged = AdmissionResponse(refusals=(fault,))
    (cause,) = (await bench.response())["status"]["details"]["causes"]
    assert cause["reason"] == reason
    assert cause["message"].startswith(message)


async def test_an_allowed_object_has_its_warnings(bench):
    bench.judged = AdmissionResponse(warnings=("mind the gap",))
    assert await bench.response() == {"uid": "u", "allowed": True, "warnings": ["mind the gap"]}
    assert bench.observed == [("validate", "warned")]


async def test_a_patch_is_base64_of_json(bench):
    bench.judged = AdmissionResponse(patch=(PatchOperation("add", "/spec/tolerations", [{"key": "sla"}]),))
    response = await bench.response()
    assert response["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(response["patch"])) == [
        {"op": "add", "path": "/spec/tolerations", "value": [{"key": "sla"}]}
    ]
    assert bench.observed == [("validate", "patched")]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b"[" * 100_000,
        b"null",
        {},
        review() | {"apiVersion": "admission.k8s.io/v1beta1"},
        review() | {"kind": "Pod"},
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"},
        review(uid=7),
        review(object=[]),
        review(kind=None),
    ],
    ids=str,
)
async def test_a_malformed_review_is_answered_400_and_not_logged(bench, body):
    with capture_logs() as logs:
        status, _ = await bench.post(body)
    assert (status, logs) == (400, [])
    assert bench.observed == [("validate", "malformed")]


async def test_an_internal_error_allows_the_object_and_is_logged_once(bench):
    """The line is logged once in a while, since a client chooses how often it causes the error."""
    bench.judged = ValueError("oh no")
    with capture_logs() as logs:
        for _ in range(3):
            assert await bench.response() == {"uid": "u", "allowed": True}
    assert [(line["event"], line["object"]) for line in logs] == [("admission-failed", "shop/web")]
    assert bench.observed == [("validate", "failed")] * 3


async def test_a_large_object_is_judged(bench):
    big = {"metadata": {"name": "web"}, "data": "x" * (MAX_BODY_BYTES - 2_000)}
    bench.judged = AdmissionResponse(refusals=(WRONG,))
    assert not (await bench.response(object=big))["allowed"]


async def test_a_body_that_is_too_large_is_not_read(bench):
    status, _ = await bench.post(b"x" * (MAX_BODY_BYTES + 1))
    assert status == 413
    assert bench.observed == [("validate", "too-large")]


async def test_a_body_without_a_length_is_not_read(bench):
    async def chunks() -> AsyncIterator[bytes]:
        yield b"{"

    async with bench.session.post("/validate", data=chunks()) as response:
        assert response.status == 411
    assert bench.observed == []


async def test_of_many_warnings_the_first_are_sent(bench):
    bench.judged = AdmissionResponse(warnings=tuple(f"warning {number}" for number in range(100)))
    sent = (await bench.response())["warnings"]
    assert len(sent) == 10
    assert sent[-1] == "and 91 more"


async def test_of_many_faults_the_first_are_sent(bench):
    bench.judged = AdmissionResponse(
        refusals=tuple(FieldError(f"spec.f{number}", 1, "is wrong") for number in range(90))
    )
    status = (await bench.response())["status"]
    assert len(status["details"]["causes"]) == 10
    assert status["message"].endswith("* and 80 more")
