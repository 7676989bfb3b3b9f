"""Output for people: text in the width of the terminal, tables, and labelled lines."""

from collections.abc import Iterable, Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from taintwarden_cli.output import printable

PIPE_WIDTH = 1_000
"""Columns in a file or pipe: so wide that lines are not folded, and a name stays in one piece."""
SHORT = 24
"""The width of a first column that is never folded."""


def render(*parts: RenderableType) -> str:
    """``parts`` as text: on a terminal in its width and in colour; in a file or pipe plain and not folded."""
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
        self.grid = Table.grid(padding=(0, 2))
        self.grid.add_column(min_width=10, no_wrap=True)
        self.grid.add_column(overflow="fold")

    def add(self, label: str, text: str | None, style: str = "") -> None:
        """Add one row."""
        if text:
            self.grid.add_row(Text(label, style="dim"), Text(printable(text), style=style))


def rows(header: Sequence[str], listed: Iterable[Sequence[str | Text]]) -> RenderableType:
    """A plain table. Where it does not fit, the widest columns are folded; a first column of times is not."""
    cells = [[Text(printable(cell)) if isinstance(cell, str) else cell for cell in one] for one in listed]
    is_short = all(one[0].cell_len <= SHORT for one in cells)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", collapse_padding=True)
    for name in header:
        table.add_column(name, overflow="fold", no_wrap=is_short and name == header[0])
    for one in cells:
        table.add_row(*one)
    return table
