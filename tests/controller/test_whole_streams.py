"""The whole operator evicts no pod while one of the kinds that it follows is not known completely."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from controller.whole import TIMINGS, Whole, whole
from taintwarden.app import App

FOLLOWED = (
    "taintevictionpolicies",
    "tolerationprofiles",
    "pods",
    "nodes",
    "namespaces",
    "poddisruptionbudgets",
    "replicasets",
    "statefulsets",
    "daemonsets",
    "replicationcontrollers",
    "jobs",
)


@pytest.fixture
async def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Whole]:
    """A node with two pods that need more than 950."""
    async with whole(monkeypatch, tmp_path) as made:
        made.policy()
        made.node("n1")
        made.pods("n1", "a", "b")
        yield made


async def leads(scene: Whole) -> App:
    app = await scene.start()
    await scene.until(lambda: app.machine.view.is_leading)
    return app


async def test_the_listed_kinds_are_followed_and_no_others(scene: Whole) -> None:
    await leads(scene)
    await scene.until(lambda: all(scene.cluster.open_watches(resource) == 1 for resource in FOLLOWED))
    assert scene.cluster.open_watches() == len(FOLLOWED)


async def test_deployments_are_followed_while_a_policy_replaces_first(scene: Whole) -> None:
    await leads(scene)
    scene.policy("first", eviction={"replaceFirst": {}})
    await scene.until(lambda: scene.cluster.open_watches("deployments") == 1)
    scene.cluster.store.delete("taintevictionpolicies", "first")
    await scene.until(lambda: scene.cluster.open_watches("deployments") == 0)


async def test_no_replica_leads_before_every_kind_was_listed(scene: Whole) -> None:
    app = await scene.connect()
    refused = {name: scene.faults.answer(403, path=f"/{name}$", times=1_000_000) for name in FOLLOWED}
    await app.start()
    for fault in refused.values():
        occurrences = fault.occurrences
        await scene.until(lambda fault=fault, occurrences=occurrences: fault.occurrences > occurrences)
        assert app.unready() == "the cluster is not fully known yet"
        fault.times = 0
    await scene.until(lambda: app.machine.view.is_leading)


async def test_a_replica_that_is_cut_off_from_one_kind_is_not_ready(scene: Whole) -> None:
    scene.timings = replace(TIMINGS, streams=replace(TIMINGS.streams, gap=0.1))
    app = await leads(scene)
    for resource in FOLLOWED:
        await scene.until(lambda: not app.unready())
        away = scene.faults.answer(503, path=f"/{resource}$", times=1_000_000)
        scene.cluster.drop_watches(resource)
        await scene.until(lambda away=away: away.occurrences >= 2)
        await scene.until(lambda resource=resource: app.unready().endswith(f"no pod is evicted: {resource}"))
        away.times = 0
        await scene.until(lambda: not app.unready())


@pytest.mark.parametrize("begun", [False, True], ids=["listed", "watched"])
async def test_an_undecodable_budget_holds_its_namespace_until_it_is_deleted(scene: Whole, begun: bool) -> None:
    nonsense = {"metadata": {"name": "odd", "namespace": "default"}, "spec": {"selector": "app=web"}, "status": {}}
    if begun:
        app = await leads(scene)
    scene.cluster.store.create("poddisruptionbudgets", nonsense)
    if not begun:
        app = await leads(scene)
    await scene.until(lambda: _undecodable(app) == 1)
    scene.taint("n1", "940")
    await scene.until(lambda: len([*app.machine.view.all_claims()]) == 2)
    await asyncio.sleep(0.2)
    assert scene.observed() == {"a", "b"}
    scene.cluster.delete("poddisruptionbudgets", "odd", "default")
    await scene.until(lambda: not scene.observed())


def _undecodable(app: App) -> float:
    found = re.search(rb'undecodable_objects_total\{resource="poddisruptionbudgets"\} (\S+)', app.exposition())
    return float(found[1]) if found else 0.0
