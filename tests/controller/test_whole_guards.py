"""Guards in the whole operator: written down before anybody leaves, known to the next leader, reset by a person."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from controller.whole import Whole, whole
from taintwarden.app import App
from taintwarden.engine.records import GuardRecord

CROWD = [f"crowd-{number}" for number in range(60)]
"""More than a guard lets go by default."""


@pytest.fixture
async def guarded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Whole]:
    """A crowd on one node, under a policy with the default guard and no rate to speak of."""
    async with whole(monkeypatch, tmp_path) as made:
        made.policy(limits={"evictionsPerSecond": 1000, "burst": 1000, "guard": {"settleSeconds": 0}})
        made.node("n1")
        made.pods("n1", *CROWD)
        yield made


def guard(scene: Whole) -> dict[str, Any]:
    found: dict[str, Any] = scene.status_of().get("guard") or {}
    return found


def condition(scene: Whole, kind: str) -> str:
    return next((one["status"] for one in scene.status_of().get("conditions", ()) if one["type"] == kind), "")


def crowd_elsewhere(scene: Whole) -> None:
    """Pods that stay, so that the crowd is no more than half of all: a guard lets less than that go."""
    scene.node("n2")
    scene.pods("n2", *(f"quiet-{number}" for number in range(len(CROWD))))


async def leads(scene: Whole, identity: str = "one") -> App:
    app = await scene.start(identity)
    await scene.until(lambda: app.machine.view.is_leading)
    return app


def evicted(app: App) -> int:
    return sum(number for _, pods in record(app).evicted for _, number in pods)


def record(app: App) -> GuardRecord:
    report = app.machine.view.guard("sla")
    return report.record


async def opened(scene: Whole) -> None:
    scene.taint("n1", "940")
    await scene.until(lambda: guard(scene).get("trippedAt") and condition(scene, "GuardTripped") == "True")


async def test_a_follower_that_heard_nothing_reads_it_before_it_leads(guarded: Whole) -> None:
    first = await leads(guarded)
    second = await guarded.start("two")
    await guarded.until(lambda: second.machine.view.is_synced)
    guarded.faults.delay_watch("taintevictionpolicies", 1_000.0)
    await opened(guarded)
    since = guard(guarded)["trippedAt"]
    assert record(second).tripped_at is None
    await guarded.crash(first)
    await guarded.until(lambda: second.machine.view.is_leading)
    assert record(second).tripped_at is not None
    await asyncio.sleep(0.3)
    assert guard(guarded)["trippedAt"] == since


async def test_whoever_leads_again_believes_what_it_did_not_believe_while_it_led(guarded: Whole) -> None:
    """Cut off, it may have thought that it led while another one did."""
    app = await leads(guarded)
    counted = [{"namespace": "default", "pods": 7}]
    written = {"evicted": [{"until": "2099-01-01T00:00:00Z", "namespaces": counted}]}
    policy = guarded.cluster.store.get("taintevictionpolicies", "sla")
    guarded.cluster.store.update("taintevictionpolicies", policy | {"status": {"guard": written}})
    await asyncio.sleep(0.2)
    assert evicted(app) == 0
    app.lease_changed(held=False)
    app.lease_changed(held=True)
    await guarded.until(lambda: app.machine.view.is_leading)
    assert evicted(app) == 7


async def test_a_lead_that_is_lost_while_policies_are_read_again_does_not_begin(guarded: Whole) -> None:
    app = await leads(guarded)
    app.lease_changed(held=False)
    app.lease_changed(held=True)
    app.lease_changed(held=False)
    await asyncio.sleep(0.3)
    assert not app.machine.view.is_leading


async def test_what_leaves_was_written_down_before(guarded: Whole) -> None:
    """At every eviction the store allows for all that were asked for so far."""
    stored: list[int] = []

    def note() -> bool:
        past = (one["pods"] for slot in guard(guarded).get("evicted", ()) for one in slot["namespaces"])
        stored.append(sum(past) + len(guard(guarded).get("reserved", ())))
        assert sum(guarded.evictions.values()) <= max(stored)
        return not guarded.observed(*CROWD[:40])

    crowd_elsewhere(guarded)
    for name in CROWD[40:]:
        guarded.cluster.delete("pods", name, "default")
    await leads(guarded)
    guarded.taint("n1", "940")
    await guarded.until(note)


async def test_nobody_leaves_while_the_record_cannot_be_written(guarded: Whole) -> None:
    crowd_elsewhere(guarded)
    for name in CROWD[10:]:
        guarded.cluster.delete("pods", name, "default")
    await leads(guarded)
    refused = guarded.faults.answer(500, method="PATCH", path="/taintevictionpolicies/sla/status$", times=1_000_000)
    guarded.taint("n1", "940")
    await guarded.until(lambda: refused.occurrences >= 2)
    await asyncio.sleep(0.5)
    assert guarded.evictions == {}
    refused.times = 0
    await guarded.until(lambda: not guarded.observed(*CROWD[:10]))


async def test_nobody_leads_before_it_has_read_what_the_one_before_wrote(guarded: Whole) -> None:
    refused = guarded.faults.answer(503, path="/leases", times=1_000_000)
    app = await guarded.start()
    await guarded.until(lambda: app.machine.view.is_synced)
    away = guarded.faults.answer(503, method="GET", path="/taintevictionpolicies$", times=1_000_000)
    refused.times = 0
    await guarded.until(lambda: app.lease.is_held and away.occurrences)
    await asyncio.sleep(0.3)
    assert not app.machine.view.is_leading
    away.times = 0
    await guarded.until(lambda: app.machine.view.is_leading)
