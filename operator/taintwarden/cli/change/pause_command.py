"""``taintwarden pause`` and ``taintwarden resume``: policies stop evicting, and continue in their previous mode."""

import sys
from typing import TYPE_CHECKING

import click

from taintwarden.cli.completion import POLICIES
from taintwarden.cli.options import cluster_options, yes_option
from taintwarden.cli.output import printable, render, rows, write

if TYPE_CHECKING:
    from taintwarden.cli.change.pausing import Switches

_PAUSE_HELP = """Stop policies: they evict no pod. Evictions in progress are carried out.

It sets spec.paused by server-side apply. Applying a file that does not name this field (kubectl, Helm, GitOps) leaves
the policy paused, whatever mode the file has. Who paused it, when and why is kept in the annotation
taintwarden.io/paused-by, and shown by `taintwarden status`. A policy that is paused already stays as it is.

--all stops every policy. It shows what would change first, and asks on a terminal; scripts pass --yes. --dry-run only
shows it.

Needs the rights to get and patch taintevictionpolicies, and for --all to list them.

\b
Examples:
  taintwarden pause sla
  taintwarden pause sla --reason "values of zone-a are wrong"
  taintwarden pause --all
  kubectl taintwarden pause sla --context production

\b
Exit codes:
  0  they are paused
  1  there is no such policy, you declined, a right is missing, or the cluster cannot be reached
  2  wrong flags or kubeconfig; or --yes is missing and no terminal is there to ask
"""
_RESUME_HELP = """Resume paused policies in their mode, and state how many pods are due.

Deadlines continued meanwhile: overdue pods are evicted first, under all limits, and the guard counts them as one wave;
see `taintwarden plan --enforce POLICY`. It removes spec.paused. If another client sets that field too, such as a file
with paused: true, the message names it. A policy that is not paused stays as it is.

--all resumes every policy that is paused. It shows what would change first, and asks on a terminal; scripts pass
--yes. --dry-run only shows it.

Needs the rights to get and patch taintevictionpolicies, and for --all to list them.

\b
Examples:
  taintwarden resume sla
  taintwarden resume --all --dry-run

\b
Exit codes:
  0  they are not paused any more
  1  there is no such policy, you declined, a right is missing, or the cluster cannot be reached
  2  wrong flags or kubeconfig; or --yes is missing and no terminal is there to ask
"""
_POLICIES = click.argument("policies", metavar="[POLICY...]", nargs=-1, shell_complete=POLICIES)
_DRY_RUN = click.option("--dry-run", is_flag=True, help="With --all: only show what would change.")


@click.command(help=_PAUSE_HELP, short_help="Stop policies.")
@_POLICIES
@click.option("--all", "every", is_flag=True, help="Stop every policy.")
@click.option("--reason", default="", help="Why: shown by `taintwarden status`.")
@_DRY_RUN
@yes_option
@cluster_options
def pause(policies: tuple[str, ...], every: bool, reason: str, dry_run: bool, yes: bool, **flags: object) -> None:
    """Read the arguments, change, print; the text of ``--help`` is above."""
    _switch(policies, flags, resume=False, every=every, reason=reason, dry_run=dry_run, yes=yes)


@click.command(help=_RESUME_HELP, short_help="Resume paused policies.")
@_POLICIES
@click.option("--all", "every", is_flag=True, help="Resume every policy that is paused.")
@_DRY_RUN
@yes_option
@cluster_options
def resume(policies: tuple[str, ...], every: bool, dry_run: bool, yes: bool, **flags: object) -> None:
    """Read the arguments, change, print; the text of ``--help`` is above."""
    _switch(policies, flags, resume=True, every=every, dry_run=dry_run, yes=yes)


def _switch(
    policies: tuple[str, ...],
    flags: dict[str, object],
    *,
    resume: bool,
    reason: str = "",
    every: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    # The cluster's client takes a while to import, and `--help` does not need it.
    from taintwarden.cli.change.pausing import look_all, switch  # noqa: PLC0415
    from taintwarden.cli.cluster_session import REFUSED, ask, confirm, settings_of  # noqa: PLC0415

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


def _table(found: "Switches") -> str:
    """What would change in each policy."""
    shown = [(one.policy, one.before, one.mode or "unchanged", one.told) for one in found.policies]
    return f"Cluster {printable(found.cluster)}\n" + render(rows(("POLICY", "MODE", "BECOMES", "THEN"), shown))
