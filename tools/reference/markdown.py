"""Markdown as these pages use it."""

from collections.abc import Iterable, Sequence


def code(text: str) -> str:
    """A code span."""
    return f"`{text}`"


def plain(text: str) -> str:
    """Prose in one line that Markdown shows as it is written."""
    for sign in "\\`*_|<":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())


def block(text: str, language: str = "text") -> str:
    """A fenced block."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table. Cells are Markdown already."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
