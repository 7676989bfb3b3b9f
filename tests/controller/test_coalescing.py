"""Changes of one namespace come together, each object once, and no namespace waits for another. Time is looptime's."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from engine.kept import kept
from taintwarden.controller.handlers.coalescing import AT_ONCE, Coalescer

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime(start=0)]


class Told:
    """What was passed on, and when."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self.steps: list[tuple[float, list[str]]] = []
        self.coalescer = Coalescer[str](self.note, 1.0, at_once=at_once)

    def note(self, changes: Sequence[str]) -> None:
        self.steps.append((asyncio.get_running_loop().time(), list(changes)))

    def put(self, key: str, change: str, namespace: str = "shop") -> None:
        self.coalescer.put(namespace, key, change)


@pytest.fixture
async def told(request: pytest.FixtureRequest) -> AsyncIterator[Told]:
    made = Told(getattr(request, "param", AT_ONCE))
    running = asyncio.create_task(made.coalescer.run())
    yield made
    running.cancel()


async def test_the_first_is_passed_on_at_once(told):
    told.put("a", "a1")
    assert told.steps == [(0.0, ["a1"])]


async def test_those_that_follow_come_together_after_a_pause_each_object_once(told):
    for change in ("a1", "b1", "a2", "b2", "c1", "a3"):
        told.put(change[0], change)
    await asyncio.sleep(1.5)
    assert told.steps == [(0.0, ["a1"]), (1.0, ["b2", "c1", "a3"])]


async def test_each_time_is_followed_by_a_pause(told):
    for number in range(25):
        told.put("a", f"a{number}")
        await asyncio.sleep(0.1)
    assert [at for at, _ in told.steps] == [0.0, 1.0, 2.0]


async def test_after_a_quiet_pause_the_next_is_passed_on_at_once(told):
    told.put("a", "a1")
    await asyncio.sleep(1.5)
    told.put("a", "a2")
    assert told.steps == [(0.0, ["a1"]), (1.5, ["a2"])]


async def test_a_namespace_waits_for_no_other(told):
    for number in range(100):
        told.put(f"a{number}", "noise", "loud")
    told.put("b", "b1", "quiet")
    assert told.steps[-1] == (0.0, ["b1"])


@pytest.mark.parametrize("told", [2], indirect=True)
async def test_many_come_in_parts(told):
    for change in "abcdef":
        told.put(change, change)
    await asyncio.sleep(1.5)
    assert [changes for _, changes in told.steps] == [["a"], ["b", "c"], ["d", "e"], ["f"]]


@pytest.mark.parametrize("told", [2], indirect=True)
async def test_the_parts_of_one_namespace_hold_up_no_other(told):
    for change in "abcdef":
        told.put(change, change, "loud")
    for change in ("x1", "x2"):
        told.put("x", change, "quiet")
    await asyncio.sleep(1.5)
    passed_on = [changes for _, changes in told.steps]
    assert passed_on.index(["x2"]) < passed_on.index(["f"])


async def test_what_waits_may_be_passed_on_sooner(told):
    for change in ("a1", "b1", "a2"):
        told.put(change[0], change)
    told.coalescer.flush()
    await asyncio.sleep(2.5)
    assert told.steps == [(0.0, ["a1"]), (0.0, ["b1", "a2"])]


async def test_a_namespace_without_changes_is_forgotten(told):
    for number in range(100):
        told.put("a", "a1", f"namespace-{number}")
    await asyncio.sleep(1.5)
    assert kept(told.coalescer, *(f"namespace-{number}" for number in range(100))) == []
