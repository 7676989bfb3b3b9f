"""How tests of one event loop wait for what must come: a busy machine may take its time."""

import asyncio
from collections.abc import Callable

PATIENCE_SECONDS = 60


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():
            await asyncio.sleep(0.005)
