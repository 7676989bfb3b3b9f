"""What changes moments after an answer: a scheduler may hear of a node earlier than the extender.

The change of a node makes kube-scheduler retry pods within a millisecond. If the extender does not know of it yet, it
refuses the node again, and the pod waits for another event of the cluster, or for kube-scheduler's own retry after five
minutes. So a pod that no node suits is judged again when a node changes within a moment.
"""

import asyncio
from collections.abc import Callable

from taintwarden.engine.limits.bucket import TokenBucket
from taintwarden.engine.model import MonotonicTime, later

WAIT_SECONDS = 0.1
"""Longer than a watch lags, and short enough for the scheduler, which schedules one pod at a time."""
WAITS_PER_SECOND, WAITS_AT_ONCE = 1.0, 10
"""Waits in vain: pods that wait for something else cost the scheduler a tenth of its time at most."""


class NodeChanges:
    """Reports changes.

    Args:
        monotonic: the clock.

    """

    def __init__(self, monotonic: Callable[[], MonotonicTime]) -> None:
        self._monotonic = monotonic
        self._changed = asyncio.Event()
        full = later(monotonic(), -WAITS_AT_ONCE / WAITS_PER_SECOND)
        self._in_vain = TokenBucket(WAITS_PER_SECOND, WAITS_AT_ONCE, full)

    def came(self) -> None:
        """Something changed."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def until(self, is_settled: Callable[[], bool]) -> None:
        """Wait until it is, asking after each change, for a moment at most."""
        now = self._monotonic()
        if self._in_vain.available_at(now) > now:
            return
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._changed.wait()
                while not is_settled():
                    await self._changed.wait()
        except TimeoutError:
            self._in_vain.take(self._monotonic())
