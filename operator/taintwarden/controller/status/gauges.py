"""Gauges that show a state. Every round of reports sets all of them, so no series of a deleted object remains."""

from collections import Counter
from collections.abc import Iterable

from taintwarden.controller.words.wording import MISSED
from taintwarden.engine.machine import PolicyReport, View
from taintwarden.engine.outcomes import Outcome
from taintwarden.engine.policy import Mode
from taintwarden.engine.records import Pace
from taintwarden.engine.reported_status import ZONE_STATES
from taintwarden.telemetry.metrics import Metrics


class Gauges:
    """Sets the gauges of ``metrics`` from ``view`` and its reports."""

    def __init__(self, metrics: Metrics, view: View) -> None:
        self._metrics = metrics
        self._view = view
        self._begun: set[str] = set()

    def measure(
        self,
        reports: Iterable[PolicyReport],
        refused: Iterable[tuple[str, bool]] = (),
        refused_profiles: Iterable[bool] = (),
    ) -> None:
        """Set the gauges from one round of reports.

        ``refused``: name of each stored policy, with True if its newest version is refused. ``refused_profiles``: True
        for each stored profile whose newest version is refused, False for the others.
        """
        view, metrics = self._view, self._metrics
        metrics.nodes.set(len(view.nodes))
        metrics.pods.set(view.pod_count)
        for gauge in metrics.policy_gauges:
            gauge.clear()
        for entry in reports:
            self._measure_policy(entry)
        for name, is_refused in refused:
            metrics.policy_accepted.labels(name).set(not is_refused)
        counts = Counter(refused_profiles)
        metrics.profiles.labels("true").set(counts[False])
        metrics.profiles.labels("false").set(counts[True])

    def _begin(self, policy: str) -> None:
        """Create the counters of a policy at 0: a rate over a series that begins with 1 misses that event."""
        self._begun.add(policy)
        metrics = self._metrics
        for outcome in ("evicted", "past-budget", *(one for one in Outcome if one is not Outcome.ACCEPTED), "dry-run"):
            metrics.evictions.labels(policy, outcome)
        for reason in MISSED:
            metrics.missed_deadlines.labels(policy, reason)
        metrics.cancelled.labels(policy)

    def _measure_policy(self, entry: PolicyReport) -> None:
        metrics, name, status = self._metrics, entry.policy.name, entry.status
        if name not in self._begun:
            self._begin(name)
        for mode in Mode:
            metrics.policy_mode.labels(name, mode).set(mode is entry.policy.mode)
        metrics.invalid_taints.labels(name).set(entry.invalid_taints)
        metrics.all_nodes_unhealthy.labels(name).set(entry.all_nodes_unhealthy)
        metrics.pending.labels(name).set(status.pending)
        metrics.evicting_nodes.labels(name).set(status.evicting_nodes)
        metrics.leaving.labels(name).set(status.leaving)
        metrics.stuck.labels(name).set(entry.stuck_pods)
        for zone in status.zones:
            metrics.zone_state.labels(name, zone.zone).set(ZONE_STATES[zone.state])
        if entry.devices is not None:
            metrics.devices_known.labels(name).set(not (entry.devices.problem or entry.devices.blind))
        if self._view.is_leading:
            self._measure_limits(entry)

    def _measure_limits(self, entry: PolicyReport) -> None:
        """Set the gauges that only a leader knows. A replica that led before has the guard and answers of that time."""
        metrics, name, status = self._metrics, entry.policy.name, entry.status
        metrics.bouncing.labels(name).set(entry.bouncing)
        for reason, pods in entry.blocked_by.items():
            metrics.blocked.labels(name, reason).set(pods)
        for limit in status.limits:
            metrics.limited.labels(name, limit.limit).set(limit.pods)
        for budget in status.blocked_budgets:
            metrics.budget_blocked.labels(name, budget).set(budget.pods)
        if entry.places is not None:
            metrics.nodes_with_place.labels(name).set(len(entry.places.held))
            metrics.nodes_waiting.labels(name).set(entry.places.waiting)
        if entry.guard is not None:
            metrics.guard_tripped.labels(name).set(entry.guard.record.tripped_at is not None)
            self._measure_pace(name, entry.guard.pace)

    def _measure_pace(self, policy: str, pace: Pace | None) -> None:
        if pace is not None:
            self._metrics.paced_left.labels(policy).set(pace.pods)
            if pace.ends_at is not None:
                self._metrics.paced_until.labels(policy).set(pace.ends_at)
