"""Carries out ``pause`` and ``resume``: shows what would change, asks, and changes it."""

import sys

import click

from taintwarden.cli.change.pausing import Switches, look_all, switch
from taintwarden.cli.cluster_session import REFUSED, ask, confirm, settings_of
from taintwarden.cli.output import printable, write
from taintwarden.cli.rendering import render, rows


def switch_policies(
    policies: tuple[str, ...],
    *,
    resume: bool,
    reason: str = "",
    every: bool,
    dry_run: bool,
    yes: bool,
    **flags: object,
) -> None:
    """Pause or resume policies that are named, or every policy."""
    if bool(policies) == every:
        raise click.UsageError("name policies, or pass --all")
    if dry_run and not every:
        raise click.UsageError("--dry-run belongs to --all")
    settings, verb = settings_of(flags), "resume" if resume else "pause"
    if every:
        found = ask(settings, lambda session: look_all(session, resume=resume))
        write(_table(found))
        if dry_run or not found.changed:
            return
        confirm(f"{verb.capitalize()} these policies?", f"{verb} them", yes=yes)
        policies = tuple(one.policy for one in found.changed)
    outcomes = ask(settings, lambda session: switch(session, policies, resume=resume, reason=reason))
    for one in outcomes:
        if one.failed:
            click.echo(f"taintwarden: {printable(one.told)}", err=True)
        else:
            write(printable(one.told))
    if any(one.failed for one in outcomes):
        sys.exit(REFUSED)


def _table(found: Switches) -> str:
    """What would change in each policy."""
    shown = [(one.policy, one.before, one.mode or "unchanged", one.told) for one in found.policies]
    return f"Cluster {printable(found.cluster)}\n" + render(rows(("POLICY", "MODE", "BECOMES", "THEN"), shown))
