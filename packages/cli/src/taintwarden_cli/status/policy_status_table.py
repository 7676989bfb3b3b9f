"""The status of policies as text: one line each, and a block for each with details or problems.

Times are ages and countdowns, which need no clock to compare with.
"""

import re
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from taintwarden.controller.words.wording import next_one, pods, several, waiting, why_held, zone_health
from taintwarden.engine.limits.refusal import BUDGET, DELAYS, GUARD
from taintwarden.engine.policy import Mode
from taintwarden.engine.reported_status import MAX_BLOCKED_BUDGETS, MAX_ZONES
from taintwarden_cli.output import printable
from taintwarden_cli.rehearsal.liveness import SILENT_SECONDS
from taintwarden_cli.rehearsal.staying import StayingGroup
from taintwarden_cli.relative_times import Times
from taintwarden_cli.rendering import Lines, rows
from taintwarden_cli.status.findings import describe_missed
from taintwarden_cli.status.policy_status import ARMED, TRIPPED, UNHEALTHY, PolicySummary, StatusSummary
from taintwarden_cli.status.problems import Problem, ProblemKind

_GUARDS = {TRIPPED: "bold red", UNHEALTHY: "bold red", ARMED: "green"}
_ZONES = {"Normal": "green", "Degraded": "yellow", "Full": "bold red"}
SHOWN_NODES = 10
"""Maximum number of removals of nodes listed."""
_MORE = "there may be others: a status lists {}"
_NAME = re.compile(r"[a-z0-9./-]+")
LATE_SECONDS = 30.0
"""Seconds after which a report is late. The operator reports every 20 s."""


def parts(found: StatusSummary, *, details: bool) -> Iterator[RenderableType]:
    """The operator's problems and the age of its report, the table of policies, and a block for each policy."""
    age = Times(found.at).age(found.reported_at) if found.reported_at else 0.0
    times = Times(found.at, is_stale=bool(found.problems) or age > LATE_SECONDS)
    lines = Lines()
    for problem in found.problems:
        _add_problem(lines, problem, times)
    above = [*([lines.grid] if found.problems else []), *_ages(found, times, age)]
    yield from [*above, Text("")] if above else []
    if not found.policies:
        yield Text("There is no TaintEvictionPolicy.")
        return
    yield rows(_HEADER, map(_row, found.policies))
    for policy in found.policies:
        lines = _details(policy, times) if details else _head(policy, times)
        if details or lines.grid.row_count:
            yield Text("")
            yield Text(printable(policy.name), style="bold")
            yield Padding(lines.grid, (0, 0, 0, 2))


def _ages(found: StatusSummary, times: Times, age: float) -> Iterator[RenderableType]:
    """The age of the data, the time since which evictions are counted, and what was not read."""
    if found.reported_at:
        lead = found.leading_since
        since = f" EVICTED counts since it began to lead, {times.ago(lead)}." if lead else ""
        then = ": what follows is as of then." if age > LATE_SECONDS else f".{since}"
        text = f"The operator reported {times.ago(found.reported_at)}{then}"
        yield Text(text, style="yellow" if age > LATE_SECONDS else "dim")
    if found.inspected_at and times.age(found.inspected_at) >= 1:
        yield Text(f"Nodes, pods and budgets are as of {times.ago(found.inspected_at)}.", style="dim")
    for why in found.unread:
        yield Text(printable(f"Not checked: {why}"), style="yellow")


def _add_problem(lines: Lines, problem: Problem, times: Times) -> None:
    lines.add("Problem", times.rewrite(problem.cause), "bold red")
    lines.add("Effect", times.rewrite(problem.effect))
    lines.add("Do this", problem.remedy, "cyan")


_HEADER = ("POLICY", "MODE", "PENDING", "BLOCKED", "EVICTED", "LEAVING", "STAYING", "GUARD", "LIMIT")


def _row(policy: PolicySummary) -> Sequence[str | Text]:
    status = policy.status
    return (
        policy.name,
        Text(printable(policy.mode), style="" if policy.mode == Mode.ENFORCE else "yellow"),
        _number(status.pending),
        _number(status.blocked),
        f"{status.evicted}{f' ({status.past_budgets} past budgets)' if status.past_budgets else ''}",
        Text(str(status.leaving), style="bold red") if status.stuck else _number(status.leaving),
        "-" if policy.staying is None and not policy.stays else str(sum(group.pods for group in policy.stays)),
        Text(policy.guard or "-", style=_GUARDS.get(policy.guard or "", "")),
        status.limited_by or "-",
    )


def _number(number: int) -> Text:
    return Text(str(number), style="yellow" if number else "")


def _head(policy: PolicySummary, times: Times, *, details: bool = False) -> Lines:
    lines = Lines()
    for problem in policy.problems:
        _add_problem(lines, problem, times)
    observed = policy.status.observed_at
    if observed and not times.is_stale and times.age(observed) > SILENT_SECONDS:
        lines.add("As of", f"{times.ago(observed)}: the operator has not written this status since", "yellow")
    lines.add("Paused", policy.paused_by and times.rewrite(f"by {policy.paused_by}"), "yellow")
    if not policy.has_problem(ProblemKind.NOT_OBSERVED):
        lines.add("Now", policy.waits_for_operator or (_now(policy, times) if policy.is_paused else ""), "yellow")
    several_fail = sum(bool(removal.missed or removal.cut) for removal in policy.removals) > 1
    to_leave = "still to leave" if policy.mode == Mode.ENFORCE else "that would have to leave"
    for removal in policy.removals[:SHOWN_NODES]:
        there = f"{removal.node} {times.rewrite(f'at {removal.at}')}: {pods(removal.pods)} {to_leave}"
        fail = f", {removal.missed} not evicted by then, the grace of {removal.cut} cut" if several_fail else ""
        lines.add("Removed", there + fail, "yellow")
    if (more := len(policy.removals) - SHOWN_NODES) > 0:
        lines.add("Removed", f"{several(more, 'more node')}: -o json has them", "yellow")
    missed = "" if policy.missed.recent else describe_missed(policy.missed)
    lines.add("Missed", missed, "yellow")
    for text in _staying(policy.stays, details=details):
        lines.add("Staying", text)
    return lines


