"""``taintwarden top``: the cluster, live."""

import click

from taintwarden_cli.lazy import imported
from taintwarden_cli.options import Seconds, cluster_options, operator_option

_HELP = """Show the cluster live: nodes by zone with their taints, pods as marks in the colour of their verdict, which
pods have to leave and what they wait for, the guard and the limits of each policy, and the last Events.

The verdicts are those of the operator's own engine. With more nodes than rows, each zone is a row of marks, and the
worst nodes are listed. Colours are not needed to read it, and NO_COLOR switches them off.

\b
Keys:
  q        quit
  /        filter by node, zone, namespace or pod; Escape removes the filter
  j, k     select a pod that has to leave; also the arrows
  e        explain it

--once prints one picture, and so does a pipe.

Needs the rights to list nodes, pods, namespaces, taintevictionpolicies and tolerationprofiles. With those to list
poddisruptionbudgets and events, and to get the operator's Lease, it shows more.

\b
Examples:
  taintwarden top
  taintwarden top --once
  kubectl taintwarden top --context production

\b
Exit codes:
  0  you ended it, or the picture is printed
  1  the cluster cannot be reached, or a right is missing
  2  wrong flags or kubeconfig
"""


@click.command(help=_HELP, short_help="Show nodes, pods, limits and Events live.")
@click.option("--once", is_flag=True, help="Print one picture.")
@click.option("--interval", type=Seconds(0.5, 3600), default=2.0, show_default=True, help="Seconds between looks.")
@operator_option
@cluster_options
def top(**given: object) -> None:
    """The text of ``--help`` is above."""
    imported("taintwarden_cli.top.live_picture:show")(**given)
