"""What a check is, and what checks find. ``Diagnosis`` is what ``-o json`` and ``-o yaml`` print."""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum

import msgspec

from taintwarden.cli.diagnosis.context import Context
from taintwarden.cli.diagnosis.inventory import Group
from taintwarden.rehearsal.sources import Source, Subject


class Severity(StrEnum):
    """How much a finding asks of people."""

    ERROR = "error"
    """It does harm, or will with the next change of a taint."""
    WARNING = "warning"
    """It may not be what was meant."""
    INFO = "info"
    """Good to know; nobody has to do anything."""


class Found(msgspec.Struct, frozen=True):
    """What a check says of one object. What is left out is the check's own."""

    subject: Subject
    message: str
    remedy: str = ""
    severity: Severity | None = None
    pods: int = 0
    """How many pods it is about."""
    template: bool = False
    """It is about the template that its next pods are made from."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to look for.

    ``needs`` must have been read for it; without one of ``uses`` it looks at less. ``finds`` and ``remedy`` are what
    people read.
    """

    id: str
    severity: Severity
    finds: str
    remedy: str
    needs: Sequence[Source]
    uses: Sequence[Source] = ()
    run: Callable[[Context], Iterator[Found]]


def about(group: Group, message: str, remedy: str = "", *, severity: Severity | None = None) -> Found:
    """A finding about all pods of a group, or about a template."""
    return Found(group.subject, message, remedy, severity, pods=group.count, template=group.template)


class Finding(msgspec.Struct, rename="camel", kw_only=True):
    """One line of the answer: however many pods an owner has, they are one."""

    check: str
    severity: Severity
    kind: str
    namespace: str
    name: str
    message: str
    remedy: str
    pods: int
    template: bool
    """Whether the template says so, too: then it stays when pods are replaced."""

    @property
    def subject(self) -> Subject:
        """The object."""
        return Subject(self.kind, self.name, self.namespace)


class NotChecked(msgspec.Struct, rename="camel"):
    """Checks that were not made, or without all that they use (``partly``), and why."""

    reason: str
    checks: list[str]
    partly: bool


class Scope(msgspec.Struct, rename="camel"):
    """How much was looked at; None was not read."""

    nodes: int | None = None
    pods: int | None = None
    templates: int | None = None
    policies: int | None = None
    profiles: int | None = None


class Diagnosis(msgspec.Struct, rename="camel", kw_only=True):
    """The whole answer. ``checks``: how many were made."""

    at: str
    server: str
    scope: Scope
    checks: int
    errors: int = 0
    warnings: int = 0
    infos: int = 0
    findings: list[Finding] = []
    """Errors first; then in the order of the catalogue, and by object."""
    not_checked: list[NotChecked] = []

    def narrowed(self, namespace: str) -> "Diagnosis":
        """The same with the findings about objects of one namespace, and about those of no namespace."""
        findings = [one for one in self.findings if one.namespace in ("", namespace)]
        severities = [one.severity for one in findings]
        return msgspec.structs.replace(
            self,
            findings=findings,
            errors=severities.count(Severity.ERROR),
            warnings=severities.count(Severity.WARNING),
            infos=severities.count(Severity.INFO),
        )

    @property
    def needs_a_person(self) -> bool:
        """Whether somebody has to look."""
        return bool(self.errors or self.warnings)
