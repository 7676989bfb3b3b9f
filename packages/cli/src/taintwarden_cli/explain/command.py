"""``taintwarden explain``: why a pod, or the pods of a node, are evicted or not, and when."""

from datetime import datetime

import click

from taintwarden_cli.completion import NODES, PODS
from taintwarden_cli.lazy import imported
from taintwarden_cli.options import cluster_options, gate_options, operator_option
from taintwarden_cli.output import output_option

_HELP = """Explain one pod: for each taint of its node, which policy acts on it and which do not, the toleration used or
why each failed, since when it is violated, and the deadline; then what the pod waits for.

The operator's own engine gives the answer. In a cluster it needs the right to get the pod, its node and namespace
and to list taintevictionpolicies and tolerationprofiles; poddisruptionbudgets are included if they may be listed.
For a policy with devices it also needs to list resourceslices, devicetaintrules and the namespace's resourceclaims,
and for one with replaceFirst the namespace's deployments and replicasets.
With -f no cluster is asked: the files contain the Pod, its Node, the TaintEvictionPolicies, the TolerationProfiles and,
if a policy asks for its labels, the Namespace; if one has devices, ResourceSlices, ResourceClaims and DeviceTaintRules.

For a pod that is Pending it states which nodes do not fit, and why: taints that it does not tolerate, and node
affinity that does not match. It computes what the webhook would write now, compares that with the pod, and says what
to do. That needs the right to list nodes.

\b
Examples:
  taintwarden explain pod shop/web-0
  taintwarden explain pod/web-0 -n shop
  kubectl taintwarden explain pod web-0 -n shop -o json
  taintwarden explain pod shop/web-0 -f cluster.yaml --at 2026-01-31T12:00:00Z
  taintwarden explain pod shop/web-0 -f pod.yaml -f node.yaml -f policies.yaml
  kubectl get pods,nodes,namespaces,taintevictionpolicies,tolerationprofiles -A -o json |
    taintwarden explain pod shop/web-0 -f -

\b
Exit codes:
  0   the pod stays, or a node fits the Pending pod; also where only policies that do not enforce would make it leave
  1   the cluster cannot be reached or refuses, or has no such pod
  2   wrong flags or unusable files
  10  the pod has to leave: it has a deadline, is due, or terminates
  11  no operator is at work: the answer holds once one runs
  12  the pod is Pending, and no node fits

JSON has: at, pod, fate (Stays, Leaves, WouldLeave, Pending, Terminates, NotActedOn), reason, problem,
remedy (of a pending pod), waitsFor, nodeEnd, policy, deadline, secondsLeft, claims[] (of other policies: policy, mode,
reason, deadline, secondsLeft, waitsFor), taints[] (key, value, effect, source, device, rule, verdict, reason, policy,
mode, otherPolicies, tolerations, judgedValue, addedAt, since, clockRecorded, graceSeconds, deadline, secondsLeft),
policies[], profiles[], budgets[], budgetsProblem, nodes[] (of a pending pod: name, refusals), scheduler (its own
reason), invalidTolerations[], ignoredValues[], notes[]. Times are RFC 3339 in UTC; what does not apply is null.
"""


class _Moment(click.ParamType[float]):
    """An RFC 3339 time with its zone, as seconds since the epoch."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            moment = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value!r} is not an RFC 3339 time: write for example 2026-01-31T12:00:00Z", param, ctx)
        if moment.tzinfo is None:
            self.fail(f"{value!r} has no time zone: append Z for UTC", param, ctx)
        return moment.timestamp()


_SHORT = {"po": "pod", "pods": "pod", "no": "node", "nodes": "node"}
"""Other names of the kinds, as in kubectl."""


class _Kinds(click.Group):
    """A group of commands by kind that accepts kubectl's forms ``po NAME`` and ``pod/NAME``."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, _SHORT.get(cmd_name.lower(), cmd_name.lower()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        kind, slash, name = args[0].partition("/")
        if slash and name and self.get_command(ctx, kind) is not None:
            args = [kind, name, *args[1:]]
        return super().resolve_command(ctx, args)


@click.group(cls=_Kinds, short_help="Say why pods stay or leave, and when.")
def explain() -> None:
    """Say why pods stay or leave, and when.

    The kind may have kubectl's short name (po, no), and may be a prefix of the name: pod/web-0.
    """


@explain.command(help=_HELP, short_help="Explain one pod, taint by taint.")
@click.argument("pod", metavar="NS/NAME", shell_complete=PODS)
@click.option("-n", "--namespace", "pod_namespace", help="Namespace of NAME. [default: the context's; -f: default]")
@click.option("-f", "--filename", "files", multiple=True, help="Read this file instead of a cluster; - is stdin.")
@operator_option
@cluster_options
@click.option("--at", type=_Moment(), help="Answer as of this time (RFC 3339). Default: now.")
@gate_options
@output_option
def pod(**given: object) -> None:
    """The text of ``--help`` is above."""
    imported("taintwarden_cli.explain.answering:explain_pod")(**given)


_NODE_HELP = """Explain the pods of a node. The first line says whether it is drained: no pod has to leave or
terminates. Then which pods stay, and why; which have to leave, when, by which policy, and what they wait for. Those
that leave first come first. `taintwarden explain pod` says more about each.

It needs the right to get the node, and to list pods, namespaces, poddisruptionbudgets, taintevictionpolicies and
tolerationprofiles; for a policy with replaceFirst also deployments and replicasets.

\b
Examples:
  taintwarden explain node a1
  kubectl taintwarden explain node a1 -o json

\b
Exit codes:
  0   it is drained: all pods that are there stay; also where only policies that do not enforce would make them leave
  1   the cluster cannot be reached or refuses, or has no such node
  2   wrong flags or kubeconfig
  10  it is not drained yet: pods have to leave, or terminate
  11  no operator is at work: the answer holds once one runs

JSON has: at, node, problem, drained, leaving, wouldLeave, finalizers[] (of pods that terminate), staying[] (reason,
pods, names), taints[], pods[] (each as `explain pod` has it).
"""


@explain.command(help=_NODE_HELP, short_help="Explain the pods of a node.")
@click.argument("name", shell_complete=NODES)
@operator_option
@cluster_options
@output_option
def node(**given: object) -> None:
    """The text of ``--help`` is above."""
    imported("taintwarden_cli.explain.answering:explain_node")(**given)
