"""``taintwarden status``: the status of policies."""

import asyncio
import sys
import time
from typing import TYPE_CHECKING

import click

from taintwarden.cli.completion import POLICIES
from taintwarden.cli.errors import fail
from taintwarden.cli.options import Seconds, cluster_options, operator_option
from taintwarden.cli.output import output_option, render, write, write_data

if TYPE_CHECKING:
    from taintwarden.cli.policy_status import StatusSummary
    from taintwarden.rehearsal.session import Session

FINE, ERROR, USAGE, PERSON = 0, 1, 2, 10

_HELP = """Show the status of policies: mode, whether they are accepted, nodes, pods that have to leave, guards, limits.

All policies in a table. Of those that are named, or of the only one, also each limit that holds pods, zones, budgets,
the next pods and what tripped the guard. The data are what the operator wrote into their status seconds ago.

Needs the right to list taintevictionpolicies. With the right to get the operator's Lease, an operator that is not
running is noticed after 45 seconds, else after a minute.

\b
Examples:
  taintwarden status
  taintwarden status sla
  kubectl taintwarden status -o json
  taintwarden status sla --watch

\b
Exit codes:
  0   you do not have to act
  1   the cluster cannot be reached, or has no such policy
  2   wrong flags or kubeconfig
  10  you have to act: the operator does not report, a policy is not accepted, its newest version was not
      observed, its guard has tripped, or every zone is Full

JSON and YAML have: at, problem, reportedAt, policies[] (name, mode, accepted, problem, progress, selectedNodes,
degradedNodes, pending, blocked, evicted, heldInvalid, invalidTaints[], nextDeadline, guard, limitedBy, limits[],
zones[], blockedBudgets[], nextPods[]); what does not apply is null.
"""


@click.command(help=_HELP, short_help="Show the status of policies.")
@click.argument("policies", metavar="[POLICY...]", nargs=-1, shell_complete=POLICIES)
@click.option("-w", "--watch", is_flag=True, help="Refresh until interrupted.")
@click.option("--interval", type=Seconds(0.2, 3600), default=2.0, show_default=True, help="Seconds between looks.")
@operator_option
@cluster_options
@output_option
def status(policies: tuple[str, ...], watch: bool, interval: float, output: str, **flags: object) -> None:
    """Read the arguments, ask, print; the text of ``--help`` is above."""
    if watch and output != "table":
        raise click.UsageError("--watch shows a table: leave out --output")
    # The cluster's client takes a while to import, and `--help` does not need it.
    from taintwarden.cli.session import ask, settings_of  # noqa: PLC0415

    settings = settings_of(flags)
    if watch:
        shown = _Watch(settings.namespace, policies, interval)
        try:
            ask(settings, shown.run)
        except KeyboardInterrupt:  # the regular end
            sys.exit(_code(shown.found))
    found = ask(settings, lambda session: _look(session, settings.namespace, policies))
    if output == "table":
        write(_text(found, policies))
    else:
        write_data(found, output)
    sys.exit(_code(found))


async def _look(session: "Session", namespace: str, names: tuple[str, ...]) -> "StatusSummary":
    from taintwarden.cli.policy_status import summarize  # noqa: PLC0415
    from taintwarden.rehearsal.liveness import read_liveness  # noqa: PLC0415
    from taintwarden.rehearsal.reading import stored_policies  # noqa: PLC0415

    try:
        policies, now = await stored_policies(session), time.time()
        return summarize(policies, names, now, await read_liveness(session, namespace, policies, now))
    except LookupError as error:
        fail(str(error), ERROR)


def _details(found: "StatusSummary", names: tuple[str, ...]) -> bool:
    return bool(names) or len(found.policies) == 1


def _text(found: "StatusSummary", names: tuple[str, ...]) -> str:
    from taintwarden.cli.policy_status_table import parts  # noqa: PLC0415

    return render(*parts(found, details=_details(found, names)))


def _code(found: "StatusSummary | None") -> int:
    if found is None:
        return ERROR
    return PERSON if found.needs_a_person else FINE


class _Watch:
    """Shows the status repeatedly: in place on a terminal, elsewhere whenever it changes."""

    def __init__(self, namespace: str, names: tuple[str, ...], interval: float) -> None:
        self.found: StatusSummary | None = None
        self._namespace = namespace
        self._names = names
        self._interval = interval

    async def run(self, session: "Session") -> None:
        """Until interrupted."""
        from rich.console import Console  # noqa: PLC0415

        await (self._live(session) if Console().is_terminal else self._lines(session))

    async def _live(self, session: "Session") -> None:
        from rich.console import Console, Group  # noqa: PLC0415 - not needed without a terminal
        from rich.live import Live  # noqa: PLC0415

        from taintwarden.cli.policy_status_table import parts  # noqa: PLC0415

        with Live(
            console=Console(markup=False, emoji=False, highlight=False), auto_refresh=False, screen=False
        ) as live:
            while True:
                problem = await self._try(session)
                if self.found is not None:
                    shown = [f"As of {self.found.at}", *parts(self.found, details=_details(self.found, self._names))]
                    live.update(Group(*shown, problem), refresh=True)
                await asyncio.sleep(self._interval)

    async def _lines(self, session: "Session") -> None:
        before = ""
        while True:
            problem = await self._try(session)
            if problem:
                click.echo(f"taintwarden: {problem}", err=True)
            elif self.found is not None and (text := _text(self.found, self._names)) != before:
                before = text
                write(f"As of {self.found.at}\n{text}\n")
            await asyncio.sleep(self._interval)

    async def _try(self, session: "Session") -> str:
        """Read once. Returns the error if the cluster has answered before: it may become reachable again."""
        from taintwarden.rehearsal.session import ClusterError  # noqa: PLC0415

        try:
            self.found = await _look(session, self._namespace, self._names)
        except ClusterError as error:
            if self.found is None:
                raise
            return str(error)
        return ""
