"""``taintwarden pause`` and ``taintwarden resume``: a policy stops evicting, and goes on as it was."""

import click

from taintwarden.cli.options import cluster_options
from taintwarden.cli.output import printable, write

_PAUSE_HELP = """Stop a policy: its mode becomes Paused, so it evicts nobody. Evictions under way are carried out.

The mode that it had is kept in its annotation taintwarden.io/paused-mode, for `taintwarden resume`. A policy that is
paused already stays as it is. Whatever else writes its spec (GitOps) may undo this.

Needs the rights to get and patch taintevictionpolicies.

\b
Examples:
  taintwarden pause sla
  kubectl taintwarden pause sla --context production

\b
Exit codes:
  0  it is paused
  1  there is no such policy, a right is missing, or the cluster cannot be asked
  2  wrong flags or kubeconfig
"""
_RESUME_HELP = """Set a paused policy going again, in the mode that it had.

Deadlines went on while it was paused: what is overdue goes first, under all limits, and the guard sees it as one wave.
Where the annotation taintwarden.io/paused-mode does not tell the mode, since somebody paused the policy otherwise,
--mode has to. A policy that is not paused stays as it is.

Needs the rights to get and patch taintevictionpolicies.

\b
Examples:
  taintwarden resume sla
  taintwarden resume sla --mode DryRun

\b
Exit codes:
  0  it is not paused any more
  1  there is no such policy, its mode is not known, a right is missing, or the cluster cannot be asked
  2  wrong flags or kubeconfig
"""


@click.command(help=_PAUSE_HELP, short_help="Stop a policy.")
@click.argument("policy")
@cluster_options
def pause(policy: str, **flags: object) -> None:
    """Read the arguments, change, print; the text of ``--help`` is above."""
    # The cluster's client takes a while to import; `--help` need not wait for it.
    from taintwarden.cli.pausing import pause as pause_policy  # noqa: PLC0415
    from taintwarden.cli.session import ask, settings_of  # noqa: PLC0415

    write(printable(ask(settings_of(flags), lambda session: pause_policy(session, policy))))


@click.command(help=_RESUME_HELP, short_help="Set a paused policy going again.")
@click.argument("policy")
@click.option("--mode", type=click.Choice(["Enforce", "DryRun"]), help="The mode to go on in. Default: the one before.")
@cluster_options
def resume(policy: str, mode: str | None, **flags: object) -> None:
    """Read the arguments, change, print; the text of ``--help`` is above."""
    from taintwarden.cli.pausing import resume as resume_policy  # noqa: PLC0415
    from taintwarden.cli.session import ask, settings_of  # noqa: PLC0415

    write(printable(ask(settings_of(flags), lambda session: resume_policy(session, policy, mode))))
