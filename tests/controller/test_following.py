"""Which kinds are followed, in which order, and what is listed again."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from controller import Clock
from kube.scripted import Call, ScriptedClient, Silence
from taintwarden.controller.decoding.decoding import Decoder
from taintwarden.controller.handlers.following import Following
from taintwarden.controller.handlers.keyed_handlers import NamespaceHandler
from taintwarden.controller.handlers.store_handler import StoreHandler
from taintwarden.controller.handlers.stream_handlers import NodeHandler
from taintwarden.controller.stores.policy_store import PolicyStore
from taintwarden.engine import events
from taintwarden.kube.calls.own_kinds import POLICIES
from taintwarden.kube.watch.watching import StreamTimings
from taintwarden.kube.wire.kinds import Metadata, NamespaceObject
from taintwarden.kube.wire.resources import NAMESPACES, NODES
from taintwarden.telemetry.metrics import Metrics

pytestmark = pytest.mark.looptime

EMPTY = {"metadata": {"resourceVersion": "7"}, "items": []}
WATCH_SECONDS = 7


class Stage:
    """Three kinds, of an API server that has none of them. Lists of a path in ``held`` wait for their turn."""

    def __init__(self) -> None:
        self.client = ScriptedClient(default=self._answer)
        self.held: dict[str, asyncio.Event] = {}
        self.events: list[Any] = []
        self.tasks: list[asyncio.Task[None]] = []
        parts = (self.events.append, Metrics())
        store = PolicyStore(lambda _: None, lambda *_: None)
        self.handlers = {
            POLICIES: StoreHandler(POLICIES.name, *parts, store),
            NODES: NodeHandler(NODES.name, *parts, Decoder(Clock())),
            NAMESPACES: NamespaceHandler(NAMESPACES.name, *parts),
        }
        timings = StreamTimings(watch=(WATCH_SECONDS, WATCH_SECONDS))
        self.following = Following(self.client, self.handlers, timings, self._spawn)  # type: ignore[arg-type]

    async def _answer(self, call: Call) -> Any:
        if "watch" in call.params:
            return [Silence(float(call.params["timeoutSeconds"]))]
        if call.path in self.held:
            await self.held[call.path].wait()
        return EMPTY

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        self.tasks.append(asyncio.create_task(work))
        return self.tasks[-1]

    def lists(self) -> list[str]:
        """The paths that were listed, in order."""
        return [call.path for call in self.client.calls if "limit" in call.params and "watch" not in call.params]

    async def until(self, reached: Callable[[], bool]) -> None:
        for _ in range(100):
            if reached():
                return
            await asyncio.sleep(0.1)
        raise AssertionError(self.client.calls)


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    stage = Stage()
    yield stage
    for task in stage.tasks:
        task.cancel()
    await asyncio.gather(*stage.tasks, return_exceptions=True)


async def test_nodes_are_listed_once_policies_name_the_sources_to_read(stage):
    stage.held[POLICIES.path] = asyncio.Event()
    stage.following.start()
    listed = asyncio.create_task(stage.following.list_all())
    await asyncio.sleep(1)
    assert sorted(stage.lists()) == sorted([POLICIES.path, NAMESPACES.path])
    stage.held[POLICIES.path].set()
    await listed
    assert stage.lists()[2:] == [NODES.path]


@pytest.mark.parametrize("late", [NODES, NAMESPACES], ids=lambda one: one.name)
async def test_all_are_listed_when_the_last_is(stage, late):
    stage.held[late.path] = asyncio.Event()
    stage.following.start()
    listed = asyncio.create_task(stage.following.list_all())
    await asyncio.sleep(1)
    assert not listed.done()
    stage.held[late.path].set()
    await listed


async def test_the_background_work_of_a_handler_is_started(stage, monkeypatch):
    ran = []

    async def run() -> None:
        ran.append(True)

    monkeypatch.setattr(stage.handlers[POLICIES], "run", run)
    stage.following.start()
    await asyncio.sleep(0)
    assert ran == [True]


async def test_policies_are_listed_by_a_request_made_after_the_call(stage):
    stage.following.start()
    await stage.following.list_all()
    stage.held[POLICIES.path] = asyncio.Event()
    again = asyncio.create_task(stage.following.relist_policies())
    await stage.until(lambda: stage.lists().count(POLICIES.path) == 2)
    assert not again.done()
    stage.held[POLICIES.path].set()
    await again


async def test_a_list_of_policies_that_is_in_progress_does_not_count(stage):
    stage.held[POLICIES.path] = asyncio.Event()
    stage.following.start()
    await stage.until(lambda: stage.lists().count(POLICIES.path) == 1)
    again = asyncio.create_task(stage.following.relist_policies())
    await asyncio.sleep(1)
    stage.held[POLICIES.path].set()
    await again
    assert stage.lists().count(POLICIES.path) == 2


async def test_a_kind_is_listed_again_by_the_same_stream(stage):
    stage.following.start()
    await stage.following.list_all()
    tasks = len(stage.tasks)
    stage.following.list_again(NODES)
    await stage.until(lambda: stage.lists().count(NODES.path) == 2)
    assert len(stage.tasks) == tasks


async def test_a_kind_that_is_not_followed_yet_is_not_listed_again(stage):
    stage.following.start()
    stage.following.list_again(NODES)
    await asyncio.sleep(1)
    assert NODES.path not in stage.lists()


async def test_kinds_are_cut_off_whose_handlers_are_not_up_to_date(stage):
    stage.following.start()
    await stage.following.list_all()
    assert stage.following.cut_off == []
    stage.handlers[NODES].live(live=False)
    assert stage.following.cut_off == ["nodes"]


async def test_streams_have_the_timings_that_they_are_given(stage):
    stage.following.start()
    await stage.following.list_all()
    await asyncio.sleep(0.1)
    watches = [call.params for call in stage.client.calls if "watch" in call.params]
    assert [one["timeoutSeconds"] for one in watches] == [str(WATCH_SECONDS)] * 3


async def test_a_kind_that_is_stopped_has_no_objects_left_and_may_be_followed_again(stage):
    following, handler = stage.following, stage.handlers[NAMESPACES]
    following.follow(NAMESPACES)
    await stage.until(lambda: stage.lists() == [NAMESPACES.path] and handler.is_live)
    handler.seen(NamespaceObject(Metadata("shop")))
    stage.events.clear()
    following.stop(NAMESPACES)
    following.stop(NAMESPACES)
    await asyncio.sleep(0)
    assert stage.events[0] == events.NamespaceSeen("shop", None)
    await stage.until(lambda: not handler.is_live)
    following.follow(NAMESPACES)
    await stage.until(lambda: handler.is_live)
    assert stage.lists() == [NAMESPACES.path] * 2
