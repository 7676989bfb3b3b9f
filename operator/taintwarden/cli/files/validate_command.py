"""``taintwarden validate``: checks policies, profiles, pods and nodes in files."""

import sys
from typing import TYPE_CHECKING

import click

from taintwarden.cli.output import output_option, printable, write, write_data

if TYPE_CHECKING:
    from taintwarden.cli.files.file_checks import Report

FINE, FAULTY, UNREADABLE = 0, 1, 2

_HELP = """Check policies, profiles, pods and nodes in YAML or JSON files, without a cluster. - is standard input. Of a
folder, its .yaml, .yml and .json files are checked. Values are read as kubectl reads them: 0950 without quotes is a
number.

Checked are TaintEvictionPolicies and TolerationProfiles; Pods and the pod templates of Deployments, StatefulSets,
DaemonSets, ReplicaSets, Jobs and CronJobs, and of any other kind that contains pod templates, such as Rollouts,
RayClusters and JobSets (the annotation taintwarden.io/tolerations, and native tolerations that an API server may
refuse); and the taints of Nodes. Policies in the same input say what the values of taints have to be. Other objects are
counted and ignored, lists are unfolded. Render the templates of a Helm chart first.

\b
Examples:
  taintwarden validate policies.yaml
  taintwarden validate pod.yaml node.yaml policies.yaml
  taintwarden validate -R -f .
  helm template my-release ./chart | taintwarden validate -
  taintwarden validate -o json cluster.yaml
  kubectl get nodes,taintevictionpolicies,tolerationprofiles -A -o json | taintwarden validate -

Each finding is one line, with the line of the field in a YAML file:
FILE:LINE: document N: KIND/NAME: SEVERITY: PATH: VALUE: REASON; REMEDY

\b
Exit codes:
  0  nothing worse than a warning
  1  an error
  2  a file cannot be read, has no object, or is neither YAML nor JSON; or wrong flags

JSON and YAML have: files, objects, policies, profiles, pods, nodes, ignored (kind: count), errors, warnings,
findings[] (file, line, document, item, kind, name, severity, path, message, reason, remedy), unreadable[] (file,
reason).
"""


@click.command(help=_HELP, short_help="Check policies, profiles, pods and nodes in files.")
@click.argument("files", metavar="[FILE...]", nargs=-1)
@click.option("-f", "--filename", "named", multiple=True, help="A file or folder, as kubectl takes it; - is stdin.")
@click.option("-R", "--recursive", is_flag=True, help="Also the folders in a folder.")
@output_option
def validate(files: tuple[str, ...], named: tuple[str, ...], recursive: bool, output: str) -> None:
    """Read the arguments, check, print; the text of ``--help`` is above."""
    # Loads the engine, which `--help` does not need.
    from taintwarden.cli.files.file_checks import check_files  # noqa: PLC0415

    if not (files or named):
        raise click.UsageError("name a file or a folder; - is standard input")
    report = check_files((*files, *named), recursive=recursive)
    if output == "table":
        for finding in report.findings:
            write(printable(str(finding)))
        for unreadable in report.unreadable:
            click.echo(f"taintwarden: {printable(unreadable.reason)}", err=True)
        write(_summary(report))
    else:
        write_data(report, output)
    sys.exit(UNREADABLE if report.unreadable else FAULTY if report.errors else FINE)


def _summary(report: "Report") -> str:
    checked = ", ".join(
        [
            _count(report.policies, "policy", "policies"),
            _count(report.profiles, "profile"),
            _count(report.pods, "pod or pod template", "pods and pod templates"),
            _count(report.nodes, "node"),
        ]
    )
    ignored = ", ".join(f"{kind} {count}" for kind, count in report.ignored.items())
    return "; ".join(
        [
            f"{_count(report.files, 'file')}: {checked} checked",
            *([f"ignored: {printable(ignored)}"] if ignored else []),
            *([f"{_count(len(report.unreadable), 'file')} not readable"] if report.unreadable else []),
            f"{_count(report.errors, 'error')}, {_count(report.warnings, 'warning')}",
        ]
    )


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
