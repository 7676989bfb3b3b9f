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

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow"}
_INDENT = (0, 0, 0, 2)
_SHOWN_REASONS = 5


def parts(found: Diagnosis, checks: Sequence[Check], most: int | None) -> Iterator[RenderableType]:
    """The whole result as text, with at most ``most`` objects for each check."""
    finds = {check.id: check.finds for check in checks}
    for (severity, name), group in groupby(found.findings, key=lambda one: (one.severity, one.check)):
        findings = list(group)
        yield Text.assemble((severity, _STYLES[severity]), f" {name}: ", (_count(findings), "bold"))
        yield Padding(Text(finds[name], style="dim"), _INDENT)
        for remedy in dict.fromkeys(one.remedy for one in findings):
            alike = [one for one in findings if one.remedy == remedy]
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


def _count(findings: Sequence[Finding]) -> str:
    objects = len({one.subject for one in findings})
    pods = sum(one.pods for one in findings)
    counted = wording.several(objects, "object")
    return f"{counted}, {wording.pods(pods)}" if pods else counted


def _grid(width: int) -> Table:
    """A table of two columns, the first folded at ``width`` characters."""
    shown = Table.grid(padding=(0, 2, 0, 0))
    shown.add_column(overflow="fold", max_width=width)
    shown.add_column(overflow="fold")
    return shown


def _rows(findings: Sequence[Finding]) -> Table:
    shown = _grid(38)
    for one in findings:
        shown.add_row(Text(printable(str(one.subject))), Text(f"{printable(one.message)}{_where(one)}"))
    return shown


def _where(finding: Finding) -> str:
    parts = [wording.pods(finding.pods)] if finding.pods else []
    parts += ["template"] if finding.template else []
    return f" ({' and '.join(parts)})" if parts else ""


def _not_checked(found: Diagnosis) -> Table:
    shown = _grid(44)
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
    checks = wording.several(found.checks, "check") + (f", {len(unchecked)} not made" if unchecked else "")
    return f"{wording.several(found.errors, 'error')}, {wording.several(found.warnings, 'warning')}; {checks}"
