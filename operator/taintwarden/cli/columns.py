"""A table that says what it leaves out where the terminal is too narrow for it."""

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

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
