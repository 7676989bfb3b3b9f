"""The status of policies as text: one line each, and a block for those that are named; 100 columns wide.

Times are ages and countdowns, which need no clock to compare with.
"""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from taintwarden.controller.words.wording import (
    next_one,
    pods,
    several,
    waiting,
    without_advice,
    zone_health,
)
from taintwarden.engine.model import Mode
from taintwarden_cli.output import printable
from taintwarden_cli.relative_times import Times
from taintwarden_cli.rendering import Lines, rows
from taintwarden_cli.status.policy_status import ARMED, TRIPPED, ZONES_FULL, PolicySummary, StatusSummary

_GUARDS = {TRIPPED: "bold red", ZONES_FULL: "bold red", ARMED: "green"}
_ZONES = {"Normal": "green", "Degraded": "yellow", "Full": "bold red"}
LATE_SECONDS = 30.0
"""A report that is older is late: the operator reports every 20 s."""


def parts(found: StatusSummary, *, details: bool) -> Iterator[RenderableType]:
    """The problem of the operator, and how old it is; the table, then a block for each policy if requested."""
    age = Times(found.at).age(found.reported_at) if found.reported_at else 0.0
    times = Times(found.at, is_old=bool(found.problem) or age > LATE_SECONDS)
    if found.problem:
        yield Text(printable(f"{found.problem[0].upper()}{found.problem[1:]}."), style="bold red")
    if found.reported_at:
        sentence = f"The operator reported {times.ago(found.reported_at)}"
        is_late = age > LATE_SECONDS
        yield Text(
            f"{sentence}: what follows is as of then." if is_late else f"{sentence}.",
            style="yellow" if is_late else "dim",
        )
    if found.problem or found.reported_at:
        yield Text("")
    if not found.policies:
        yield Text("There is no TaintEvictionPolicy.")
        return
    yield _overview(found)
    for policy in found.policies if details else [one for one in found.policies if one.problem or one.is_paused]:
        yield Text("")
        yield Text(printable(policy.name), style="bold")
        lines = _details(policy, times) if details else _head(policy, times)
        yield Padding(lines.grid, (0, 0, 0, 2))


def _overview(found: StatusSummary) -> RenderableType:
    header = ("POLICY", "MODE", "PENDING", "BLOCKED", "EVICTED", "LEAVING", "GUARD", "LIMIT")
    return rows(header, map(_row, found.policies))


def _row(policy: PolicySummary) -> Sequence[str | Text]:
    status = policy.status
    return (
        policy.name,
        _mode(policy),
        _number(status.pending),
        _number(status.blocked),
        f"{status.evicted}{f' ({status.past_budgets} past budgets)' if status.past_budgets else ''}",
        Text(str(status.leaving), style="bold red") if status.stuck else _number(status.leaving),
        Text(policy.guard or "-", style=_GUARDS.get(policy.guard or "", "")),
        status.limited_by or "-",
    )


def _mode(policy: PolicySummary) -> Text:
    return Text(printable(policy.mode), style="" if policy.mode == Mode.ENFORCE else "yellow")


def _number(number: int) -> Text:
    return Text(str(number), style="yellow" if number else "")


def _head(policy: PolicySummary, times: Times) -> Lines:
    lines = Lines()
    lines.add("Problem", times.within(policy.problem), "bold red")
    guard = policy.status.guard
    lines.add("Cause", f"when its guard tripped: {guard.cause}" if guard and guard.cause else None)
    lines.add("Paused", policy.paused_by and times.within(f"by {policy.paused_by}"), "yellow")
    lines.add("Now", times.within(policy.progress) if policy.is_paused else None, "yellow")
    return lines


def _details(policy: PolicySummary, times: Times) -> Lines:
    lines = _head(policy, times)
    lines.add("Mode", policy.status.says("Enforcing", "False") if policy.mode == Mode.DRY_RUN else None, "yellow")
    now = policy.progress.removesuffix(policy.problem).removesuffix("; ")
    lines.add("Now", None if policy.is_paused else times.within(now))
    status = policy.status
    evicting = f"{several(status.selected_nodes, 'node')} selected, pods have to leave {status.evicting_nodes} of them"
    lines.add("Nodes", None if status.observed_generation is None else evicting)
    for invalid in policy.invalid:
        lines.add("Invalid", invalid if invalid not in policy.problem else None, "yellow")
    if (more := status.retained - sum(one.pods for one in status.invalid_taints)) > 0:
        where = "kubectl get events -n default --field-selector reason=InvalidTaintValue"
        lines.add("Invalid", f"{pods(more)} with other invalid taints: {where}", "yellow")
    if policy.guard is not None:
        is_holding = policy.guard != ARMED
        lines.add("Guard", _guard_text(policy, times), "bold red" if is_holding else "")
        says = status.condition("GuardTripped")
        lines.add("  says", times.within(_news(says.message, policy)) if is_holding and says else None)
    for limit in status.limits:
        until = f"; {next_one(limit.limit, f'at {limit.until}')}" if limit.until else ""
        why = waiting(limit.limit, policy.name, limit.message)
        lines.add("Limit", times.within(f"{pods(limit.pods)} waiting since {limit.since}: {why}{until}"), "yellow")
    for budget in status.blocked_budgets:
        lines.add("Budget", f"{pods(budget.pods)} waiting for {budget}", "yellow")
    for zone in status.zones:
        text = f"{zone.zone or '(no zone)'}: {zone_health(zone.nodes, zone.unhealthy_nodes, zone.state)}"
        lines.add("Zone", text, _ZONES.get(zone.state, ""))
    for pod in status.next_pods:
        sentence = f"{pod.namespace}/{pod.name} on {pod.node}: {pod.state}, {times.due(pod.deadline)}, {pod.taint}"
        lines.add("Next pod", sentence)
    return lines


def _news(message: str, policy: PolicySummary) -> str:
    """What a guard says, without what is the problem already: then only the advice."""
    counted = without_advice(message, policy.name)
    return message.removeprefix(counted).lstrip(". ") if policy.problem.endswith(counted) else message


def _guard_text(policy: PolicySummary, times: Times) -> str:
    if policy.guard == TRIPPED:
        return f"tripped {times.ago(policy.tripped_at)}" if policy.tripped_at else "tripped"
    if policy.guard == ZONES_FULL:
        return policy.all_zones_full
    return "; ".join(filter(None, ("armed", policy.status.says("GuardTripped", "False"))))