def _staying(found: Sequence[StayingGroup], *, details: bool) -> Iterator[str]:
    """Pods that stay on tainted nodes: in one line, or one for each reason, with names."""
    if found and not details:
        counted = ", ".join(f"{group.reason} {group.pods}" for group in found)
        yield f"{pods(sum(group.pods for group in found))} on tainted nodes: {counted}"
    for group in found if details else ():
        more = f" and {group.pods - len(group.names)} more" if group.pods > len(group.names) else ""
        names = f" ({', '.join(group.names)}{more})" if group.names else ""
        yield f"{pods(group.pods)} on tainted nodes: {group.reason}{names}"


def _now(policy: PolicySummary, times: Times) -> str:
    """The present activity of the policy and the time of its report, without what other lines say."""
    shown = []
    for part in policy.progress.split("; "):
        if part.startswith("PodDisruptionBudget") or part.partition(" ")[0] in DELAYS:
            break
        if not (policy.has_problem(ProblemKind.STUCK) and "should have ended" in part):
            shown.append(part)
    if policy.has_problem(ProblemKind.BLIND) or not any(shown):
        return ""
    observed = policy.status.observed_at
    return times.rewrite("; ".join(shown)) + (f" (as of {times.ago(observed)})" if observed else "")


def _details(policy: PolicySummary, times: Times) -> Lines:
    lines = _head(policy, times, details=True)
    lines.add("Mode", policy.status.message_if("Enforcing", "False") if policy.mode == Mode.DRY_RUN else None, "yellow")
    lines.add("Now", None if policy.is_paused else _now(policy, times))
    status = policy.status
    evicting = f"{several(status.selected_nodes, 'node')} selected, pods have to leave {status.evicting_nodes} of them"
    lines.add("Nodes", None if status.observed_generation is None else evicting)
    for invalid in policy.invalid[1:]:  # the first is among the problems
        lines.add("Invalid", invalid, "yellow")
    if (more := status.retained - sum(taint.pods for taint in status.invalid_taints)) > 0:
        where = "kubectl get events -n default --field-selector reason=InvalidTaintValue"
        lines.add("Invalid", f"{pods(more)} with other invalid taints: {where}", "yellow")
    if policy.guard is not None and not policy.has_problem(ProblemKind.GUARD, ProblemKind.ZONES):
        is_holding = policy.guard != ARMED
        guard = "; ".join(filter(None, (policy.guard, status.message_if("GuardTripped", "False"))))
        if policy.guard == TRIPPED:
            guard = f"tripped {times.ago(policy.tripped_at)}" if policy.tripped_at else "tripped"
        lines.add("Guard", guard, "bold red" if is_holding else "")
        says = status.condition("GuardTripped")
        lines.add("  says", times.rewrite(says.message) if is_holding and says else None)
    _add_limits(lines, policy, times)
    for place in status.places.nodes if status.places is not None else ():
        lines.add("Place", times.rewrite(f"{place.node} since {place.since}"))
    for zone in status.zones:
        text = f"{zone.zone or '(no zone)'}: {zone_health(zone.nodes, zone.unhealthy_nodes, zone.state)}"
        lines.add("Zone", text, _ZONES.get(zone.state, ""))
    lines.add("Zone", _MORE.format(MAX_ZONES) if len(status.zones) == MAX_ZONES else None)
    for pod in status.next_pods:
        sentence = f"{pod.namespace}/{pod.name} on {pod.node}: {pod.state}, {times.due(pod.deadline)}, {pod.taint}"
        lines.add("Next pod", sentence)
    return lines


def _add_limits(lines: Lines, policy: PolicySummary, times: Times) -> None:
    """Add the limits and budgets that hold pods, except those that are problems."""
    status, causes = policy.status, [problem.cause for problem in policy.problems]
    for limit in status.limits:
        is_of_guard = limit.limit == GUARD and policy.has_problem(ProblemKind.GUARD)
        is_of_budgets = limit.limit == BUDGET and bool(status.blocked_budgets)
        if is_of_guard or is_of_budgets or why_held(limit.limit, limit.message) in causes:
            continue
        until = f"; {next_one(limit.limit, f'at {limit.until}')}" if limit.until else ""
        why = waiting(limit.limit, policy.name, limit.message)
        lines.add("Limit", times.rewrite(f"{pods(limit.pods)} waiting since {limit.since}: {why}{until}"), "yellow")
    since = next((f" since {one.since}" for one in status.limits if one.limit == BUDGET), "")
    for budget in status.blocked_budgets:
        if not any("PodDisruptionBudget" in cause and str(budget) in _NAME.findall(cause) for cause in causes):
            lines.add("Budget", times.rewrite(f"{pods(budget.pods)} waiting for {budget}{since}"), "yellow")
    lines.add(
        "Budget", _MORE.format(MAX_BLOCKED_BUDGETS) if len(status.blocked_budgets) == MAX_BLOCKED_BUDGETS else None
    )
