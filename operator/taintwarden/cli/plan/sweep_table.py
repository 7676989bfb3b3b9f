"""A sweep as text: one row for each value at which something changes, with a bar."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from taintwarden.cli.output import printable
from taintwarden.cli.rendering import Lines, render
from taintwarden.controller.wording import pods, several
from taintwarden.rehearsal.sweep import Step, Sweep

BAR_WIDTH = 30
NAMED = 2
"""The number of workloads that are named for each value."""


def table(found: Sweep) -> str:
    """The whole sweep as text."""
    return render(*_parts(found))


def _parts(found: Sweep) -> Iterator[RenderableType]:
    lines = Lines()
    lines.add("As of", found.at)
    lines.add("Sweep", f"{found.key}:{found.effect} on {several(found.nodes, 'node')} with {pods(found.pods)}", "bold")
    would = f"; {', '.join(found.would)} does not enforce" if found.would else ""
    lines.add("Policy", ", ".join(found.policies) + would)
    for note in found.notes:
        lines.add("Note", note, "yellow")
    yield lines.grid
    if not found.policies:
        return
    yield Text("")
    most = max(one.leaving for one in found.steps)
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", collapse_padding=True)
    shown.add_column("VALUE", justify="right", no_wrap=True)
    shown.add_column("LEAVE", justify="right", no_wrap=True)
    shown.add_column("", no_wrap=True)
    shown.add_column("BECAUSE OF THIS VALUE", overflow="fold")
    before: dict[str, int] = {}
    for step in found.steps:
        style = "bold red" if step.trips else "yellow" if step.leaving else "green"
        bar = "█" * (round(step.leaving / most * BAR_WIDTH) or int(step.leaving > 0)) if most else ""
        leave = Text(str(step.leaving), style=style)
        shown.add_row(printable(step.value), leave, Text(bar, style=style), _why(step, before))
        before = step.workloads
    yield shown


def _why(step: Step, before: dict[str, int]) -> str:
    """The workloads whose pods leave in addition, and the guards that trip."""
    added = {name: number - before.get(name, 0) for name, number in step.workloads.items()}
    gained = sorted(((number, name) for name, number in added.items() if number > 0), key=lambda one: (-one[0], one[1]))
    told = [f"{number} of {name}" for number, name in gained[:NAMED]]
    if len(gained) > NAMED:
        told.append(f"{len(gained) - NAMED} more workloads")
    if step.more < 0:
        told.append(f"{-step.more} fewer")
    if step.trips:
        told.append(f"the guard of {', '.join(step.trips)} trips")
    return printable("; ".join(told)) or "-"
