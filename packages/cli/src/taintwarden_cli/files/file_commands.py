"""Commands about manifests before they are applied: ``init`` and ``validate``."""

import click

from taintwarden_cli.lazy import imported
from taintwarden_cli.options import cluster_options
from taintwarden_cli.output import output_option

_INIT_HELP = """Print a first TaintEvictionPolicy for each taint whose value changes, as YAML with comments. Nothing is
written to the cluster.

The policy is in mode DryRun: it reports evictions and makes none. It has placement, so that pods do not come back to a
node that they have to leave. Without --key, keys of Kubernetes, keys that a policy has already, those that state the
class of a node, and those whose values cannot be compared are left out; a comment names them.

Needs the rights to list nodes and taintevictionpolicies. The definitions need not be installed.

\b
Examples:
  taintwarden init
  taintwarden init --key sla > sla.yaml; taintwarden validate sla.yaml
  taintwarden init --key example.com/driver --context production

\b
Exit codes:
  0   at least one policy; a comment names keys left out
  1   the cluster cannot be reached or refuses
  2   wrong flags or kubeconfig
  10  there is no such taint: name one by --key, or see quick-start.md for one of your own
"""


@click.command(help=_INIT_HELP, short_help="Print a first policy.")
@click.option("--key", "keys", multiple=True, help="A key of taints; may be repeated. [default: those that change]")
@cluster_options
def init(**given: object) -> None:
    """The text of ``--help`` is above."""
    imported("taintwarden_cli.files.first_policy:show")(**given)


_VALIDATE_HELP = """Check policies, profiles and pods in YAML or JSON files, without a cluster. - is standard input. In
a folder, the .yaml, .yml and .json files are checked. 0950 without quotes is a number, as for kubectl.

Checked are TaintEvictionPolicies and TolerationProfiles; Pods and the pod templates of Deployments, StatefulSets,
DaemonSets, ReplicaSets, Jobs and CronJobs, and of any other kind that contains pod templates, such as Rollouts,
RayClusters and JobSets (the annotations, and native tolerations that an API server may refuse). Other objects are
counted and ignored, TaintPublishers too: only the API server checks them. Lists are expanded. Render the templates of
a Helm chart first.

\b
Examples:
  taintwarden validate policies.yaml
  taintwarden validate pod.yaml policies.yaml
  taintwarden validate -R -f .
  helm template my-release ./chart | taintwarden validate -
  taintwarden validate -o json cluster.yaml
  kubectl get taintevictionpolicies,tolerationprofiles -A -o json | taintwarden validate -

Each finding is one line, with the line of the field in a YAML file:
FILE:LINE: document N[ item I]: KIND/NAME: SEVERITY: PATH: VALUE: REASON; REMEDY

\b
Exit codes:
  0  nothing worse than a warning
  1  an error
  2  a file cannot be read, has no object, or is neither YAML nor JSON; or wrong flags

JSON has: files, objects, checked, ignored (kind: count), errors, warnings,
findings[] (file, line, document, item, kind, name, severity, path, message, reason, remedy), unreadable[] (file,
reason).
"""


@click.command(help=_VALIDATE_HELP, short_help="Check policies, profiles and pods in files.")
@click.argument("files", metavar="[FILE...]", nargs=-1)
@click.option("-f", "--filename", "named", multiple=True, help="A file or folder, as kubectl takes it; - is stdin.")
@click.option("-R", "--recursive", is_flag=True, help="Also the folders in a folder.")
@output_option
def validate(**given: object) -> None:
    """The text of ``--help`` is above."""
    imported("taintwarden_cli.files.validating:validate")(**given)
