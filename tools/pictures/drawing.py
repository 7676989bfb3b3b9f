"""A picture of a terminal as SVG without scripts and without fonts from other servers."""

import io
import re

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from pictures.terminal import WIDTH

_FOREIGN_FONT = re.compile(r"@font-face \{.*?\}", re.DOTALL)
_FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"


def draw(title: str, command: str, screen: str) -> str:
    """Return the terminal after ``command``, with the colours in the escape sequences of ``screen``."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), highlight=False, markup=False)
    console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
    for line in screen.splitlines():
        console.print(Text.from_ansi(line), no_wrap=True, overflow="crop")
    svg = console.export_svg(title=title, theme=MONOKAI, unique_id=title)
    svg = _FOREIGN_FONT.sub("", svg).replace("Fira Code, monospace", _FONT)
    return "\n".join(line.rstrip() for line in svg.splitlines() if line.strip()) + "\n"
