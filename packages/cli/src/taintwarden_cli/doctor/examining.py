"""Carries out ``doctor``: reads what the chosen checks need, runs them, and prints what they find."""

import sys
import time
from collections.abc import Iterable, Sequence

from taintwarden.engine import rfc3339
from taintwarden.engine.model import Gates
from taintwarden_cli.cluster_session import ACTION_NEEDED, FINE, USAGE, ask, settings_of
from taintwarden_cli.data_output import write_answer
from taintwarden_cli.doctor.check import Check, Diagnosis, Finding, NotChecked, ReportedFinding, Severity
from taintwarden_cli.doctor.checks import CATALOGUE
from taintwarden_cli.doctor.command import SHOWN_OBJECTS
from taintwarden_cli.doctor.context import Context
from taintwarden_cli.doctor.doctor_reading import read_sources
from taintwarden_cli.doctor.doctor_snapshot import DoctorSnapshot
from taintwarden_cli.doctor.findings_table import parts
from taintwarden_cli.output import fail, printable
from taintwarden_cli.rehearsal.sources import Source
from taintwarden_cli.rendering import render

MOSTLY_UNCHECKED = 11  # an exit code
_RANK = {severity: rank for rank, severity in enumerate(Severity)}


def examine(only: tuple[str, ...], show_all: bool, output: str, **flags: object) -> None:
    """Carry out ``taintwarden doctor``."""
    try:
        checks = select_checks(only)
    except LookupError as error:
        fail(str(error), USAGE)
    settings = settings_of(flags)
    snapshot = DoctorSnapshot(time.time(), namespace=settings.namespace)
    ask(settings, lambda session: read_sources(needed_sources(checks), session, snapshot))
    answer = diagnose(snapshot, checks, settings.gates)
    write_answer(answer, output, lambda: render(*parts(answer, checks, None if show_all else SHOWN_OBJECTS)))
    sys.exit(ACTION_NEEDED if answer.findings else MOSTLY_UNCHECKED if answer.is_mostly_unchecked else FINE)


def select_checks(names: Sequence[str]) -> tuple[Check, ...]:
    """The checks with these IDs; all of them if none is named.
    Raises LookupError if a check does not exist; the text names it.
    """
    known = {check.id for check in CATALOGUE}
    if missing := [name for name in names if name not in known]:
        raise LookupError(f"there is no check {', '.join(missing)}; docs/doctor.md lists them")
    return tuple(check for check in CATALOGUE if not names or check.id in names)


def needed_sources(checks: Iterable[Check]) -> frozenset[Source]:
    """The sources that these checks read."""
    return frozenset(source for check in checks for source in (*check.needs, *check.uses))


def diagnose(snapshot: DoctorSnapshot, checks: Sequence[Check], gates: Gates) -> Diagnosis:
    """Run the checks whose sources were read, and collect their findings."""
    context = Context(snapshot, gates)
    runnable = [check for check in checks if all(snapshot.has_read(source) for source in check.needs)]
    findings = [finding for check in runnable for finding in _merged(check, check.run(context))]
    findings.sort(key=lambda finding: _RANK[finding.severity])  # stable: keeps the order of the catalogue
    return Diagnosis(
        at=rfc3339.at(snapshot.now),
        server=snapshot.server,
        checks=len(runnable),
        findings=findings,
        not_checked=_not_checked(snapshot, checks),
    )


def _merged(check: Check, found: Iterable[Finding]) -> list[ReportedFinding]:
    """Merge findings with the same object and message, and add up their pods."""
    merged: dict[tuple[object, ...], ReportedFinding] = {}
    for finding in found:
        severity = finding.severity or check.severity
        known = merged.get((severity, finding.subject, finding.message))
        if known is not None:
            known.pods += finding.pods
            known.template |= finding.template
            continue
        merged[severity, finding.subject, finding.message] = ReportedFinding(
            check=check.id,
            severity=severity,
            kind=finding.subject.kind,
            namespace=finding.subject.namespace,
            name=finding.subject.name,
            message=printable(finding.message),
            remedy=finding.remedy or check.remedy,
            pods=finding.pods,
            template=finding.template,
        )
    return sorted(merged.values(), key=lambda finding: (_RANK[finding.severity], finding.subject, finding.message))


def _not_checked(snapshot: DoctorSnapshot, checks: Sequence[Check]) -> list[NotChecked]:
    unchecked: dict[tuple[str, bool], list[str]] = {}
    for source, problem in snapshot.problems.items():
        for check in checks:
            if source in check.needs:
                unchecked.setdefault((problem, False), []).append(check.id)
            elif source in check.uses and all(one not in snapshot.problems for one in check.needs):
                unchecked.setdefault((problem, True), []).append(check.id)
    return [NotChecked(printable(problem), ids, partly) for (problem, partly), ids in unchecked.items()]
