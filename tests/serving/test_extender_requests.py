"""The protocol of scheduler extenders over HTTP."""

import io
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from structlog.testing import capture_logs

from scheduling.scene import ABOVE, Scene, node, pod_json, sla
from taintwarden_placement.serving.extender_requests import MAX_BODY_BYTES, RESULTS, VERBS, extender_app

POD = pod_json(tolerations=[ABOVE])


class Bench:
    """A served extender."""

    session: aiohttp.ClientSession

    def __init__(self) -> None:
        self.scene = Scene()
        self.scene.nodes |= {"good": node(sla(980)), "bad": node(sla(940))}
        self.observed: list[tuple[str, str]] = []

    async def post(self, verb: str, body: Any) -> tuple[int, str]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self.session.post(f"/{verb}", data=io.BytesIO(data)) as response:
            return response.status, await response.text()


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    app = extender_app(made.scene.extender, lambda verb, result, _: made.observed.append((verb, result)))
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as made.session:
        yield made
    await runner.cleanup()


async def test_filter(bench):
    status, text = await bench.post("filter", {"Pod": POD, "Nodes": None, "NodeNames": ["good", "bad"]})
    reason = "taint sla=940:NoSchedule is not tolerated (sla Gt '950':NoSchedule does not hold)"
    assert status == 200
    assert json.loads(text) == {"NodeNames": ["good"], "FailedAndUnresolvableNodes": {"bad": reason}}
    assert bench.observed == [("filter", "answered")]


async def test_without_feasible_nodes_the_list_is_empty_and_not_absent(bench):
    _, text = await bench.post("filter", {"Pod": POD, "NodeNames": ["bad"]})
    assert json.loads(text)["NodeNames"] == []


async def test_prioritize(bench):
    _, text = await bench.post("prioritize", {"Pod": POD, "NodeNames": ["good"]})
    assert json.loads(text) == [{"Host": "good", "Score": 0}]


async def test_preempt_passes_on_victims_unchanged(bench):
    victims = {"Pods": [{"UID": "u"}], "NumPDBViolations": 1}
    given = {"Pod": POD, "NodeNameToVictims": None, "NodeNameToMetaVictims": {"good": victims, "bad": victims}}
    _, text = await bench.post("preempt", given)
    assert json.loads(text) == {"NodeNameToMetaVictims": {"good": victims}}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        {"Pod": POD, "Nodes": {"items": []}},
        {"Pod": 1, "NodeNames": []},
        {"NodeNames": []},
        {"Pod": {"metadata": {"annotations": {"taintwarden.io/node-affinity": 1}}}, "NodeNames": []},
    ],
)
async def test_a_malformed_request_is_refused_and_the_next_one_answered(bench, body):
    status, text = await bench.post("filter", body)
    assert status == 400
    assert text.startswith("not the arguments of a call with nodeCacheCapable: true: ")
    assert (await bench.post("filter", {"Pod": POD, "NodeNames": []}))[0] == 200
    assert bench.observed == [("filter", "malformed"), ("filter", "answered")]


async def test_the_names_of_many_nodes_are_read(bench):
    given = {"Pod": POD, "NodeNames": ["good"], "Nodes": "x" * (MAX_BODY_BYTES - 10_000)}
    assert (await bench.post("filter", given))[0] == 200


async def test_a_body_that_is_too_large_is_not_read(bench):
    status, _ = await bench.post("filter", b" " * (MAX_BODY_BYTES + 1))
    assert (status, bench.observed) == (413, [("filter", "too-large")])


async def test_an_internal_error_is_answered_500_and_logged_once(bench):
    bench.scene.nodes["good"] = "no node"
    with capture_logs() as logs:
        answers = [await bench.post("filter", {"Pod": POD, "NodeNames": ["good"]}) for _ in range(3)]
    assert ([status for status, _ in answers], bench.observed) == ([500] * 3, [("filter", "failed")] * 3)
    assert [(one["event"], one["verb"]) for one in logs] == [("extender-failed", "filter")]


async def test_every_verb_and_result_has_a_name(bench):
    for verb in VERBS:
        await bench.post(verb, b"")
    assert {verb for verb, _ in bench.observed} == set(VERBS)
    assert {result for _, result in bench.observed} <= set(RESULTS)
