"""List and watch, without end: a stream of changes that survives every way in which a watch can end.

kopf's watching is not used: a relist after 410 must report which objects vanished, and unread fields must cost nothing.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from types import MappingProxyType
from typing import Any, Generic, NoReturn

from taintwarden.kube.errors import ApiError, TooLong, Unreachable
from taintwarden.kube.http.client import Client
from taintwarden.kube.watch.event_handler import EventHandler
from taintwarden.kube.watch.frames import FrameDecoder
from taintwarden.kube.watch.paging import FIRST_LIMIT, PageLimit
from taintwarden.kube.watch.stream_liveness import StreamLiveness
from taintwarden.kube.watch.watching import BackOff, StreamTimings, Watch
from taintwarden.kube.wire.formats import ExpiredError, Page, Undecodable, expired_or
from taintwarden.kube.wire.kinds import Object
from taintwarden.kube.wire.resources import Resource

OBJECTS_AT_ONCE = 500
"""Maximum objects of a page in one step of the event loop. Evictions wait for each step while a leader lists again."""


class Stream(Generic[Object]):
    """Follows one resource. ``run`` never returns.

    Args:
        handler: receives the stream.
        first_limit: number of objects in the first page.
        objects_at_once: maximum objects of a page that are passed on in one step of the event loop.
        sleep: waits for some seconds; replaced in tests.
        jitter: a number in [0, 1); replaced in tests.

    Attributes:
        listed: set while a list is complete and no other one is requested.

    """

    def __init__(
        self,
        client: Client,
        resource: Resource[Object],
        handler: EventHandler[Object],
        timings: StreamTimings = StreamTimings(),  # noqa: B008 - it is frozen
        *,
        first_limit: int = FIRST_LIMIT,
        objects_at_once: int = OBJECTS_AT_ONCE,
        sleep: Callable[[float], Any] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.name = resource.name
        self.listed = asyncio.Event()
        self._client = client
        self._resource = resource
        self._handler = handler
        self._timings = timings
        self._first_limit = first_limit
        self._objects_at_once = objects_at_once
        self._back_off = BackOff(handler.restarted, timings, sleep=sleep, jitter=jitter)
        self._listed_at = float("-inf")
        """Time at which the last list ended, or began if it has not ended."""
        self._relist = asyncio.Event()
        """Set when another list is requested."""
        self._decoder: FrameDecoder[Object] = FrameDecoder(resource)
        self._liveness = StreamLiveness(timings.gap, handler)
        self._watch = Watch(client, resource, self._decoder, handler, timings, self._back_off, self._liveness)

    async def run(self) -> NoReturn:
        """List, then watch. List again if the watch cannot be resumed."""
        self._handler.live(live=False)
        try:
            while True:
                await self._follow()
        finally:
            self._liveness.drop_proof()

    def list_again(self, *, is_stale: bool = False) -> None:
        """Request another list, after one in progress. With ``is_stale``, the stream is not live until then."""
        self._relist.set()
        self.listed.clear()
        if is_stale:
            self._liveness.drop_proof()

    async def _follow(self) -> None:
        try:
            await self._list_and_watch()
        except ExpiredError as error:
            if _now() - self._listed_at > self._timings.stable_after:
                # Normal with a healthy server: list again without a pause.
                self._handler.restarted(error.reason, str(error))
            else:
                await self._back_off.pause(error.reason, str(error))
        except ApiError as error:
            await self._back_off.pause_after(error, self._resource.why_refused(error))
        except Unreachable as error:
            await self._back_off.pause("unreachable", str(error))

    async def _list_and_watch(self) -> None:
        began = self._listed_at = _now()
        self._relist.clear()
        self._handler.list_began()
        version = await self._list()
        self._handler.list_ended(version)
        self._listed_at = _now()
        if self._relist.is_set():
            return
        self._liveness.prove_by_list(began)
        self.listed.set()
        tasks = asyncio.create_task(self._watch.run(version)), asyncio.create_task(self._relist.wait())
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    # -- list ---------------------------------------------------------------------------------------------------

    async def _list(self) -> str:
        """Pass on all pages. Return the version of the first one, which is that of the whole list."""
        version = ""
        async with aclosing(self._pages()) as pages:
            async for page in pages:
                version = version or page.head.resource_version
                await self._pass_on(page)
        return version

    async def _pages(self) -> AsyncGenerator[Page[Object]]:
        limit = PageLimit(self._first_limit)
        coming = asyncio.create_task(self._request_page(limit))
        try:
            while True:
                body = await coming
                page = self._decoder.page(body)
                if page.head.continue_:
                    limit.adapt(len(body))
                    # The server prepares the next page while this one is processed.
                    coming = asyncio.create_task(self._request_page(limit, {"continue": page.head.continue_}))
                del body  # the page keeps what it needs of it
                yield page
                if not page.head.continue_:
                    return
        finally:
            coming.cancel()

    async def _request_page(self, limit: PageLimit, token: Mapping[str, str] = MappingProxyType({})) -> bytes:
        selection = {**token, **self._resource.selection}
        while True:
            try:
                return await self._client.request(
                    "GET",
                    self._resource.path,
                    params={"limit": str(limit.objects), **selection},
                    accept=self._decoder.accept,
                    max_bytes=limit.max_bytes,
                )
            except TooLong:
                if not limit.shrink():
                    raise
            except ApiError as error:
                raise expired_or(error) from error  # an expired continue token: begin again

    async def _pass_on(self, page: Page[Object]) -> None:
        if page.head.continue_:
            await asyncio.sleep(0)  # the request for the next page is sent first
        for first in range(0, max(1, len(page.items)), self._objects_at_once):
            if first:
                await asyncio.sleep(0)
            good: list[Object] = []
            for found in map(page.read, page.items[first : first + self._objects_at_once]):
                if isinstance(found, Undecodable):
                    self._handler.undecodable(found.identity, found.reason)
                else:
                    good.append(found)
            self._handler.listed(good)


def _now() -> float:
    return asyncio.get_running_loop().time()
