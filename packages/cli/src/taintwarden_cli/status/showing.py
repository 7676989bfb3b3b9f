"""Carries out ``status``: shows it once, or repeatedly until it is interrupted."""

import asyncio
import sys
import time
from collections.abc import Callable

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from taintwarden_cli.cluster_session import ask, settings_of
from taintwarden_cli.data_output import write_data
from taintwarden_cli.output import fail, printable, write
from taintwarden_cli.rehearsal.deployments import unready_webhook
from taintwarden_cli.rehearsal.liveness import read_liveness
from taintwarden_cli.rehearsal.reading import stored_policies
from taintwarden_cli.rehearsal.session import ClusterError, Session
from taintwarden_cli.rendering import render
from taintwarden_cli.status.policy_status import StatusSummary, summarize
from taintwarden_cli.status.policy_status_table import parts

FINE, ERROR, PERSON = 0, 1, 10


def show(policies: tuple[str, ...], watch: bool, utc: bool, interval: float, output: str, **flags: object) -> None:
    """Carry out the command."""
    settings = settings_of(flags)
    if watch:
        shown = _Watch(settings.namespace, policies, interval, output, utc=utc)
        try:
            ask(settings, shown.run)
        except KeyboardInterrupt:  # the regular end
            sys.exit(_code(shown.found))
    found = ask(settings, lambda session: _look(session, settings.namespace, policies))
    if output == "table":
        write(_text(found, policies, utc=utc))
    else:
        write_data(found, output)
    sys.exit(_code(found))


async def _look(session: Session, namespace: str, names: tuple[str, ...]) -> StatusSummary:
    try:
        policies, now = await stored_policies(session), time.time()
        found = summarize(policies, names, now, await read_liveness(session, namespace, policies, now))
        found.problem = found.problem or await unready_webhook(session, namespace)
        return found
    except LookupError as error:
        fail(str(error), ERROR)


def _details(found: StatusSummary, names: tuple[str, ...]) -> bool:
    return bool(names) or len(found.policies) == 1


def _text(found: StatusSummary, names: tuple[str, ...], *, utc: bool) -> str:
    return render(*parts(found, details=_details(found, names), utc=utc))


def _code(found: StatusSummary | None) -> int:
    if found is None:
        return ERROR
    return PERSON if found.needs_a_person else FINE


class _Watch:
    """Shows the status repeatedly: in place on a terminal, elsewhere whenever it changes."""

    def __init__(self, namespace: str, names: tuple[str, ...], interval: float, output: str, *, utc: bool) -> None:
        self.found: StatusSummary | None = None
        self._namespace = namespace
        self._names = names
        self._interval = interval
        self._output = output
        self._utc = utc

    async def run(self, session: Session) -> None:
        """Until interrupted."""
        if self._output != "table":
            await self._data(session)
        elif Console().is_terminal:
            await self._live(session)
        else:
            await self._lines(session)

    async def _live(self, session: Session) -> None:
        with Live(
            console=Console(markup=False, emoji=False, highlight=False), auto_refresh=False, screen=False
        ) as live:
            while True:
                problem = await self._try(session)
                if self.found is not None:
                    details = _details(self.found, self._names)
                    shown = parts(self.found, details=details, utc=self._utc)
                    # Above what a terminal cuts off that is not high enough.
                    told = [Text(printable(problem), style="bold red")] if problem else []
                    live.update(Group(f"As of {self.found.at}", *told, *shown), refresh=True)
                await asyncio.sleep(self._interval)

    async def _data(self, session: Session) -> None:
        """A document whenever something has changed."""
        await self._changes(session, lambda found: write_data(found, self._output))

    async def _changes(self, session: Session, show: Callable[[StatusSummary], None]) -> None:
        before: StatusSummary | None = None
        while True:
            problem = await self._try(session)
            if problem:
                click.echo(f"taintwarden: {problem}", err=True)
            elif self.found is not None and (before is None or self.found.differs(before)):
                before = self.found
                show(self.found)
                sys.stdout.flush()
            await asyncio.sleep(self._interval)

    async def _lines(self, session: Session) -> None:
        await self._changes(session, lambda found: write(f"As of {found.at}\n{self._text(found)}\n"))

    def _text(self, found: StatusSummary) -> str:
        return _text(found, self._names, utc=self._utc)

    async def _try(self, session: Session) -> str:
        """Read once. Returns the error if the cluster has answered before: it may become reachable again."""
        try:
            self.found = await _look(session, self._namespace, self._names)
        except ClusterError as error:
            if self.found is None:
                raise
            return str(error)
        return ""
