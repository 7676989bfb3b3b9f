"""Output of commands: text, or JSON and YAML for scripts, always safe for the terminal or file.

Every command imports this for its options, and rich only when it prints.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    import msgspec
    from click.shell_completion import CompletionItem
    from rich.console import RenderableType
    from rich.text import Text

WIDTH = 100
"""Columns of output that formats its own lines, such as the demo's."""
PIPE_WIDTH = 1_000
"""Columns in a file or pipe: so wide that lines are not folded, and a name stays in one piece."""
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

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - called by shells only

        return [CompletionItem(one) for one in (*self._forms, "jsonpath=") if one.startswith(incomplete)]


SHORT = 24
"""The width of a first column that is never folded."""
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


def write_data(data: "msgspec.Struct", form: str) -> None:
    """Print ``data`` as ``json`` or ``yaml``, ASCII only, fields in their order; or names, or a JSONPath template."""
    import msgspec  # noqa: PLC0415

    if form == "name":
        for name in _names(data):
            write(printable(name))
    elif form.startswith("jsonpath="):
        _write_template(form.removeprefix("jsonpath="), msgspec.to_builtins(data, builtin_types=()))
    elif form == "json":
        text = msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
        write("".join(one if one < "\x7f" else _escaped(one) for one in text))
    else:
        from taintwarden.rehearsal.yaml_documents import dump  # noqa: PLC0415

        write(dump(msgspec.to_builtins(data, builtin_types=()), width=WIDTH).rstrip("\n"))


def _names(data: "msgspec.Struct") -> Sequence[str]:
    names: Sequence[str] | None = getattr(data, "resource_names", None)
    if names is None:
        raise click.UsageError("this command has no names to print: leave out -o name")
    return names


def _write_template(template: str, data: object) -> None:
    """As kubectl: without a line break at the end."""
    from taintwarden.cli import jsonpath  # noqa: PLC0415

    try:
        write(jsonpath.render(template, data), end="")
    except jsonpath.BadTemplateError as error:
        raise click.UsageError(str(error)) from error


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[index : index + 4]}" for index in range(0, len(units), 4))


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


def render(*parts: "RenderableType") -> str:
    """``parts`` as text: on a terminal in its width and in colour; in a file or pipe plain and not folded."""
    from rich.console import Console  # noqa: PLC0415

    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=False)
    if not console.is_terminal or _is_wide():
        console.width = PIPE_WIDTH
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def _is_wide() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().meta.get(_WIDE))


class Lines:
    """Rows of a label and a text, which is folded; an empty text adds no row."""

    def __init__(self) -> None:
        from rich.table import Table  # noqa: PLC0415

        self.grid = Table.grid(padding=(0, 2))
        self.grid.add_column(min_width=10, no_wrap=True)
        self.grid.add_column(overflow="fold")

    def add(self, label: str, text: str | None, style: str = "") -> None:
        """Add one row."""
        if text:
            from rich.text import Text  # noqa: PLC0415

            self.grid.add_row(Text(label, style="dim"), Text(printable(text), style=style))


def rows(header: Sequence[str], listed: "Iterable[Sequence[str | Text]]") -> "RenderableType":
    """A plain table. Where it does not fit, the widest columns are folded; a first column of times is not."""
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    cells = [[Text(printable(cell)) if isinstance(cell, str) else cell for cell in one] for one in listed]
    is_short = all(one[0].cell_len <= SHORT for one in cells)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", collapse_padding=True)
    for name in header:
        table.add_column(name, overflow="fold", no_wrap=is_short and name == header[0])
    for one in cells:
        table.add_row(*one)
    return table
