"""The status of policies as text: one line each, and a block for those that are named; 100 columns wide."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from taintwarden.cli.output import Lines, printable
from taintwarden.cli.policy_status import PolicySummary, StatusSummary
from taintwarden.controller.wording import pods, waiting

_ACCEPTED = {"True": "green", "False": "bold red", "Unknown": "yellow"}
_ZONES = {"Normal": "green", "Degraded": "yellow", "Full": "bold red"}


def parts(found: StatusSummary, *, details: bool) -> Iterator[RenderableType]:
    """The problem of the operator, the table, then a block for each policy if requested."""
    if found.problem:
        yield Text(printable(f"{found.problem[0].upper()}{found.problem[1:]}."), style="bold red")
        yield Text("")
    if not found.policies:
        yield Text("There is no TaintEvictionPolicy.")
        return
    yield _overview(found)
    for policy in found.policies if details else [one for one in found.policies if one.problem or one.is_paused]:
        yield Text("")
        yield Text(printable(policy.name), style="bold")
        yield Padding(_details(policy).grid if details else _head(policy).grid, (0, 0, 0, 2))


def _overview(found: StatusSummary) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", collapse_padding=True)
    table.add_column("POLICY", overflow="fold", min_width=8)
    for name in ("MODE", "ACCEPTED"):
        table.add_column(name, no_wrap=True)
    for name in ("NODES", "DEGRADED", "PENDING", "BLOCKED", "EVICTED"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("GUARD", "LIMIT"):
        table.add_column(name, no_wrap=True)
    for one in found.policies:
        table.add_row(
            printable(one.name),
            Text(printable(one.mode), style="" if one.mode == "Enforce" else "yellow"),
            Text(one.accepted, style=_ACCEPTED.get(one.accepted, "")),
            str(one.selected_nodes),
            _number(one.degraded_nodes),
            _number(one.pending),
            _number(one.blocked),
            str(one.evicted),
            _guard(one),
            one.limited_by or "-",
        )
    return table


def _number(number: int) -> Text:
    return Text(str(number), style="yellow" if number else "")


def _guard(policy: PolicySummary) -> Text:
    if policy.guard is None:
        return Text("-")
    return Text("tripped", style="bold red") if policy.guard.open else Text("armed", style="green")


def _head(policy: PolicySummary) -> Lines:
    lines = Lines()
    lines.add("Problem", policy.problem, "bold red")
    lines.add("Now", policy.progress if policy.is_paused else None, "yellow")
    return lines


def _details(policy: PolicySummary) -> Lines:
    lines = _head(policy)
    lines.add("Now", None if policy.is_paused else policy.progress)
    lines.add("Next", policy.next_deadline and f"the first deadline is {policy.next_deadline}")
    for taint in policy.invalid_taints:
        told = f"{taint.taint} on {taint.node} cannot be compared: {pods(taint.pods)} judged by the last valid value"
        lines.add("Invalid", told, "yellow")
    if more := policy.held_invalid - sum(one.pods for one in policy.invalid_taints):
        where = "kubectl get events -n default --field-selector reason=InvalidTaintValue"
        lines.add("Invalid", f"{pods(more)} with other invalid taints: {where}", "yellow")
    if (guard := policy.guard) is not None:
        lines.add("Guard", _guard_text(policy), "bold red" if guard.open else "")
        lines.add("  cause", guard.cause)
        if guard.open or guard.zones_full:
            lines.add("  says", guard.message)
    for limit in policy.limits:
        until = f"; the next may be evicted at {limit.until}" if limit.until else ""
        told = f"{pods(limit.pods)} waiting since {limit.since}: {waiting(limit.limit, policy.name)}{until}"
        lines.add("Limit", told, "yellow")
    for budget in policy.blocked_budgets:
        lines.add("Budget", f"{pods(budget.pods)} waiting for {budget.namespace}/{budget.name}", "yellow")
    for zone in policy.zones:
        text = f"{zone.zone or '(no zone)'}: {zone.state}, {zone.degraded_nodes} of {zone.nodes} nodes are drained"
        lines.add("Zone", text, _ZONES.get(zone.state, ""))
    for pod in policy.next_pods:
        lines.add("Next pod", f"{pod.namespace}/{pod.name} on {pod.node}: {pod.state}, {pod.deadline}, {pod.taint}")
    return lines


def _guard_text(policy: PolicySummary) -> str:
    guard = policy.guard
    if guard is None or not guard.open:
        accepted = guard.accepted if guard else None
        return f"armed; a reset lets {pods(accepted)} be evicted" if accepted else "armed"
    return f"tripped at {guard.since}: {pods(guard.would_evict or 0)} would be evicted within one window"
