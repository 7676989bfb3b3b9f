"""``taintwarden history``: recent events, as a timeline."""

import click

from taintwarden_cli.lazy import imported
from taintwarden_cli.options import Duration, cluster_options, operator_option
from taintwarden_cli.output import output_option

_HELP = """Show what happened lately, the oldest first: the operator's Events about policies, nodes and pods, and who
paused or changed a policy and how. Pods to which the same happens within a minute are one line; JSON has each.

API servers keep Events for an hour, unless configured otherwise. During a wave the operator writes Events about pods
slowly, and drops the oldest: the numbers in `taintwarden status` are complete, this is not.

Needs the rights to list events in all namespaces and taintevictionpolicies.

\b
Examples:
  taintwarden history
  taintwarden history --since 10m -n shop
  kubectl taintwarden history -o json

\b
Exit codes:
  0  it is shown
  1  the cluster cannot be reached, or a right is missing
  2  wrong flags or kubeconfig

JSON has: at, since, problem, happenings[] (at, reason, type, kind, namespace, name, note, count).
"""


@click.command(help=_HELP, short_help="Show what happened lately, as a timeline.")
@click.option("--since", type=Duration(), default="1h", show_default=True, help="How far to look back.")
@click.option("-n", "--namespace", "space", default="", help="Only pods of this namespace. Default: all.")
@operator_option
@cluster_options
@output_option
def history(**given: object) -> None:
    """The text of ``--help`` is above."""
    imported("taintwarden_cli.status.event_timeline:show")(**given)
