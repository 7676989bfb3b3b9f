"""``taintwarden plan``: the effect of changed taints, before you change them."""

import click

from taintwarden_cli.completion import NODES, POLICIES
from taintwarden_cli.lazy import imported
from taintwarden_cli.options import Duration, Seconds, cluster_options, operator_option
from taintwarden_cli.output import output_option

SHOWN_PODS = 40

_HELP = """Show what follows from changed taints: which pods are evicted, in which order and by when under all limits,
which limit delays which pods, whether a guard trips, which pods have no node to go to, and which may come back to a
node that they have to leave. Nothing is changed.

The cluster is read once; then the operator's own engine plays the time after the change on a clock of its own, in an
idealised cluster: evictions succeed, pods stop in --stop-seconds, a replacement is Ready after --replacement-seconds
on the emptiest node whose taints and labels it accepts, and PodDisruptionBudgets allow what their status says.
Requests of pods, affinity to pods and volumes are ignored. Without a change it is a forecast of the current state.
--enforce shows what follows when a policy that is paused or in mode DryRun begins to enforce now.

--sweep sla=980..900 shows instead how many pods have to leave at each value: only values at which something changes
are listed. KEY=VALUE,VALUE tries single values, such as versions. The effect is NoExecute, unless :EFFECT follows. The
nodes are those that carry the taint, unless you name some. Time, and limits but the guard, are ignored.

--node, --zone and --selector each add nodes; --taint and --remove are about all of them.

Needs the right to list taintevictionpolicies, tolerationprofiles, nodes, pods, namespaces, replicasets, statefulsets,
daemonsets, replicationcontrollers, jobs and poddisruptionbudgets; for a policy with devices also resourceslices,
resourceclaims and devicetaintrules.

\b
Examples:
  taintwarden plan --node a1 --taint sla=900:NoExecute
  taintwarden plan --zone zone-a --taint sla=900:NoExecute --horizon 2h
  taintwarden plan --selector pool=spot --remove maintenance -o json
  taintwarden plan --enforce sla
  taintwarden plan --sweep sla=980..900
  taintwarden plan --sweep example.com/cni-version=v1.16.0,v1.15.0 --zone zone-a
  kubectl taintwarden plan

\b
Exit codes:
  0   nothing stands out
  1   the cluster cannot be reached, or has no such nodes
  2   wrong flags or kubeconfig
  10  look first: a guard trips; pods end with their node or get less time to stop than they ask for, wait at the
      end, are deleted in spite of a budget, have no other node, or may come back to a node that they have to leave;
      or a new value cannot be compared; with --sweep: a guard trips at one of the values, or one cannot be compared

JSON has: at, changes[], changedNodes, horizonSeconds, endedAfterSeconds, assumptions, leaving, missed (they end with
their node), cut (less time to stop), held, later, wouldLeave, pastBudgets, nowhere, returning, pods[] (namespace, name,
node, policy, taint, fate, deadline, already, order, at, afterSeconds, deleted, waitedSeconds, limit, reason, budgets[],
replacement, replacedOn, returnsTo, late), cancelled[], guards[], invalid[], notes[]. With --sweep: at, key, effect,
nodes, pods, policies[], would[], steps[] (value, leaving, more, workloads, trips[]), invalid[], notes[].
"""


@click.command(help=_HELP, short_help="Show what follows from changed taints.")
@click.option("--node", "nodes", multiple=True, shell_complete=NODES, help="A node by its name.")
@click.option("--zone", "zones", multiple=True, help="The nodes of a zone.")
@click.option("-l", "--selector", "selectors", multiple=True, help="The nodes with these labels.")
@click.option("--taint", "taints", multiple=True, help="A taint to set, KEY=VALUE:EFFECT.")
@click.option("--remove", multiple=True, help="A taint to remove, KEY or KEY:EFFECT.")
@click.option(
    "--enforce",
    "enforced",
    multiple=True,
    metavar="POLICY",
    shell_complete=POLICIES,
    help="Plan as if this policy enforced.",
)
@click.option("--sweep", "swept", metavar="KEY=FROM..TO", help="Count the pods that leave at each value of a taint.")
@click.option("--horizon", type=Duration(), default="1h", show_default=True, help="How far to look ahead.")
@click.option(
    "--replacement-seconds",
    type=Seconds(0, 86_400),
    default=30.0,
    show_default=True,
    help="Until the replacement of an evicted pod is Ready.",
)
@click.option(
    "--stop-seconds",
    type=Seconds(0, 86_400),
    default=5.0,
    show_default=True,
    help="How long an evicted pod takes to stop; no longer than its grace period.",
)
@click.option(
    "--max-evictions-per-second",
    type=float,
    help="The operator's maximum over all policies; 0: no maximum. [default: 50]",
)
@click.option("--all", "show_all", is_flag=True, help=f"Show more than {SHOWN_PODS} pods.")
@operator_option
@cluster_options
@output_option
def plan(**given: object) -> None:
    """The text of ``--help`` is above."""
    imported("taintwarden_cli.plan.planning:plan")(**given)
