"""``taintwarden status``, ``top`` and ``history``: the status of policies, once and live, and what happened lately."""

import click

from taintwarden_cli.completion import POLICIES
from taintwarden_cli.lazy import imported
from taintwarden_cli.options import Duration, Seconds, cluster_options, operator_option
from taintwarden_cli.output import output_forms, output_option

_HELP = """Show the status of policies: mode, whether they are accepted, nodes, pods that have to leave, guards, limits.

It prints a table of all policies, and below it, for each, every problem with cause, effect and what to do, nodes that
are removed, and how many pods stay on nodes with a taint of the policy, and why. For policies that you name, for a
sole policy, and with -o wide for all, it also prints the limits that hold pods, zones, budgets, the next pods, and the
names of pods that stay. The operator writes its data every 20 s, and when something changes. JSON has times in UTC.

It needs the right to list taintevictionpolicies. Each of these rights adds something, and what cannot be read is
named. To get the operator's Lease: a dead or frozen operator is noticed after 10 seconds instead of a minute; status
then takes up to 5 s longer, as clocks may differ. To list Deployments in its namespace: a webhook without a ready
replica. To list nodes, pods, namespaces, tolerationprofiles, taintpublishers, poddisruptionbudgets and events: the
rest. Pods of at most 100 tainted nodes are counted, those of nodes that are removed first; --all counts all. Otherwise
the number of those that stay is the operator's.

\b
Examples:
  taintwarden status
  taintwarden status sla
  kubectl taintwarden status -o json

\b
Exit codes:
  0   you do not have to act
  1   the cluster cannot be reached or refuses, or has no such policy
  2   wrong flags or kubeconfig
  10  you have to act. At once: the operator does not report or receives no changes, the webhook has no ready replica, a
      policy is not accepted, its guard has tripped or all nodes are unhealthy (not in mode DryRun), pods will not leave
      a node before it is removed or have less time to stop than they ask for, a paused policy is without effect, since
      another one acts first, a value cannot be compared, no node that a policy selects has a taint whose values are
      compared or a field that it reads, devices are not known, requests for a replacement fail, or a
      PodDisruptionBudget that pods wait for never allows an eviction. For 10 minutes after it: pods were there when
      their node was removed. After 15 seconds: no operator has observed the newest version of a policy. A minute:
      eviction calls fail. 3 minutes: the state of the cluster is not known. 5 minutes: a workload comes back to its
      node, an evicted pod should have ended, a pod that is not Ready keeps others, a TaintPublisher does not publish.
      30 minutes: a PodDisruptionBudget, an admission webhook that keeps pods, or pods that terminate on their node

JSON has: at, problems[] (kind, cause, effect, remedy), reportedAt, leadingSince, inspectedAt, unread[], policies[] (
name, mode, accepted, problems[], waitsForOperator, pausedBy, onInvalidValue, removals[] (node, at, pods, missed, cut,
heldBy), missed (notEvicted, cut, recent), staying[] (reason, pods, names), status); status is that of the stored
policy.
"""


@click.command(help=_HELP, short_help="Show the status of policies.")
@click.argument("policies", metavar="[POLICY...]", nargs=-1, shell_complete=POLICIES)
@click.option("--all", "show_all", is_flag=True, help="Count and name all pods that stay on tainted nodes.")
@operator_option
@cluster_options
@output_forms("table", "wide", "json")
def status(**given: object) -> None:
    """The text of ``--help`` is above."""
    imported("taintwarden_cli.status.showing:show")(**given)


_TOP_HELP = """Show what `taintwarden status -o wide` shows, live: which pods have to leave next, what they wait for,
guards, zones, and what needs you. In a pipe it is printed once. Ctrl-C ends it; NO_COLOR switches colours off. It needs
the rights of `taintwarden status`, and shows the same problems; it reads nodes and pods at most every 15 s.

\b
Examples:
  taintwarden top
  taintwarden top sla --interval 10
  kubectl taintwarden top --context production

\b
Exit codes:
  0  you ended it, or it is printed
  1  the cluster cannot be reached or refuses, or has no such policy
  2  wrong flags or kubeconfig
"""


@click.command(help=_TOP_HELP, short_help="Show the status of policies live.")
@click.argument("policies", metavar="[POLICY...]", nargs=-1, shell_complete=POLICIES)
@click.option("--interval", type=Seconds(0.5, 3600), default=2.0, show_default=True, help="Seconds between refreshes.")
@operator_option
@cluster_options
def top(**given: object) -> None:
    """The text of ``--help`` is above."""
    imported("taintwarden_cli.status.showing:watch")(**given)


_HISTORY_HELP = """Show what happened lately, the oldest first: the operator's Events about policies, nodes and pods,
and who paused or changed a policy and how. Pods, or nodes, to which the same happens within a minute are one line; JSON
has each.

API servers keep Events for an hour, unless configured otherwise. During a wave the operator writes Events about pods
slowly, and drops the oldest: the numbers in `taintwarden status` are complete, this is not. For proof read the audit
log of the API server. Needs the rights to list events in all namespaces and taintevictionpolicies.

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


@click.command(help=_HISTORY_HELP, short_help="Show what happened lately, as a timeline.")
@click.option("--since", type=Duration(), default="1h", show_default=True, help="How far to look back.")
@click.option("-n", "--namespace", "pod_namespace", default="", help="Only pods of this namespace. Default: all.")
@operator_option
@cluster_options
@output_option
def history(**given: object) -> None:
    """The text of ``--help`` is above."""
    imported("taintwarden_cli.status.event_timeline:show")(**given)
