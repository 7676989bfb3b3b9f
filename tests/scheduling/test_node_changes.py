"""Answers wait for a change of a node, which the scheduler may have received first."""

import asyncio

import pytest

from scheduling.scene import ABOVE, Scene, node, pod, sla
from taintwarden_placement.scheduling.extender import ExtenderArgs
from taintwarden_placement.scheduling.node_changes import WAITS_AT_ONCE, WAITS_PER_SECOND

pytestmark = pytest.mark.looptime


@pytest.fixture
def scene() -> Scene:
    made = Scene()
    made.nodes["a"] = node(sla(940))
    return made


def filtering(scene: Scene, **parts: object) -> "asyncio.Task[list[str] | None]":
    async def fitting() -> list[str] | None:
        return (await scene.extender.filter(ExtenderArgs(pod(**parts), ["a"]))).node_names

    return asyncio.create_task(fitting())


def change(scene: Scene, value: int) -> None:
    scene.nodes["a"] = node(sla(value))
    scene.node_changes.notify()


async def started(task: asyncio.Task) -> bool:
    """Return True if the answer waits."""
    for _ in range(5):
        await asyncio.sleep(0)
    return not task.done()


async def test_a_node_that_fits_a_moment_later_is_found(scene):
    task = filtering(scene, tolerations=[ABOVE])
    assert await started(task)
    change(scene, 945)
    assert await started(task)
    change(scene, 980)
    assert await task == ["a"]


async def test_without_a_change_the_node_is_refused_after_a_moment_and_counted_once(scene):
    assert await filtering(scene, tolerations=[ABOVE]) == []
    assert scene.counted == [("taint", 1)]


async def test_waits_without_effect_are_limited(scene):
    for _ in range(WAITS_AT_ONCE):
        await filtering(scene, tolerations=[ABOVE])
    assert not await started(filtering(scene, tolerations=[ABOVE]))
    scene.now += 1 / WAITS_PER_SECOND
    task = filtering(scene, tolerations=[ABOVE])
    assert await started(task)
    change(scene, 980)
    assert await task == ["a"]


async def test_a_wait_that_found_a_node_is_followed_by_another(scene):
    task = filtering(scene, tolerations=[ABOVE])
    await started(task)
    change(scene, 980)
    await task
    change(scene, 940)
    again = filtering(scene, tolerations=[ABOVE])
    assert await started(again)
    again.cancel()


async def test_several_schedulers_may_wait_at_once(scene):
    tasks = [filtering(scene, tolerations=[ABOVE]) for _ in range(3)]
    assert await started(tasks[0])
    change(scene, 980)
    assert await asyncio.gather(*tasks) == [["a"]] * 3


async def test_an_affinity_that_cannot_be_read_does_not_wait(scene):
    assert not await started(filtering(scene, affinity="{"))


async def test_a_node_that_fits_is_answered_at_once(scene):
    assert not await started(filtering(scene, tolerations=[ABOVE | {"value": "900"}]))


async def test_an_unknown_node_is_awaited(scene):
    scene.nodes["a"] = node(sla(980))
    task = asyncio.create_task(scene.extender.filter(ExtenderArgs(pod(tolerations=[ABOVE]), ["a", "new"])))
    assert await started(task)
    scene.nodes["new"] = node(sla(990))
    scene.node_changes.notify()
    assert (await task).node_names == ["a", "new"]
