"""The findings as text: a block for each check, errors first; 100 columns wide."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from taintwarden.controller.words import wording
from taintwarden_cli.doctor.check import Check, Diagnosis, Finding, Severity
from taintwarden_cli.output import printable
from taintwarden_cli.rendering import render

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow"}
_INDENT = (0, 0, 0, 2)
_SHOWN_REASONS = 5


def table(found: Diagnosis, checks: Sequence[Check], most: int | None) -> str:
    """The whole result as text, with at most ``most`` objects for each check."""
    return render(*_parts(found, {check.id: check for check in checks}, most))


def _parts(found: Diagnosis, checks: dict[str, Check], most: int | None) -> Iterator[RenderableType]:
    for (severity, name), group in groupby(found.findings, key=lambda one: (one.severity, one.check)):
        findings = list(group)
        yield Text.assemble((severity, _STYLES[severity]), f" {name}: ", (_sum(findings), "bold"))
        yield Padding(Text(checks[name].finds, style="dim"), _INDENT)
        for remedy, alike in _by_remedy(findings):
            shown = alike if most is None else alike[:most]
            yield Padding(_rows(shown), _INDENT)
            if len(shown) < len(alike):
                yield Padding(Text(f"... and {len(alike) - len(shown)} more: --all shows them", style="dim"), _INDENT)
            yield Padding(_remedy(remedy), _INDENT)
        yield Text("")
    if found.not_checked:
        yield Text("Not checked:", style="yellow")
        yield Padding(_not_checked(found), _INDENT)
        yield Text("")
    yield Text(_summary(found), style="bold")


def _sum(findings: Sequence[Finding]) -> str:
    objects = len({one.subject for one in findings})
    pods = sum(one.pods for one in findings)
    counted = f"{objects} object{'' if objects == 1 else 's'}"
    return f"{counted}, {wording.pods(pods)}" if pods else counted


def _by_remedy(findings: Sequence[Finding]) -> list[tuple[str, list[Finding]]]:
    found: dict[str, list[Finding]] = {}
    for one in findings:
        found.setdefault(one.remedy, []).append(one)
    return list(found.items())


def _rows(findings: Sequence[Finding]) -> Table:
    shown = Table.grid(padding=(0, 2, 0, 0))
    shown.add_column(overflow="fold", max_width=38)
    shown.add_column(overflow="fold")
    for one in findings:
        shown.add_row(Text(printable(str(one.subject))), Text(f"{printable(one.message)}{_where(one)}"))
    return shown


def _where(finding: Finding) -> str:
    parts = [wording.pods(finding.pods)] if finding.pods else []
    parts += ["template"] if finding.template else []
    return f" ({' and '.join(parts)})" if parts else ""


def _remedy(text: str) -> Table:
    shown = Table.grid(padding=(0, 1, 0, 0))
    shown.add_row(Text("Remedy:", style="green"), Text(printable(text)))
    return shown


def _not_checked(found: Diagnosis) -> Table:
    shown = Table.grid(padding=(0, 2, 0, 0))
    shown.add_column(overflow="fold", max_width=44)
    shown.add_column(overflow="fold")
    reasons: dict[str, list[str]] = {}
    for one in found.not_checked:
        names = [*one.checks[:_SHOWN_REASONS]]
        more = f" and {len(one.checks) - len(names)} more" if len(one.checks) > len(names) else ""
        how = "without it: " if one.partly else ""
        reasons.setdefault(one.reason, []).append(f"{how}{', '.join(names)}{more}")
    for reason, checks in reasons.items():
        shown.add_row(Text(reason), Text("\n".join(checks), style="dim"))
    return shown


def _summary(found: Diagnosis) -> str:
    unchecked = {name for one in found.not_checked if not one.partly for name in one.checks}
    checks = _count(found.checks, "check") + (f", {len(unchecked)} not made" if unchecked else "")
    return f"{_count(found.errors, 'error')}, {_count(found.warnings, 'warning')}; {checks}"


def _count(number: int, name: str) -> str:
    return f"1 {name}" if number == 1 else f"{number} {name}s"
