"""``taintwarden doctor``: faults and surprises in a cluster, and their remedies."""

import sys
import time
from typing import TYPE_CHECKING

import click
import msgspec
from click.shell_completion import CompletionItem

from taintwarden.cli.failures import fail
from taintwarden.cli.options import cluster_options, operator_option
from taintwarden.cli.output import output_option, write, write_data
from taintwarden.cli.progress import Progress

if TYPE_CHECKING:
    from taintwarden.cli.doctor.check import Check, Diagnosis
    from taintwarden.settings import Settings

FINE, USAGE, PERSON, BLIND = 0, 2, 10, 11
SHOWN_OBJECTS = 20

_HELP = """Look for what is wrong or surprising: conflicts, misconfigurations, what cannot work, what others undo.

The cluster is read once, page by page, with your rights; verdicts are those of the operator's own engine. Nothing is
changed: two pods are tried by a dry run, to see which operators the API server takes. What you may not read is listed
as not checked, and costs no other check. Pods are listed by their topmost owner: ten thousand of one Deployment are one
line.

--list-checks shows what can be found. Free resources, affinity between pods, topology spread and volumes are not
looked at.

\b
Examples:
  taintwarden doctor
  taintwarden doctor --only nowhere-to-go --only budgets-several
  taintwarden doctor --list-checks
  kubectl taintwarden doctor -o json

\b
Exit codes:
  0   you do not have to act; there may be notes
  1   the cluster cannot be reached
  2   wrong flags or kubeconfig
  10  you have to act: there are errors or warnings
  11  most checks could not be made, and the others found nothing: see what is listed as not checked

JSON and YAML have: at, server, scope (nodes, pods, templates, policies, profiles; null was not read), checks, errors,
warnings, infos, findings[] (check, severity, kind, namespace, name, message, remedy, pods, template), notChecked[]
(reason, checks[], partly). With --list-checks: checks[] (id, severity, finds, remedy, needs[], uses[]).
"""


class _Listed(msgspec.Struct):
    id: str
    severity: str
    finds: str
    remedy: str
    needs: list[str]
    uses: list[str]


class _Catalogue(msgspec.Struct):
    checks: list[_Listed]


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from taintwarden.cli.doctor.catalogue import CATALOGUE  # noqa: PLC0415

    return [CompletionItem(check.id, help=check.finds) for check in CATALOGUE if check.id.startswith(incomplete)]


@click.command(help=_HELP, short_help="Find what is wrong or surprising in a cluster.")
@click.option("--only", multiple=True, metavar="ID", shell_complete=_complete, help="Make only this check; repeatable.")
@click.option("--list-checks", is_flag=True, help="Show what can be found; needs no cluster.")
@click.option("-n", "--namespace", "space", default="", help="Only what is about this namespace, or about none.")
@click.option("--all", "show_all", is_flag=True, help=f"Show more than {SHOWN_OBJECTS} objects for each check.")
@operator_option
@cluster_options
@output_option
def doctor(only: tuple[str, ...], list_checks: bool, space: str, show_all: bool, output: str, **flags: object) -> None:
    """Read the arguments, ask, print; the text of ``--help`` is above."""
    # The engine and the cluster's client take a while to import, and `--help` does not need them.
    from taintwarden.cli.cluster_session import settings_of  # noqa: PLC0415
    from taintwarden.cli.doctor.diagnose import chosen  # noqa: PLC0415
    from taintwarden.cli.doctor.findings_table import table  # noqa: PLC0415

    try:
        checks = chosen(only)
    except LookupError as error:
        fail(str(error), USAGE)
    if list_checks:
        _list(checks, output)
        return
    answer = _look(settings_of(flags), checks)
    answer = answer.narrowed(space) if space else answer
    if output == "table":
        write(table(answer, checks, None if show_all else SHOWN_OBJECTS))
    else:
        write_data(answer, output)
    sys.exit(PERSON if answer.needs_a_person else BLIND if answer.is_blind else FINE)


def _look(settings: "Settings", checks: "tuple[Check, ...]") -> "Diagnosis":
    from taintwarden.cli.cluster_session import ask  # noqa: PLC0415
    from taintwarden.cli.doctor.diagnose import diagnose, wanted  # noqa: PLC0415
    from taintwarden.cli.doctor.doctor_reading import MAX_CONNECTIONS, read_for  # noqa: PLC0415
    from taintwarden.cli.doctor.doctor_snapshot import DoctorSnapshot  # noqa: PLC0415
    from taintwarden.engine.model import Gates  # noqa: PLC0415

    with Progress() as progress:
        progress.say("reading the cluster")
        snapshot = DoctorSnapshot(time.time(), namespace=settings.namespace)
        ask(settings, lambda session: read_for(wanted(checks), session, snapshot, progress.say), MAX_CONNECTIONS)
        progress.say(f"making {len(checks)} checks")
        return diagnose(snapshot, checks, Gates(settings.numeric_operators, settings.semver_operators))


def _list(checks: "tuple[Check, ...]", output: str) -> None:
    from taintwarden.cli.doctor.findings_table import catalogue  # noqa: PLC0415

    if output == "table":
        write(catalogue(checks))
        return
    listed = [
        _Listed(one.id, one.severity, one.finds, one.remedy, [*map(str, one.needs)], [*map(str, one.uses)])
        for one in checks
    ]
    write_data(_Catalogue(listed), output)
