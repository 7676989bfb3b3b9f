"""The loop in simulated time wakes the machine when it is due, and passes on its commands."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from controller import GT_950, NOW
from simulated import policy
from taintwarden.controller.clock import system_clock
from taintwarden.controller.loop import LONGEST_SLEEP_SECONDS, Loop
from taintwarden.engine import commands, events
from taintwarden.engine.interning import Interner
from taintwarden.engine.machine import Machine
from taintwarden.engine.model import Instant, Node, Pod, SourceValue, Taint, Tolerations
from taintwarden.engine.outcomes import Outcome

pytestmark = pytest.mark.looptime


class FakeMachine:
    """A machine that wakes after the given delays, and keeps the events that it was given."""

    def __init__(self, delays: Callable[[Instant], float | None]) -> None:
        self.delays = delays
        self.seen: list[tuple[float, Any]] = []
        self.answers: list[Any] = []

    def wake_after(self, now: Instant) -> float | None:
        return self.delays(now)

    def step(self, event: Any, now: Instant) -> list[Any]:
        self.seen.append((now.monotonic, event))
        answers, self.answers = self.answers, []
        return answers

    @property
    def wakes(self) -> list[float]:
        return [at for at, event in self.seen if isinstance(event, events.Tick)]


class Stage:
    def __init__(self, machine: Any) -> None:
        self.step = 0.0
        self.carried: list[Any] = []
        self.notices: list[Any] = []
        self.machine = machine
        self.loop = Loop(machine, self.clock, self.carried.append, self.notices.extend)

    def clock(self) -> Instant:
        now = asyncio.get_running_loop().time()
        return Instant(NOW + now + self.step, now)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.loop.run())
        yield
        assert not task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_the_machine_is_woken_when_it_is_due():
    due = [5.0, 12.5]
    machine = FakeMachine(lambda now: next((at - now.monotonic for at in due if at > now.monotonic - 0.01), None))
    machine.step = lambda event, now: (  # type: ignore[method-assign]
        machine.seen.append((now.monotonic, event)),
        due.pop(0) if due else None,
        [],
    )[2]
    stage = Stage(machine)
    async with stage.running():
        await asyncio.sleep(30)
    assert [round(at, 1) for at in machine.wakes] == [5.0, 12.5]


async def test_a_machine_without_deadlines_is_woken_at_the_longest_interval():
    stage = Stage(FakeMachine(lambda _: None))
    async with stage.running():
        await asyncio.sleep(3 * LONGEST_SLEEP_SECONDS + 1)
    assert len(stage.machine.wakes) == 3


async def test_an_event_that_makes_the_machine_due_wakes_it_at_once():
    wanted: list[float | None] = [None]
    stage = Stage(FakeMachine(lambda _: wanted[0]))
    async with stage.running():
        await asyncio.sleep(1)
        wanted[0] = 0.0
        stage.loop.feed(events.Synced())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        wanted[0] = None
        await asyncio.sleep(1)
    assert stage.machine.wakes
    assert stage.machine.wakes[0] == 1.0


async def test_a_wake_time_that_was_postponed_does_not_wake_the_machine():
    wanted = [5.0]
    stage = Stage(FakeMachine(lambda _: wanted[0]))
    async with stage.running():
        await asyncio.sleep(1)
        wanted[0] = 50.0
        stage.loop.feed(events.Synced())
        await asyncio.sleep(20)
    assert stage.machine.wakes == []


async def test_other_tasks_run_between_slices():
    slices = [0.0] * 50
    stage = Stage(FakeMachine(lambda _: slices.pop() if slices else None))
    turns = 0

    async def other() -> None:
        nonlocal turns
        while slices:
            turns += 1
            await asyncio.sleep(0)

    async with stage.running():
        await other()
    assert turns >= 40


async def test_orders_go_to_the_effector_and_notices_to_the_notifier():
    stage = Stage(FakeMachine(lambda _: None))
    save, notice = commands.SaveHistory("n1", "u", "text"), commands.UnreadableHistory("n1", "u", "why")
    stage.machine.answers = [save, commands.CheckNode("n1"), notice]
    stage.loop.feed(events.Synced())
    assert stage.carried == [save, commands.CheckNode("n1")]
    assert stage.notices == [notice]


async def test_the_newest_version_is_that_of_any_pod_of_a_page():
    stage = Stage(FakeMachine(lambda _: None))
    stage.loop.feed(events.PodSeen(pod(version=6)))
    stage.loop.feed(events.PodsSeen((pod(version=5), pod(version=9), pod(version=7))))
    stage.loop.feed(events.PodsSeen((pod(version=8),)))
    assert stage.loop.newest_version == 9


async def test_the_version_of_a_list_is_the_newest_even_if_it_is_lower():
    """After a restore from a backup, a read that begins now is as new as the list, and no newer."""
    stage = Stage(FakeMachine(lambda _: None))
    stage.loop.feed(events.PodSeen(pod(version=900)))
    stage.loop.feed(events.PodSeen(pod(version=50)))
    stage.loop.feed(events.PodsListed({"uid-a": "n1"}, 60))
    assert stage.loop.newest_version == 60


# -- with the real machine --------------------------------------------------------------------------------------------


def pod(name: str = "a", version: int = 1) -> Pod:
    return Pod(f"uid-{name}", name, "n1", Interner().pod_class("shop", {}, Tolerations((GT_950,))), NOW, version)


def node(value: str, version: int) -> Node:
    return Node("n1", "uid-n1", {}, ((Taint("sla", value), None),), version)


@pytest.fixture
def stage() -> Stage:
    stage = Stage(Machine())
    timing = {"violationGraceSeconds": 30}
    for event in (
        events.PoliciesChanged((policy(timing=timing),)),
        events.NodeSeen(node("980", 1)),
        events.NodesReached(10),
        events.PodSeen(pod()),
        events.Synced(),
    ):
        stage.machine.step(event, Instant(NOW, 0.0))
    return stage


def evictions(stage: Stage) -> list[commands.Evict]:
    return [command for command in stage.carried if isinstance(command, commands.Evict)]


async def test_a_pod_is_evicted_when_its_grace_is_over(stage):
    async with stage.running():
        stage.loop.feed(events.LeadershipChanged(leading=True))
        stage.loop.feed(events.NodeSeen(node("940", 2)))
        await asyncio.sleep(27.5)
        stage.loop.feed(events.NodesReached(10))
        await asyncio.sleep(1.5)
        assert evictions(stage) == []
        await asyncio.sleep(1.5)
        assert [command.pod.name for command in evictions(stage)] == ["a"]


async def test_a_wall_clock_that_steps_ahead_is_noticed_within_a_minute(stage):
    """Grace follows the wall clock, since it comes from objects; the loop sleeps by the monotonic clock."""
    async with stage.running():
        stage.loop.feed(events.LeadershipChanged(leading=True))
        stage.loop.feed(events.PoliciesChanged((policy(timing={"violationGraceSeconds": 3600}),)))
        stage.loop.feed(events.NodeSeen(node("940", 2)))
        await asyncio.sleep(1)
        stage.step = 7200.0
        await asyncio.sleep(LONGEST_SLEEP_SECONDS - 3)
        stage.machine.step(events.NodesReached(10), stage.clock())  # does not wake the loop
        await asyncio.sleep(4)
        assert len(evictions(stage)) == 1


async def test_an_answer_is_processed_at_once(stage):
    async with stage.running():
        stage.loop.feed(events.LeadershipChanged(leading=True))
        stage.loop.feed(events.NodeSeen(node("940", 2)))
        await asyncio.sleep(27.5)
        stage.loop.feed(events.NodesReached(10))
        await asyncio.sleep(3.5)
        stage.loop.feed(events.Settled("uid-a", Outcome.ACCEPTED))
        stage.loop.feed(events.PodGone("uid-a", "n1"))
        assert any(isinstance(notice, commands.Evicted) for notice in stage.notices)


@pytest.mark.looptime(enabled=False)
def test_the_system_clock_has_wall_and_monotonic_time():
    first, second = system_clock(), system_clock()
    assert second.monotonic >= first.monotonic
    assert abs(first.wall - second.wall) < 60
    assert first.wall > 1_700_000_000


LABELLED = policy(taints=[{"key": "rack", "from": {"label": "example.com/rack"}}])


@pytest.mark.parametrize(
    ("more", "changes"),
    [
        ({}, 0),
        ({"taints": ((Taint("sla", "940"), None),)}, 1),
        ({"labels": {"zone": "b"}}, 1),
        ({"history": "{}"}, 1),
        ({"do_not_evict": True}, 1),
        ({"values": {}}, 1),
        ({"uid": "uid-other"}, 1),
    ],
)
async def test_a_heartbeat_of_a_node_is_no_change(more, changes):
    stage = Stage(Machine())
    stage.loop.feed(events.PoliciesChanged((LABELLED,)))
    values = {LABELLED.taints[0].source: SourceValue("r1")}
    known = Node("n1", "uid-n1", {"zone": "a"}, ((Taint("sla", "980"), None),), 1, values=values)
    stage.loop.feed(events.NodeSeen(known))
    before = stage.loop.changes
    stage.loop.feed(events.NodeSeen(replace(known, resource_version=2, **more)))
    assert stage.loop.changes == before + changes


async def test_the_progress_of_the_node_stream_is_no_change():
    stage = Stage(Machine())
    stage.loop.feed(events.NodesReached(7))
    assert stage.loop.changes == 0


async def test_every_other_event_is_a_change():
    stage = Stage(Machine())
    stage.loop.feed(events.PodGone("uid-a", "n1"))
    assert stage.loop.changes == 1
