"""How tests of one event loop wait for what must come: a busy machine may take its time."""

import asyncio
from collections.abc import Callable

PATIENCE_SECONDS = 60


async def until(holds: Callable[[], object], what: str = "what has to hold") -> None:
    """Raises TimeoutError, which names what was waited for."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not holds():
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise TimeoutError(f"waited {PATIENCE_SECONDS} s for {what}") from None
