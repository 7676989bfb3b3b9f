"""A bounded wait for a change of a node, since a scheduler may receive the change before the extender does.

kube-scheduler retries pods within a millisecond after a node has changed. If the extender has not received that
change yet, it refuses the node again, and the pod waits for another event of the cluster, or for kube-scheduler's own
retry after five minutes. A request that no node suits, or with an unknown node, waits for a change, then repeats.
"""

import asyncio
from collections.abc import Callable

from taintwarden.engine.limits.bucket import TokenBucket
from taintwarden.engine.model import MonotonicTime, later

WAIT_SECONDS = 0.1
"""Maximum wait. Longer than the lag of a watch, and short for the scheduler, which schedules one pod at a time."""
WAITS_PER_SECOND, WAITS_AT_ONCE = 1.0, 10
"""Maximum rate and burst of waits that time out, so that they take at most a tenth of the scheduler's time."""


class NodeChanges:
    """Lets requests wait for changes of nodes.

    Args:
        monotonic: returns the monotonic time.

    """

    def __init__(self, monotonic: Callable[[], MonotonicTime]) -> None:
        self._monotonic = monotonic
        self._changed = asyncio.Event()
        full = later(monotonic(), -WAITS_AT_ONCE / WAITS_PER_SECOND)
        self._timeouts = TokenBucket(WAITS_PER_SECOND, WAITS_AT_ONCE, full)

    def notify(self) -> None:
        """Wake all waiting requests after a change of a node."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait_until(self, is_settled: Callable[[], bool]) -> None:
        """Wait up to ``WAIT_SECONDS`` until ``is_settled`` is True after a change; not at all after many timeouts."""
        now = self._monotonic()
        if self._timeouts.available_at(now) > now:
            return
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._changed.wait()
                while not is_settled():
                    await self._changed.wait()
        except TimeoutError:
            self._timeouts.take(self._monotonic())
