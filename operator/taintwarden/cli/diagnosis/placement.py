"""The labels by which the scheduler is kept off nodes: as the operator would write them now."""

from collections.abc import Iterator

from taintwarden.cli.diagnosis.checks import Check
from taintwarden.cli.diagnosis.finding import Found, Severity
from taintwarden.cli.diagnosis.ground import Look
from taintwarden.cli.diagnosis.sources import Source
from taintwarden.cli.diagnosis.subjects import Subject
from taintwarden.engine.machine.commands import MirrorTaints, NotMirrored
from taintwarden.engine.machine.inventory import NodeState
from taintwarden.engine.machine.mirrors import Mirrors


def _stale(look: Look) -> Iterator[Found]:
    for state, command in _wanted(look):
        if isinstance(command, MirrorTaints):
            yield Found(
                Subject("Node", state.name), f"its labels do not repeat its taints: {_difference(state, command)}"
            )


def _inexpressible(look: Look) -> Iterator[Found]:
    for state, command in _wanted(look):
        if isinstance(command, NotMirrored):
            yield Found(Subject("Node", state.name), f"{command.taint}: {command.reason}")


def _wanted(look: Look) -> Iterator[tuple[NodeState, MirrorTaints | NotMirrored]]:
    """What the operator would write, or tell, if it looked at the nodes now."""
    mirrors = Mirrors()
    for state in look.states.values():
        for command in mirrors.look(state, look.verdicts.select(state)):
            yield state, command


def _difference(state: NodeState, command: MirrorTaints) -> str:
    present = state.node.labels if state.node else {}
    told = []
    for label, value in command.labels.items():
        before = present.get(label)
        if value is None:
            told.append(f"{label}={before} is left over")
        elif before is None:
            told.append(f"{label}={value} is missing")
        elif before != value:
            told.append(f"{label} is {before} and should be {value}")
    return ", ".join(told)


CHECKS = (
    Check(
        id="placement-labels",
        severity=Severity.WARNING,
        finds="nodes whose labels for the scheduler do not say what their taints say (placement)",
        remedy="the operator writes them while it leads: look at its log, and at its right to patch nodes",
        needs=(Source.NODES, Source.POLICIES),
        run=_stale,
    ),
    Check(
        id="placement-inexpressible",
        severity=Severity.WARNING,
        finds="taints with placement whose values labels cannot express: such nodes are left out",
        remedy="use values that the scheduler can compare: integers, or versions of ordinary length",
        needs=(Source.NODES, Source.POLICIES),
        run=_inexpressible,
    ),
)
