"""kopf's lives within the operator's: a thread for each, with a loop of its own, and the next when one ends."""

import asyncio
import contextlib
import threading

import kopf
import structlog

PAUSE_SECONDS = 5.0
"""Between two lives."""

log = structlog.get_logger()


async def keep_kopf(registry: kopf.OperatorRegistry, memo: kopf.Memo, stopping: asyncio.Event) -> None:
    """Run kopf until ``stopping`` is set, and begin again when it ends by itself.

    It ends when our definitions are gone for a moment; the policies in force stay in force meanwhile.
    """
    asked = asyncio.create_task(stopping.wait())
    while not stopping.is_set():
        life = _Life(registry, memo)
        ended = asyncio.create_task(asyncio.to_thread(life.run))
        await asyncio.wait({asked, ended}, return_when=asyncio.FIRST_COMPLETED)
        life.stop()
        try:
            await ended
        except Exception as error:  # noqa: BLE001 - whatever ends kopf's watch, pods and nodes are still watched
            log.warning("policy-watch-restarted", reason=f"{type(error).__name__}: {error}"[:300])
        await asyncio.wait({asked}, timeout=PAUSE_SECONDS)


class _Life:
    """One life: kopf cancels every task of its loop in the end, so it has a loop for itself."""

    def __init__(self, registry: kopf.OperatorRegistry, memo: kopf.Memo) -> None:
        self._registry = registry
        self._memo = memo
        self._begun = threading.Event()

    def run(self) -> None:
        """Run kopf to its end, in the calling thread."""
        asyncio.run(self._main())

    def stop(self) -> None:
        """Ask it to end, from any thread; one that has ended does not mind."""
        self._begun.wait()
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._asked.set)

    async def _main(self) -> None:
        # Of the flags kopf takes, only one of its own loop lets it end by itself.
        self._loop, self._asked = asyncio.get_running_loop(), asyncio.Event()
        self._begun.set()
        await kopf.operator(
            registry=self._registry, memo=self._memo, clusterwide=True, standalone=True, stop_flag=self._asked
        )
