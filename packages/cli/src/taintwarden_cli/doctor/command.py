"""``taintwarden doctor``: faults and surprises in a cluster, and their remedies."""

import click
from click.shell_completion import CompletionItem

from taintwarden_cli.lazy import imported
from taintwarden_cli.options import cluster_options, operator_option
from taintwarden_cli.output import output_option

SHOWN_OBJECTS = 20

_HELP = """Look for what you have to act on: conflicts, misconfigurations, what cannot work, what others undo.

The cluster is read once, page by page, with your rights; verdicts are those of the operator's own engine. Nothing is
changed. What you may not read is listed as not checked, and stops no other check. Pods are listed by their topmost
owner: ten thousand of one Deployment are one line.

docs/doctor.md lists what can be found. Free resources, affinity between pods, topology spread and volumes are not
considered.

\b
Examples:
  taintwarden doctor
  taintwarden doctor --only nowhere-to-go --only budget-never-allows
  kubectl taintwarden doctor -o json

\b
Exit codes:
  0   you do not have to act
  1   the cluster cannot be reached, or nothing may be read
  2   wrong flags or kubeconfig
  10  you have to act: there are errors or warnings
  11  most checks could not run, and the others found nothing: see what is listed as not checked

JSON has: at, server, checks, errors, warnings, findings[] (check, severity, kind, namespace, name, message, remedy,
pods, template), notChecked[] (reason, checks[], partly).
"""


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    catalogue = imported("taintwarden_cli.doctor.checks:CATALOGUE")
    return [CompletionItem(check.id, help=check.finds) for check in catalogue if check.id.startswith(incomplete)]


@click.command(help=_HELP, short_help="Find what is wrong or surprising in a cluster.")
@click.option("--only", multiple=True, metavar="ID", shell_complete=_complete, help="Run only this check; repeatable.")
@click.option("--all", "show_all", is_flag=True, help=f"Show more than {SHOWN_OBJECTS} findings with one remedy.")
@operator_option
@cluster_options
@output_option
def doctor(**given: object) -> None:
    """The text of ``--help`` is above."""
    imported("taintwarden_cli.doctor.examining:examine")(**given)
