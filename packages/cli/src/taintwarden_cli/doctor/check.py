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
    """The finding does harm, or will with the next change of a taint."""
    WARNING = "warning"
    """The finding may not be intended."""


class Found(msgspec.Struct, frozen=True):
    """A fault that a check finds in one object. Unset fields have the values of the check."""

    subject: Subject
    message: str
    remedy: str = ""
    severity: Severity | None = None
    pods: int = 0
    """The number of pods that it concerns."""
    template: bool = False
    """True if it concerns the template of future pods."""


Run = Callable[[Context], Iterator[Found]]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of fault to look for.

    All of ``needs`` have to be read for it; without one of ``uses`` it checks less. ``finds`` and ``remedy`` are shown
    to the user.
    """

    id: str
    severity: Severity
    finds: str
    remedy: str
    needs: Sequence[Source]
    uses: Sequence[Source] = ()
    run: Run


REGISTERED: list[Check] = []
"""Every check that a module has added."""


def check(
    name: str, severity: Severity, finds: str, remedy: str, *, needs: Sequence[Source] = (), uses: Sequence[Source] = ()
) -> Callable[[Run], Run]:
    """Register the decorated function as a check."""

    def add(run: Run) -> Run:
        made = Check(id=name, severity=severity, finds=finds, remedy=remedy, needs=needs, uses=uses, run=run)
        REGISTERED.append(made)
        return run

    return add


def about(group: PodGroup, message: str, remedy: str = "", *, severity: Severity | None = None) -> Found:
    """A finding about all pods of a group, or about a template."""
    return Found(group.subject, message, remedy, severity, pods=group.count, template=group.template)


class Finding(msgspec.Struct, rename="camel", kw_only=True):
    """One line of the result: all pods of an owner are one finding."""

    check: str
    severity: Severity
    kind: str
    namespace: str
    name: str
    message: str
    remedy: str
    pods: int
    template: bool
    """True if the template has the fault, too. Then it persists when pods are replaced."""

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
    """The whole result. ``checks`` is the number of checks that ran."""

    at: str
    server: str
    checks: int
    errors: int = 0
    warnings: int = 0
    findings: list[Finding] = []
    """Errors first; then in the order of the catalogue, and by object."""
    not_checked: list[NotChecked] = []

    def __post_init__(self) -> None:
        self.errors = sum(one.severity is Severity.ERROR for one in self.findings)
        self.warnings = len(self.findings) - self.errors

    @property
    def is_mostly_unchecked(self) -> bool:
        """True if fewer checks ran than did not: then no finding means little."""
        left_out = {name for one in self.not_checked if not one.partly for name in one.checks}
        return len(left_out) > self.checks
