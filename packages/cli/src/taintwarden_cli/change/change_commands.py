"""Commands that change the cluster: ``pause``, ``resume``, ``guard reset`` and ``placement``."""

import click

from taintwarden_cli.completion import POLICIES
from taintwarden_cli.lazy import imported
from taintwarden_cli.options import cluster_options, yes_option

_EXIT_CODES = """
\b
Exit codes:
  0  {done}
  1  {refused}, you declined, a right is missing, or the cluster cannot be reached
  2  wrong flags or kubeconfig; or --yes is missing and no terminal is there to ask
"""
_ALL_HELP = """
--all {all}. It names them first, and asks on a terminal; scripts pass --yes.

Needs the rights to get and patch taintevictionpolicies, and for --all to list them.
"""
_PAUSE_HELP = f"""Stop policies: they evict no pod. Evictions in progress are carried out.

It sets spec.paused. Applying a file that does not name this field (kubectl, Helm, GitOps) leaves the policy paused,
whatever mode the file has. Who paused it, when and why is kept in the annotation
taintwarden.io/paused-by, and shown by `taintwarden status`. A policy that is paused already stays as it is. If another
policy acts first on the same taints, so that pods leave all the same, it says so (with the right to list policies).
{_ALL_HELP.format(all="stops every policy")}
\b
Examples:
  taintwarden pause sla
  taintwarden pause sla --reason "values of zone-a are wrong"
  taintwarden pause --all
  kubectl taintwarden pause sla --context production
{_EXIT_CODES.format(done="they are paused", refused="there is no such policy")}"""
_RESUME_HELP = f"""Resume paused policies in their mode, and state how many pods are due.

Deadlines continued meanwhile: overdue pods are evicted first, under all limits, and the guard counts them as one wave;
see `taintwarden plan --enforce POLICY`. It removes spec.paused; a file with paused: true pauses the policy again when
it is applied. A policy that is not paused stays as it is. It names policies that act first on the same taints.
{_ALL_HELP.format(all="resumes every policy that is paused")}
\b
Examples:
  taintwarden resume sla
  taintwarden resume --all
{_EXIT_CODES.format(done="they are not paused any more", refused="there is no such policy")}"""
_POLICIES = click.argument("policies", metavar="[POLICY...]", nargs=-1, shell_complete=POLICIES)


@click.command(help=_PAUSE_HELP, short_help="Stop policies.")
@_POLICIES
@click.option("--all", "every", is_flag=True, help="Stop every policy.")
@click.option("--reason", default="", help="Why: shown by `taintwarden status`.")
@yes_option
@cluster_options
def pause(**given: object) -> None:
    """The text of ``--help`` is above."""
    imported("taintwarden_cli.change.policies:switch_policies")(resume=False, **given)


@click.command(help=_RESUME_HELP, short_help="Resume paused policies.")
@_POLICIES
@click.option("--all", "every", is_flag=True, help="Resume every policy that is paused.")
@yes_option
@cluster_options
def resume(**given: object) -> None:
    """The text of ``--help`` is above."""
    imported("taintwarden_cli.change.policies:switch_policies")(resume=True, **given)


_RESET_HELP = f"""Release the pods that a policy's tripped guard holds, or that wait because all nodes are unhealthy.
It first shows the cause, how many pods these are, and that a paused policy evicts none. The guard counts later pods.

On a terminal it asks before it does so; scripts pass --yes. It sets the annotation taintwarden.io/guard-reset of the
policy to its generation; the operator grants it and removes it. It refuses unless the guard has tripped or all nodes
are unhealthy, until the operator has seen the newest version, and if guard or policy changed since you were asked.

Needs the rights to get and patch taintevictionpolicies.

\b
Examples:
  taintwarden guard reset sla
  taintwarden guard reset sla --yes
{_EXIT_CODES.format(done="the operator is asked", refused="there is nothing to reset")}"""


@click.group(short_help="Release the pods that a tripped guard holds.")
def guard() -> None:
    """Release the pods that a tripped guard holds."""


@guard.command(help=_RESET_HELP, short_help="Release the pods that a tripped guard holds.")
@click.argument("policy", shell_complete=POLICIES)
@yes_option
@cluster_options
def reset(**given: object) -> None:
    """The text of ``--help`` is above."""
    imported("taintwarden_cli.change.policies:show_and_reset")(**given)


_REMOVE_HELP = f"""Remove the labels of KEY from all nodes: the key of a taint, or of a label that was listed under
versionLabels.

It first lists the pods and templates whose node affinity names these labels. While there are any it refuses: a pod that
runs would not match its own node any more, and a kubelet that restarts ends it at once, with the reason NodeAffinity;
a Pending pod would find no node. Restart the workloads, so that they lose the affinity, and try again. --force removes
the labels all the same.

It refuses while a policy of any mode places by the key or lists it in versionLabels. On a terminal it asks first;
scripts pass --yes. It needs no operator, and may be run again.

It needs the rights to list nodes, pods, taintevictionpolicies, and all kinds of workloads, and to patch nodes.

\b
Examples:
  taintwarden placement remove sla
  taintwarden placement remove example.com/driver --yes
{_EXIT_CODES.format(done="no node carries the labels any more", refused="they are in use, there are none")}"""
_LABELS_HELP = """Print the labels of placement that a node with these taints has: for the templates of node groups,
from which autoscalers derive the labels of future nodes, and for --node-labels of kubelets.

TAINT is KEY=VALUE:EFFECT, as in kubectl taint, or KEY for a node without that taint. It needs no cluster.

\b
Examples:
  taintwarden placement labels sla=950:NoSchedule
  taintwarden placement labels sla example.com/cni=v3.27.2:NoExecute

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
@click.option("--force", is_flag=True, help="Remove them although pods or templates name them.")
@yes_option
@cluster_options
def remove(**given: object) -> None:
    """The text of ``--help`` is above."""
    imported("taintwarden_cli.change.placement_removal:remove")(**given)


@placement.command(help=_LABELS_HELP, short_help="Print the labels of a node with these taints.")
@click.argument("taints", metavar="TAINT...", nargs=-1, required=True)
def labels(**given: object) -> None:
    """The text of ``--help`` is above."""
    imported("taintwarden_cli.change.placement_removal:print_labels")(**given)
