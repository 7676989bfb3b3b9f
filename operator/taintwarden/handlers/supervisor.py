"""kopf's lives within the operator's: a thread for each, with a loop of its own, and the next when one ends."""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Literal, cast

import kopf
import structlog

PAUSE_SECONDS = 5.0
"""Between two lives."""
PATIENCE_SECONDS = 30.0
"""How long policies may go unwatched before the operator reports it: a definition that is replaced takes seconds."""

log = structlog.get_logger()


class Supervisor:
    """Runs kopf as long as the operator runs, and knows whether it watches.

    Args:
        registry: the handlers.
        memo: what they are called with.
        identity: the operator's name. Without one kopf asks the system for a user name, and user 65532 has none.
        monotonic: the clock for ``PATIENCE_SECONDS``.
        served: whether the API server knows our kinds. A kopf that begins without them never learns of them.

    """

    def __init__(
        self,
        registry: kopf.OperatorRegistry,
        memo: kopf.Memo,
        *,
        identity: str,
        monotonic: Callable[[], float],
        served: Callable[[], Awaitable[bool]],
    ) -> None:
        self._registry = registry
        self._memo = memo
        self._identity = identity
        self._monotonic = monotonic
        self._served = served
        self._renewal = asyncio.Event()
        self.watching = False
        """Whether kopf watches now."""
        self._unwatched_since: float | None = None
        self._reason = ""

    async def run(self, stopping: asyncio.Event) -> None:
        """Run kopf until ``stopping`` is set, and begin again when it ends by itself.

        It ends when our definitions are gone for a moment; the policies in force stay in force meanwhile.
        """
        asked = asyncio.create_task(stopping.wait())
        while not stopping.is_set():
            if await self._served():
                await self._live(asked)
            else:
                self._reason = "the definitions of our kinds are not there"
            await asyncio.wait({asked}, timeout=PAUSE_SECONDS)

    async def _live(self, asked: asyncio.Task[Literal[True]]) -> None:
        """One life, until it ends, or is to make place for the next, or there shall be none any more."""
        running = asyncio.get_running_loop()
        self._renewal.clear()
        life = _Life(self._registry, self._memo, self._identity, lambda: running.call_soon_threadsafe(self._began))
        ended = asyncio.create_task(asyncio.to_thread(life.run))
        renewed = asyncio.create_task(self._renewal.wait())
        await asyncio.wait({asked, ended, renewed}, return_when=asyncio.FIRST_COMPLETED)
        renewed.cancel()
        life.stop()
        try:
            await ended
        except Exception as error:  # noqa: BLE001 - whatever ends kopf's watch, pods and nodes are still watched
            self._reason = f"{type(error).__name__}: {error}"[:300]
            log.warning("policy-watch-restarted", reason=self._reason)
        self._ended()

    def renew(self, reason: str) -> None:
        """Begin again, as what kopf watches is not what there is."""
        if self.watching:
            self._reason = reason
            log.warning("policy-watch-restarted", reason=reason)
            self._renewal.set()

    def problem(self) -> str:
        """Why policies are not watched, if they were not for ``PATIENCE_SECONDS`` or never; else empty."""
        if self.watching:
            return ""
        since = self._unwatched_since
        if since is not None and self._monotonic() - since < PATIENCE_SECONDS:
            return ""
        return "policies are not watched" + (f": {self._reason}" if self._reason else " yet")

    def _began(self) -> None:
        self.watching, self._unwatched_since, self._reason = True, None, ""

    def _ended(self) -> None:
        if self.watching:
            self.watching, self._unwatched_since = False, self._monotonic()


class _Life:
    """One life: kopf cancels every task of its loop in the end, so it has a loop for itself."""

    def __init__(
        self, registry: kopf.OperatorRegistry, memo: kopf.Memo, identity: str, on_ready: Callable[[], object]
    ) -> None:
        self._registry = registry
        self._memo = memo
        self._identity = identity
        self._on_ready = on_ready
        self._begun = threading.Event()

    def run(self) -> None:
        """Run kopf to its end, in the calling thread."""
        asyncio.run(self._main())

    def stop(self) -> None:
        """Request its end, from any thread; no effect if it has ended."""
        self._begun.wait()
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._asked.set)

    async def _main(self) -> None:
        # Of the flags kopf takes, only one of its own loop lets it end by itself.
        self._loop, self._asked = asyncio.get_running_loop(), asyncio.Event()
        ready = asyncio.Event()
        waiting = asyncio.create_task(self._tell(ready))
        self._begun.set()
        try:
            await kopf.operator(
                registry=self._registry,
                memo=self._memo,
                identity=cast("Any", self._identity),  # kopf's own type of it is private
                clusterwide=True,
                standalone=True,
                ready_flag=ready,
                stop_flag=self._asked,
            )
        finally:
            waiting.cancel()

    async def _tell(self, ready: asyncio.Event) -> None:
        await ready.wait()
        self._on_ready()
