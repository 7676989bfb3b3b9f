"""Output for people: text in the width of the terminal, tables, labelled lines, and progress."""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from taintwarden_cli.output import is_wide, printable

PIPE_WIDTH = 1_000
"""Columns in a file or pipe: so wide that lines are not folded, and a name stays in one piece."""
SHORT = 24
"""The width of a first column that is never folded."""


def render(*parts: RenderableType) -> str:
    """``parts`` as text: on a terminal in its width and in colour; in a file or pipe plain and not folded."""
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=False)
    if not console.is_terminal or is_wide():
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


GAP = 2


class Column(msgspec.Struct):
    """The cells of one column. ``folds_at``: the width to which it may be folded; None if it is not folded."""

    cells: Sequence[Text]
    folds_at: int | None = None
    is_number: bool = False

    def width(self, name: str) -> int:
        """The least width in which all of it is shown."""
        whole = max(len(name), *(one.cell_len for one in self.cells))
        return whole if self.folds_at is None else min(whole, self.folds_at)


class Columns:
    """A table without lines.

    Args:
        columns: each by its name, in order.
        dispensable: the names of those that are left out where it does not fit, the first first.

    """

    def __init__(self, columns: Mapping[str, Column], dispensable: Collection[str]) -> None:
        self._columns = columns
        self._dispensable = dispensable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Draw it in the width that there is."""
        left_out = self._left_out(options.max_width)
        shown = {name: one for name, one in self._columns.items() if name not in left_out}
        yield _table(shown)
        if left_out:
            names = ", ".join(name for name in self._columns if name in left_out)
            yield Text(f"not shown for lack of width, see -o wide: {names}", style="dim")

    def _left_out(self, width: int) -> set[str]:
        left_out: set[str] = set()
        widths = {name: one.width(name) + GAP for name, one in self._columns.items()}
        for name in self._dispensable:
            if sum(widths.values()) - GAP <= width:
                break
            left_out.add(name)
            del widths[name]
        return left_out


def _table(columns: Mapping[str, Column]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim", collapse_padding=True)
    for name, one in columns.items():
        folds = one.folds_at is not None
        table.add_column(
            name,
            justify="right" if one.is_number else "left",
            no_wrap=not folds,
            overflow="fold",
            min_width=one.width(name),
        )
    for row in zip(*(one.cells for one in columns.values()), strict=True):
        table.add_row(*row)
    return table


class Progress:
    """Shows progress on standard error, if it is a terminal."""

    def __init__(self) -> None:
        console = Console(stderr=True, markup=False, emoji=False, highlight=False)
        self._status = console.status("", spinner="line") if console.is_terminal else None
        self._told_at = 0.0

    def __enter__(self) -> "Progress":
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def say(self, text: str) -> None:
        """Show a text, unless another one has just been shown."""
        now = time.monotonic()
        if self._status is not None and now - self._told_at > 0.1:
            self._told_at = now
            self._status.update(text)
