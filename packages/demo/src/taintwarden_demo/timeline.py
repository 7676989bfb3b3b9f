"""How a run is shown: plain lines where nobody watches, see `screen` for terminals."""

from typing import Protocol

from rich.text import Text

from taintwarden.cli.output import write
from taintwarden_demo.observer import Observer
from taintwarden_demo.views import Line

STYLES = {
    "value": "bold",
    "left": "red",
    "replaced": "cyan",
    "EvictionScheduled": "yellow",
    "EvictionCancelled": "green",
    "EvictionBlocked": "magenta",
    "InvalidTaintValue": "bold yellow",
}


class Show(Protocol):
    """Whatever shows a run."""

    def __enter__(self) -> "Show":
        """Begin."""

    def __exit__(self, *_: object) -> None:
        """End."""

    def say(self, text: str) -> None:
        """Something outside the story: what is being waited for."""

    def refresh(self, observer: Observer) -> None:
        """Show what is new; called several times a second."""


class Nothing:
    """Shows nothing: for answers that scripts read."""

    def __enter__(self) -> "Nothing":
        return self

    def __exit__(self, *_: object) -> None:
        return

    def say(self, text: str) -> None:
        """Nothing."""

    def refresh(self, observer: Observer) -> None:
        """Nothing, but what is told is not kept for ever."""
        observer.drain()


class Timeline(Nothing):
    """One line an occurrence, with the seconds since the story began."""

    def say(self, text: str) -> None:
        """As it is."""
        write(text)

    def refresh(self, observer: Observer) -> None:
        """Print what is new."""
        for line in observer.drain():
            write(sentence(line).plain)


def sentence(line: Line) -> Text:
    """``+ 7.1 s  a1      2 payments evicted``."""
    subject = f"{line.pods} {line.workload} " if line.workload else ""
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{line.at:+6.1f} s  ", style="dim").append(f"{line.node:<7} ", style="bold")
    return text.append(f"{subject}{line.text}", style=STYLES.get(line.kind, ""))
