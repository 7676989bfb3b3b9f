"""Carries out ``validate``: prints the findings in files, and ends with the code of the worst."""

import sys

import click

from taintwarden.api.types import GROUP, PUBLISHER_KIND
from taintwarden.cli.data_output import write_data
from taintwarden.cli.files.file_checks import FileReport, check_files
from taintwarden.cli.output import printable, write

FINE, FAULTY, UNREADABLE = 0, 1, 2
_PUBLISHERS = f"{GROUP}/{PUBLISHER_KIND}"


def validate(files: tuple[str, ...], named: tuple[str, ...], recursive: bool, output: str) -> None:
    """Carry out the command."""
    if not (files or named):
        raise click.UsageError("name a file or a folder; - is standard input")
    report = check_files((*files, *named), recursive=recursive)
    if output == "table":
        for finding in report.findings:
            write(printable(str(finding)))
        for unreadable in report.unreadable:
            click.echo(f"taintwarden: {printable(unreadable.reason)}", err=True)
        write(_summary(report))
    else:
        write_data(report, output)
    sys.exit(UNREADABLE if report.unreadable else FAULTY if report.errors else FINE)


def _summary(report: FileReport) -> str:
    checked = ", ".join(
        [
            _count(report.policies, "policy", "policies"),
            _count(report.profiles, "profile"),
            _count(report.pods, "pod or pod template", "pods and pod templates"),
            _count(report.nodes, "node"),
        ]
    )
    ignored = ", ".join(f"{kind} {count}" for kind, count in report.ignored.items())
    return "; ".join(
        [
            f"{_count(report.files, 'file')}: {checked} checked",
            *([f"ignored: {printable(ignored)}"] if ignored else []),
            *(["only the API server checks TaintPublishers"] if _PUBLISHERS in report.ignored else []),
            *([f"{_count(len(report.unreadable), 'file')} not readable"] if report.unreadable else []),
            f"{_count(report.errors, 'error')}, {_count(report.warnings, 'warning')}",
        ]
    )


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
