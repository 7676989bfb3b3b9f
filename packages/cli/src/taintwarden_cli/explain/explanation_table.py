"""Rendering of an explanation as text: one block for the pod and one for each taint."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from taintwarden.controller.words.wording import due, relative
from taintwarden_cli.explain.explanation import Fate, NodeExplanation, PodExplanation, TaintExplanation
from taintwarden_cli.output import listed, printable
from taintwarden_cli.relative_times import Times
from taintwarden_cli.rendering import Lines, rows

MAX_NAMED = 3
"""Maximum number of nodes, or policies, listed for each reason."""
FATES = {
    Fate.STAYS: ("stays", "bold green"),
    Fate.LEAVES: ("leaves", "bold red"),
    Fate.WOULD_LEAVE: ("would leave", "bold yellow"),
    Fate.PENDING: ("Pending: not bound to a node yet", "bold yellow"),
    Fate.TERMINATES: ("terminates", "bold yellow"),
    Fate.NOT_ACTED_ON: ("no action: the operator never acts on it", "bold green"),
}
_VERDICTS = {
    "Tolerated": ("tolerated", "green"),
    "ToleratedFor": ("tolerated for a time", "yellow"),
    "Violated": ("not tolerated", "red"),
    "Held": ("retained: its value is invalid", "yellow"),
    "NotSelected": ("not selected", "dim"),
}


def parts(answer: PodExplanation) -> Iterator[RenderableType]:
    """The whole explanation as text."""
    yield _head(answer).grid
    if any(node.refusals for node in answer.nodes):
        yield Text("")
        yield rows(("NODES", "REFUSED BECAUSE"), _refusals(answer.nodes))
    for taint in answer.taints:
        yield Text("")
        name = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
        word, style = _VERDICTS[taint.verdict]
        mode = f", policy {taint.policy} is in mode {taint.mode}" if taint.mode not in (None, "Enforce") else ""
        yield Text.assemble("Taint ", (printable(name), "bold"), "  ", (word + mode, style))
        yield Padding(_taint(taint).grid, (0, 0, 0, 2))


def _head(answer: PodExplanation) -> Lines:
    lines, pod = Lines(), answer.pod
    bound = f", bound at {pod.bound_at}" if pod.bound_at else ""
    lines.add("Problem", answer.problem, "bold red")
    lines.add("Pod", f"{pod.namespace}/{pod.name}" + (f" on node {pod.node}{bound}" if pod.node else ""), "bold")
    lines.add("As of", answer.at)
    fate, style = FATES[answer.fate]
    lines.add("Fate", fate + _due(answer.deadline, answer.seconds_left), style)
    lines.add("Because", answer.reason)
    lines.add("Remedy", answer.remedy)
    lines.add("Scheduler", answer.scheduler)
    lines.add("Policy", answer.policy)
    lines.add("Waiting", answer.waits_for)
    lines.add("Reclaim", answer.node_end and Times(answer.at).rewrite(answer.node_end), "yellow")
    for claim in answer.claims:
        due = _due(claim.deadline, claim.seconds_left)
        lines.add("Also by", f"policy {claim.policy} ({claim.mode}){due}; waiting: {claim.waits_for}")
    for budget in answer.budgets:
        is_reported = budget.reason in (answer.waits_for or "")
        sentence = "" if is_reported else f"PodDisruptionBudget {budget.name}: {budget.reason}"
        lines.add("Budget", sentence, "" if budget.allows else "yellow")
    lines.add("Budget", answer.budgets_problem and f"not known: {answer.budgets_problem}", "yellow")
    for fault in answer.invalid_tolerations:
        lines.add("Invalid", f"counts as absent: {fault}", "yellow")
    for fault in answer.ignored_values:
        lines.add("Ignored", fault, "yellow")
    for policy in answer.policies:
        if policy.mode is None:
            lines.add("Invalid", policy.reason, "yellow")
    for profile in answer.profiles:
        if profile.selects is None:
            lines.add("Invalid", profile.reason, "yellow")
        elif profile.selects:
            lines.add("Profile", profile.name)
    for note in answer.notes:
        lines.add("Note", note, "yellow")
    if answer.fate not in (Fate.TERMINATES, Fate.NOT_ACTED_ON, Fate.PENDING) and not answer.taints:
        lines.add("Taints", "the node has none")
    return lines


def _refusals(nodes: Sequence[NodeExplanation]) -> Iterator[tuple[str, str]]:
    """Yield the nodes of each reason and the reason, the most frequent first."""
    by_reason: dict[tuple[str, ...], list[str]] = {}
    for node in nodes:
        if node.refusals:
            by_reason.setdefault(tuple(node.refusals), []).append(node.name)
    for reasons, names in sorted(by_reason.items(), key=lambda one: -len(one[1])):
        yield printable(listed(names, MAX_NAMED)), printable("; ".join(reasons))


def _taint(taint: TaintExplanation) -> Lines:
    lines = Lines()
    lines.add("read from", taint.source)
    lines.add("device", taint.device)
    lines.add("added by", taint.rule and f"DeviceTaintRule {taint.rule}")
    if taint.verdict in ("Held", "NotSelected"):  # the lines below explain other verdicts
        lines.add("why", taint.reason)
    lines.add("policy", taint.policy and f"{taint.policy} ({taint.mode})")
    for why in dict.fromkeys(other.reason for other in taint.other_policies):
        policies = [other.policy for other in taint.other_policies if other.reason == why]
        lines.add("not by", f"{listed(policies, MAX_NAMED)}: {why}")
    for toleration in taint.tolerations:
        style = "green" if toleration.holds else ""
        lines.add("toleration", f"{toleration.text} ({toleration.source}): {toleration.answer}", style)
    if not taint.tolerations:
        lines.add("toleration", "none with this key")
    lines.add("judged by", taint.judged_value and f"{taint.judged_value}, its last valid value")
    if taint.deadline:
        began = "violated" if taint.verdict == "Violated" else "counts from"
        lines.add(began, f"{taint.since}{'' if taint.clock_recorded else ', not recorded yet'}")
        lines.add("grace", f"{taint.grace_seconds} s")
        lines.add("deadline", f"{taint.deadline}, {relative(taint.seconds_left or 0, 0)}")
    elif taint.policy:
        lines.add("deadline", "never")
    return lines


def _due(at: str | None, seconds_left: int | None) -> str:
    """Return the deadline as a suffix for a line; empty without one."""
    if at is None or seconds_left is None:
        return ""
    when = due(at, seconds_left)
    return f", {when}" if seconds_left < 0 else f" {when}"
