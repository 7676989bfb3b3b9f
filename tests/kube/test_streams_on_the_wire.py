"""Streams on a real connection to an API server that misbehaves on demand."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from contract.api import pod
from kube import wire
from localcluster import LocalCluster
from patience import until
from taintwarden.kube.watch.streams import Stream
from taintwarden.kube.watch.watching import StreamTimings
from taintwarden.kube.wire.kinds import Identity
from taintwarden.kube.wire.resources import PODS

TIMINGS = StreamTimings(opening=0.5)


class Known:
    """What a listener takes for true: the pods by name, as the calls of a handler say."""

    def __init__(self) -> None:
        self.pods: dict[str, str] = {}
        self.undecodables: list[str] = []
        self.restarts: list[str] = []
        self.lists = 0
        self._listed: set[str] = set()

    def list_began(self) -> None:
        self._listed = set()

    def listed(self, objects: Sequence[Any]) -> None:
        for one in objects:
            self.pods[one.metadata.name] = one.metadata.uid
            self._listed.add(one.metadata.name)

    def list_ended(self, _: str) -> None:
        self.lists += 1
        self.pods = {name: uid for name, uid in self.pods.items() if name in self._listed}

    def seen(self, obj: Any) -> None:
        self.pods[obj.metadata.name] = obj.metadata.uid

    def lost(self, what: Identity) -> bool:
        self.pods.pop(what.name, None)
        return True

    def reached(self, _: str) -> None:
        pass

    def undecodable(self, what: Identity, _: str) -> None:
        self.undecodables.append(str(what))

    def restarted(self, reason: str, _: str) -> None:
        self.restarts.append(reason)

    def live(self, *, live: bool) -> None:
        """How up to date it is, is another test's matter."""


class Scene:
    """A cluster, a listener that follows its pods, and what happens."""

    def __init__(self, cluster: LocalCluster, known: Known, sleeps: list[float]) -> None:
        self.cluster = cluster
        self.known = known
        self.sleeps = sleeps
        self.faults = cluster.faults

    def create(self, *names: str) -> None:
        for name in names:
            self.cluster.create("pods", pod(name, nodeName="n1"))

    def delete(self, name: str) -> None:
        self.cluster.delete("pods", name, "default", grace_seconds=0)

    async def watching(self) -> None:
        await until(lambda: self.cluster.open_watches("pods") > 0)

    @asynccontextmanager
    async def blind(self) -> AsyncIterator[None]:
        """The listener sees nothing of what happens inside."""
        fault = self.faults.answer(503, path="/api/v1/pods$", times=1_000_000)
        self.cluster.drop_watches("pods")
        await until(lambda: fault.struck > 0)
        yield
        fault.times = 0

    async def agrees(self) -> None:
        """The listener knows exactly what there is."""
        await until(
            lambda: (
                self.known.pods
                == {one["metadata"]["name"]: one["metadata"]["uid"] for one in self.cluster.store.list("pods")}
            )
        )
        await self.watching()


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    cluster = LocalCluster(bookmark_seconds=0.02)
    sleeps: list[float] = []

    async def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        await asyncio.sleep(0)

    async with cluster.serve() as server, wire.client(server.url) as client:
        known = Known()
        here = Scene(cluster, known, sleeps)
        here.create("a", "b", "c")
        task = asyncio.create_task(Stream(client, PODS, known, TIMINGS, first_limit=2, sleep=sleep).run())
        await here.agrees()
        yield here
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_pages_and_changes_come(scene: Scene) -> None:
    scene.create("d")
    scene.delete("a")
    await scene.agrees()
    assert scene.known.lists == 1
    assert scene.faults.count("GET", "/api/v1/pods") == 3  # two pages and the watch


@pytest.mark.parametrize("mid_line", [True, False])
async def test_a_cut_watch_loses_nothing(scene: Scene, mid_line: bool) -> None:
    scene.faults.cut_watch("pods", mid_line=mid_line)
    scene.create("d", "e")
    await scene.agrees()
    assert scene.known.undecodables == []
    assert "unreachable" in scene.known.restarts
    assert scene.known.lists == 1


async def test_a_watch_cut_at_every_line_gets_on(scene: Scene) -> None:
    scene.faults.cut_watch("pods", times=4)
    scene.create("d")
    scene.delete("b")
    await scene.agrees()


@pytest.mark.parametrize("code", [410, 500, 504])
async def test_an_error_frame_lists_again_and_notices_what_is_gone(scene: Scene, code: int) -> None:
    scene.faults.fail_watch(code, "pods")
    scene.delete("a")
    scene.create("d")
    await scene.agrees()
    assert scene.known.lists == 2


async def test_a_gap_with_expired_history_is_noticed(scene: Scene) -> None:
    async with scene.blind():
        scene.delete("a")
        scene.create("d")
        scene.cluster.expire_history("pods")
    await scene.agrees()
    assert scene.known.lists == 2


async def test_a_namesake_born_in_a_gap_is_another_pod(scene: Scene) -> None:
    async with scene.blind():
        scene.delete("a")
        scene.create("a")
        scene.cluster.expire_history("pods")
    await scene.agrees()


async def test_an_undecodable_change_is_told_once_and_the_rest_comes(scene: Scene) -> None:
    scene.faults.garble_watch("pods")
    scene.create("d", "e")
    await until(lambda: "e" in scene.known.pods)
    scene.cluster.drop_watches()
    await until(lambda: bool(scene.known.restarts))
    await scene.watching()
    scene.create("f")
    await until(lambda: "f" in scene.known.pods)
    assert scene.known.undecodables == ["default/d"]


async def test_a_server_that_hangs_is_given_up(scene: Scene) -> None:
    scene.faults.hang(path="/api/v1/pods$")
    scene.cluster.drop_watches("pods")
    await until(lambda: "unreachable" in scene.known.restarts)
    scene.create("d")
    await scene.agrees()
