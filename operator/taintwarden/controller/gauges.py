"""The metrics that show a state. Every round of reports sets all of them, so no series of a deleted object remains."""

from collections import Counter
from collections.abc import Iterable

from taintwarden.engine.machine import PolicyReport, View
from taintwarden.telemetry.metrics import Metrics

ZONE_STATES = {"Normal": 0, "Degraded": 1, "Full": 2}


class Gauges:
    """Sets the gauges of ``metrics`` to what ``view`` and its reports say."""

    def __init__(self, metrics: Metrics, view: View) -> None:
        self._metrics = metrics
        self._view = view
        self._judged: dict[tuple[str, str], int] = {}

    def measure(self, reports: Iterable[PolicyReport]) -> None:
        """Set the gauges from one round of reports."""
        view, metrics = self._view, self._metrics
        metrics.nodes.set(len(view.nodes))
        metrics.pods.set(view.pod_count)
        for gauge in metrics.of_policies:
            gauge.clear()
        for entry in reports:
            self._measure_policy(entry)
        for key, count in view.evaluations.items():
            metrics.evaluations.labels(*key).inc(count - self._judged.get(key, 0))
            self._judged[key] = count

    def count_profiles(self, refused: Iterable[bool]) -> None:
        """Set the number of stored profiles. ``refused``: for each, whether its newest version is refused."""
        counts = Counter(refused)
        self._metrics.profiles.labels("true").set(counts[False])
        self._metrics.profiles.labels("false").set(counts[True])

    def _measure_policy(self, entry: PolicyReport) -> None:
        metrics, name = self._metrics, entry.policy.name
        metrics.pending.labels(name).set(entry.pending)
        metrics.degraded_nodes.labels(name).set(entry.degraded_nodes)
        metrics.bouncing.labels(name).set(entry.bouncing)
        for reason, pods in entry.blocked_by.items():
            metrics.blocked.labels(name, reason).set(pods)
        for limit in entry.limits:
            metrics.limited.labels(name, limit.limit).set(limit.pods)
        for budget, pods in entry.budgets:
            namespace, _, short = budget.partition("/")
            metrics.budget_blocked.labels(name, namespace, short).set(pods)
        for zone in entry.zones:
            metrics.zone_state.labels(name, zone.zone).set(ZONE_STATES[zone.state])
        if entry.guard is not None:
            metrics.guard_open.labels(name).set(entry.guard.record.open_since is not None)
