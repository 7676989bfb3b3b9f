"""The whole operator follows TolerationProfiles that are created, changed and deleted, and writes their status."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from contract.api import pod as pod_body
from controller.whole import Whole, whole

GT_900 = {"key": "sla", "operator": "Gt", "value": "900"}
GT_950 = {"key": "sla", "operator": "Gt", "value": "950"}


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Whole]:
    async with whole(monkeypatch, tmp_path) as made:
        made.policy()
        yield made


def plain_pods(world: Whole, *names: str, **labels: str) -> None:
    """Pods whose only toleration is a native one, `sla` with `Exists`."""
    for name in names:
        body = pod_body(name, nodeName="n1", tolerations=[{"key": "sla", "operator": "Exists"}])
        body["metadata"]["labels"] = labels
        world.cluster.create("pods", body)


def profile_status(world: Whole, name: str) -> dict[str, Any]:
    return world.cluster.store.get("tolerationprofiles", name, "default").get("status") or {}


def accepted(world: Whole, name: str) -> str:
    statuses = {one["type"]: one["status"] for one in profile_status(world, name).get("conditions", ())}
    return statuses.get("Accepted", "")


async def test_created_and_deleted_profiles_are_followed(world: Whole) -> None:
    """kopf does not run here; the operator lists and watches profiles itself."""
    world.node("n1", "940")
    plain_pods(world, "a", "b", "c", app="web")
    app = await world.start()
    await world.until(lambda: app.machine.view.is_leading)
    world.profile("loose", GT_900)
    await world.until(lambda: profile_status(world, "loose").get("matchedPods") == 3)
    world.profile("strict", GT_950, labels={"app": "web"})  # after loose by its name: the first that holds is used
    await world.until(lambda: accepted(world, "strict") == "True")
    assert world.observed() == {"a", "b", "c"}
    world.cluster.delete("tolerationprofiles", "loose", "default")
    await world.until(lambda: world.observed() == set())


async def test_a_new_leader_follows_known_profiles(world: Whole) -> None:
    world.profile("p", GT_900)
    world.node("n1", "940")
    plain_pods(world, "a")
    first = await world.start("one")
    await world.until(lambda: first.machine.view.is_leading)
    second = await world.start("two")
    await world.crash(first)
    await world.until(lambda: second.machine.view.is_leading)
    assert world.observed() == {"a"}
    stored = world.cluster.store.get("tolerationprofiles", "p", "default")
    stored["spec"]["tolerations"] = [GT_950]
    world.cluster.store.update("tolerationprofiles", stored)
    await world.until(lambda: world.observed() == set())
