"""Carries out ``status``, once, and ``top``, until it is interrupted."""

import asyncio
import sys
import time

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from taintwarden_cli.cluster_session import ask, settings_of
from taintwarden_cli.data_output import write_answer
from taintwarden_cli.output import fail, printable, write
from taintwarden_cli.rehearsal.deployments import unready_webhook
from taintwarden_cli.rehearsal.liveness import read_liveness
from taintwarden_cli.rehearsal.reading import stored_policies
from taintwarden_cli.rehearsal.session import ClusterError, Session
from taintwarden_cli.rendering import render
from taintwarden_cli.status.lasting import add_problems, invalid_values
from taintwarden_cli.status.policy_status import StatusSummary, summarize
from taintwarden_cli.status.policy_status_table import parts

FINE, ERROR, PERSON = 0, 1, 10


def show(policies: tuple[str, ...], output: str, **flags: object) -> None:
    """Carry out ``taintwarden status``."""
    settings = settings_of(flags)
    try:
        found = ask(settings, lambda session: look(session, settings.namespace, policies, closely=True))
    except LookupError as error:
        fail(str(error), ERROR)
    details = output == "wide" or bool(policies) or len(found.policies) == 1
    write_answer(found, output, lambda: render(*parts(found, details=details)))
    sys.exit(PERSON if found.needs_a_person else FINE)


def watch(policies: tuple[str, ...], interval: float, **flags: object) -> None:
    """Carry out ``taintwarden top``."""
    settings, console = settings_of(flags), Console(highlight=False, markup=False, emoji=False)
    try:
        if console.is_terminal:
            ask(settings, lambda session: follow(session, settings.namespace, policies, interval, console))
        found = ask(settings, lambda session: look(session, settings.namespace, policies))
    except LookupError as error:
        fail(str(error), ERROR)
    except KeyboardInterrupt:  # a regular end
        sys.exit(FINE)
    write(render(*parts(found, details=True)))


async def look(session: Session, namespace: str, names: tuple[str, ...], *, closely: bool = False) -> StatusSummary:
    """The status of the policies with these names, or of all. ``namespace``: that of the operator.

    ``closely``: also look at budgets and nodes, which is too much to repeat every second.

    Raises:
        LookupError: there is no policy of a name.
        ClusterError: the policies cannot be read.

    """
    policies, now = await stored_policies(session), time.time()
    found = summarize(policies, names, now, await read_liveness(session, namespace, policies, now))
    found.problem = found.problem or await unready_webhook(session, namespace)
    for policy in found.policies:
        policy.problem = policy.problem or invalid_values(policy)
    if closely:
        await add_problems(session, policies, found.policies)
    return found


async def follow(session: Session, namespace: str, names: tuple[str, ...], interval: float, console: Console) -> None:
    """Draw until it is interrupted. A look that fails is shown above the last that did not, and made again.

    Raises:
        LookupError: there is no policy of a name.
        ClusterError: the first look fails.

    """
    found, unseen = await look(session, namespace, names), ""
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            failed = [Text(printable(f"As of {found.at}: {unseen}"), style="bold red")] if unseen else []
            live.update(Group(*failed, *parts(found, details=True)), refresh=True)
            await asyncio.sleep(interval)
            try:
                found, unseen = await look(session, namespace, names), ""
            except ClusterError as error:
                unseen = str(error)
