"""Checks that compare observed with expected results. They are pure, and determine the exit code of the demo."""

import msgspec

from taintwarden_demo.facts import Departure, Facts
from taintwarden_demo.scenario import POLICY, Change, ExpectedEvictions, Scenario, Workload

CLOCK_SECONDS = 0.1
"""Tolerance in seconds, since the operator uses a wall clock and the demo a monotonic clock."""


class Check(msgspec.Struct, frozen=True):
    """An expected and an observed result as text. ``ok``: True if they agree."""

    expected: str
    happened: str
    ok: bool


def judge(scenario: Scenario, facts: Facts) -> list[Check]:
    """Return a check for each expectation. The demo succeeds if all are ok."""
    checks = []
    for change in scenario.changes:
        checks += [_check_evictions(change, group, facts) for group in change.expected]
        if change.cancels:
            checks.append(_check_cancelled(change, facts))
        if change.invalid:
            checks.append(_check_invalid(change, facts))
    budgets = [workload for workload in scenario.workloads if workload.max_unavailable is not None]
    checks += [_check_budget(workload, facts) for workload in budgets]
    return [*checks, _check_others(scenario, facts), _check_reports(scenario, facts)]


def _check_evictions(change: Change, group: ExpectedEvictions, facts: Facts) -> Check:
    expected = (
        f"{change.node} at {change.value}: {group.pods} {group.workload} leave after {group.grace_seconds} s, "
        f"within {group.within_seconds:g} s ({group.description})"
    )
    began = facts.changed_at.get((change.node, change.value))
    if began is None:
        return Check(expected, f"{change.node} never got the value {change.value}", ok=False)
    left = [one for one in facts.departures if (one.node, one.workload) == (change.node, group.workload)]
    earliest, latest = began + group.grace_seconds - CLOCK_SECONDS, began + group.grace_seconds + group.within_seconds
    early = [departure for departure in left if departure.at < earliest]
    late = [departure for departure in left if departure.at > latest]
    deleted = [departure for departure in left if not departure.evicted]
    faults = [
        *_fault(early, "early"),
        *_fault(late, "late"),
        *_fault(deleted, "deleted instead of evicted"),
    ]
    if len(left) != group.pods:
        faults.insert(0, f"{len(left)} instead of {group.pods} left")
    happened = _departure_times(left, began) + "".join(f"; {fault}" for fault in faults)
    return Check(expected, happened, ok=not faults)


def _fault(pods: list[Departure], what: str) -> list[str]:
    return [f"{what}: {', '.join(departure.pod for departure in pods)}"] if pods else []


def _departure_times(left: list[Departure], began: float) -> str:
    if not left:
        return "no pod left"
    first, last = (end(departure.at for departure in left) - began for end in (min, max))
    after = f"{first:.1f} s" if f"{first:.1f}" == f"{last:.1f}" else f"{first:.1f} to {last:.1f} s"
    return f"{len(left)} left after {after}"


def _check_cancelled(change: Change, facts: Facts) -> Check:
    expected = f"{change.node} back at {change.value} within the grace: {change.cancels} stay, evictions cancelled"
    announced = {event.uid for event in facts.events_of("EvictionScheduled", change.node)}
    cancelled = {event.uid for event in facts.events_of("EvictionCancelled", change.node)}
    left = [departure for departure in facts.departures if departure.node == change.node]
    happened = f"{len(announced)} announced, {len(cancelled)} cancelled, {_name_departed(left)}"
    return Check(expected, happened, ok=announced == cancelled and len(cancelled) == change.cancels and not left)


def _check_invalid(change: Change, facts: Facts) -> Check:
    expected = f"{change.node} at {change.value!r}, a mistake: no pod leaves, the node has a Warning"
    warnings = [event for event in facts.events_of("InvalidTaintValue", change.node) if change.value in event.note]
    left = [departure for departure in facts.departures if departure.node == change.node]
    happened = f"{'warned' if warnings else 'no Event'}, {_name_departed(left)}"
    changed = (change.node, change.value) in facts.changed_at
    return Check(expected, happened, ok=changed and bool(warnings) and not left)


def _name_departed(left: list[Departure]) -> str:
    return f"{', '.join(departure.pod for departure in left)} left" if left else "no pod left"


def _check_budget(workload: Workload, facts: Facts) -> Check:
    floor = len(workload.nodes) - (workload.max_unavailable or 0)
    expected = f"budget of {workload.name}: never fewer than {floor} of {len(workload.nodes)} Ready, others blocked"
    fewest = facts.fewest_ready.get(workload.name)
    blocked = {event.uid for event in facts.events_of("EvictionBlocked") if event.name.startswith(f"{workload.name}-")}
    happened = f"at least {fewest} Ready, {len(blocked)} blocked for a while"
    return Check(expected, happened, ok=fewest is not None and fewest >= floor and bool(blocked))


def _check_others(scenario: Scenario, facts: Facts) -> Check:
    may_leave = {(change.node, group.workload) for change in scenario.changes for group in change.expected}
    staying = sum((node, workload.name) not in may_leave for workload in scenario.workloads for node in workload.nodes)
    wrong = [departure for departure in facts.departures if (departure.node, departure.workload) not in may_leave]
    expected = f"all {staying} others and every replacement stay (batch, DaemonSet, better nodes)"
    named = ", ".join(f"{departure.pod} left {departure.node} at +{departure.at:.1f} s" for departure in wrong)
    return Check(expected, named or "all stayed", ok=not wrong)


def _check_reports(scenario: Scenario, facts: Facts) -> Check:
    count = sum(group.pods for change in scenario.changes for group in change.expected)
    status = facts.policy_status
    enforcing = any((one["type"], one["status"]) == ("Enforcing", "True") for one in status.get("conditions", ()))
    left = {departure.uid for departure in facts.departures}
    reported = {event.uid for event in facts.events_of("Evicted")}
    expected = f"policy {POLICY} says {count} evicted and none pending; every eviction has its Event"
    happened = f"{status.get('evicted', 0)} evicted, {status.get('pending', 0)} pending, {len(reported)} Events"
    counts_match = (status.get("evicted"), status.get("pending", 0)) == (count, 0)
    return Check(expected, happened, ok=enforcing and counts_match and reported == left)
