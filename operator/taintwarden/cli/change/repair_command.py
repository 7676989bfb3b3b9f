"""``taintwarden repair``: the commands that restore the last good values of taints."""

import click

from taintwarden.cli.completion import POLICIES
from taintwarden.cli.lazy import imported
from taintwarden.cli.options import cluster_options, operator_option, yes_option
from taintwarden.cli.output import output_option

_HELP = """Print, for each node with a bad value of a taint, the kubectl command that restores its last good value.

A value is bad if pods of the policy have to leave because of it, had to leave, or cannot compare it. The last good
value is the latest earlier one in the taint history of the node with which the fewest of its pods have to leave. The
history has the last 16 values of each taint that a policy acts on. Look at the commands, then run them:

  taintwarden repair sla | sh

Values that are read from nodes, and taints of devices, are named if pods have to leave because of them: another
component writes them, and no command restores them.

Nothing is written without --apply, which sets these values itself: it shows the commands first, and asks on a terminal;
scripts pass --yes. A node that was changed since it was read is not written.

Needs the rights of `taintwarden plan`, and for --apply to patch nodes.

\b
Examples:
  taintwarden repair sla
  taintwarden repair sla -o json
  kubectl taintwarden repair sla --context production

\b
Exit codes:
  0   each bad value has an earlier good one, or there is no bad value
  1   the cluster cannot be reached, there is no such policy, you declined, or a node was not changed
  2   wrong flags or kubeconfig; or --yes is missing and no terminal is there to ask
  10  a bad value has no earlier good one, or another component writes it: correct it yourself

JSON and YAML have: at, policy, repairs[] (node, key, effect, current, value, since, seconds, leaving, leavingAfter),
others[] (node, taint, source, leaving).
"""


@click.command(help=_HELP, short_help="Restore the last good values of taints.")
@click.argument("policy", shell_complete=POLICIES)
@click.option("--apply", "applied", is_flag=True, help="Set the values.")
@yes_option
@operator_option
@cluster_options
@output_option
def repair(**given: object) -> None:
    """The text of ``--help`` is above."""
    imported("taintwarden.cli.change.value_repair:repair")(**given)
