"""`status --watch` on a terminal, while the cluster cannot be read."""

import asyncio
import io

import pytest
from rich.console import Console, RenderableType

from taintwarden_cli.rehearsal.session import ClusterError
from taintwarden_cli.status import showing
from taintwarden_cli.status.policy_status import PolicySummary, StatusSummary

AT = "2026-01-31T12:00:00Z"


class Screen:
    """In place of rich's Live: keeps the first two lines of each picture."""

    def __init__(self, **_: object) -> None:
        self.shown: list[list[str]] = []

    def __enter__(self) -> "Screen":
        return self

    def __exit__(self, *_: object) -> None: ...

    def update(self, picture: RenderableType, *, refresh: bool) -> None:
        assert refresh
        console = Console(file=io.StringIO(), width=100, markup=False)
        with console.capture() as captured:
            console.print(picture)
        self.shown.append(captured.get().splitlines()[:2])


async def test_a_status_that_cannot_be_renewed_says_so_above_what_a_low_terminal_cuts_off(monkeypatch):
    screen, results = Screen(), [StatusSummary(AT, [PolicySummary(name="sla", mode="Enforce", accepted="True")])]

    async def look(*_: object) -> StatusSummary:
        if not results:
            raise ClusterError("cannot reach the cluster")
        return results.pop()

    monkeypatch.setattr(showing, "Live", lambda **_: screen)
    monkeypatch.setattr(showing, "_look", look)
    watching = asyncio.create_task(showing._Watch("", (), 0.0, "table", utc=True)._live(None))
    while len(screen.shown) < 2:
        await asyncio.sleep(0)
    watching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching
    assert screen.shown[1] == [f"As of {AT}", "cannot reach the cluster"]
