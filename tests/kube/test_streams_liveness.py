"""A view of a stream is live after a proof that it is up to date, and until a gap is too long."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from kube.flowing import Server, after, at_once, expired, refused, unanswered
from taintwarden.kube.errors import Unreachable
from taintwarden.kube.watch.streams import Stream
from taintwarden.kube.watch.watching import StreamTimings
from taintwarden.kube.wire.kinds import Identity, PodObject
from taintwarden.kube.wire.resources import PODS

pytestmark = pytest.mark.looptime

TIMINGS = StreamTimings()
EXPIRED = {"type": "ERROR", "object": {"code": 410, "message": "too old", "reason": "Expired"}}


class Handler:
    """A handler that records when the view was live, and why watches were restarted."""

    def __init__(self) -> None:
        self.live_now = False
        self.changes: list[tuple[float, bool]] = []
        self.restarts: list[str] = []
        self.undecodables: list[Any] = []
        self.knows_deleted = True
        self.deletions: list[Identity] = []
        self.heard: list[Any] = []

    def live(self, *, live: bool) -> None:
        if live != self.live_now:
            self.live_now = live
            self.changes.append((asyncio.get_running_loop().time(), live))

    def restarted(self, reason: str, _: str) -> None:
        self.restarts.append(reason)

    def undecodable(self, what: Any, _: str) -> None:
        self.undecodables.append(what)

    def seen(self, obj: Any) -> None:
        self.heard.append(("seen", int(obj.metadata.resource_version)))

    def lost(self, what: Identity) -> bool:
        self.deletions.append(what)
        self.heard.append(("lost", int(what.resource_version or 0)))
        return self.knows_deleted

    def listed(self, objects: Sequence[Any]) -> None:
        pass

    def list_began(self) -> None:
        pass

    def list_ended(self, version: str) -> None:
        self.heard.append(("list ended", int(version)))

    def reached(self, version: str) -> None:
        self.heard.append(("reached", int(version)))


class Scene:
    """A stream that follows a server."""

    def __init__(self) -> None:
        self.server = Server()
        self.handler = Handler()
        self._task: asyncio.Task[None] | None = None

    def stream(self) -> Stream[PodObject]:
        return Stream(self.server, PODS, self.handler, jitter=lambda: 0.5)  # type: ignore[arg-type]

    def begin(self) -> Stream[PodObject]:
        stream = self.stream()
        self._task = asyncio.create_task(stream.run())
        return stream

    async def up(self) -> None:
        """Begin, and wait until the view is live and its watch has been open for a while."""
        self.begin()
        await asyncio.sleep(10)
        assert self.live

    async def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def go_away(self, seconds: float) -> None:
        """Make the server unreachable for `seconds` seconds, and wait until the watch is opened again."""
        self.server.opening = refused
        self.server.watch.cut()
        await asyncio.sleep(seconds)
        self.server.opening = at_once
        before = len(self.server.watches)
        while len(self.server.watches) == before:
            await asyncio.sleep(0.1)

    @property
    def live(self) -> bool:
        return self.handler.live_now


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """A stream that has not begun."""
    made = Scene()
    yield made
    await made.end()


def now() -> float:
    return asyncio.get_running_loop().time()


# -- lists ------------------------------------------------------------------------------------------------------------


async def test_a_fast_list_is_a_proof(scene: Scene) -> None:
    scene.server.listing = after(1.5)
    scene.begin()
    await asyncio.sleep(1.4)
    assert not scene.live
    await asyncio.sleep(0.2)
    assert scene.live
    assert scene.server.watch.seconds > 10


async def test_a_slow_list_is_no_proof_since_it_is_as_old_as_its_beginning(scene: Scene) -> None:
    """Nodes may recover during a long list: the watch has to catch up first."""
    scene.server.listing = after(3)
    scene.begin()
    await asyncio.sleep(2)
    scene.server.version = 11
    await asyncio.sleep(1.5)
    assert not scene.live
    scene.server.watch.send(11)
    await asyncio.sleep(0.1)
    assert scene.live


async def test_after_a_long_list_a_quiet_server_confirms_at_once(scene: Scene) -> None:
    scene.server.listing = after(3)
    scene.begin()
    await asyncio.sleep(3.1)
    assert scene.live


async def test_the_view_is_lost_when_the_watch_after_a_list_does_not_open(scene: Scene) -> None:
    scene.server.opening = unanswered
    scene.begin()
    await asyncio.sleep(1.9)
    assert scene.live
    await asyncio.sleep(0.2)
    assert not scene.live


# -- lists of many pages ----------------------------------------------------------------------------------------------


async def test_after_a_long_list_of_a_quiet_server_the_watch_is_up_to_date_at_once(scene: Scene) -> None:
    scene.server.pages = [after(5), after(5)]
    scene.begin()
    await asyncio.sleep(9.9)
    assert (scene.live, scene.server.watches) == (False, [])
    await asyncio.sleep(0.2)
    assert scene.live
    assert scene.server.asked == 1
    assert [watch.since for watch in scene.server.watches] == ["10"]


async def test_changes_during_a_list_of_many_pages_are_awaited_before_the_view_is_live(scene: Scene) -> None:
    """The end of a list is no proof, since the list shows the state at its beginning."""
    scene.server.pages = [after(5)]
    scene.begin()
    await asyncio.sleep(1)
    scene.server.version = 50
    await asyncio.sleep(4.1)
    scene.server.watch.send(11)
    await asyncio.sleep(0.1)
    assert scene.handler.heard == [("list ended", 10), ("seen", 11), ("reached", 11)]
    assert not scene.live
    scene.server.watch.bookmark(50)
    await asyncio.sleep(0.1)
    assert scene.live


async def test_pages_that_fail_back_off(scene: Scene) -> None:
    async def fail() -> None:
        await asyncio.sleep(6)
        raise Unreachable("made to fail")

    scene.server.pages = [fail]
    scene.begin()
    await asyncio.sleep(100)
    assert scene.server.lists <= 12
    assert scene.handler.heard == []


async def test_a_fault_of_the_handler_is_a_fault_of_the_stream(scene: Scene) -> None:
    def fault(_: object) -> None:
        raise RuntimeError("made to fail")

    scene.handler.seen = fault  # type: ignore[method-assign]
    running = asyncio.create_task(scene.stream().run())
    await asyncio.sleep(1)
    scene.server.watch.send(11)
    with pytest.raises(RuntimeError):
        await running


async def test_lists_whose_watch_never_opens_are_complete_and_back_off(scene: Scene) -> None:
    scene.server.pages = [after(6)]
    scene.server.opening = expired
    scene.begin()
    await asyncio.sleep(100)
    assert 3 < scene.handler.heard.count(("list ended", 10)) <= 11


async def test_the_proof_of_the_list_before_does_not_end_that_of_the_next(scene: Scene) -> None:
    await scene.up()
    scene.server.watch.send(11)
    scene.server.pages = [after(0.5)]
    await asyncio.sleep(0.1)
    scene.server.watch.send_raw(EXPIRED)
    await asyncio.sleep(20)
    assert scene.server.lists == 2
    assert [up for _, up in scene.handler.changes] == [True]


async def test_a_stream_that_ends_during_a_list_leaves_no_task_behind(scene: Scene) -> None:
    before = asyncio.all_tasks()
    scene.server.pages = [after(5)]
    scene.begin()
    await asyncio.sleep(1)
    await scene.end()
    assert asyncio.all_tasks() == before
    assert not scene.live


async def test_a_view_is_not_live_before_the_first_list(scene: Scene) -> None:
    scene.handler.live_now = True
    scene.server.listing = unanswered
    scene.begin()
    await asyncio.sleep(0.1)
    assert not scene.live


async def test_the_view_before_another_list_is_lost_after_the_gap(scene: Scene) -> None:
    await scene.up()
    scene.server.pages = [after(5)]
    scene.server.watch.send(11)
    await asyncio.sleep(0.1)
    scene.server.watch.send_raw(EXPIRED)
    began = now() - 0.1
    await asyncio.sleep(4)
    assert scene.handler.changes[-1] == (pytest.approx(began + 2.0, abs=0.01), False)
    await asyncio.sleep(1.1)
    assert scene.live


# -- an outage --------------------------------------------------------------------------------------------------------


async def test_the_first_frame_of_a_backlog_is_no_proof(scene: Scene) -> None:
    await scene.up()
    scene.server.version = 50
    await scene.go_away(6)
    scene.server.watch.send(20)
    await asyncio.sleep(0.5)
    assert not scene.live
    scene.server.watch.send(49)
    await asyncio.sleep(0.5)
    assert not scene.live
    scene.server.watch.send(50)
    await asyncio.sleep(0.1)
    assert scene.live


async def test_a_stale_view_is_not_live_by_a_version_that_the_watch_has_reached_before(scene: Scene) -> None:
    stream = scene.begin()
    await asyncio.sleep(10)
    scene.server.version = 50
    await scene.go_away(6)
    scene.server.watch.send(50)
    await asyncio.sleep(0.1)
    assert scene.live
    scene.server.listing = after(1)
    scene.handler.seen = lambda _: stream.list_again(is_stale=True)  # type: ignore[method-assign]
    scene.server.watch.send(51)
    await asyncio.sleep(0.5)
    assert not scene.live
    await asyncio.sleep(1)
    assert scene.live


async def test_versions_are_numbers(scene: Scene) -> None:
    await scene.up()
    scene.server.version = 100
    await scene.go_away(6)
    scene.server.watch.bookmark(99)
    await asyncio.sleep(0.1)
    assert not scene.live


async def test_frames_before_the_answer_about_the_version_count(scene: Scene) -> None:
    await scene.up()
    scene.server.version = 50
    scene.server.asking = after(1)
    await scene.go_away(6)
    scene.server.watch.send(50)
    await asyncio.sleep(0.5)
    assert not scene.live
    await asyncio.sleep(1)
    assert scene.live


async def test_the_first_watch_after_an_outage_is_short_and_the_next_is_not(scene: Scene) -> None:
    await scene.up()
    scene.server.version = 50
    await scene.go_away(6)
    watch = scene.server.watch
    assert watch.seconds == 4
    watch.bookmark(50)
    await asyncio.sleep(5)
    assert scene.server.watch.seconds == 15
    assert scene.live
    assert scene.handler.changes[-1][1] is True
    assert scene.server.lists == 1


async def test_a_watch_that_does_not_reach_the_servers_version_is_followed_by_a_list(scene: Scene) -> None:
    await scene.up()
    scene.server.version = 50
    await scene.go_away(6)
    await asyncio.sleep(5)
    assert "behind" in scene.handler.restarts
    assert scene.server.lists == 2
    assert scene.live


async def test_a_server_that_does_not_answer_its_version_gets_another_request(scene: Scene) -> None:
    await scene.up()
    scene.server.asking = unanswered
    await scene.go_away(6)
    await asyncio.sleep(5)
    assert not scene.live
    assert "unconfirmed" in scene.handler.restarts
    scene.server.asking = at_once
    await asyncio.sleep(5)
    assert scene.live
    assert scene.server.lists == 1


async def test_a_large_first_object_does_not_hide_the_version_of_the_server(scene: Scene) -> None:
    scene.server.object_bytes = 10 * 2**20
    await scene.up()
    await scene.go_away(6)
    await asyncio.sleep(5)
    assert scene.live


async def test_a_store_that_was_restored_is_listed_again(scene: Scene) -> None:
    """Its versions are lower than the known one, from which a watch would deliver none of its writes."""
    await scene.up()
    scene.server.version = 5
    await scene.go_away(6)
    await asyncio.sleep(5)
    assert scene.server.lists == 2
    assert scene.live


async def test_a_second_outage_needs_a_proof_of_its_own(scene: Scene) -> None:
    await scene.up()
    scene.server.version = 50
    await scene.go_away(6)
    scene.server.watch.bookmark(50)
    await asyncio.sleep(0.1)
    scene.server.version = 60
    scene.server.asking = unanswered
    await scene.go_away(6)
    scene.server.watch.send(55)  # past the goal of the first one
    await asyncio.sleep(0.1)
    assert not scene.live


# -- gaps -------------------------------------------------------------------------------------------------------------


async def test_a_watch_that_ended_and_is_open_again_soon_changes_nothing(scene: Scene) -> None:
    await scene.up()
    scene.server.version = 50
    scene.server.opening = after(1.5)
    scene.server.watch.end()
    await asyncio.sleep(10)
    assert scene.live
    assert [at for at, up in scene.handler.changes if not up] == []


@pytest.mark.parametrize("opening", [unanswered, refused, after(3)], ids=["hangs", "refused", "slow"])
async def test_a_watch_that_is_not_open_again_is_missed_after_the_gap(scene: Scene, opening: Any) -> None:
    await scene.up()
    scene.server.opening = opening
    scene.server.watch.end()
    ended = now()
    await asyncio.sleep(1.9)
    assert scene.live
    await asyncio.sleep(0.2)
    assert not scene.live
    assert scene.handler.changes[-1][0] == pytest.approx(ended + 2.0, abs=0.01)


async def test_a_watch_that_opens_after_the_gap_has_to_catch_up(scene: Scene) -> None:
    await scene.up()
    scene.server.version = 50
    scene.server.opening = after(3)
    scene.server.watch.end()
    await asyncio.sleep(3.5)
    assert "late" in scene.handler.restarts
    await asyncio.sleep(3)
    assert scene.server.watch.seconds == 4
    assert not scene.live
    scene.server.watch.bookmark(50)
    await asyncio.sleep(0.1)
    assert scene.live


async def test_a_connection_that_broke_may_have_been_dead_before(scene: Scene) -> None:
    await scene.up()
    scene.server.watch.send(11)
    await asyncio.sleep(30)
    scene.server.opening = refused
    scene.server.watch.cut()
    await asyncio.sleep(0.1)
    assert not scene.live


async def test_a_connection_that_broke_after_a_frame_is_a_gap_like_any_other(scene: Scene) -> None:
    await scene.up()
    await asyncio.sleep(30)
    scene.server.watch.send(11)
    await asyncio.sleep(0.5)
    scene.server.watch.cut()
    await asyncio.sleep(10)
    assert [up for _, up in scene.handler.changes] == [True]


async def test_a_watch_without_changes_stays_live(scene: Scene) -> None:
    """A real server may send nothing for many minutes; it ends the watch at the requested time."""
    await scene.up()
    await asyncio.sleep(600)
    assert len(scene.server.watches) > 5
    assert [up for _, up in scene.handler.changes] == [True]
    assert set(scene.handler.restarts) == {"ended"}
    assert StreamTimings().watch[1] < StreamTimings().idle


async def test_a_watch_that_is_not_ended_in_time_is_not_up_to_date(scene: Scene) -> None:
    """Bytes of an incomplete frame now and then keep the connection from being silent."""
    scene.server.overrun = 1_000.0
    scene.begin()
    await asyncio.sleep(1)
    first, opened = scene.server.watch, now()
    while scene.server.watch is first and now() < opened + 200:
        await asyncio.sleep(5)
        first.send_part()
    assert now() < opened + TIMINGS.watch[1] + TIMINGS.idle + 10
    assert scene.handler.restarts == ["unreachable"]


async def test_frames_of_a_slow_connection_are_not_sent_again(scene: Scene) -> None:
    scene.server.overrun = 1_000.0
    scene.begin()
    await asyncio.sleep(1)
    first = scene.server.watch
    for version in itertools.count(11):
        if scene.server.watch is not first:
            break
        first.send(version)
        await asyncio.sleep(5)
    assert int(scene.server.watch.since) >= version - 2


async def test_watches_that_end_at_once_prove_nothing(scene: Scene) -> None:
    """A gateway may answer every request with an empty page."""
    await scene.up()

    async def empty() -> None:
        asyncio.get_running_loop().call_soon(end)

    def end() -> None:
        scene.server.watch.end()

    scene.server.opening = empty
    scene.server.watch.end()
    await asyncio.sleep(3)
    assert not scene.live


async def test_a_stream_that_is_not_followed_any_more_is_not_live(scene: Scene) -> None:
    await scene.up()
    await scene.end()
    assert not scene.live


# -- deletions that do not decode -------------------------------------------------------------------------------------


def broken(kind: str, metadata: Any, spec: Any = None) -> dict[str, Any]:
    return {"type": kind, "object": {"metadata": metadata, "spec": spec or {"nodeName": "n1"}}}


META = {"name": "a", "namespace": "shop", "uid": "uid-a", "resourceVersion": "11"}


@pytest.mark.parametrize(
    ("metadata", "spec", "expected"),
    [
        (META | {"uid": 7}, {"nodeName": "n1"}, ("a", "shop", "", "11", "n1")),
        (META | {"name": 7}, {"nodeName": "n1"}, ("", "shop", "uid-a", "11", "n1")),
        (META, {"nodeName": "n1", "tolerations": 7}, ("a", "shop", "uid-a", "11", "n1")),
        (META, {"containers": []}, ("a", "shop", "uid-a", "11", "")),
        (META, {"nodeName": {}}, ("a", "shop", "uid-a", "11", None)),
        (META, "none", ("a", "shop", "uid-a", "11", None)),
        ("none", {"nodeName": "n1"}, ("", "", "", "", "n1")),
    ],
)
async def test_an_undecodable_deletion_has_the_identity_that_decodes(scene: Scene, metadata, spec, expected) -> None:
    await scene.up()
    scene.server.watch.send_raw(broken("DELETED", metadata, spec))
    await asyncio.sleep(0.1)
    [what] = scene.handler.deletions
    assert (what.name, what.namespace, what.uid, what.resource_version, what.node_name) == expected
    assert scene.handler.undecodables == []
    assert scene.server.lists == 1


async def test_a_deleted_object_without_a_spec_has_no_node(scene: Scene) -> None:
    await scene.up()
    scene.server.watch.send_raw({"type": "DELETED", "object": {"metadata": META}})
    await asyncio.sleep(0.1)
    assert scene.handler.deletions == [Identity("a", "shop", "uid-a", "11", "")]


async def test_a_deletion_without_a_version_changes_no_position(scene: Scene) -> None:
    await scene.up()
    scene.server.watch.send(11)
    scene.server.watch.send_raw(broken("DELETED", META | {"resourceVersion": 7}))
    await asyncio.sleep(0.1)
    assert scene.handler.heard[-2:] == [("lost", 0), ("reached", 11)]
