"""Explains each pod of a workload or node as ``explain pod`` does, and counts those that have to leave."""

import math
from collections.abc import Iterator

import msgspec
from rich.console import RenderableType
from rich.text import Text

from taintwarden.cli.explain.explaining import explain
from taintwarden.cli.explain.explanation import Fate, PodExplanation
from taintwarden.cli.explain.published_taints import PublishedTaint, published
from taintwarden.cli.output import printable
from taintwarden.cli.rendering import Lines, render, rows
from taintwarden.controller import wording
from taintwarden.engine.model import Gates
from taintwarden.rehearsal.rehearsal import Rehearsal, at_once
from taintwarden.rehearsal.snapshot import Snapshot
from taintwarden.rehearsal.surroundings import around

FATES = {
    Fate.STAYS: "stays",
    Fate.LEAVES: "leaves",
    Fate.WOULD_LEAVE: "would leave",
    Fate.PENDING: "pending",
    Fate.NOT_ACTED_ON: "not acted on",
}


class PodsExplanation(msgspec.Struct, rename="camel", kw_only=True):
    """The whole explanation.

    ``taints`` and ``published`` are those of the node; empty for a workload, whose nodes may be many.
    """

    at: str
    subject: str
    problem: str | None
    leaving: int
    would_leave: int
    taints: list[str]
    published: list[PublishedTaint]
    """The taints of the node that a publisher wrote, by its record."""
    pods: list[PodExplanation]
    """The earliest deadline first; then pods without a deadline, by name."""

    @property
    def resource_names(self) -> list[str]:
        """The pods that have to leave."""
        return [f"pod/{one.pod.name}" for one in self.pods if one.fate is Fate.LEAVES]


def explain_pods(snapshot: Snapshot, subject: str, gates: Gates) -> PodsExplanation:
    """Explain each pod of a snapshot.

    Raises:
        BadInput: the input is not sufficient.

    """
    found = sorted((explain(around(snapshot, pod), gates) for pod in snapshot.pods), key=_rank)
    fates, is_node = [one.fate for one in found], subject.startswith("Node")
    return PodsExplanation(
        at=wording.at(snapshot.now),
        subject=subject,
        problem=snapshot.operator_problem or None,
        leaving=fates.count(Fate.LEAVES),
        would_leave=fates.count(Fate.WOULD_LEAVE),
        taints=list(_carried(snapshot, gates)) if is_node else [],
        published=[one for node in snapshot.nodes for one in published(node)] if is_node else [],
        pods=found,
    )


def _carried(snapshot: Snapshot, gates: Gates) -> Iterator[str]:
    """The taints of the node, those that policies derive included."""
    rehearsal = Rehearsal(msgspec.structs.replace(snapshot, pods=()), gates, at_once(snapshot.now))
    rehearsal.teach()
    for name in rehearsal.view.nodes:
        node = rehearsal.view.node(name)
        for taint, _ in node.taints if node is not None else ():
            yield f"{taint} (from {taint.source})" if taint.source else str(taint)


def _rank(one: PodExplanation) -> tuple[float, str, str]:
    left = math.inf if one.seconds_left is None else one.seconds_left
    return left, one.pod.namespace, one.pod.name


def table(answer: PodsExplanation) -> str:
    """The whole explanation as text."""
    return render(*_parts(answer))


def _parts(answer: PodsExplanation) -> Iterator[RenderableType]:
    lines = Lines()
    lines.add("Problem", answer.problem, "bold red")
    lines.add("Explains", answer.subject, "bold")
    lines.add("As of", answer.at)
    lines.add("Taints", ", ".join(answer.taints))
    for one in answer.published:
        lines.add("Published", one.told(answer.at))
    lines.add("Leaving", f"{answer.leaving} of {wording.pods(len(answer.pods))}", "bold red" if answer.leaving else "")
    lines.add("Pending", _pending(answer), "yellow")
    lines.add("Would", f"{wording.pods(answer.would_leave)} would leave" if answer.would_leave else None, "yellow")
    for why in dict.fromkeys(one.reason for one in answer.pods if one.deadline):
        lines.add("Because", why)
    yield lines.grid
    if answer.pods:
        yield Text("")
        yield rows(("POD", "NODE", "FATE", "WHEN", "POLICY", "WAITING"), map(_row, answer.pods))


def _pending(answer: PodsExplanation) -> str:
    pending = [one for one in answer.pods if one.fate is Fate.PENDING]
    told = dict.fromkeys(one.scheduler or one.reason for one in pending)
    return f"{wording.pods(len(pending))}: {'; '.join(told)}" if pending else ""


def _row(one: PodExplanation) -> tuple[str, ...]:
    when = "" if one.deadline is None else wording.due(one.deadline, one.seconds_left or 0)
    name = f"{one.pod.namespace}/{one.pod.name}"
    shown = (name, one.pod.node, FATES[one.fate], when, one.policy, one.waits_for)
    return tuple(printable(text or "-") for text in shown)
