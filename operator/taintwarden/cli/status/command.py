"""``taintwarden status``: the status of policies."""

import asyncio
import sys
import time
from typing import TYPE_CHECKING

import click

from taintwarden.cli.completion import POLICIES
from taintwarden.cli.failures import fail
from taintwarden.cli.options import Seconds, cluster_options, operator_option
from taintwarden.cli.output import output_option, render, write, write_data

if TYPE_CHECKING:
    from collections.abc import Callable

    from taintwarden.cli.status.policy_status import StatusSummary
    from taintwarden.rehearsal.session import Session

FINE, ERROR, USAGE, PERSON = 0, 1, 2, 10

_HELP = """Show the status of policies: mode, whether they are accepted, nodes, pods that have to leave, guards, limits.

All policies in a table. Of those that are named, or of the only one, also each limit that holds pods, zones, budgets,
the next pods and what tripped the guard. The first line says how old the data are: the operator writes them into the
status every 20 s, and when something changes. Times are ages and countdowns; --utc, JSON and YAML have them in UTC.

Needs the right to list taintevictionpolicies. With the right to get the operator's Lease, an operator that is dead or
frozen is noticed after 10 seconds: it renews the Lease every 2 s, and one that looks older than 5 s is looked at for
5 s more, since clocks may differ. Without that right it is noticed after a minute. With the right to list Deployments
in that namespace, a webhook without a ready replica is reported.

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
  10  you have to act: the operator does not report, the webhook has no ready replica, a policy is not
      accepted, its newest version was not observed, calls for its evictions fail, its guard holds pods,
      every zone is Full, or pods are killed with their node

JSON and YAML have: at, problem, reportedAt, policies[] (name, mode, accepted, problem, pausedBy, progress,
selectedNodes, degradedNodes, pending, blocked, evicted, heldInvalid, invalidTaints[], nextDeadline, guard, limitedBy,
limits[], zones[], reclaims[], blockedBudgets[], nextPods[]); what does not apply is null.
"""


@click.command(help=_HELP, short_help="Show the status of policies.")
@click.argument("policies", metavar="[POLICY...]", nargs=-1, shell_complete=POLICIES)
@click.option("-w", "--watch", is_flag=True, help="Refresh until interrupted.")
@click.option("--utc", is_flag=True, help="Times in UTC, in place of ages and countdowns.")
@click.option("--interval", type=Seconds(0.2, 3600), default=2.0, show_default=True, help="Seconds between looks.")
@operator_option
@cluster_options
@output_option
def status(policies: tuple[str, ...], watch: bool, utc: bool, interval: float, output: str, **flags: object) -> None:
    """Read the arguments, ask, print; the text of ``--help`` is above."""
    # The cluster's client takes a while to import, and `--help` does not need it.
    from taintwarden.cli.cluster_session import ask, settings_of  # noqa: PLC0415

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


async def _look(session: "Session", namespace: str, names: tuple[str, ...]) -> "StatusSummary":
    from taintwarden.cli.status.policy_status import summarize  # noqa: PLC0415
    from taintwarden.rehearsal.deployments import unready_webhook  # noqa: PLC0415
    from taintwarden.rehearsal.liveness import read_liveness  # noqa: PLC0415
    from taintwarden.rehearsal.reading import stored_policies  # noqa: PLC0415

    try:
        policies, now = await stored_policies(session), time.time()
        found = summarize(policies, names, now, await read_liveness(session, namespace, policies, now))
        found.problem = found.problem or await unready_webhook(session, namespace)
        return found
    except LookupError as error:
        fail(str(error), ERROR)


def _details(found: "StatusSummary", names: tuple[str, ...]) -> bool:
    return bool(names) or len(found.policies) == 1


def _text(found: "StatusSummary", names: tuple[str, ...], *, utc: bool) -> str:
    from taintwarden.cli.status.policy_status_table import parts  # noqa: PLC0415

    return render(*parts(found, details=_details(found, names), utc=utc))


def _code(found: "StatusSummary | None") -> int:
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

    async def run(self, session: "Session") -> None:
        """Until interrupted."""
        from rich.console import Console  # noqa: PLC0415

        if self._output != "table":
            await self._data(session)
        elif Console().is_terminal:
            await self._live(session)
        else:
            await self._lines(session)

    async def _live(self, session: "Session") -> None:
        from rich.console import Console, Group  # noqa: PLC0415 - not needed without a terminal
        from rich.live import Live  # noqa: PLC0415

        from taintwarden.cli.status.policy_status_table import parts  # noqa: PLC0415

        with Live(
            console=Console(markup=False, emoji=False, highlight=False), auto_refresh=False, screen=False
        ) as live:
            while True:
                problem = await self._try(session)
                if self.found is not None:
                    details = _details(self.found, self._names)
                    shown = parts(self.found, details=details, utc=self._utc)
                    live.update(Group(f"As of {self.found.at}", *shown, problem), refresh=True)
                await asyncio.sleep(self._interval)

    async def _data(self, session: "Session") -> None:
        """A document whenever something has changed."""
        await self._changes(session, lambda found: write_data(found, self._output))

    async def _changes(self, session: "Session", show: "Callable[[StatusSummary], None]") -> None:
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

    async def _lines(self, session: "Session") -> None:
        await self._changes(session, lambda found: write(f"As of {found.at}\n{self._text(found)}\n"))

    def _text(self, found: "StatusSummary") -> str:
        return _text(found, self._names, utc=self._utc)

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
