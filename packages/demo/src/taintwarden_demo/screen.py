"""The live view on a terminal: nodes with values, pods with verdicts, deadlines, and the last lines."""

import time
from collections import deque

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from taintwarden_cli.output import WIDTH
from taintwarden_demo.observer import Observer
from taintwarden_demo.scenario import POLICY, Scenario
from taintwarden_demo.timeline import NoOutput, sentence
from taintwarden_demo.views import PodView

LINES_MAX = 14
LEAVING_MAX = 7
OTHER_ROWS = 7
"""Number of rows for headings, the legend, and the cursor."""
LEGEND = (
    ("green", "●", "o", "stays"),
    ("yellow", "◐", "!", "has a deadline"),
    ("magenta", "■", "#", "blocked by a budget"),
    ("bright_black", "○", "-", "leaving"),
    ("cyan", "◆", "+", "replacement"),
)
"""Colour, shape, shape without Unicode, meaning. Shapes differ for users who cannot distinguish colours."""


class Screen(NoOutput):
    """A view that is redrawn at each refresh. The last state stays visible."""

    def __init__(self, console: Console, scenario: Scenario) -> None:
        console.width = min(console.width, WIDTH)
        self._console = console
        self._story = scenario
        self._lines: deque[Text] = deque(maxlen=LINES_MAX)
        self._live = Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
        has_unicode = "utf" in console.encoding.lower()
        self._shapes = {style: shape if has_unicode else plain for style, shape, plain, _ in LEGEND}

    def __enter__(self) -> "Screen":
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        """Add a line to the last lines."""
        self._lines.extend(Text(line, style="dim", no_wrap=True, overflow="ellipsis") for line in text.splitlines())

    def refresh(self, observer: Observer) -> None:
        """Draw the present state of the cluster."""
        for line in observer.take_lines():
            self._lines.append(sentence(line))
        nodes, leaving = self._nodes(observer), self._leaving(observer)
        height = self._console.height - len(self._story.nodes) - LEAVING_MAX - OTHER_ROWS
        lines = list(self._lines)[-max(height, 3) :]
        self._live.update(Group(self._head(observer), nodes, self._legend(), leaving, *lines), refresh=True)

    def _head(self, observer: Observer) -> Text:
        status = observer.facts.policy_status
        counts = ", ".join(f"{status.get(name, 0)} {name}" for name in ("pending", "blocked", "evicted"))
        return Text.assemble(
            ("Taintwarden demo", "bold"), f"  {observer.seconds:+.1f} s   policy {POLICY} says: {counts}"
        )

    def _nodes(self, observer: Observer) -> Table:
        table = Table(box=None, pad_edge=False, header_style="dim", width=self._console.width)
        for name, options in (("ZONE", {}), ("NODE", {}), ("CAPACITY", {}), ("SLA", {"justify": "right"})):
            table.add_column(name, no_wrap=True, **options)  # type: ignore[arg-type]
        table.add_column("PODS", ratio=1, no_wrap=True)
        for node in self._story.nodes:
            value = observer.values[node.name]
            style = "" if value == node.sla else "bold red" if value < node.sla else "bold yellow"
            here = [pod for pod in observer.pods.values() if pod.node == node.name]
            table.add_row(node.zone, node.name, node.capacity, Text(value, style=style), self._pods(here))
        return table

    def _pods(self, here: list[PodView]) -> Text:
        text = Text()
        for workload in self._story.workloads:
            pods = [pod for pod in here if pod.workload == workload.name]
            if pods:
                text.append(workload.name)
                for pod in sorted(pods, key=style_of):
                    text.append(self._shapes[style_of(pod)], style=style_of(pod))
                text.append("  ")
        return text

    def _legend(self) -> Text:
        text = Text("\n")
        for style, _, _, meaning in LEGEND:
            text.append(f"{self._shapes[style]} ", style=style)
            text.append(f"{meaning}   ", style="dim")
        return text

    def _leaving(self, observer: Observer) -> Table:
        """Return a table of constant height, so that the view does not move."""
        table = Table(box=None, pad_edge=False, header_style="dim", width=self._console.width, padding=(0, 2, 0, 0))
        for name in ("MUST LEAVE", "NODE", "IN"):
            table.add_column(name, no_wrap=True)
        table.add_column("BECAUSE", ratio=1, no_wrap=True, overflow="ellipsis")
        due = [pod for pod in observer.pods.values() if pod.due_at is not None and not pod.leaving]
        due.sort(key=lambda pod: (pod.due_at or 0.0, pod.name))
        for pod in due[:LEAVING_MAX]:
            rest = max((pod.due_at or 0.0) - time.time(), 0.0)
            left = "blocked" if pod.blocked else f"{rest:.0f} s"
            table.add_row(Text(pod.name, style=style_of(pod)), pod.node, left, pod.why.partition(": ")[2])
        for _ in range(LEAVING_MAX - len(due)):
            table.add_row("")
        return table


def style_of(pod: PodView) -> str:
    """Return the colour of a pod's verdict."""
    if pod.leaving:
        return "bright_black"
    if pod.blocked:
        return "magenta"
    if pod.due_at is not None:
        return "yellow"
    return "cyan" if pod.replaces else "green"
