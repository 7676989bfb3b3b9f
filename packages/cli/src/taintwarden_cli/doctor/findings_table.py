"""The findings as text: a block for each check and severity, errors first."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from taintwarden.controller.words import wording
from taintwarden_cli.doctor.check import Check, Diagnosis, ReportedFinding, Severity
from taintwarden_cli.output import listed, printable

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow"}
_INDENT = (0, 0, 0, 2)
_SHOWN_CHECKS = 5


def parts(found: Diagnosis, checks: Sequence[Check], most: int | None) -> Iterator[RenderableType]:
    """The whole result as text, with at most ``most`` findings for each remedy of a check."""
    finds = {check.id: check.finds for check in checks}
    for (severity, name), group in groupby(found.findings, key=lambda finding: (finding.severity, finding.check)):
        findings = list(group)
        yield Text.assemble((severity, _STYLES[severity]), f" {name}: ", (_count(findings), "bold"))
        yield Padding(Text(finds[name], style="dim"), _INDENT)
        for remedy in dict.fromkeys(finding.remedy for finding in findings):
            alike = [finding for finding in findings if finding.remedy == remedy]
            shown = alike if most is None else alike[:most]
            yield Padding(_rows(shown), _INDENT)
            if len(shown) < len(alike):
                yield Padding(Text(f"... and {len(alike) - len(shown)} more: --all shows them", style="dim"), _INDENT)
            line = Table.grid(padding=(0, 1, 0, 0))
            line.add_row(Text("Remedy:", style="green"), Text(printable(remedy)))
            yield Padding(line, _INDENT)
        yield Text("")
    if found.not_checked:
        yield Text("Not checked:", style="yellow")
        yield Padding(_not_checked(found), _INDENT)
        yield Text("")
    yield Text(_summary(found), style="bold")


def _count(findings: Sequence[ReportedFinding]) -> str:
    objects = len({finding.subject for finding in findings})
    pods = sum(finding.pods for finding in findings)
    counted = wording.several(objects, "object")
    return f"{counted}, {wording.pods(pods)}" if pods else counted


def _grid(width: int) -> Table:
    """A table of two columns, the first folded at ``width`` characters; not in a file or pipe, whose lines are long."""
    shown = Table.grid(padding=(0, 2, 0, 0))
    shown.add_column(overflow="fold", max_width=width if Console().is_terminal else None)
    shown.add_column(overflow="fold")
    return shown


def _rows(findings: Sequence[ReportedFinding]) -> Table:
    shown = _grid(38)
    for finding in findings:
        shown.add_row(Text(printable(str(finding.subject))), Text(f"{printable(finding.message)}{_affected(finding)}"))
    return shown


def _affected(finding: ReportedFinding) -> str:
    parts = [wording.pods(finding.pods)] if finding.pods else []
    parts += ["template"] if finding.template else []
    return f" ({' and '.join(parts)})" if parts else ""


def _not_checked(found: Diagnosis) -> Table:
    shown = _grid(44)
    reasons: dict[str, list[str]] = {}
    for skipped in found.not_checked:
        how = "without it: " if skipped.partly else ""
        reasons.setdefault(skipped.reason, []).append(how + listed(skipped.checks, _SHOWN_CHECKS))
    for reason, checks in reasons.items():
        shown.add_row(Text(reason), Text("\n".join(checks), style="dim"))
    return shown


def _summary(found: Diagnosis) -> str:
    unchecked = {name for skipped in found.not_checked if not skipped.partly for name in skipped.checks}
    checks = wording.several(found.checks, "check") + (f", {len(unchecked)} not run" if unchecked else "")
    return f"{wording.several(found.errors, 'error')}, {wording.several(found.warnings, 'warning')}; {checks}"
