"""The option ``-o``, and text that is always safe for the terminal or file.

Every command imports this for its help: JSON and YAML are in :mod:`data_output`, tables in :mod:`rendering`.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

WIDTH = 100
"""Columns of output that formats its own lines, such as the demo's."""
# Tones of emoji and variation selectors: some terminals draw them over the preceding character, others beside it.
_WIDTH_CHANGES = frozenset(map(chr, [*range(0x1F3FB, 0x1F400), *range(0xFE00, 0xFE10)]))
Command = TypeVar("Command", bound=Callable[..., None])


class _Form(click.ParamType[str]):
    """``table``, ``wide``, ``json``, ``yaml``, ``name`` or ``jsonpath=TEMPLATE``. ``wide`` is a table as well."""

    name = "form"

    def __init__(self, more: Sequence[str] = ()) -> None:
        self._forms = (*_FORMS, *more)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self._forms and not value.startswith("jsonpath="):
            self.fail(f"{value!r} is not one of {', '.join(self._forms)}, jsonpath=TEMPLATE", param, ctx)
        if value == "wide":
            click.get_current_context().find_root().meta[_WIDE] = True
        return "table" if value == "wide" else str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(one) for one in (*self._forms, "jsonpath=") if one.startswith(incomplete)]


_FORMS = ("table", "wide", "json", "yaml", "name")
_WIDE = "taintwarden.wide"


def output_option(command: Command) -> Command:
    """Add ``-o`` to a command, as ``output``."""
    return output_option_with()(command)


def output_option_with(*more: str) -> Callable[[Command], Command]:
    """Add ``-o`` to a command that has more forms than others."""
    forms = ", ".join(("json", "yaml", *more, "name", "jsonpath=TEMPLATE"))
    told = f"Output format: table, wide (a table that is not fitted to the terminal), {forms}."
    return click.option("-o", "--output", type=_Form(more), default="table", metavar="FORM", help=told)


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
