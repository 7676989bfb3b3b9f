"""``taintwarden placement``: removes labels of placement that nothing needs, and prints those of future nodes."""

import click

from taintwarden.cli.lazy import imported
from taintwarden.cli.options import cluster_options, yes_option

_REMOVE_HELP = """Remove the labels of KEY from all nodes: the key of a taint, or of a label that was listed under
versionLabels.

It first lists the pods, templates and PersistentVolumes whose node affinity names these labels. While there are any it
refuses: a pod that runs would not match its own node any more, and a kubelet that restarts ends it at once, with the
reason NodeAffinity; a Pending pod, and every pod that uses the volume, would find no node. Restart the workloads, so
that they lose the affinity, and try again. --force removes the labels all the same.

It refuses while a policy places by the key, in any mode. On a terminal it asks before it does so; scripts pass --yes.
It does not need the operator, and can be repeated after an interruption.

It needs the rights to list nodes, pods, persistentvolumes, taintevictionpolicies, and all kinds of workloads, and to
patch nodes.

\b
Examples:
  taintwarden placement remove sla
  taintwarden placement remove example.com/driver --yes

\b
Exit codes:
  0  no node carries the labels any more
  1  they are in use, there are none, you declined, a right is missing, or the cluster cannot be reached
  2  wrong flags or kubeconfig; or --yes is missing and no terminal is there to ask
"""
_LABELS_HELP = """Print the labels of placement that a node with these taints has: for the templates of node groups,
from which autoscalers derive the labels of future nodes, and for --node-labels of kubelets.

TAINT is KEY=VALUE:EFFECT, as in kubectl taint, or KEY for a node without that taint. It needs no cluster.

\b
Examples:
  taintwarden placement labels sla=950:NoSchedule
  taintwarden placement labels sla example.com/cni=v3.27.2:NoExecute
  taintwarden placement labels sla=950:NoSchedule --separator ,

\b
Exit codes:
  0  they are printed
  2  a taint cannot be read, or labels cannot express its value
"""


@click.group(short_help="Print and remove labels of placement.")
def placement() -> None:
    """Print and remove labels of placement."""


@placement.command(help=_REMOVE_HELP, short_help="Remove the labels of a key from all nodes.")
@click.argument("key")
@click.option("--force", is_flag=True, help="Remove them although pods, templates or volumes name them.")
@yes_option
@cluster_options
def remove(**given: object) -> None:
    """The text of ``--help`` is above."""
    imported("taintwarden.cli.change.placement:remove")(**given)


@placement.command(help=_LABELS_HELP, short_help="Print the labels of a node with these taints.")
@click.argument("taints", metavar="TAINT...", nargs=-1, required=True)
@click.option("--separator", default="\n", show_default="a new line", help="What stands between two labels.")
def labels(**given: object) -> None:
    """The text of ``--help`` is above."""
    imported("taintwarden.cli.change.placement:print_labels")(**given)
