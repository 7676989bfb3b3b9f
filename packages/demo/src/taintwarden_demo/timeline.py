"""The output of a run: plain lines without a terminal, see `screen` for terminals."""

from typing import Protocol

from rich.text import Text

from taintwarden_cli.output import write
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
    """The protocol of an output of a run."""

    def __enter__(self) -> "Show":
        """Begin."""

    def __exit__(self, *_: object) -> None:
        """End."""

    def say(self, text: str) -> None:
        """Show a line outside the scenario: what the demo waits for."""

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
        """Show nothing, but drain the lines, which would accumulate."""
        observer.drain()


class Timeline(Nothing):
    """One line an occurrence, with the seconds since the start."""

    def say(self, text: str) -> None:
        """Print it unchanged."""
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
