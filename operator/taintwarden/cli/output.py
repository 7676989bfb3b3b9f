"""Output of commands: text, or JSON and YAML for scripts, always safe for the terminal or file.

Every command imports this for its options, and rich only when it prints.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    import msgspec
    from rich.console import RenderableType

WIDTH = 100
"""Columns of output that formats its own lines, such as the demo's."""
PIPE_WIDTH = 1_000
"""Columns in a file or pipe: so wide that lines are not folded, and a name stays in one piece."""
# Tones of emoji and variation selectors: some terminals draw them over the preceding character, others beside it.
_WIDTH_CHANGES = frozenset(map(chr, [*range(0x1F3FB, 0x1F400), *range(0xFE00, 0xFE10)]))
Command = TypeVar("Command", bound=Callable[..., None])


def output_option(command: Command) -> Command:
    """Add ``-o`` to a command, as ``output``."""
    choice = click.Choice(["table", "json", "yaml"])
    return click.option("-o", "--output", type=choice, default="table", show_default=True, help="Output format.")(
        command
    )


def write_data(data: "msgspec.Struct", form: str) -> None:
    """Print ``data`` as ``json`` or ``yaml``, ASCII only, fields in their order."""
    import msgspec  # noqa: PLC0415
    import yaml  # noqa: PLC0415

    if form == "json":
        text = msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
        write("".join(one if one < "\x7f" else _escaped(one) for one in text))
    else:
        write(yaml.safe_dump(msgspec.to_builtins(data, builtin_types=()), sort_keys=False, width=WIDTH).rstrip("\n"))


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[index : index + 4]}" for index in range(0, len(units), 4))


def write(text: str) -> None:
    """Print lines, with an escape for each character that standard output cannot show."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding))


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
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


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


def rows(header: Sequence[str], listed: Iterable[Sequence[str]]) -> "RenderableType":
    """A plain table, with the last column folded."""
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", collapse_padding=True)
    for name in header:
        table.add_column(name, overflow="fold", no_wrap=name != header[-1])
    for one in listed:
        table.add_row(*map(printable, one))
    return table
