"""Watch one resource from a version on, and resume where a watch ended."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Generic, NoReturn

import msgspec

from taintwarden.kube.errors import ApiError, KubeError, TooLong, Unreachable
from taintwarden.kube.http.client import Client
from taintwarden.kube.watch.event_handler import EventHandler
from taintwarden.kube.watch.frames import FrameDecoder
from taintwarden.kube.watch.paging import MAX_OBJECT_BYTES
from taintwarden.kube.watch.stream_liveness import StreamLiveness
from taintwarden.kube.wire.formats import Change, ExpiredError, Undecodable, expired_or
from taintwarden.kube.wire.kinds import Identity, Object, version_number
from taintwarden.kube.wire.resources import Resource

OUT_OF_REACH = 2**64
"""No resourceVersion is as high."""
FRAMES_AT_ONCE = 8
"""A chunk can have a hundred nodes with thirty pods each to evaluate: other tasks run in between."""


class StreamTimings(msgspec.Struct, frozen=True, kw_only=True):
    """How long streams wait for what, in seconds. One value that is handed in, so that tests hand in a shorter one."""

    gap: float = 2.0
    """What was complete so long ago, or less, still counts as up to date while no watch is open."""
    watch: tuple[int, int] = (12, 18)
    """The server ends a watch after a random time in this range, so that watches spread over its replicas.

    Less than ``idle``: of a resource that never changes it sends nothing, not even bookmarks, unless etcd tells it of
    progress (every ten minutes by default). Then only the end that was asked for shows that a connection works. To
    open a watch again costs both sides less than a millisecond.
    """
    short_watch: int = 4
    """Length of the first watch after a gap. The server sends a bookmark two seconds before the end of a watch."""
    opening: float = 15.0
    """The server answers a watch at once; its flow control may let it wait for some seconds."""
    idle: float = 22.0
    """A connection silent for longer is dead: the server should have ended the watch.

    Well below the shortest notice that a cloud gives before it removes a node (30 s).
    """
    back_off: tuple[float, float] = (0.25, 5.0)
    """First and longest pause. Not longer, because no pod is evicted while the view is not up to date."""
    longest_asked: float = 15.0
    """The longest pause that a server or a load balancer gets by asking for it (``Retry-After``)."""
    empty_watch: float = 1.0
    """A watch that ends sooner without a frame counts as a failure, or a broken server would be hammered."""
    forgiven: float = 5.0
    """A watch that has worked for so long clears the record of failures before it."""


class BehindError(ExpiredError):
    """The watch did not bring what the server has: its cache lags, or the store was restored from a backup."""

    reason = "behind"


class BackOff:
    """Pauses which grow with every failure, each of which is reported with its reason.

    Args:
        restarted: called with the reason and its detail when a request ends, before a pause or without one.
        timings: how long pauses may be.
        sleep: waits for some seconds; replaced in tests.
        jitter: a number in [0, 1); replaced in tests.

    """

    def __init__(
        self,
        restarted: Callable[[str, str], None],
        timings: StreamTimings,
        *,
        sleep: Callable[[float], Any] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.restarted = restarted
        self.jitter = jitter
        self._first, self._longest = timings.back_off
        self._longest_asked = timings.longest_asked
        self._sleep = sleep
        self._failures = 0

    def reset(self) -> None:
        """It works: the next pause is a short one."""
        self._failures = 0

    async def pause(self, reason: str, detail: str, at_least: float | None = None) -> None:
        """After one more failure."""
        self.restarted(reason, detail)
        delay = min(self._longest, self._first * 2.0 ** min(self._failures, 10)) * (0.5 + self.jitter())
        self._failures += 1
        await self._sleep(max(delay, min(at_least or 0.0, self._longest_asked)))


class Watch(Generic[Object]):
    """Follows the changes of one resource, over as many requests as it takes.

    Args:
        client: the session to use.
        resource: what to follow.
        decoder: of that resource.
        handler: receives the changes.
        timings: how long to wait for what.
        back_off: between requests that fail.
        liveness: whether what the handler has is up to date.

    """

    def __init__(
        self,
        client: Client,
        resource: Resource[Object],
        decoder: FrameDecoder[Object],
        handler: EventHandler[Object],
        timings: StreamTimings,
        back_off: BackOff,
        liveness: StreamLiveness,
    ) -> None:
        self._client = client
        self._resource = resource
        self._decoder = decoder
        self._handler = handler
        self._timings = timings
        self._back_off = back_off
        self._liveness = liveness
        self._version = ""
        self._goal: int | None = None
        """The version up to which everything has to be delivered before the view is up to date; None: not known yet."""

    async def run(self, version: str) -> NoReturn:
        """Watch from the version of a list on, and resume where a watch ended.

        Raises:
            ExpiredError: the watch cannot be resumed: another list is needed.

        """
        self._version = version
        while True:
            try:
                await self._once()
            except ApiError as error:
                await self._back_off.pause("refused", self._resource.why_refused(error), error.retry_after)
            except Unreachable as error:
                await self._back_off.pause("unreachable", str(error))

    async def _once(self) -> None:
        """One watch. The first after a gap is short: without changes only the bookmark at its end shows the version."""
        catching_up = not self._liveness
        began, delivered = _now(), False
        try:
            async with self._open(short=catching_up) as chunks:
                if self._liveness.resume():
                    delivered = await self._read(chunks, began)
                elif catching_up:
                    async with self._goal_asked_for():
                        delivered = await self._read(chunks, began)
                else:
                    self._back_off.restarted("late", "the watch was opened too long after the previous one")
                    return
                if delivered or _now() - began >= self._timings.empty_watch:
                    self._liveness.progress()
        finally:
            self._liveness.interrupt()
        if not delivered and _now() - began < self._timings.empty_watch:
            await self._back_off.pause("empty", "the watch ended at once")
        elif self._liveness:
            self._back_off.restarted("ended", "the watch ended")
        elif self._goal is None:
            self._back_off.restarted("unconfirmed", "the resourceVersion that the watch has to reach is not known")
        else:
            msg = f"the watch did not come to {self._goal}"
            raise BehindError(msg)

    @asynccontextmanager
    async def _open(self, *, short: bool) -> AsyncIterator[AsyncIterator[bytes]]:
        times, (low, high) = self._timings, self._timings.watch
        seconds = times.short_watch if short else int(low + (high - low) * self._back_off.jitter())
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(seconds),
        } | self._resource.selection
        idle = min(times.idle, 2.0 * seconds)
        watch = self._client.stream(self._resource.path, params, idle, accept=self._decoder.accept)
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(times.opening):
                    chunks = await stack.enter_async_context(watch)
            except TimeoutError as error:
                msg = f"no answer to a watch for {times.opening:g} s"
                raise Unreachable(msg) from error
            except ApiError as error:
                raise expired_or(error) from error
            ends = asyncio.timeout(seconds + idle)
            try:
                async with ends:
                    yield chunks
            except TimeoutError as error:
                if not ends.expired():
                    raise
                # What comes is late, or only bytes come and no frame: a watch that is behind must not count as live.
                msg = f"the watch did not end within {idle:g} s of its time"
                raise Unreachable(msg) from error

    async def _read(self, chunks: AsyncIterator[bytes], began: float) -> bool:
        """Deliver what comes until the server ends the watch. Returns whether anything came."""
        came, buffer = False, b""
        async for chunk in chunks:
            buffer += chunk
            encoding = self._decoder.of_watch(buffer)
            frames, buffer = encoding.split(buffer)
            if len(buffer) > MAX_OBJECT_BYTES:
                msg = f"a frame of a watch has more than {MAX_OBJECT_BYTES} bytes"
                raise TooLong(msg)
            for first in range(0, len(frames), FRAMES_AT_ONCE):
                if first:
                    await asyncio.sleep(0)
                came = True
                self._deliver(map(encoding.change, frames[first : first + FRAMES_AT_ONCE]))
                self._liveness.progress()
                self._compare()
                if _now() - began > self._timings.forgiven:
                    self._back_off.reset()
        # What is left in the buffer is half a frame: the connection was cut, and the resumed watch sends it again.
        return came

    def _deliver(self, changes: Iterable[Change[Object]]) -> None:
        try:
            for change in changes:
                found = change.found
                if isinstance(found, Undecodable):
                    self._handler.undecodable(found.identity, found.reason)
                elif not isinstance(found, Identity):
                    self._handler.seen(found)
                elif change.type == "DELETED" and not self._handler.lost(found):
                    msg = f"an object was deleted of which too little is known: {found}"
                    raise ExpiredError(msg)
                # Also of what does not decode: a resumed watch does not receive it again.
                self._version = change.version or self._version
        finally:  # what came before the end of the watch counts
            self._handler.reached(self._version)

    # -- how far a watch has to come ------------------------------------------------------------------------------

    @asynccontextmanager
    async def _goal_asked_for(self) -> AsyncIterator[None]:
        """Ask the server while the watch is read."""
        self._goal = None
        asking = asyncio.create_task(self._ask_for_goal())
        try:
            yield
        finally:
            asking.cancel()
            await asyncio.wait({asking})
            if not asking.cancelled():
                asking.result()

    async def _ask_for_goal(self) -> None:
        """The version of a list is that of the whole store at this moment, past every cache."""
        known = version_number(self._version)
        try:
            params = {"limit": "1"} | self._resource.selection
            body = await self._client.request("GET", self._resource.path, params=params, accept=self._decoder.accept)
            goal = version_number(self._decoder.page(body).head.resource_version)
        except KubeError:
            return  # the next watch retries
        # A store that was restored from a backup is behind us, and watches of what it has yet to write bring nothing.
        self._goal = goal if goal >= known else OUT_OF_REACH
        self._compare()

    def _compare(self) -> None:
        if not self._liveness and self._goal is not None and version_number(self._version) >= self._goal:
            self._liveness.catch_up()


def _now() -> float:
    return asyncio.get_running_loop().time()
