"""``taintwarden guard reset``: you confirm a mass eviction, and the guard releases it."""

import click

from taintwarden.cli.completion import POLICIES
from taintwarden.cli.lazy import imported
from taintwarden.cli.options import cluster_options, yes_option

_HELP = """Release the pods that the tripped guard of a policy holds, or that are held since every zone is Full. Which
change did it, and how many they are, is shown first. What comes later is counted again.

On a terminal it asks before it does so; scripts pass --yes. It sets the annotation taintwarden.io/guard-reset of the
policy to its generation; the operator grants it and removes it. It refuses where nothing is held, where the operator
has not seen the newest version of the policy, and where the guard tripped again while you looked.

Needs the rights to get and patch taintevictionpolicies.

\b
Examples:
  taintwarden guard reset sla
  taintwarden guard reset sla --yes

\b
Exit codes:
  0  the operator is asked
  1  there is nothing to reset, you declined, a right is missing, or the cluster cannot be reached
  2  wrong flags or kubeconfig; or --yes is missing and no terminal is there to ask
"""


@click.group(short_help="Release the pods that a tripped guard holds.")
def guard() -> None:
    """Release the pods that a tripped guard holds."""


@guard.command(help=_HELP, short_help="Release the pods that a tripped guard holds.")
@click.argument("policy", shell_complete=POLICIES)
@yes_option
@cluster_options
def reset(**given: object) -> None:
    """The text of ``--help`` is above."""
    imported("taintwarden.cli.change.guard_reset:show_and_reset")(**given)
