"""From the lease to the machine: what has to be read before a new leader decides, and who hears of it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

from taintwarden.telemetry.metrics import Metrics

log = structlog.get_logger()


class Leadership:
    """Whether this replica decides.

    Args:
        identity: of this replica, for the log.
        metrics: has the gauge of the leader.
        prepare: reads what the previous leader has written, before this one decides.
        lead: makes the machine and its stores decide (True), or stop deciding.
        spawn: starts the preparation.

    """

    def __init__(
        self,
        identity: str,
        metrics: Metrics,
        prepare: Callable[[], Coroutine[Any, Any, None]],
        lead: Callable[[bool], None],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self._identity = identity
        self._metrics = metrics
        self._prepare = prepare
        self._lead = lead
        self._spawn = spawn
        self._taking_over: asyncio.Task[None] | None = None

    def changed(self, held: bool) -> None:  # noqa: FBT001 - a callback's one argument
        """The lease was acquired or lost."""
        log.info("leadership-gained" if held else "leadership-lost", identity=self._identity)
        self._metrics.leader.set(held)
        if self._taking_over is not None:
            self._taking_over.cancel()
        if held:
            self._taking_over = self._spawn(self._take_over())
        else:
            self._lead(False)  # noqa: FBT003 - a callback's one argument

    async def _take_over(self) -> None:
        await self._prepare()
        self._lead(True)  # noqa: FBT003 - a callback's one argument
