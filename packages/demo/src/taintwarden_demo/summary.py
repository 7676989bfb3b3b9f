"""The summary at the end of the demo: expected beside observed results."""

from collections.abc import Sequence
from shutil import get_terminal_size

import msgspec
from rich.table import Table
from rich.text import Text

from taintwarden_cli.output import WIDTH
from taintwarden_cli.rendering import render
from taintwarden_demo.judge import Check


class Report(msgspec.Struct, frozen=True):
    """The result of the demo."""

    ok: bool
    seconds: float
    checks: tuple[Check, ...]


def report(checks: Sequence[Check], seconds: float) -> Report:
    """Return the result, which is ok if every check is ok."""
    return Report(all(check.ok for check in checks), round(seconds, 1), tuple(checks))


def summary(report: Report) -> str:
    """Return a table of all checks and one sentence as text."""
    table = Table(header_style="bold", width=min(get_terminal_size((WIDTH, 0)).columns, WIDTH), padding=(0, 1))
    table.add_column("", no_wrap=True)
    table.add_column("What had to happen", ratio=6)
    table.add_column("What the cluster shows", ratio=4)
    for check in report.checks:
        mark = Text("ok", style="green") if check.ok else Text("WRONG", style="bold red")
        table.add_row(mark, Text(check.expected), Text(check.happened, style="" if check.ok else "red"))
    wrong = sum(not check.ok for check in report.checks)
    verdict = (
        Text(f"All {len(report.checks)} as expected, in {report.seconds:.0f} s.", style="bold green")
        if report.ok
        else Text(f"{wrong} of {len(report.checks)} not as expected.", style="bold red")
    )
    return render("", table, verdict)
