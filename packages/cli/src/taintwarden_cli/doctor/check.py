"""Checks and their findings. ``Diagnosis`` is what ``-o json`` prints."""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum

import msgspec

from taintwarden_cli.doctor.context import Context
from taintwarden_cli.doctor.inventory import PodGroup
from taintwarden_cli.rehearsal.sources import Source, Subject


class Severity(StrEnum):
    """The severity of a finding."""

    ERROR = "error"
    """The fault does harm now, or will at the next change of a taint."""
    WARNING = "warning"
    """The state may be unintended."""


class Finding(msgspec.Struct, frozen=True):
    """A fault that a check finds in one object. An unset ``remedy`` or ``severity`` is that of the check."""

    subject: Subject
    message: str
    remedy: str = ""
    severity: Severity | None = None
    pods: int = 0
    """Number of pods with the fault."""
    template: bool = False
    """True if a pod template has the fault."""


Run = Callable[[Context], Iterator[Finding]]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of fault to look for.

    It runs only if all of ``needs`` were read; without one of ``uses`` it is incomplete. ``finds`` and ``remedy`` are
    shown to the user.
    """

    id: str
    severity: Severity
    finds: str
    remedy: str
    needs: Sequence[Source]
    uses: Sequence[Source] = ()
    run: Run


REGISTERED: list[Check] = []
"""Checks that were registered with :func:`check`."""


def check(
    name: str, severity: Severity, finds: str, remedy: str, *, needs: Sequence[Source] = (), uses: Sequence[Source] = ()
) -> Callable[[Run], Run]:
    """Register the decorated function as a check."""

    def add(run: Run) -> Run:
        made = Check(id=name, severity=severity, finds=finds, remedy=remedy, needs=needs, uses=uses, run=run)
        REGISTERED.append(made)
        return run

    return add


def group_finding(group: PodGroup, message: str, remedy: str = "", *, severity: Severity | None = None) -> Finding:
    """Return a finding about all pods of a group, or about its template."""
    return Finding(group.subject, message, remedy, severity, pods=group.count, template=group.template)


class ReportedFinding(msgspec.Struct, rename="camel", kw_only=True):
    """One line of the result: findings of one check with the same object and message, and the number of their pods."""

    check: str
    severity: Severity
    kind: str
    namespace: str
    name: str
    message: str
    remedy: str
    pods: int
    template: bool
    """True if the template has the fault, so that replacement pods get it, too."""

    @property
    def subject(self) -> Subject:
        """The object with the fault."""
        return Subject(self.kind, self.name, self.namespace)


class NotChecked(msgspec.Struct, rename="camel"):
    """Checks that did not run, or ran without some of their sources (``partly``), and why."""

    reason: str
    checks: list[str]
    partly: bool


class Diagnosis(msgspec.Struct, rename="camel", kw_only=True):
    """The whole result, as of ``at`` (RFC 3339 in UTC). ``checks`` is the number of checks that ran."""

    at: str
    server: str
    checks: int
    errors: int = 0
    warnings: int = 0
    findings: list[ReportedFinding] = []
    """Errors first, then in the order of the catalogue, then by object."""
    not_checked: list[NotChecked] = []

    def __post_init__(self) -> None:
        self.errors = sum(finding.severity is Severity.ERROR for finding in self.findings)
        self.warnings = len(self.findings) - self.errors

    @property
    def is_mostly_unchecked(self) -> bool:
        """True if more checks were left out than ran, so that an empty list of findings means little."""
        left_out = {name for skipped in self.not_checked if not skipped.partly for name in skipped.checks}
        return len(left_out) > self.checks
