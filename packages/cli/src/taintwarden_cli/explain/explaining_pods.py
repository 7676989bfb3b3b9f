"""Explains the pods of a workload or node."""

import math
from collections import Counter
from collections.abc import Iterator

import msgspec
from rich.console import RenderableType
from rich.text import Text

from taintwarden.controller.words import wording
from taintwarden.engine import rfc3339
from taintwarden.engine.model import Gates, Taint
from taintwarden_cli.explain.explaining import NOT_SELECTED, NOTHING_EVICTS, explain
from taintwarden_cli.explain.explanation import Fate, PodExplanation, TaintExplanation
from taintwarden_cli.output import printable
from taintwarden_cli.rehearsal.rehearsal import Rehearsal, at_once
from taintwarden_cli.rehearsal.snapshot import Snapshot
from taintwarden_cli.rehearsal.surroundings import around
from taintwarden_cli.relative_times import Times
from taintwarden_cli.rendering import Lines, render, rows

FATES = {
    Fate.STAYS: "stays",
    Fate.LEAVES: "leaves",
    Fate.WOULD_LEAVE: "would leave",
    Fate.PENDING: "pending",
    Fate.NOT_ACTED_ON: "not acted on",
}

REASONS = 5
"""How many reasons to stay are listed."""


class PodsExplanation(msgspec.Struct, rename="camel", kw_only=True):
    """The whole explanation.

    ``taints`` are those of the node; empty for a workload, whose nodes may be many.
    """

    at: str
    subject: str
    problem: str | None
    leaving: int
    would_leave: int
    taints: list[str]
    pods: list[PodExplanation]
    """The earliest deadline first; then pods without a deadline, by name."""


def explain_pods(snapshot: Snapshot, subject: str, gates: Gates) -> PodsExplanation:
    """Explain each pod of a snapshot.

    Raises:
        BadInput: the input is not sufficient.

    """
    found = sorted((explain(around(snapshot, pod), gates) for pod in snapshot.pods), key=_rank)
    fates, is_node = [one.fate for one in found], subject.startswith("Node")
    return PodsExplanation(
        at=rfc3339.at(snapshot.now),
        subject=subject,
        problem=snapshot.operator_problem or None,
        leaving=fates.count(Fate.LEAVES),
        would_leave=fates.count(Fate.WOULD_LEAVE),
        taints=list(_carried(snapshot, gates)) if is_node else [],
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
    lines.add("Leaving", f"{answer.leaving} of {wording.pods(len(answer.pods))}", "bold red" if answer.leaving else "")
    for end in dict.fromkeys(one.node_end for one in answer.pods if one.node_end):
        lines.add("Reclaim", Times(answer.at).within(end), "yellow")
    lines.add("Pending", _pending(answer), "yellow")
    lines.add("Would", f"{wording.pods(answer.would_leave)} would leave" if answer.would_leave else None, "yellow")
    for why in dict.fromkeys(one.reason for one in answer.pods if one.deadline):
        lines.add("Because", why)
    for label, fate in (("Staying", Fate.STAYS), ("No action", Fate.NOT_ACTED_ON)):
        for why in _reasons(answer, fate):
            lines.add(label, why)
    yield lines.grid
    if answer.pods:
        yield Text("")
        yield rows(("POD", "NODE", "FATE", "WHEN", "POLICY", "WAITING"), map(_row, answer.pods))


def _pending(answer: PodsExplanation) -> str:
    pending = [one for one in answer.pods if one.fate is Fate.PENDING]
    told = dict.fromkeys(one.scheduler or one.reason for one in pending)
    return f"{wording.pods(len(pending))}: {'; '.join(told)}" if pending else ""


def _reasons(answer: PodsExplanation, fate: Fate) -> Iterator[str]:
    """How many pods have this fate for which reasons, the most frequent first."""
    counted = Counter(_why_it_stays(one) for one in answer.pods if one.fate is fate)
    shown = sorted(counted.items(), key=lambda one: (-one[1], one[0]))[:REASONS]
    for why, number in shown:
        yield f"{wording.pods(number)}: {why}"
    if more := len(counted) - len(shown):
        rest = counted.total() - sum(number for _, number in shown)
        yield f"{wording.pods(rest)}: {wording.several(more, 'other reason')}; explain pod tells them"


def _why_it_stays(one: PodExplanation) -> str:
    """What each taint that a policy names means for the pod, as ``explain pod`` says it."""
    if one.reason != NOTHING_EVICTS:
        return one.reason
    told = [why for taint in one.taints for why in _why_it_evicts_none(taint)]
    return "; ".join(told) or ("no policy acts on its taints" if one.taints else "its node has no taints")


def _why_it_evicts_none(taint: TaintExplanation) -> Iterator[str]:
    if taint.verdict != NOT_SELECTED:
        by = next((one.source for one in taint.tolerations if one.holds), "")
        yield f"{taint.reason} of {by}" if by.startswith("profile ") else taint.reason
        return
    for other in taint.other_policies:
        yield f"taint {Taint(taint.key, taint.value, taint.effect)}: not by {other.policy}: {other.reason}"


def _row(one: PodExplanation) -> tuple[str, ...]:
    when = "" if one.deadline is None else wording.due(one.deadline, one.seconds_left or 0)
    name = f"{one.pod.namespace}/{one.pod.name}"
    shown = (name, one.pod.node, FATES[one.fate], when, one.policy, one.waits_for)
    return tuple(printable(text or "-") for text in shown)
