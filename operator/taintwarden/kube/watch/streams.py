"""List and watch, forever: a stream of changes which survives every way a watch can end.

Not kopf's, because a relist after 410 must report what vanished in the gap, and because objects which are never built
cost nothing: see the measurements in ``docs/architecture.md``.
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
"""Of a page, which evictions of a leader that lists again wait for."""


class Stream(Generic[Object]):
    """Follows one resource. ``run`` never returns.

    Args:
        client: the session to use.
        resource: what to follow.
        handler: receives the stream.
        timings: how long to wait for what.
        first_limit: how many objects to request at first.
        objects_at_once: how many objects of a page are passed on in one step of the event loop.
        sleep: waits for some seconds; replaced in tests.
        jitter: a number in [0, 1); replaced in tests.

    Attributes:
        name: of the resource.
        listed: set once a list is complete, and none is to be read once more.

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
        """When the last list ended, or began if it did not end."""
        self._again = asyncio.Event()
        """The list is to be read once more."""
        self._decoder: FrameDecoder[Object] = FrameDecoder(resource)
        self._liveness = StreamLiveness(timings.gap, handler)
        self._watch = Watch(client, resource, self._decoder, handler, timings, self._back_off, self._liveness)

    async def run(self) -> NoReturn:
        """List, then watch; list again where the watch cannot be resumed."""
        self._handler.live(live=False)
        try:
            while True:
                await self._follow()
        finally:
            self._liveness.lose()

    def list_again(self, *, is_stale: bool = False) -> None:
        """List once more, after a list that is in progress. What ``is_stale`` is not up to date until then."""
        self._again.set()
        self.listed.clear()
        if is_stale:
            self._liveness.lose()

    async def _follow(self) -> None:
        try:
            await self._list_and_watch()
        except ExpiredError as error:
            if _now() - self._listed_at > self._timings.forgiven:
                # Everyday life, and the answer of a healthy server: list again at once.
                self._handler.restarted(error.reason, str(error))
            else:
                await self._back_off.pause(error.reason, str(error))
        except ApiError as error:
            await self._back_off.pause("refused", self._resource.why_refused(error), error.retry_after)
        except Unreachable as error:
            await self._back_off.pause("unreachable", str(error))

    async def _list_and_watch(self) -> None:
        began = self._listed_at = _now()
        self._again.clear()
        self._handler.list_began()
        version = await self._list()
        self._handler.list_ended(version)
        self._listed_at = _now()
        if self._again.is_set():
            return
        self._liveness.complete(began)
        self.listed.set()
        tasks = asyncio.create_task(self._watch.run(version)), asyncio.create_task(self._again.wait())
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
        """Pass on all pages. Returns their version: that of the moment of the first."""
        version = ""
        async with aclosing(self._pages()) as pages:
            async for page in pages:
                version = version or page.head.resource_version
                await self._listed(page)
        return version

    async def _pages(self) -> AsyncGenerator[Page[Object]]:
        limit = PageLimit(self._first_limit)
        coming = asyncio.create_task(self._request_page(limit))
        try:
            while True:
                body = await coming
                page = self._decoder.page(body)
                if page.head.continue_:
                    limit.came(len(body))
                    # The server makes the next page while we work on this one.
                    coming = asyncio.create_task(self._request_page(limit, {"continue": page.head.continue_}))
                del body  # the page holds what it needs of it
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
                raise expired_or(error) from error  # the continue token may grow too old: begin again

    async def _listed(self, page: Page[Object]) -> None:
        if page.head.continue_:
            await asyncio.sleep(0)  # the next requests go out first
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
