"""Changes of one namespace are passed on together, each object once, and no namespace waits for another."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from engine.kept import kept
from taintwarden.controller.handlers.coalescing import AT_ONCE, Coalescer

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime(start=0)]


class PassedOn:
    """The changes that a coalescer passed on, each batch with its time."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self.steps: list[tuple[float, list[str]]] = []
        self.coalescer = Coalescer[str](self.note, 1.0, at_once=at_once)

    def note(self, changes: Sequence[str]) -> None:
        self.steps.append((asyncio.get_running_loop().time(), list(changes)))

    def put(self, key: str, change: str, namespace: str = "shop") -> None:
        self.coalescer.put(namespace, key, change)


@pytest.fixture
async def passed(request: pytest.FixtureRequest) -> AsyncIterator[PassedOn]:
    made = PassedOn(getattr(request, "param", AT_ONCE))
    running = asyncio.create_task(made.coalescer.run())
    yield made
    running.cancel()


async def test_the_first_change_is_passed_on_at_once(passed):
    passed.put("a", "a1")
    assert passed.steps == [(0.0, ["a1"])]


async def test_later_changes_are_passed_on_together_after_a_pause_each_object_once(passed):
    for change in ("a1", "b1", "a2", "b2", "c1", "a3"):
        passed.put(change[0], change)
    await asyncio.sleep(1.5)
    assert passed.steps == [(0.0, ["a1"]), (1.0, ["b2", "c1", "a3"])]


async def test_changes_that_never_end_are_passed_on_once_a_pause(passed):
    for number in range(25):
        passed.put("a", f"a{number}")
        await asyncio.sleep(0.1)
    assert [at for at, _ in passed.steps] == [0.0, 1.0, 2.0]


async def test_after_a_pause_without_changes_the_next_is_passed_on_at_once(passed):
    passed.put("a", "a1")
    await asyncio.sleep(1.5)
    passed.put("a", "a2")
    assert passed.steps == [(0.0, ["a1"]), (1.5, ["a2"])]


async def test_many_changes_of_one_namespace_delay_no_other(passed):
    for number in range(100):
        passed.put(f"a{number}", "noise", "loud")
    passed.put("b", "b1", "quiet")
    assert passed.steps[-1] == (0.0, ["b1"])


@pytest.mark.parametrize("passed", [2], indirect=True)
async def test_many_changes_are_passed_on_in_batches(passed):
    for change in "abcdef":
        passed.put(change, change)
    await asyncio.sleep(1.5)
    assert [changes for _, changes in passed.steps] == [["a"], ["b", "c"], ["d", "e"], ["f"]]


@pytest.mark.parametrize("passed", [2], indirect=True)
async def test_the_batches_of_one_namespace_delay_no_other(passed):
    for change in "abcdef":
        passed.put(change, change, "loud")
    for change in ("x1", "x2"):
        passed.put("x", change, "quiet")
    await asyncio.sleep(1.5)
    batches = [changes for _, changes in passed.steps]
    assert batches.index(["x2"]) < batches.index(["f"])


async def test_flush_passes_on_what_waits(passed):
    for change in ("a1", "b1", "a2"):
        passed.put(change[0], change)
    passed.coalescer.flush()
    await asyncio.sleep(2.5)
    assert passed.steps == [(0.0, ["a1"]), (0.0, ["b1", "a2"])]


async def test_a_namespace_without_changes_is_forgotten(passed):
    for number in range(100):
        passed.put("a", "a1", f"namespace-{number}")
    await asyncio.sleep(1.5)
    assert kept(passed.coalescer, *(f"namespace-{number}" for number in range(100))) == []
