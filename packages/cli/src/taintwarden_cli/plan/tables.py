"""A plan, and a sweep over values, as text."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from taintwarden.controller.words.wording import duration, in_spite_of, pods, several
from taintwarden_cli.output import printable
from taintwarden_cli.rehearsal.plan import Plan, PlannedFate, PlannedPod, Replacement
from taintwarden_cli.rehearsal.returning import REMEDY
from taintwarden_cli.rehearsal.sweep import Step, Sweep
from taintwarden_cli.rendering import Lines, rows

_STYLES = {
    PlannedFate.LEAVES: "",
    PlannedFate.HELD: "bold red",
    PlannedFate.ENDS: "bold red",
    PlannedFate.LATER: "dim",
    PlannedFate.WOULD_LEAVE: "yellow",
}


def parts(plan: Plan, most: int | None) -> Iterator[RenderableType]:
    """The whole plan as text, with ``most`` pods at most."""
    yield _head(plan).grid
    if not plan.pods:
        return
    yield Text("")
    shown = plan.pods if most is None else plan.pods[:most]
    yield rows(("#", "AFTER", "POD", "NODE", "POLICY", "WAITS FOR", "GOES TO"), map(_row, shown))
    if len(shown) < len(plan.pods):
        yield Text(f"... and {len(plan.pods) - len(shown)} more: --all shows them", style="dim")


def _head(plan: Plan) -> Lines:
    lines = Lines()
    lines.add("As of", plan.at)
    for change in plan.changes or ["none (forecast of the current state)"]:
        lines.add("Change", change, "bold")
    lines.add("Changed", several(plan.changed_nodes, "node"))
    lines.add("Leave", _format_leaving(plan))
    lines.add("Missed", _format_missed(plan), "bold red")
    lines.add("Cut", f"the grace of {pods(plan.cut)}, by the end of the node" if plan.cut else None, "bold red")
    lines.add("Held", f"due, and still there at the end: {pods(plan.held)}" if plan.held else None, "bold red")
    budgets = sorted({name for pod in plan.pods if pod.fate is PlannedFate.LEAVES for name in pod.budgets})
    past = f"{pods(plan.past_budgets)} deleted {in_spite_of(budgets)}"
    lines.add("Budgets", past if budgets else None, "bold red")
    lines.add("Later", f"with a deadline beyond the horizon: {pods(plan.later)}" if plan.later else None)
    lines.add("Dry run", f"{pods(plan.would_leave)} would leave" if plan.would_leave else None, "yellow")
    nowhere = f"{pods(plan.nowhere)} with nowhere to go, by taints, nodeSelector and node affinity"
    lines.add("Nowhere", nowhere if plan.nowhere else None, "bold red")
    must = "it has" if plan.returning == 1 else "they have"
    why = f"{pods(plan.returning)} may come back to a node that {must} to leave, which the scheduler does not know"
    lines.add("Bounce", f"{why}: {REMEDY}" if plan.returning else None, "bold red")
    for guard in plan.guards:
        tripped, armed_after = max(0.0, guard.tripped_after_seconds), guard.armed_after_seconds
        when = "has tripped already" if guard.tripped_after_seconds < 0 else f"trips after {duration(tripped)}"
        armed = "" if armed_after is None else f" and is armed after {duration(armed_after)}"
        effect = "it holds the policy, or one namespace" if guard.halts else guard.pace or "it holds nothing"
        leave = f"{pods(guard.pods)} would leave"
        if guard.evicted:
            past = f"{guard.evicted} evicted in the last {duration(guard.window_seconds)}"
            leave = f"{past} + {leave} = {guard.evicted + guard.pods}"
        text = f"of policy {guard.policy} {when}{armed}: {leave}, {guard.limit} may; {effect}"
        lines.add("Guard", text, "bold red")
        lines.add("", guard.cause)
    for invalid in plan.invalid:
        lines.add("Invalid", invalid, "bold red")
    lines.add("Cancelled", f"need not leave any more: {pods(len(plan.cancelled))}" if plan.cancelled else None, "green")
    for note in plan.notes:
        lines.add("Note", note, "yellow")
    return lines


def _format_missed(plan: Plan) -> str:
    """The number of pods that end with their nodes, and the limits and budgets that held them."""
    missed = [pod for pod in plan.pods if pod.fate is PlannedFate.ENDS]
    if not missed:
        return ""
    holding = sorted({name for pod in missed for name in pod.budgets or [pod.limit] if name})
    why = f", held by {', '.join(holding)}" if holding else ""
    nodes = several(len({pod.node for pod in missed}), "node")
    return f"{pods(len(missed))} not evicted before {nodes} {'is' if nodes.startswith('1 ') else 'are'} removed{why}"


def _format_leaving(plan: Plan) -> str:
    if not plan.leaving:
        return f"no pod within {duration(plan.horizon_seconds)}"
    last = max(pod.after_seconds or 0.0 for pod in plan.pods if pod.fate is PlannedFate.LEAVES)
    return f"{pods(plan.leaving)}, the last after {duration(last)}"


def _row(pod: PlannedPod) -> Sequence[str | Text]:
    after = Text(_format_time(pod), style=_STYLES[pod.fate])
    return str(pod.order or "-"), after, str(pod), pod.node, pod.policy, _format_wait(pod), _format_destination(pod)


def _format_time(pod: PlannedPod) -> str:
    match pod.fate:
        case PlannedFate.LEAVES:
            return duration(pod.after_seconds or 0.0)
        case PlannedFate.ENDS:
            return f"{duration(max(0.0, pod.after_seconds or 0.0))} (ends)"
        case PlannedFate.HELD:
            return "held"
        case PlannedFate.LATER:
            return pod.deadline
        case PlannedFate.WOULD_LEAVE:
            when = pod.deadline if pod.after_seconds is None else duration(pod.after_seconds)
            return f"{when} (dry run)"


def _format_wait(pod: PlannedPod) -> str:
    if pod.fate is PlannedFate.LEAVES:
        waited = pod.waited_seconds or 0.0
        if pod.budgets or pod.late:
            return "; ".join(filter(None, (in_spite_of(pod.budgets) if pod.budgets else "", pod.late)))
        return f"{pod.limit}, {duration(waited)}" if pod.limit and waited >= 1 else "-"
    return ", ".join([one for one in (pod.limit, *pod.budgets) if one]) or "-"


def _format_destination(pod: PlannedPod) -> Text:
    is_nowhere, again = pod.replacement is Replacement.NOWHERE, pod.returns_to and f"{pod.returns_to} again"
    found = filter(None, ("nowhere" if is_nowhere else pod.replaced_on, again))
    return Text(printable(" or ".join(found) or "-"), style="bold red" if is_nowhere else "red" if again else "")


BAR_WIDTH = 30
MAX_NAMED = 2
"""Maximum number of workloads named for each value."""


def sweep_parts(found: Sweep) -> Iterator[RenderableType]:
    """The whole sweep as text."""
    lines = Lines()
    lines.add("As of", found.at)
    lines.add("Sweep", f"{found.key}:{found.effect} on {several(found.nodes, 'node')} with {pods(found.pods)}", "bold")
    do = "does" if len(found.would) == 1 else "do"
    would = f"; {', '.join(found.would)} {do} not enforce" if found.would else ""
    lines.add("Policy", ", ".join(found.policies) + would)
    lines.add("Invalid", ", ".join(found.invalid) and f"cannot be compared: {', '.join(found.invalid)}", "bold red")
    for note in found.notes:
        lines.add("Note", note, "yellow")
    yield lines.grid
    if not found.policies:
        return
    yield Text("")
    most = max(one.leaving for one in found.steps)
    listed, before = list[Sequence[str | Text]](), dict[str, int]()
    for step in found.steps:
        style = "bold red" if step.trips else "yellow" if step.leaving else "green"
        bar = "█" * (round(step.leaving / most * BAR_WIDTH) or int(step.leaving > 0)) if most else ""
        leave = Text(str(step.leaving), style=style)
        listed.append((step.value, leave, Text(bar, style=style), _format_causes(step, before)))
        before = step.workloads
    yield rows(("VALUE", "LEAVE", "", "BECAUSE OF THIS VALUE"), listed)


def _format_causes(step: Step, before: dict[str, int]) -> str:
    """The workloads whose pods leave in addition, and the guards that trip."""
    added = {name: number - before.get(name, 0) for name, number in step.workloads.items()}
    gained = sorted(((number, name) for name, number in added.items() if number > 0), key=lambda one: (-one[0], one[1]))
    parts = [f"{number} of {name}" for number, name in gained[:MAX_NAMED]]
    if len(gained) > MAX_NAMED:
        parts.append(several(len(gained) - MAX_NAMED, "more workload"))
    if step.more < 0:
        parts.append(f"{-step.more} fewer")
    if step.trips:
        trip = "guard of {} trips" if len(step.trips) == 1 else "guards of {} trip"
        parts.append(f"the {trip.format(', '.join(step.trips))}")
    return "; ".join(parts) or "-"
