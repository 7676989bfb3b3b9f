"""Medians, ratios, and tables that are readable in a terminal and in Markdown."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

Row = Mapping[str, Any]


def medians(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the median of each field, also in nested mappings. A field that is not a number has its first value."""
    first = rows[0]
    found: dict[str, Any] = {}
    for name, value in first.items():
        values = [row[name] for row in rows if name in row]
        if isinstance(value, Mapping):
            found[name] = medians(values)
        elif isinstance(value, (int, float)):
            found[name] = median(values)
        else:
            found[name] = value
    return found


def ratio(one: float, other: float) -> float | None:
    return one / other if other else None


def shown(value: Any) -> str:
    match value:
        case None:
            return "-"
        case float() if value == 0 or abs(value) >= 100:
            return f"{value:,.0f}"
        case float():
            return f"{value:.3g}"
        case int():
            return f"{value:,}"
        case _:
            return str(value)


def table(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a Markdown table with aligned columns."""
    texts = [list(headings), *([shown(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in texts) for column in range(len(headings))]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join(padded)} |"

    rule = f"|{'|'.join('-' * (width + 1) + ('-' if column == 0 else ':') for column, width in enumerate(widths))}|"
    return "\n".join([line(texts[0]), rule, *map(line, texts[1:])])
