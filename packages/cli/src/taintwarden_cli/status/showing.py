"""Carries out ``status``, once, and ``top``, until it is interrupted."""

import asyncio
import sys
import time
from typing import Any

import msgspec
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from taintwarden.engine import rfc3339
from taintwarden.engine.model import Gates
from taintwarden_cli.cluster_session import ACTION_NEEDED, FINE, REFUSED, ask, settings_of
from taintwarden_cli.data_output import write_answer
from taintwarden_cli.output import fail, printable, write
from taintwarden_cli.rehearsal.deployments import read_webhook_problem
from taintwarden_cli.rehearsal.liveness import LIST_PODS, read_liveness
from taintwarden_cli.rehearsal.session import ClusterError, Session
from taintwarden_cli.rendering import render
from taintwarden_cli.status.inspection import Inspection, inspect_cluster
from taintwarden_cli.status.policy_status import StatusSummary, summarize
from taintwarden_cli.status.policy_status_table import parts
from taintwarden_cli.status.problems import ProblemKind, split_problem

INSPECTION_SECONDS = 15.0
"""Minimum time between two inspections by ``top``: they cost too much to repeat at every refresh."""
PAUSE_FACTOR = 10.0
"""Time until the next inspection, as a multiple of the duration of the last: it reads the pods of up to 100 nodes."""


class LastInspection(msgspec.Struct):
    """Settings of inspections, and the last one, which is used for ``lasts_seconds``."""

    gates: Gates
    show_all: bool = False
    inspection: Inspection | None = None
    lasts_seconds: float = INSPECTION_SECONDS


def show(policies: tuple[str, ...], show_all: bool, output: str, **flags: object) -> None:
    """Carry out ``taintwarden status``."""
    settings = settings_of(flags)
    try:
        last = LastInspection(settings.gates, show_all=show_all)
        found = ask(settings, lambda session: read_status(session, settings.namespace, policies, last))
    except LookupError as error:
        fail(str(error), REFUSED)
    details = output == "wide" or bool(policies) or len(found.policies) == 1
    write_answer(found, output, lambda: render(*parts(found, details=details)))
    sys.exit(ACTION_NEEDED if found.needs_action else FINE)


def watch(policies: tuple[str, ...], interval: float, **flags: object) -> None:
    """Carry out ``taintwarden top``."""
    settings, console = settings_of(flags), Console(highlight=False, markup=False, emoji=False)
    last = LastInspection(settings.gates)
    try:
        if console.is_terminal:
            ask(settings, lambda session: show_live(session, settings.namespace, policies, interval, console, last))
        found = ask(settings, lambda session: read_status(session, settings.namespace, policies, last))
    except LookupError as error:
        fail(str(error), REFUSED)
    except KeyboardInterrupt:  # a regular end
        sys.exit(FINE)
    write(render(*parts(found, details=True)))


async def read_status(session: Session, namespace: str, names: tuple[str, ...], last: LastInspection) -> StatusSummary:
    """Read the status of the policies with these names, or of all, and add the findings of a recent inspection.

    ``namespace`` is that of the operator. Raises LookupError if there is no policy of a name, and ClusterError if the
    policies cannot be read.
    """
    policies, now = await session.policies(dict[str, Any]), time.time()
    known = await read_liveness(session, namespace, policies, now)
    found, unread = summarize(policies, names, now, known), [known.unread] if known.unread else []
    try:
        if why := await read_webhook_problem(session, namespace):
            found.problems.append(split_problem(ProblemKind.WEBHOOK, why, LIST_PODS))
    except ClusterError as error:
        unread.append(str(error))
    inspection = last.inspection
    if inspection is None or not 0 <= now - inspection.at < last.lasts_seconds:
        inspection = last.inspection = await inspect_cluster(session, policies, last.gates, now, show_all=last.show_all)
        last.lasts_seconds = max(INSPECTION_SECONDS, PAUSE_FACTOR * (time.time() - now))
    found.inspected_at, found.unread = rfc3339.at(inspection.at), [*unread, *inspection.unread]
    for policy in found.policies:
        if (more := inspection.by_policy.get(policy.name)) is not None:
            policy.add_findings(more)
    return found


async def show_live(
    session: Session, namespace: str, names: tuple[str, ...], interval: float, console: Console, last: LastInspection
) -> None:
    """Refresh the screen until it is interrupted. An error is shown above the last status, and the read is repeated.

    Raises LookupError if there is no policy of a name, and ClusterError if the first read fails.
    """
    found, failure = await read_status(session, namespace, names, last), ""
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            failed = [Text(printable(f"As of {found.at}: {failure}"), style="bold red")] if failure else []
            live.update(Group(*failed, *parts(found, details=True)), refresh=True)
            await asyncio.sleep(interval)
            try:
                found, failure = await read_status(session, namespace, names, last), ""
            except ClusterError as error:
                failure = str(error)
