"""The option ``-o``, and text that is always safe for the terminal or file.

Every command imports this for its help: JSON and YAML are in :mod:`data_output`, tables in :mod:`rendering`.
"""

import sys
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import click

WIDTH = 100
"""Columns of output that formats its own lines, such as the demo's."""
# Tones of emoji and variation selectors: some terminals draw them over the preceding character, others beside it.
_WIDTH_CHANGES = frozenset(map(chr, [*range(0x1F3FB, 0x1F400), *range(0xFE00, 0xFE10)]))
Command = TypeVar("Command", bound=Callable[..., None])


_FORMS = ("table", "wide", "json", "yaml", "name")
_WIDE = "taintwarden.wide"


class _Form(click.Choice[str]):
    """A table, or data for scripts. ``wide`` is a table as well."""

    name = "form"

    def __init__(self) -> None:
        super().__init__(_FORMS)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        form = super().convert(value, param, ctx)
        if form == "wide":
            click.get_current_context().find_root().meta[_WIDE] = True
        return "table" if form == "wide" else form


def output_option(command: Command) -> Command:
    """Add ``-o`` to a command, as ``output``."""
    told = "Output format: table, wide (a table that is not fitted to the terminal), json, yaml, name."
    return click.option("-o", "--output", type=_Form(), default="table", metavar="FORM", help=told)(command)


def is_wide() -> bool:
    """Whether the command that runs has ``-o wide``."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().meta.get(_WIDE))


def write(text: str, end: str = "\n") -> None:
    """Print lines, with an escape for each character that standard output cannot show."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding) + end, nl=False)


def printable(text: str) -> str:
    """``text`` in one line, without control characters that a terminal would interpret, and of a known width."""
    return "".join(
        one if one.isprintable() and one not in _WIDTH_CHANGES else one.encode("unicode_escape").decode()
        for one in text
    )


def fail(message: str, code: int) -> NoReturn:
    """Print ``message`` to standard error and exit with ``code``."""
    click.echo(f"taintwarden: {message}", err=True)
    sys.exit(code)
