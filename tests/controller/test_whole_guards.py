"""Guards in the whole operator: records are stored before pods leave, and read by the next leader."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from controller.whole import Whole, whole
from taintwarden.app import App
from taintwarden.engine.records import GuardRecord

CROWD = [f"crowd-{number}" for number in range(60)]
"""More pods than a guard allows by default."""


@pytest.fixture
async def guarded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Whole]:
    """Many pods on one node, under a policy with the default guard and a high rate."""
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
    """Pods that stay, so that the crowd is half of all pods, which is more than the guard allows."""
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


async def test_a_follower_without_watch_events_reads_the_record_before_it_leads(guarded: Whole) -> None:
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


async def test_a_replica_that_leads_again_counts_a_record_that_it_ignored_while_it_led(guarded: Whole) -> None:
    """A replica that was cut off may have led, in its view, while another one led."""
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


async def test_a_lease_lost_while_policies_are_listed_does_not_begin_a_lead(guarded: Whole) -> None:
    app = await leads(guarded)
    app.lease_changed(held=False)
    app.lease_changed(held=True)
    app.lease_changed(held=False)
    await asyncio.sleep(0.3)
    assert not app.machine.view.is_leading


async def test_evicted_pods_are_in_the_record_before_their_eviction(guarded: Whole) -> None:
    """At every eviction the stored record covers all pods that were called so far."""
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


async def test_no_pod_is_evicted_while_the_record_cannot_be_written(guarded: Whole) -> None:
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


async def test_no_replica_leads_before_it_has_read_the_stored_record(guarded: Whole) -> None:
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
