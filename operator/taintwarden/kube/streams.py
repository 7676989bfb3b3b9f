"""List and watch, forever: a stream of changes which survives every way a watch can end.

Not kopf's, because a relist after 410 must report what vanished in the gap, and because objects which are never built
cost nothing: see the measurements in ``docs/architecture.md``.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Generic, Protocol, TypeVar

from taintwarden.kube.client import Client
from taintwarden.kube.encoding import ExpiredError, Undecodable, expired_or
from taintwarden.kube.errors import ApiError, KubeError, Unreachable
from taintwarden.kube.frames import Decoder
from taintwarden.kube.liveness import Liveness
from taintwarden.kube.objects import Followed, Identity, Object, version_number
from taintwarden.kube.resources import PAGE_SIZE, Resource
from taintwarden.kube.timings import StreamTimings

OUT_OF_REACH = 2**64
"""No resourceVersion is as high."""
FRAMES_AT_ONCE = 8
"""A chunk can have a hundred nodes with thirty pods each to evaluate: other tasks run in between."""

Received_contra = TypeVar("Received_contra", bound=Followed, contravariant=True)


class EventHandler(Protocol[Received_contra]):
    """Receives a stream. Calls come in order and never overlap; none may raise."""

    def changed(self, changes: Sequence[tuple[str, Received_contra]]) -> None:
        """Watch frames: ``ADDED``, ``MODIFIED`` or ``DELETED``, each with the object."""

    def listed(self, objects: Sequence[Received_contra]) -> None:
        """One page of a list."""

    def list_ended(self, resource_version: str) -> None:
        """The list is complete: what it did not name does not exist (any more)."""

    def list_began(self) -> None:
        """A list begins, from its first page; a list that had begun before does not count."""

    def reached(self, resource_version: str) -> None:
        """All changes up to here have been delivered."""

    def live(self, *, live: bool) -> None:
        """Whether what was delivered is up to date. It is not before this was called."""

    def undecodable(self, what: Identity, reason: str, *, deleted: bool) -> bool:
        """An object of a list or a watch cannot be decoded; the stream continues without it.

        False: it was deleted, and its identity is not known. Then only another list shows what is gone.
        """

    def restarted(self, reason: str, detail: str) -> None:
        """The watch ended and is taken up again, or the list is begun again."""


class BehindError(ExpiredError):
    """The watch did not bring what the server has: its cache lags, or the store was restored from a backup."""

    reason = "behind"


class Stream(Generic[Object]):
    """Follows one resource. ``run`` never returns.

    Args:
        client: the session to use.
        resource: what to follow.
        handler: receives the stream.
        timings: how long to wait for what.
        page_size: how many objects to request at once.
        sleep: waits for some seconds; replaced in tests.
        jitter: a number in [0, 1); replaced in tests.

    """

    def __init__(
        self,
        client: Client,
        resource: Resource[Object],
        handler: EventHandler[Object],
        timings: StreamTimings = StreamTimings(),  # noqa: B008 - it is frozen
        *,
        page_size: int = PAGE_SIZE,
        sleep: Callable[[float], Any] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._resource = resource
        self._handler = handler
        self._timings = timings
        self._page_size = page_size
        self._sleep = sleep
        self._jitter = jitter
        self._version = ""
        self._failures = 0
        self._listed_at = float("-inf")
        """When the last list ended, or began if it did not end."""
        self._decoder: Decoder[Object] = Decoder(resource)
        self._liveness = Liveness(lambda live: handler.live(live=live), timings.gap)
        self._goal: int | None = None
        """The version up to which everything has to be delivered before the view is up to date; None: not known yet."""

    async def run(self) -> None:
        """List, then watch; resume where a watch ended, list again where that is not possible."""
        self._liveness.lose()
        try:
            while True:
                await self._list_and_watch()
        finally:
            self._liveness.lose()

    async def _list_and_watch(self) -> None:
        try:
            if not self._version:
                await self._list()
            await self._watch()
        except ExpiredError as error:
            self._version = ""
            if _now() - self._listed_at > self._timings.forgiven:
                # Everyday life, and the answer of a healthy server: list again at once.
                self._handler.restarted(error.reason, str(error))
            else:
                await self._back_off(error.reason, str(error))
        except ApiError as error:
            await self._back_off("refused", str(error), error.retry_after)
        except Unreachable as error:
            await self._back_off("unreachable", str(error))

    async def _back_off(self, reason: str, detail: str, at_least: float | None = None) -> None:
        self._handler.restarted(reason, detail)
        first, longest = self._timings.back_off
        delay = min(longest, first * 2.0 ** min(self._failures, 10)) * (0.5 + self._jitter())
        self._failures += 1
        await self._sleep(max(delay, at_least or 0.0))

    # -- list ---------------------------------------------------------------------------------------------------

    async def _list(self) -> None:
        params = {"limit": str(self._page_size)} | self._resource.selection
        began = self._listed_at = _now()
        self._handler.list_began()
        coming = asyncio.create_task(self._request_page(params))
        try:
            while True:
                page = self._decoder.page(await coming)
                head = page.head
                if head.continue_:
                    # The server makes the next page while we work on this one.
                    coming = asyncio.create_task(self._request_page(params | {"continue": head.continue_}))
                    await asyncio.sleep(0)
                good, bad = page.decode()
                for one in bad:
                    self._handler.undecodable(one.identity, one.reason, deleted=False)
                self._handler.listed(good)
                if not head.continue_:
                    break
        finally:
            coming.cancel()
        self._version = head.resource_version
        self._handler.list_ended(self._version)
        self._listed_at = _now()
        self._liveness.complete(began)  # all pages are of the moment of the first

    async def _request_page(self, params: Mapping[str, str]) -> bytes:
        try:
            return await self._client.request("GET", self._resource.path, params=params, accept=self._decoder.accept)
        except ApiError as error:
            raise expired_or(error) from error  # the continue token may grow too old: begin again

    # -- watch --------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
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
                    self._handler.restarted("late", "the watch was opened too long after the previous one")
                    return
                if delivered or _now() - began >= self._timings.empty_watch:
                    self._liveness.progress()
        finally:
            self._liveness.interrupt()
        if not delivered and _now() - began < self._timings.empty_watch:
            await self._back_off("empty", "the watch ended at once")
        elif self._liveness:
            self._handler.restarted("ended", "the watch ended")
        elif self._goal is None:
            self._handler.restarted("unconfirmed", "the resourceVersion that the watch has to reach is not known")
        else:
            msg = f"the watch did not come to {self._goal}"
            raise BehindError(msg)

    @asynccontextmanager
    async def _open(self, *, short: bool) -> AsyncIterator[AsyncIterator[bytes]]:
        times, (low, high) = self._timings, self._timings.watch
        seconds = times.short_watch if short else int(low + (high - low) * self._jitter())
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(seconds),
        } | self._resource.selection
        watch = self._client.stream(
            self._resource.path, params, min(times.idle, 2.0 * seconds), accept=self._decoder.accept
        )
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(times.opening):
                    chunks = await stack.enter_async_context(watch)
            except TimeoutError as error:
                msg = f"no answer to a watch for {times.opening:g} s"
                raise Unreachable(msg) from error
            except ApiError as error:
                raise expired_or(error) from error
            yield chunks

    async def _read(self, chunks: AsyncIterator[bytes], began: float) -> bool:
        """Deliver what comes until the server ends the watch. Returns whether anything came."""
        came, buffer = False, b""
        async for chunk in chunks:
            frames, buffer = self._decoder.split(buffer + chunk)
            for first in range(0, len(frames), FRAMES_AT_ONCE):
                if first:
                    await asyncio.sleep(0)
                came = True
                self._deliver(frames[first : first + FRAMES_AT_ONCE])
                self._liveness.progress()
                self._compare()
                if _now() - began > self._timings.forgiven:
                    self._failures = 0
        # What is left in the buffer is half a frame: the connection was cut, and the resumed watch sends it again.
        return came

    def _deliver(self, frames: Sequence[bytes]) -> None:
        changes: list[tuple[str, Object]] = []
        version = self._version
        expired: ExpiredError | None = None
        for raw in frames:
            try:
                kind, found = self._decoder.frame(raw)
            except ExpiredError as error:
                expired = error
                break
            if isinstance(found, Undecodable):
                if changes:  # earlier changes are passed on first: they may be of the same object
                    self._handler.changed(changes)
                    changes = []
                if not self._handler.undecodable(found.identity, found.reason, deleted=kind == "DELETED"):
                    expired = ExpiredError("the deleted object is not known", found.reason)
                    break
                # A resumed watch does not receive it again.
                version = found.identity.resource_version or version
                continue
            version = found.metadata.resource_version or version
            if kind != "BOOKMARK":
                changes.append((kind, found))
        if changes:
            self._handler.changed(changes)
        self._version = version
        self._handler.reached(version)
        if expired is not None:
            raise expired

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
