"""Carries out ``doctor``: reads what the chosen checks need, makes them, and prints what they find."""

import sys
import time

import msgspec

from taintwarden.cli.cluster_session import USAGE, ask, settings_of
from taintwarden.cli.data_output import write_data
from taintwarden.cli.doctor.check import Check, Diagnosis
from taintwarden.cli.doctor.command import SHOWN_OBJECTS
from taintwarden.cli.doctor.diagnose import chosen, diagnose, wanted
from taintwarden.cli.doctor.doctor_reading import MAX_CONNECTIONS, read_for
from taintwarden.cli.doctor.doctor_snapshot import DoctorSnapshot
from taintwarden.cli.doctor.findings_table import catalogue, table
from taintwarden.cli.failures import fail
from taintwarden.cli.output import write
from taintwarden.cli.progress import Progress
from taintwarden.settings import Settings

FINE, PERSON, BLIND = 0, 10, 11


class _Listed(msgspec.Struct):
    id: str
    severity: str
    finds: str
    remedy: str
    needs: list[str]
    uses: list[str]


class _Catalogue(msgspec.Struct):
    checks: list[_Listed]


def examine(only: tuple[str, ...], list_checks: bool, space: str, show_all: bool, output: str, **flags: object) -> None:
    """Carry out the command."""
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


def _look(settings: Settings, checks: tuple[Check, ...]) -> Diagnosis:
    with Progress() as progress:
        progress.say("reading the cluster")
        snapshot = DoctorSnapshot(time.time(), namespace=settings.namespace)
        ask(settings, lambda session: read_for(wanted(checks), session, snapshot, progress.say), MAX_CONNECTIONS)
        progress.say(f"making {len(checks)} checks")
        return diagnose(snapshot, checks, settings.gates)


def _list(checks: tuple[Check, ...], output: str) -> None:
    if output == "table":
        write(catalogue(checks))
        return
    listed = [
        _Listed(one.id, one.severity, one.finds, one.remedy, [*map(str, one.needs)], [*map(str, one.uses)])
        for one in checks
    ]
    write_data(_Catalogue(listed), output)
