"""Reads a busy stream in few large chunks: waking for each of a thousand events a second costs twice as much.

Not for the scheduler extender: it must know what kube-scheduler knows, which reads its watches at once.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager

QUIET_SECONDS = 0.03
"""After a chunk that came so soon after the last one, nothing is read for so long: the next chunk has all of it."""
BACKLOG_BYTES = 2**16
"""A chunk as long as this is part of a backlog, and the next one is read at once."""


async def paced(
    chunks: AsyncIterator[bytes], paused: Callable[[], AbstractContextManager[None]]
) -> AsyncIterator[bytes]:
    """The chunks of a body as they come while they are few. Those of a busy stream are joined, 33 a second at most.

    Args:
        chunks: as they come.
        paused: a context in which nothing is read from the connection.

    """
    now = asyncio.get_running_loop().time
    last = float("-inf")
    async for chunk in chunks:
        yield chunk
        if now() - last < QUIET_SECONDS and len(chunk) < BACKLOG_BYTES:
            with paused():
                await asyncio.sleep(QUIET_SECONDS)
        last = now()
