"""The output as plain lines, without a terminal and after a run. `screen` contains that of a run on a terminal."""

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


class Output(Protocol):
    """An output of a run."""

    def __enter__(self) -> "Output":
        """Start the output."""

    def __exit__(self, *_: object) -> None:
        """End the output."""

    def say(self, text: str) -> None:
        """Show a line that is not part of the scenario."""

    def refresh(self, observer: Observer) -> None:
        """Show the new lines. Called several times a second."""


class NoOutput:
    """An output that shows nothing, for scripts that read the result."""

    def __enter__(self) -> "NoOutput":
        return self

    def __exit__(self, *_: object) -> None:
        return

    def say(self, text: str) -> None:
        """Show nothing."""

    def refresh(self, observer: Observer) -> None:
        """Drop the new lines, which would accumulate otherwise."""
        observer.take_lines()


class Timeline(NoOutput):
    """An output with one line for each change, with the seconds since the start."""

    def say(self, text: str) -> None:
        """Print a line unchanged."""
        write(text)

    def refresh(self, observer: Observer) -> None:
        """Print the new lines."""
        for line in observer.take_lines():
            write(sentence(line).plain)


def sentence(line: Line) -> Text:
    """Return a line as text: ``  +7.1 s  a1      2 payments evicted``."""
    subject = f"{line.pods} {line.workload} " if line.workload else ""
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{line.at:+6.1f} s  ", style="dim").append(f"{line.node:<7} ", style="bold")
    return text.append(f"{subject}{line.text}", style=STYLES.get(line.kind, ""))
