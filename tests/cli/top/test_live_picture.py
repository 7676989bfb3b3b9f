"""The live picture of `top` while looks fail."""

import asyncio
import io
from collections.abc import AsyncIterator, Callable

import pytest
from rich.console import Console

from taintwarden.engine.model import Gates
from taintwarden_cli.rehearsal.session import ClusterError
from taintwarden_cli.top import live_picture
from taintwarden_cli.top.live_picture import _Top
from taintwarden_cli.top.looking import Look

SEEN = Look(1_800_000_000.0, "https://test", "", None, [], [], [], [])


@pytest.fixture
async def top(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Callable[..., _Top]]:
    """One whose looks have these results; the last one again and again."""

    def made(*results: Look | Exception) -> _Top:
        left = list(results)

        async def look(*_: object) -> Look:
            await asyncio.sleep(0)
            result = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(result, Exception):
                raise result
            return result

        monkeypatch.setattr(live_picture, "look", look)
        return _Top(Console(file=io.StringIO(), force_terminal=True), "taintwarden-system", Gates(), 0.0)

    return made


async def test_a_look_that_fails_is_shown_until_one_succeeds(top):
    shown = top(ClusterError("away"), ClusterError("away"), SEEN)
    looking = asyncio.create_task(shown._keep_looking(None))
    found = []
    while not shown._look:
        found.append(shown._state.unseen)
        await asyncio.sleep(0)
    looking.cancel()
    assert "away" in found
    assert shown._state.unseen == ""


async def test_a_fault_of_a_look_ends_the_command(top):
    """Else the picture would stay as it was, and look calm."""
    async with asyncio.timeout(60):
        with pytest.raises(ZeroDivisionError):
            await top(SEEN, ZeroDivisionError()).run(None)
