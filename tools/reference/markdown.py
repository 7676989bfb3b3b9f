"""Markdown elements of the pages."""

from collections.abc import Iterable, Sequence


def code(text: str) -> str:
    """Return a code span."""
    return f"`{text}`"


def plain(text: str) -> str:
    """Return text in one line that Markdown shows unchanged."""
    for sign in "\\`*_|<":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


def block(text: str, language: str = "text") -> str:
    """Return a fenced block."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table. Cells are Markdown already."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
