"""kopf lives as long as the operator, in as many lives as it takes."""

import asyncio
from collections.abc import Callable
from typing import Any

import kopf
import pytest

from taintwarden.handlers import lives

Live = Callable[[asyncio.Event], Any]


@pytest.fixture
def begun(monkeypatch) -> list[asyncio.Event]:
    """The flags of the lives that began; no pause between them."""
    monkeypatch.setattr(lives, "PAUSE_SECONDS", 0.0)
    return []


@pytest.fixture
def live(monkeypatch, begun) -> Callable[[Live], None]:
    """Have each life be this."""

    def set_life(life: Live) -> None:
        async def operator(*, stop_flag: asyncio.Event, **_: Any) -> None:
            begun.append(stop_flag)
            await life(stop_flag)

        monkeypatch.setattr(kopf, "operator", operator)

    return set_life


async def keep(stopping: asyncio.Event) -> None:
    await asyncio.wait_for(lives.keep_kopf(kopf.OperatorRegistry(), kopf.Memo(), stopping), 10)


async def test_it_is_asked_to_end(live, begun):
    stopping, running = asyncio.Event(), asyncio.get_running_loop()

    async def until_asked(asked: asyncio.Event) -> None:
        running.call_soon_threadsafe(stopping.set)
        await asked.wait()

    live(until_asked)
    await keep(stopping)
    assert len(begun) == 1


@pytest.mark.parametrize("failure", [None, RuntimeError("gone")])
async def test_it_begins_again_when_it_ends_by_itself(live, begun, failure):
    stopping, running = asyncio.Event(), asyncio.get_running_loop()

    async def end_twice(asked: asyncio.Event) -> None:
        if len(begun) == 3:
            running.call_soon_threadsafe(stopping.set)
            await asked.wait()
        elif failure:
            raise failure

    live(end_twice)
    await keep(stopping)
    assert len(begun) == 3


async def test_a_life_leaves_the_tasks_of_others_alone(live):
    """At its end kopf cancels every task of its loop."""
    stopping, running = asyncio.Event(), asyncio.get_running_loop()
    mine = asyncio.create_task(asyncio.sleep(60))

    async def cancel_all(_: asyncio.Event) -> None:
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        running.call_soon_threadsafe(stopping.set)

    live(cancel_all)
    await keep(stopping)
    assert not mine.done()
    mine.cancel()
