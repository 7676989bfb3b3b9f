"""Conditions in the status of policies and profiles, which explain why pods are not evicted."""

from taintwarden.controller.words import wording
from taintwarden.engine import rfc3339
from taintwarden.engine.limits.refusal import BUDGET, CALLS, FAILING, GUARD
from taintwarden.engine.machine import PolicyReport
from taintwarden.engine.policy import Mode
from taintwarden.engine.reported_status import LimitStatus

ConditionRow = tuple[str, str, str, str]
"""Type, status, reason and message of a condition."""


def conditions(
    entry: PolicyReport | None, problem: str, generation: int = 1, *, dry_run: bool = False
) -> list[ConditionRow]:
    """Return the conditions of a policy.

    ``problem``: why the version ``generation`` is refused; empty if it is valid. ``dry_run``: True if the operator runs
    with ``--dry-run``.
    """
    is_newest = entry is not None and entry.policy.generation == generation
    rows = [_accepted(problem), *_ready(problem, in_force=is_newest)]
    if entry is None:
        none = "no valid version of this policy is known, so it does nothing"
        return [*rows, ("Enforcing", "False", "NotAccepted", none)]
    return [
        *rows,
        ("Enforcing", *_enforcing(entry, dry_run=dry_run)),
        ("Progressing", *_progressing(entry)),
        ("GuardTripped", *_guard_tripped(entry)),
        *_sources(entry),
        *_devices(entry),
        *_replacements(entry),
    ]


def profile_conditions(problem: str, *, in_force: bool) -> list[ConditionRow]:
    """Return the conditions of a profile. ``problem``: why it is refused. ``in_force``: True if a version applies."""
    still = "its last valid version stays in force" if in_force else "no version of it counts, so it does nothing"
    return [_accepted(f"{problem}; {still}" if problem else ""), *_ready(problem, in_force=in_force)]


def _accepted(problem: str) -> ConditionRow:
    return ("Accepted", "False", "Invalid", problem) if problem else ("Accepted", "True", "Valid", "")


def _ready(problem: str, *, in_force: bool) -> list[ConditionRow]:
    """Return the condition Ready, which is True if the newest version is in force. Generic tools (kstatus) wait for it.

    Stalled is present only while it is True.
    """
    if problem:
        return [("Ready", "False", "Invalid", problem), ("Stalled", "True", "Invalid", problem)]
    if not in_force:
        return [("Ready", "False", "NotYet", "the newest version is not in force yet")]
    return [("Ready", "True", "InForce", "")]


def _sources(entry: PolicyReport) -> list[ConditionRow]:
    """Return the condition SourcesFound: True if each source has a value on some node; none without derived taints.

    It is unknown while the policy selects no node, such as before an autoscaler adds the first.
    """
    if not entry.sources:
        return []
    if not entry.status.selected_nodes:
        return [("SourcesFound", "Unknown", "NoNode", "the policy selects no node")]
    if missing := [source for source in entry.sources if not source.nodes]:
        text = "; ".join(wording.no_value(source.source, source.key, entry.status.selected_nodes) for source in missing)
        return [("SourcesFound", "False", "NoNode", text)]
    text = ", ".join(f"{source.source} on {wording.several(source.nodes, 'node')}" for source in entry.sources)
    return [("SourcesFound", "True", "Found", text)]


def _devices(entry: PolicyReport) -> list[ConditionRow]:
    """Return the condition DevicesKnown; none for a policy that selects no taints of devices."""
    devices = entry.devices
    if devices is None:
        return []
    if devices.problem:
        return [("DevicesKnown", "False", "NotFollowed", wording.devices_unknown(devices.problem))]
    if devices.blind:
        return [("DevicesKnown", "False", "Stale", wording.devices_unknown(wording.no_changes(devices.blind)))]
    return [("DevicesKnown", "True", "Followed", f"{wording.pods(devices.pods)} with devices")]


def _replacements(entry: PolicyReport) -> list[ConditionRow]:
    """Return the condition ReplacesFirst; none for a policy that asks no Deployment for a replacement."""
    if entry.replacement_problem is None:
        return []
    if entry.replacement_problem:
        message = wording.not_replaced(entry.replacement_problem)
        return [("ReplacesFirst", "False", "NotAsked", message)]
    return [("ReplacesFirst", "True", "Asks", "")]


