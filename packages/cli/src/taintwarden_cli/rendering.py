"""Output for people: tables and labelled lines, in the width of the terminal."""

from collections.abc import Iterable, Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from taintwarden_cli.output import printable

PIPE_WIDTH = 1_000
"""Columns in a file or pipe: so many that lines are not folded, and names stay in one piece."""
SHORT = 24
"""Maximum width of a first column that is never folded."""


def render(*parts: RenderableType) -> str:
    """``parts`` as text: in colour and in the width of a terminal, or plain and not folded in a file or pipe."""
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


class Lines:
    """Rows of a label and a text that is folded."""

    def __init__(self) -> None:
        self.grid = Table.grid(padding=(0, 2))
        self.grid.add_column(min_width=10, no_wrap=True)
        self.grid.add_column(overflow="fold")

    def add(self, label: str, text: str | None, style: str = "") -> None:
        """Add a row, unless ``text`` is empty."""
        if text:
            self.grid.add_row(Text(label, style="dim"), Text(printable(text), style=style))


def rows(header: Sequence[str], listed: Iterable[Sequence[str | Text]]) -> RenderableType:
    """A plain table. Columns that do not fit are folded, except a first one of at most ``SHORT`` characters."""
    cells = [[Text(printable(cell)) if isinstance(cell, str) else cell for cell in one] for one in listed]
    is_short = all(cell[0].cell_len <= SHORT for cell in cells)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", collapse_padding=True)
    for name in header:
        table.add_column(name, overflow="fold", no_wrap=is_short and name == header[0])
    for cell in cells:
        table.add_row(*cell)
    return table
