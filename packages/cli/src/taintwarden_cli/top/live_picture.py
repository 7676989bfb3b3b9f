"""Carries out ``top``: look, draw, and do what keys ask for, until it is interrupted."""

import asyncio
import sys
import time

from rich.console import Console
from rich.live import Live

from taintwarden.engine.model import Gates
from taintwarden_cli.cluster_session import ask, settings_of
from taintwarden_cli.explain.explaining import explain
from taintwarden_cli.explain.explanation_table import table
from taintwarden_cli.output import printable, write
from taintwarden_cli.rehearsal.manifests import BadInput
from taintwarden_cli.rehearsal.reading import read_around
from taintwarden_cli.rehearsal.session import ClusterError, Session
from taintwarden_cli.rendering import PIPE_WIDTH
from taintwarden_cli.top.drawing import Picture
from taintwarden_cli.top.keyboard import typed
from taintwarden_cli.top.looking import Look, look
from taintwarden_cli.top.state import State, Wish

REDRAW_SECONDS = 0.5
SHARE = 4.0
"""A look that takes long is made less often: so many times its own time lies between two."""


def show(once: bool, interval: float, **flags: object) -> None:
    """Carry out the command."""
    settings = settings_of(flags)
    gates = settings.gates
    console = Console(highlight=False, markup=False, emoji=False)
    shown = _Top(console, settings.namespace, gates, interval)
    if once or not console.is_terminal:
        write(ask(settings, shown.once, max_connections=12))
        return
    try:
        ask(settings, shown.run, max_connections=12)
    except KeyboardInterrupt:  # a regular end
        sys.exit(0)


class _Top:
    def __init__(self, console: Console, operator: str, gates: Gates, interval: float) -> None:
        self._console = console
        self._operator = operator
        self._gates = gates
        self._interval = interval
        self._state: State = State()
        self._look: Look | None = None

    async def once(self, session: Session) -> str:
        """One picture, as high as it has to be."""
        now = time.time()
        found = await look(session, self._operator, self._gates, now)
        if not self._console.is_terminal and self._console.width > PIPE_WIDTH:
            self._console.width = PIPE_WIDTH
        with self._console.capture() as captured:
            self._console.print(self._picture(None).draw(found, self._state, now))
        return "\n".join(line.rstrip() for line in captured.get().splitlines())

    async def run(self, session: Session) -> None:
        """Draw until a key or an interrupt ends it. A look that fails is shown, and tried again."""
        await self._see(session)
        looking = asyncio.create_task(self._keep_looking(session))
        try:
            with typed() as keys, Live(console=self._console, screen=True, auto_refresh=False) as live:
                while True:
                    if looking.done():
                        looking.result()
                    assert self._look is not None  # noqa: S101 - the first look is complete, or has raised
                    size = self._console.size
                    picture = self._picture(size.height)
                    live.update(picture.draw(self._look, self._state, time.time()), refresh=True)
                    try:
                        key = await asyncio.wait_for(keys.get(), REDRAW_SECONDS)
                    except TimeoutError:
                        continue
                    wish = self._state.press(key, self._look)
                    if wish is Wish.QUIT:
                        return
                    if wish is Wish.EXPLAIN and (pod := self._state.pod(self._look)) is not None:
                        await self._explain(session, pod.namespace, pod.name)
        finally:
            looking.cancel()

    def _picture(self, height: int | None) -> Picture:
        plain = "utf" not in (self._console.encoding or "").lower()
        return Picture(self._console.width, height, plain=plain)

    async def _keep_looking(self, session: Session) -> None:
        took = 0.0
        while True:
            await asyncio.sleep(max(self._interval, SHARE * took))
            began = time.monotonic()
            try:
                await self._see(session)
            except ClusterError as error:
                self._state.unseen = str(error)
            else:
                self._state.unseen = ""
            took = time.monotonic() - began

    async def _see(self, session: Session) -> None:
        self._look = await look(session, self._operator, self._gates, time.time())

    async def _explain(self, session: Session, namespace: str, name: str) -> None:
        try:
            snapshot = await read_around(session, self._operator, namespace, name, time.time())
            self._state.text = table(explain(snapshot, self._gates))
        except ClusterError as error:
            self._state.message = printable(str(error))
        except BadInput as error:
            self._state.text = str(error)
