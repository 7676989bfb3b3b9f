"""AdmissionReviews over HTTP: answered in the API server's form, and never in anybody's way."""

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
from taintwarden.admission.door import Request
from taintwarden.admission.ruling import PatchStep, Ruling
from taintwarden.api.errors import FieldError
from taintwarden.handlers.reviews import review_app

WRONG = FieldError("spec.a", "0950", "leading zeros are not allowed", "write 950, not 0950")


class Bench:
    """A server whose judge answers as told."""

    session: aiohttp.ClientSession

    def __init__(self) -> None:
        self.ruling: Ruling | Exception = Ruling()
        self.asked: list[Request] = []
        self.observed: list[tuple[str, str]] = []

    def judge(self, request: Request) -> Ruling:
        self.asked.append(request)
        if isinstance(self.ruling, Exception):
            raise self.ruling
        return self.ruling

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
    async with aiohttp.ClientSession(f"http://127.0.0.1:{runner.addresses[0][1]}") as bench.session:
        yield bench
    await runner.cleanup()


async def test_what_is_well_is_allowed(bench):
    assert await bench.response() == {"uid": "u", "allowed": True}
    assert bench.observed == [("validate", "allowed")]


async def test_the_judge_gets_the_object_and_what_it_replaces(bench):
    await bench.response(oldObject={"metadata": {"name": "old"}}, operation="UPDATE")
    (asked,) = bench.asked
    assert (asked.kind.group, asked.kind.kind, asked.namespace) == ("apps", "Deployment", "shop")
    assert asked.object == {"metadata": {"name": "web"}}
    assert asked.old_object == {"metadata": {"name": "old"}}


async def test_a_refusal_is_told_as_the_server_tells_its_own(bench):
    bench.ruling = Ruling(refusals=(WRONG,))
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


async def test_a_field_that_is_missing_has_a_cause_of_its_own(bench):
    bench.ruling = Ruling(refusals=(FieldError("spec.key", UNSET, "Gt needs a key"),))
    (cause,) = (await bench.response())["status"]["details"]["causes"]
    assert (cause["reason"], cause["message"]) == ("FieldValueRequired", "Required value: Gt needs a key")


async def test_warnings_come_with_what_is_allowed(bench):
    bench.ruling = Ruling(warnings=("mind the gap",))
    assert await bench.response() == {"uid": "u", "allowed": True, "warnings": ["mind the gap"]}
    assert bench.observed == [("validate", "warned")]


async def test_a_patch_is_base64_of_json(bench):
    bench.ruling = Ruling(patch=(PatchStep("add", "/spec/tolerations", [{"key": "sla"}]),))
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
async def test_what_is_no_review_is_answered_400_without_noise(bench, body):
    with capture_logs() as logs:
        status, _ = await bench.post(body)
    assert (status, logs) == (400, [])
    assert bench.observed == [("validate", "malformed")]


async def test_a_fault_of_ours_lets_the_object_through_and_is_logged(bench):
    bench.ruling = ValueError("oh no")
    with capture_logs() as logs:
        assert await bench.response() == {"uid": "u", "allowed": True}
    assert [(line["event"], line["object"]) for line in logs] == [("admission-failed", "shop/web")]
    assert bench.observed == [("validate", "failed")]


async def test_other_paths_are_not_served(bench):
    assert (await bench.post(review(), "/elsewhere"))[0] == 404


async def test_two_objects_of_the_greatest_size_fit(bench):
    big = {"metadata": {"name": "web"}, "data": "x" * 3 * 2**20}
    assert (await bench.response(object=big, oldObject=big))["allowed"]
