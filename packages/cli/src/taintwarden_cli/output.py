"""The option ``-o``, and text without characters that a terminal or file cannot show.

Every command imports this for its help, so JSON is in :mod:`data_output` and tables are in :mod:`rendering`.
"""

import sys
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeVar

import click

WIDTH = 100
"""Columns of output that breaks its own lines, such as that of the demo."""
# Tones of emoji and variation selectors: some terminals draw them over the preceding character, others beside it.
_WIDTH_CHANGES = frozenset(map(chr, [*range(0x1F3FB, 0x1F400), *range(0xFE00, 0xFE10)]))
Command = TypeVar("Command", bound=Callable[..., None])


def output_forms(*forms: str) -> Callable[[Command], Command]:
    """Add ``-o`` to a command, as ``output``; the first form is the default."""
    text = f"Output format: {', '.join(forms)}."
    return click.option("-o", "--output", type=click.Choice(forms), default=forms[0], metavar="FORM", help=text)


output_option = output_forms("table", "json")


def write(text: str, end: str = "\n") -> None:
    """Print text, with an escape for each character that standard output cannot show."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding) + end, nl=False)


def printable(text: str) -> str:
    """``text`` on one line, with escapes for control characters and for characters of unknown width."""
    return "".join(
        one if one.isprintable() and one not in _WIDTH_CHANGES else one.encode("unicode_escape").decode()
        for one in text
    )


def listed(names: Sequence[str], most: int) -> str:
    """The first names, and the number of the others."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def fail(message: str, code: int) -> NoReturn:
    """Print ``message`` to standard error and exit with ``code``."""
    click.echo(f"taintwarden: {message}", err=True)
    sys.exit(code)
