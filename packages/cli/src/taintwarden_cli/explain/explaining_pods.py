"""Explains the pods of a node."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec
from rich.console import RenderableType
from rich.text import Text

from taintwarden.controller.words import wording
from taintwarden.engine import rfc3339
from taintwarden.engine.machine import NodeView
from taintwarden.engine.model import Gates
from taintwarden_cli.explain.explaining import explain_pod
from taintwarden_cli.explain.explanation import Fate, PodExplanation
from taintwarden_cli.explain.explanation_table import FATES
from taintwarden_cli.rehearsal.rehearsal import Rehearsal, rehearse
from taintwarden_cli.rehearsal.snapshot import Snapshot
from taintwarden_cli.rehearsal.staying import NO_POLICY, NO_TAINT, STATIC, StayingGroup
from taintwarden_cli.relative_times import Times
from taintwarden_cli.rendering import Lines, rows

REASONS = 5
"""Maximum number of reasons listed for one fate."""


class PodsExplanation(msgspec.Struct, rename="camel", kw_only=True):
    """The explanation of the pods of a node."""

    at: str
    node: str
    problem: str | None
    drained: bool
    """True if no pod has to leave, and none terminates."""
    leaving: int
    would_leave: int
    finalizers: list[str]
    """Finalizers of pods that terminate."""
    staying: list[StayingGroup]
    """Pods that need not leave, by short reason."""
    taints: list[str]
    """Taints of the node, including those that policies derive."""
    pods: list[PodExplanation]
    """The earliest deadline first; then pods without a deadline, by name."""


def explain_pods(snapshot: Snapshot, name: str, gates: Gates) -> PodsExplanation:
    """Explain each pod of a node. Raises BadInput if the input is not sufficient."""
    rehearsal = rehearse(snapshot, gates)
    found = sorted((explain_pod(snapshot, gates, rehearsal, pod) for pod in snapshot.pods), key=_rank)
    fates, node = [pod.fate for pod in found], rehearsal.view.node(name)
    taints = [taint for taint, _ in node.taints] if node is not None else []
    ending = [pod for pod in snapshot.pods if pod.metadata.deletion_timestamp is not None]
    return PodsExplanation(
        at=rfc3339.at(snapshot.now),
        node=name,
        problem=snapshot.operator_problem or None,
        drained=not ending and Fate.LEAVES not in fates,
        finalizers=sorted({name for pod in ending for name in pod.metadata.finalizers}),
        staying=_staying(found, rehearsal, node) if node is not None else [],
        leaving=fates.count(Fate.LEAVES),
        would_leave=fates.count(Fate.WOULD_LEAVE),
        taints=[f"{taint} (from {taint.source})" if taint.source else str(taint) for taint in taints],
        pods=found,
    )


def _staying(explained: Iterable[PodExplanation], rehearsal: Rehearsal, node: NodeView) -> list[StayingGroup]:
    """Group the pods that need not leave by short reason."""
    pods, found = {one.uid: one for one in rehearsal.view.pods(node.node.name)}, dict[str, list[str]]()
    for one in explained:
        pod = pods.get(one.pod.uid)
        why = STATIC if one.fate is Fate.NOT_ACTED_ON else ""
        if one.fate is Fate.WOULD_LEAVE:
            why = f"policy {one.policy} does not enforce"
        elif one.fate is Fate.STAYS and pod is not None:
            view = rehearsal.view
            reasons = (view.why_staying(node.node.name, pod.shared, policy) for policy in rehearsal.policies)
            why = next(filter(None, reasons), NO_POLICY if node.taints else NO_TAINT)
        if why:
            found.setdefault(why, []).append(f"{one.pod.namespace}/{one.pod.name}")
    return [StayingGroup(why, len(names), names) for why, names in sorted(found.items(), key=lambda one: -len(one[1]))]


def _rank(pod: PodExplanation) -> tuple[float, str, str]:
    left = math.inf if pod.seconds_left is None else pod.seconds_left
    return left, pod.pod.namespace, pod.pod.name


def parts(answer: PodsExplanation) -> Iterator[RenderableType]:
    """The whole explanation as text."""
    lines = Lines()
    lines.add("Problem", answer.problem, "bold red")
    lines.add("Drained", *(("yes", "bold green") if answer.drained else (f"no: {_count_leaving(answer)}", "bold red")))
    counted = ", ".join(f"{group.reason} {group.pods}" for group in answer.staying)
    lines.add("Stays", counted and f"{sum(group.pods for group in answer.staying)} ({counted})")
    lines.add("Node", answer.node, "bold")
    lines.add("As of", answer.at)
    lines.add("Taints", ", ".join(answer.taints))
    for end in dict.fromkeys(pod.node_end for pod in answer.pods if pod.node_end):
        lines.add("Reclaim", Times(answer.at).rewrite(end), "yellow")
    lines.add("Would", f"{wording.pods(answer.would_leave)} would leave" if answer.would_leave else None, "yellow")
    for why in dict.fromkeys(pod.reason for pod in answer.pods if pod.deadline):
        lines.add("Because", why)
    for label, fate in (("Ending", Fate.TERMINATES), ("Staying", Fate.STAYS), ("No action", Fate.NOT_ACTED_ON)):
        for why in _count_reasons(pod.reason for pod in answer.pods if pod.fate is fate):
            lines.add(label, why)
    for why in _count_reasons(pod.waits_for or "" for pod in answer.pods if (pod.seconds_left or 0) <= 0):
        lines.add("Waiting", why)
    for problem in dict.fromkeys(pod.budgets_problem for pod in answer.pods if pod.budgets_problem):
        lines.add("Budget", f"not known: {problem}", "yellow")
    for why in _count_reasons(note for pod in answer.pods for note in pod.notes):
        lines.add("Note", why, "yellow")
    yield lines.grid
    if answer.pods:
        yield Text("")
        yield rows(("POD", "FATE", "WHEN", "POLICY"), map(_row, answer.pods))


def _count_leaving(answer: PodsExplanation) -> str:
    """Count the pods that have to leave, and those that terminate with their finalizers."""
    ending = sum(pod.fate is Fate.TERMINATES for pod in answer.pods)
    kept = f" (finalizer {', '.join(answer.finalizers)})" if answer.finalizers else ""
    leave = f"{wording.pods(answer.leaving)} {'has' if answer.leaving == 1 else 'have'} to leave"
    terminate = f"{wording.leaving(ending, ())}{kept}"
    return ", ".join(text for text, number in ((leave, answer.leaving), (terminate, ending)) if number)


def _count_reasons(reasons: Iterable[str]) -> Iterator[str]:
    """Each reason with its number of pods, the most frequent first."""
    counted = Counter(filter(None, reasons))
    shown = sorted(counted.items(), key=lambda one: (-one[1], one[0]))[:REASONS]
    for why, number in shown:
        yield f"{wording.pods(number)}: {why}"
    if more := len(counted) - len(shown):
        rest = counted.total() - sum(number for _, number in shown)
        yield f"{wording.pods(rest)}: {wording.several(more, 'other reason')}; explain pod shows them"


def _row(pod: PodExplanation) -> tuple[str, ...]:
    when = "" if pod.deadline is None else wording.due(pod.deadline, pod.seconds_left or 0)
    fate = FATES[pod.fate][0].partition(":")[0]
    return f"{pod.pod.namespace}/{pod.pod.name}", fate, when or "-", pod.policy or "-"
