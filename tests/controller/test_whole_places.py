"""Places in the whole operator: stored before pods leave, kept by the next leader, removed with the limit."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controller.whole import Whole, whole
from limits_off import LIMITS_OFF
from taintwarden.app import App

NODES = ("n1", "n2", "n3")


@pytest.fixture
async def placed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Whole]:
    """Three nodes with two pods each, of which one may lose pods; the pods of the first are not evicted."""
    async with whole(monkeypatch, tmp_path) as made:
        made.policy(limits=LIMITS_OFF | {"concurrentNodes": 1})
        for node in NODES:
            made.node(node)
            made.pods(node, f"{node}-a", f"{node}-b")
        yield made


def places(scene: Whole) -> list[str]:
    return [one["node"] for one in (scene.status_of().get("places") or {}).get("nodes", ())]


async def leads(scene: Whole, identity: str = "one") -> App:
    app = await scene.start(identity)
    await scene.until(lambda: app.machine.view.is_leading)
    return app


async def test_a_node_has_a_stored_place_before_its_pods_leave(placed: Whole) -> None:
    await leads(placed)
    refused = placed.faults.answer(500, method="PATCH", path="/taintevictionpolicies/sla/status$", times=1_000_000)
    placed.taint("n1", "940")
    await placed.until(lambda: refused.occurrences >= 2)
    assert placed.evictions == {}
    refused.times = 0
    await placed.until(lambda: not placed.observed("n1-a", "n1-b"))


async def test_the_next_leader_keeps_the_place_of_a_node_that_is_not_drained(placed: Whole) -> None:
    denied = placed.faults.answer(429, method="POST", path="n3-b/eviction$", times=1_000_000)
    first = await leads(placed)
    placed.taint("n3", "940")
    await placed.until(lambda: places(placed) == ["n3"] and not placed.observed("n3-a") and denied.occurrences)
    for node in ("n1", "n2"):
        placed.taint(node, "940")
    await placed.crash(first)
    second = await leads(placed, "two")
    await placed.until(lambda: len(list(second.machine.view.all_claims())) == 5)
    struck = denied.occurrences
    await placed.until(lambda: denied.occurrences > struck)
    assert places(placed) == ["n3"]
    assert placed.observed("n1-a", "n1-b", "n2-a", "n2-b") == {"n1-a", "n1-b", "n2-a", "n2-b"}
    denied.times = 0
    await placed.until(lambda: not placed.observed())
    await placed.until(lambda: places(placed) == [])


async def test_places_end_with_the_limit(placed: Whole) -> None:
    placed.faults.answer(429, method="POST", path="n1-b/eviction$", times=1_000_000)
    await leads(placed)
    placed.taint("n1", "940")
    await placed.until(lambda: places(placed) == ["n1"])
    policy = placed.cluster.store.get("taintevictionpolicies", "sla")
    policy["spec"]["limits"] = LIMITS_OFF
    placed.cluster.store.update("taintevictionpolicies", policy)
    await placed.until(lambda: "places" not in placed.status_of())
