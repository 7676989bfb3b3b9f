"""``taintwarden init``: a first policy and profile for the taints of a cluster."""

import click

from taintwarden.cli.lazy import imported
from taintwarden.cli.options import cluster_options

_HELP = """Print a first TaintEvictionPolicy for each taint whose value changes, and a TolerationProfile for the
workload with the most pods that tolerate it, as YAML with comments. Nothing is written to the cluster.

The policy is in mode DryRun: it reports evictions and makes none. It has placement, so that pods do not come back to a
node that they have to leave. The value in the profile is chosen so that no pod has to leave with the present values of
the nodes: edit it. Without --key, keys of Kubernetes, keys that a policy has already, those that state the class of a
node, and those whose values cannot be compared are left out; a comment names them.

Needs the rights to list nodes, pods and taintevictionpolicies. The definitions need not be installed.

\b
Examples:
  taintwarden init
  taintwarden init --key sla > sla.yaml; taintwarden validate sla.yaml
  taintwarden init --key example.com/driver --context production

\b
Exit codes:
  0   a policy for each key that was found, or named
  1   the cluster cannot be reached
  2   wrong flags or kubeconfig
  10  there is no such taint: name one by --key, or see quick-start.md for one of your own
"""


@click.command(help=_HELP, short_help="Print a first policy and profile.")
@click.option("--key", "keys", multiple=True, help="A key of taints; may be repeated. [default: those that change]")
@cluster_options
def init(**given: object) -> None:
    """The text of ``--help`` is above."""
    imported("taintwarden.cli.files.first_policy_text:show")(**given)