def _enforcing(entry: PolicyReport, *, dry_run: bool) -> tuple[str, str, str]:
    if entry.policy.mode is Mode.ENFORCE:
        return "True", "Enforcing", ""
    if dry_run and entry.policy.mode is Mode.DRY_RUN:
        return "False", Mode.DRY_RUN.value, "the operator runs with --dry-run: nothing is evicted"
    why = "it is paused" if entry.policy.mode is Mode.PAUSED else f"mode is {entry.policy.mode.value}"
    return "False", entry.policy.mode.value, f"{why}: nothing is evicted"


def _progressing(entry: PolicyReport) -> tuple[str, str, str]:
    status, mode = entry.status, entry.policy.mode
    if mode is Mode.PAUSED:
        return "False", Mode.PAUSED.value, wording.paused(entry.due, status.pending - entry.due, status.next_deadline)
    if entry.blind:
        return "False", "Blind", wording.blind(entry.blind)
    leaving = wording.leaving(status.leaving, status.stuck) if status.leaving else ""
    if not status.pending:
        if leaving:
            return "True", "Stuck" if status.stuck else "Leaving", f"no other pod has to leave; {leaving}"
        return "False", "Idle", "no pod has to leave"
    must = "would have" if mode is Mode.DRY_RUN else "has" if status.pending == 1 else "have"
    first = (
        f", the first at {status.next_deadline}"
        if status.next_deadline and not (status.limits or status.blocked)
        else ""
    )
    have = "; ".join(filter(None, (f"{wording.pods(status.pending)} {must} to leave{first}", leaving)))
    main = status.limits[0] if status.limits else None
    if status.blocked and (main is None or main.limit == BUDGET or status.blocked > main.pods):
        return "True", "Blocked", f"{have}; {_by_budgets(entry, main)}"
    if main is not None:
        reason = "Failing" if main.limit == FAILING else "Limited"
        # Failing calls are listed even if another limit holds more pods, since they may be the cause.
        failing = (limit for limit in status.limits if limit is not main and limit.limit in (FAILING, CALLS))
        # Messages of other limits describe a single pod, and change often.
        held = (wording.held(one, one.message if one.limit in (GUARD, CALLS) else "") for one in (main, *failing))
        return "True", reason, "; ".join([have, *held])
    return "True", "Pending", have


def _by_budgets(entry: PolicyReport, main: LimitStatus | None) -> str:
    since = f" since {main.since}" if main is not None and main.limit == BUDGET else ""
    budgets, blocked = entry.status.blocked_budgets, wording.pods(entry.status.blocked)
    if len(budgets) == 1:
        return f"PodDisruptionBudget {budgets[0]} blocks {blocked}{since}"
    named = f", such as {budgets[0]}" if budgets else ""
    return f"PodDisruptionBudgets block {blocked}{since}{named}"


def _guard_tripped(entry: PolicyReport) -> tuple[str, str, str]:
    status, reason, message = _guard_state(entry)
    fields = entry.guard.pruned if entry.guard is not None else ()
    return status, reason, ". ".join(filter(None, (message, wording.pruned(fields))))


def _guard_state(entry: PolicyReport) -> tuple[str, str, str]:
    policy, guard = entry.policy, entry.guard
    if guard is not None and (record := guard.record).tripped_at is not None:
        effect = wording.tripped(policy, guard, f"namespace {guard.scope}" * bool(guard.scope))
        message = f"since {rfc3339.at(record.tripped_at)} {effect}. {wording.tripped_advice(policy, guard)}"
        return "True", "MassEviction", message
    waiting = entry.due - entry.released
    if entry.all_nodes_unhealthy and waiting and policy.mode is not Mode.PAUSED:
        return "True", "AllNodesUnhealthy", wording.all_nodes_unhealthy(policy, waiting, entry.status.selected_nodes)
    if guard is None:
        return "False", "NoGuard", "the policy has no guard"
    released = entry.released
    return "False", "Armed", f"not gone yet: {wording.pods(released)} that a reset released" if released else ""
