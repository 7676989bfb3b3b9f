"""Streams and a real API server that goes away: when what they have delivered counts as up to date.

Nothing changes in most collections, so that only the server's bookmarks tell that their watches have caught up.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from controlplane import ControlPlane, Pulse, wait_until
from controlplane.binaries import is_before
from taintwarden.kube.auth.connection import Connection
from taintwarden.kube.http.client import Client
from taintwarden.kube.watch.stream_timings import StreamTimings
from taintwarden.kube.watch.streams import Stream
from taintwarden.kube.wire.resources import BUDGETS, JOBS, NAMESPACES, NODES, PODS, REPLICA_SETS, Resource

FOLLOWED = (NODES, PODS, NAMESPACES, BUDGETS, REPLICA_SETS, JOBS)
TIMINGS = StreamTimings()
AWAY_SECONDS = 5
PATIENCE_SECONDS = 30
# The longest pause between two tries, a short watch, and a machine that does other things too.
SEES_AGAIN_SECONDS = TIMINGS.back_off[1] * 1.5 + TIMINGS.short_watch + 5
pytestmark = pytest.mark.timeout(180)


class Told:
    """A handler that keeps what it is told, and when."""

    def __init__(self) -> None:
        self.live_now = False
        self.found_at = 0.0
        self.restarts: list[str] = []

    def live(self, *, live: bool) -> None:
        self.live_now = live
        if live:
            self.found_at = time.monotonic()

    def restarted(self, reason: str, _: str) -> None:
        self.restarts.append(reason)

    def undecodable(self, *_: object) -> None:
        pass

    def seen(self, _: object) -> None:
        pass

    def lost(self, _: object) -> bool:
        return True

    def listed(self, _: object) -> None:
        pass

    def list_began(self) -> None:
        pass

    def list_ended(self, _: str) -> None:
        pass

    def reached(self, _: str) -> None:
        pass


class Outage:
    """What streams told while the API server went away and came back."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self.control_plane = control_plane
        self.told = {resource.name: Told() for resource in FOLLOWED}
        self.started_at = 0.0
        self.lost_seconds = 0.0
        """What the machine lost since then."""
        self.live_while_away: list[str] = []
        self._is_back = threading.Event()

    def play(self) -> None:
        """The streams run in a thread of their own: a server lives as long as the thread that started it."""
        with ThreadPoolExecutor(1) as aside:
            streams = aside.submit(asyncio.run, self._play())
            wait_until(lambda: streams.done() or self._all_live(), PATIENCE_SECONDS, "every stream to be live")
            self._go_away()
            self._is_back.set()
            with Pulse(self.control_plane.client) as pulse:
                streams.result()
                self.lost_seconds = pulse.lost(self.started_at)

    async def _play(self) -> None:
        connection = Connection.load(str(self.control_plane.admin_kubeconfig))
        async with Client(connection) as client:
            tasks = [asyncio.create_task(self._follow(client, resource)) for resource in FOLLOWED]
            await self._until(lambda: self._is_back.is_set() and self._all_live())
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    def _all_live(self) -> bool:
        return all(told.live_now for told in self.told.values())

    async def _follow(self, client: Client, resource: Resource[Any]) -> None:
        await Stream(client, resource, self.told[resource.name], TIMINGS).run()

    def _go_away(self) -> None:
        self.control_plane.stop_api_server(kill=True)
        time.sleep(AWAY_SECONDS)
        self.live_while_away = [name for name, told in self.told.items() if told.live_now]
        self.control_plane.start_api_server()
        self.started_at = time.monotonic()

    @staticmethod
    async def _until(holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(3 * PATIENCE_SECONDS + AWAY_SECONDS):
            while not holds():
                await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
def outage(own_control_plane: ControlPlane) -> Outage:
    played = Outage(own_control_plane)
    played.play()
    return played


@pytest.mark.parametrize("resource", FOLLOWED, ids=lambda resource: resource.name)
class TestEachStream:
    def test_is_not_live_while_the_server_is_away(self, outage: Outage, resource: Resource[Any]) -> None:
        assert resource.name not in outage.live_while_away

    def test_is_live_soon_after(self, outage: Outage, resource: Resource[Any]) -> None:
        assert outage.told[resource.name].found_at - outage.started_at < SEES_AGAIN_SECONDS + outage.lost_seconds

    @pytest.mark.skipif(
        is_before(31), reason="etcd tells Kubernetes 1.30 of progress every 5 s: the first watch of 4 s may see none"
    )
    def test_needs_no_other_list(self, outage: Outage, resource: Resource[Any]) -> None:
        """A bookmark at the end of the first watch told enough, also where nothing had changed."""
        assert not {"behind", "unconfirmed"} & set(outage.told[resource.name].restarts)
