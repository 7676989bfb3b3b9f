"""Watches of one resource from a version on, each resumed where the previous one ended."""

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
"""A version that no resourceVersion reaches."""
FRAMES_AT_ONCE = 8
"""Maximum frames in one step of the event loop. A chunk can contain a hundred nodes with thirty pods each to evaluate.
"""


class StreamTimings(msgspec.Struct, frozen=True, kw_only=True):
    """Durations of lists, watches and pauses in seconds. Tests pass shorter ones."""

    gap: float = 2.0
    """Time for which the view counts as up to date while no watch is open."""
    watch: tuple[int, int] = (12, 18)
    """Range of the time after which the server ends a watch. A random value spreads watches over its replicas.

    Less than ``idle``: for a resource that never changes the server sends nothing, not even bookmarks, unless etcd
    reports progress (every ten minutes by default). Then only the requested end shows that a connection works. To open
    a watch again costs both sides less than a millisecond.
    """
    short_watch: int = 4
    """Duration of the first watch after a gap. The server sends a bookmark two seconds before the end of a watch."""
    opening: float = 15.0
    """Maximum time until a watch is answered. The server answers at once, but its flow control may delay the request.
    """
    idle: float = 22.0
    """Silence after which a connection is dead, because the server should have ended the watch. Less for a short watch.

    Well below the shortest notice that a cloud gives before it removes a node (30 s).
    """
    back_off: tuple[float, float] = (0.25, 5.0)
    """First and longest pause after failures, with 50% jitter. Short, since no pod may be evicted meanwhile."""
    max_retry_after: float = 15.0
    """Longest pause that a server or a load balancer can request (``Retry-After``)."""
    empty_watch: float = 1.0
    """A watch without a frame that ends sooner is a failure, so that a broken server is not flooded with requests."""
    stable_after: float = 5.0
    """Time after which a watch that works resets the pauses, and an expired one is followed by a list at once."""


class BehindError(ExpiredError):
    """The watch did not deliver what the server has: its cache lags, or the store was restored from a backup."""

    reason = "behind"


