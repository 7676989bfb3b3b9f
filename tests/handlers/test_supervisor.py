"""kopf lives as long as the operator, in as many lives as it takes, and whether it watches is known."""

import asyncio
import getpass
from collections.abc import Callable
from typing import Any

import kopf
import pytest

from kube import wire
from taintwarden.handlers import supervisor as module
from taintwarden.handlers.lifecycle import run_with_kopf
from taintwarden.handlers.supervisor import PATIENCE_SECONDS, Supervisor

Live = Callable[[asyncio.Event], Any]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def begun(monkeypatch) -> list[asyncio.Event]:
    """The flags of the lives that began; no pause between them."""
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.0)
    return []


@pytest.fixture
def live(monkeypatch, begun) -> Callable[[Live], None]:
    """Have each life be this."""

    def set_life(life: Live) -> None:
        async def operator(*, stop_flag: asyncio.Event, ready_flag: asyncio.Event, **_: Any) -> None:
            begun.append(stop_flag)
            stop_flag.ready = ready_flag  # type: ignore[attr-defined]
            await life(stop_flag)

        monkeypatch.setattr(kopf, "operator", operator)

    return set_life


@pytest.fixture
def supervisor(clock) -> Supervisor:
    return Supervisor(kopf.OperatorRegistry(), kopf.Memo(), identity="me", monotonic=clock, served=served)


async def served() -> bool:
    return True


async def keep(supervisor: Supervisor, stopping: asyncio.Event) -> None:
    await asyncio.wait_for(supervisor.run(stopping), 10)


async def test_it_is_asked_to_end(live, begun, supervisor):
    stopping, running = asyncio.Event(), asyncio.get_running_loop()

    async def until_asked(asked: asyncio.Event) -> None:
        running.call_soon_threadsafe(stopping.set)
        await asked.wait()

    live(until_asked)
    await keep(supervisor, stopping)
    assert len(begun) == 1


@pytest.mark.parametrize("failure", [None, RuntimeError("gone")])
async def test_it_begins_again_when_it_ends_by_itself(live, begun, failure, supervisor):
    stopping, running = asyncio.Event(), asyncio.get_running_loop()

    async def end_twice(asked: asyncio.Event) -> None:
        if len(begun) == 3:
            running.call_soon_threadsafe(stopping.set)
            await asked.wait()
        elif failure:
            raise failure

    live(end_twice)
    await keep(supervisor, stopping)
    assert len(begun) == 3


async def test_a_life_leaves_the_tasks_of_others_alone(live, supervisor):
    """At its end kopf cancels every task of its loop."""
    stopping, running = asyncio.Event(), asyncio.get_running_loop()
    mine = asyncio.create_task(asyncio.sleep(60))

    async def cancel_all(_: asyncio.Event) -> None:
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        running.call_soon_threadsafe(stopping.set)

    live(cancel_all)
    await keep(supervisor, stopping)
    assert not mine.done()
    mine.cancel()


# -- whether policies are watched -------------------------------------------------------------------------------------


def test_before_the_first_life_nothing_is_watched(supervisor):
    assert (supervisor.watching, supervisor.problem()) == (False, "policies are not watched yet")


async def test_a_life_that_is_ready_watches_and_one_that_ends_does_not(live, supervisor, clock):
    stopping = asyncio.Event()

    async def until_asked(asked: asyncio.Event) -> None:
        asked.ready.set()  # type: ignore[attr-defined]
        await asked.wait()

    live(until_asked)
    running = asyncio.create_task(keep(supervisor, stopping))
    while not supervisor.watching:
        await asyncio.sleep(0)
    assert supervisor.problem() == ""
    stopping.set()
    await running
    assert not supervisor.watching
    clock.now += PATIENCE_SECONDS - 1
    assert supervisor.problem() == "", "a definition may be replaced, and the list of every half minute makes up for it"
    clock.now += 2
    assert supervisor.problem() == "policies are not watched yet"


async def test_what_ends_every_life_is_told(live, begun, supervisor):
    stopping, running = asyncio.Event(), asyncio.get_running_loop()

    async def fail(_: asyncio.Event) -> None:
        if len(begun) == 2:
            running.call_soon_threadsafe(stopping.set)
        msg = "No username set in the environment"
        raise OSError(msg)

    live(fail)
    await keep(supervisor, stopping)
    assert supervisor.problem() == "policies are not watched: OSError: No username set in the environment"


async def test_a_user_without_a_name_is_enough_for_kopf(monkeypatch, supervisor):
    """User 65532 of the image has no entry in /etc/passwd, and a pod no USER."""

    def nobody() -> str:
        msg = "No username set in the environment"
        raise OSError(msg)

    class App:
        connection = wire.connection("http://127.0.0.1:1")

    monkeypatch.setattr(getpass, "getuser", nobody)
    registry, stopping = kopf.OperatorRegistry(), asyncio.Event()
    run_with_kopf(registry)
    supervised = Supervisor(registry, kopf.Memo(app=App()), identity="me", monotonic=lambda: 0.0, served=served)
    running = asyncio.create_task(keep(supervised, stopping))
    while not supervised.watching and not running.done():
        await asyncio.sleep(0.01)
        assert "username" not in supervised.problem()
    assert supervised.watching
    stopping.set()
    await running


async def test_without_definitions_no_life_begins(live, begun, clock):
    """kopf would wait for ever: it looks for them at its beginning only."""
    stopping, running = asyncio.Event(), asyncio.get_running_loop()
    answers = iter([False, False, True])

    async def later() -> bool:
        assert begun == []
        return next(answers)

    async def until_asked(asked: asyncio.Event) -> None:
        running.call_soon_threadsafe(stopping.set)
        await asked.wait()

    live(until_asked)
    late = Supervisor(kopf.OperatorRegistry(), kopf.Memo(), identity="me", monotonic=clock, served=later)
    await keep(late, stopping)
    assert len(begun) == 1


async def test_a_life_that_is_deaf_makes_place_for_another(live, begun, supervisor):
    stopping = asyncio.Event()

    async def until_asked(asked: asyncio.Event) -> None:
        asked.ready.set()  # type: ignore[attr-defined]
        await asked.wait()

    live(until_asked)
    running = asyncio.create_task(keep(supervisor, stopping))
    for number in (1, 2):
        while not supervisor.watching:
            await asyncio.sleep(0)
        assert len(begun) == number
        supervisor.renew("deaf")
        while supervisor.watching:
            await asyncio.sleep(0)
    stopping.set()
    await running