class BackOff:
    """Pauses that grow with each failure. Each failure is reported with its reason.

    Args:
        restarted: called with the reason and its detail when a request ends, with or without a pause after it.
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
        self._max_retry_after = timings.max_retry_after
        self._sleep = sleep
        self._failures = 0

    def reset(self) -> None:
        """Let the next pause be a short one, after a success."""
        self._failures = 0

    async def pause(self, reason: str, detail: str, at_least: float | None = None) -> None:
        """Report one more failure and pause, for ``at_least`` seconds if the server asks for that, within bounds."""
        self.restarted(reason, detail)
        delay = min(self._longest, self._first * 2.0 ** min(self._failures, 10)) * (0.5 + self.jitter())
        self._failures += 1
        await self._sleep(max(delay, min(at_least or 0.0, self._max_retry_after)))

    async def pause_after(self, error: ApiError, detail: str) -> None:
        """Report a refusal, and pause. An overloaded or failing server counts as unreachable: it refused nothing."""
        await self.pause("refused" if error.is_final else "unreachable", detail, error.retry_after)


class Watch(Generic[Object]):
    """Follows the changes of one resource through one watch after the other.

    Args:
        handler: receives the changes.
        liveness: tracks whether what the handler received is up to date.

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
        """Version up to which everything has to be delivered before the view is up to date. None if not known yet."""

    async def run(self, version: str) -> NoReturn:
        """Watch from the version of a list on. Resume each watch where the previous one ended.

        Raises:
            ExpiredError: the watch cannot be resumed: another list is needed.

        """
        self._version = version
        while True:
            try:
                await self._watch_once()
            except ApiError as error:
                await self._back_off.pause_after(error, self._resource.why_refused(error))
            except Unreachable as error:
                await self._back_off.pause("unreachable", str(error))

    async def _watch_once(self) -> None:
        """Run one watch. After a gap it is short: without changes only the bookmark at its end shows the version."""
        catching_up = not self._liveness.is_live
        began, delivered = _now(), False
        try:
            async with self._open(short=catching_up) as chunks:
                if self._liveness.begin_watch():
                    delivered = await self._read(chunks, began)
                elif catching_up:
                    async with self._requesting_goal():
                        delivered = await self._read(chunks, began)
                else:
                    self._back_off.restarted("late", "the watch was opened too long after the previous one")
                    return
                if delivered or _now() - began >= self._timings.empty_watch:
                    self._liveness.extend_proof()
        finally:
            self._liveness.end_watch()
        if not delivered and _now() - began < self._timings.empty_watch:
            await self._back_off.pause("empty", "the watch ended at once")
        elif self._liveness.is_live:
            self._back_off.restarted("ended", "the watch ended")
        elif self._goal is None:
            self._back_off.restarted("unconfirmed", "the resourceVersion that the watch has to reach is not known")
        else:
            msg = f"the watch did not reach {self._goal}"
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
                # Frames are late, or bytes come and no frame: a watch that is behind must not count as live.
                msg = f"the watch did not end within {idle:g} s of its time"
                raise Unreachable(msg) from error

    async def _read(self, chunks: AsyncIterator[bytes], began: float) -> bool:
        """Deliver frames until the server ends the watch. Return True if any came."""
        came, buffer = False, bytearray()
        async for chunk in chunks:
            buffer += chunk
            encoding = self._decoder.watch_format(buffer)
            if len(buffer) <= MAX_OBJECT_BYTES and not encoding.may_end_frame(chunk):
                continue  # a frame of nine megabytes may come in pieces of some kilobytes
            frames, rest = encoding.split(bytes(buffer))
            if len(rest) > MAX_OBJECT_BYTES:
                msg = f"a frame of a watch has more than {MAX_OBJECT_BYTES} bytes"
                raise TooLong(msg)
            buffer = bytearray(rest)
            for first in range(0, len(frames), FRAMES_AT_ONCE):
                if first:
                    await asyncio.sleep(0)
                came = True
                self._deliver(map(encoding.change, frames[first : first + FRAMES_AT_ONCE]))
                self._liveness.extend_proof()
                self._check_goal()
                if _now() - began > self._timings.stable_after:
                    self._back_off.reset()
        # The buffer holds a part of a frame if the connection was cut. The resumed watch sends that frame again.
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
                # Also for an object that does not decode, or a resumed watch would receive it again.
                self._version = change.version or self._version
        finally:  # also after an error, for the changes before it
            self._handler.reached(self._version)

    # -- the version to be reached --------------------------------------------------------------------------------

    @asynccontextmanager
    async def _requesting_goal(self) -> AsyncIterator[None]:
        """Request the goal while the watch is read."""
        self._goal = None
        request = asyncio.create_task(self._request_goal())
        try:
            yield
        finally:
            request.cancel()
            await asyncio.wait({request})
            if not request.cancelled():
                request.result()

    async def _request_goal(self) -> None:
        """Request a list past every cache. Its version, which is that of the whole store now, is the goal."""
        known = version_number(self._version)
        try:
            body = await self._client.request(
                "GET",
                self._resource.path,
                params={"limit": "1"} | self._resource.selection,
                accept=self._decoder.accept,
                max_bytes=MAX_OBJECT_BYTES,  # the first object may be that of any tenant
            )
            goal = version_number(self._decoder.page(body).head.resource_version)
        except KubeError:
            return  # the next watch retries
        # A store that was restored from a backup is behind: a watch from this version delivers none of its changes.
        self._goal = goal if goal >= known else OUT_OF_REACH
        self._check_goal()

    def _check_goal(self) -> None:
        if not self._liveness.is_live and self._goal is not None and version_number(self._version) >= self._goal:
            self._liveness.prove_by_watch()
            self._goal = None  # it proves nothing about a view that becomes stale later


def _now() -> float:
    return asyncio.get_running_loop().time()
