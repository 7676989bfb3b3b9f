"""Name, unit and labels of every metric. No label contains the name of a pod or node, and other names are bounded."""

from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector

from taintwarden import __version__

_LATENESS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
_REQUEST = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_ANSWER = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 2.5)


WATCH_ENDS = ("ended", "expired", "refused", "unreachable", "empty", "late", "behind", "unconfirmed")
"""Reasons of ``taintwarden_watch_restarts_total``."""


class Process(StrEnum):
    """The process that exposes the metrics."""

    OPERATOR = "operator"
    WEBHOOK = "webhook"
    EXTENDER = "scheduler-extender"
    PUBLISHER = "publisher"


def _constructors(registry: CollectorRegistry | None) -> tuple[partial[Gauge], partial[Counter], partial[Histogram]]:
    """Return constructors of metrics; without a registry these are not exposed."""
    return partial(Gauge, registry=registry), partial(Counter, registry=registry), partial(Histogram, registry=registry)


class Metrics:
    """The metrics of the process. The composition root creates one object per process.

    Args:
        process: limits the metrics to those that this process sets, so that a webhook does not look like an operator
            without the lease. None exposes all.

    """

    def __init__(self, process: Process | None = None) -> None:
        self.registry = registry = CollectorRegistry()
        operator, webhook, extender, publisher = (registry if process in (None, one) else None for one in Process)
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        Info("taintwarden_build", "Version of this build.", registry=registry).info({"version": __version__})
        self.watch_restarts = Counter(
            "taintwarden_watch_restarts",
            "Watches that ended or failed: ended (timeout), expired, refused, unreachable (or 429, 5xx), empty, late "
            "(opened after a gap), behind (not up to date), unconfirmed (the version to reach is not known).",
            ["resource", "reason"],
            registry=registry,
        )
        self.undecodable = Counter(
            "taintwarden_undecodable_objects",
            "Objects in a stream that cannot be decoded.",
            ["resource"],
            registry=registry,
        )
        self._make_operator(operator)
        self._make_extender(extender)
        self._make_webhook(webhook)
        self._make_publisher(publisher)

    def _make_operator(self, registry: CollectorRegistry | None) -> None:
        """Create the metrics of the operator."""
        gauge, counter, histogram = _constructors(registry)
        self.policy_gauges: tuple[Gauge, ...] = ()
        """Gauges that are set for each policy."""

        def policy_gauge(name: str, text: str, *labels: str) -> Gauge:
            made = gauge(name, text, ["policy", *labels])
            self.policy_gauges += (made,)
            return made

        self.nodes = gauge("taintwarden_nodes", "Known nodes.")
        self.pods = gauge("taintwarden_pods", "Known bound pods that neither terminate nor have finished.")
        self.profiles = gauge(
            "taintwarden_profiles",
            "TolerationProfiles: true if the newest version is in force, false if it is invalid.",
            ["accepted"],
        )
        self.leader = gauge("taintwarden_leader", "1 if this replica decides and evicts.")
        self.stale_view = gauge(
            "taintwarden_stale_view",
            "1 while this replica does not know all of the cluster: before the first lists, or while cut off.",
        )
        self.pending = policy_gauge("taintwarden_pending_evictions", "Pods that have to leave, now or at a known time.")
        self.blocked = policy_gauge(
            "taintwarden_blocked_evictions",
            "Pods whose last eviction call did not evict them; reason is its outcome, or blocked without a call.",
            "reason",
        )
        self.evicting_nodes = policy_gauge("taintwarden_evicting_nodes", "Nodes with pods that have to leave.")
        self.nodes_with_place = policy_gauge(
            "taintwarden_nodes_with_place",
            "Nodes that may lose pods now; absent without `limits.concurrentNodes`.",
        )
        self.nodes_waiting = policy_gauge(
            "taintwarden_nodes_waiting_for_place",
            "Nodes with pods that wait for nothing but a place; absent without `limits.concurrentNodes`.",
        )
        self.leaving = policy_gauge(
            "taintwarden_leaving_pods", "Terminating pods that had to leave: their nodes are not drained."
        )
        self.stuck = policy_gauge(
            "taintwarden_stuck_pods",
            "Pods that had to leave and should have ended: their grace period ended more than 15 s ago.",
        )
        self.limited = policy_gauge("taintwarden_limited_evictions", "Due pods that a limit delays.", "limit")
        self.budget_blocked = policy_gauge(
            "taintwarden_budget_blocked_evictions",
            "Due pods that a PodDisruptionBudget (namespace/name) blocks; the series exists only while it does. "
            "Of each policy, the 20 that block the most.",
            "budget",
        )
        self.bouncing = policy_gauge(
            "taintwarden_bouncing_workloads",
            "Workloads that repeatedly come back to the node they are evicted from, until 600 s after their wait.",
        )
        self.policy_mode = policy_gauge(
            "taintwarden_policy_mode",
            "1 for the mode in which the policy is in force (Enforce, DryRun, Paused), 0 for the others.",
            "mode",
        )
        self.policy_accepted = policy_gauge(
            "taintwarden_policy_accepted", "1 if the newest version of the policy is in force, 0 if it is refused."
        )
        self.devices_known = policy_gauge(
            "taintwarden_devices_known",
            "1 if the taints of devices that the policy selects are known, 0 if not; absent without `devices`.",
        )
        self.invalid_taints = policy_gauge(
            "taintwarden_invalid_taints",
            "Taints of nodes whose values cannot be compared, whatever onInvalidValue is.",
        )
        self.all_nodes_unhealthy = policy_gauge(
            "taintwarden_all_nodes_unhealthy",
            "1 if all nodes are unhealthy for the policy, so that only pods that a person releases are evicted.",
        )
        self.guard_tripped = policy_gauge(
            "taintwarden_guard_tripped", "1 if the guard of the policy has tripped; absent without one."
        )
        self.paced_left = policy_gauge(
            "taintwarden_guard_paced_pods", "Due pods that a tripped guard with action Pace still lets leave."
        )
        self.paced_until = policy_gauge(
            "taintwarden_guard_pace_end_timestamp_seconds",
            "About when the last pod that a guard with action Pace lets leave may be evicted; absent if none may.",
        )
        self.zone_state = policy_gauge(
            "taintwarden_zone_state",
            "State of a zone for the policy: 0 Normal, 1 Degraded, 2 Full. Of each policy, the worst 50.",
            "zone",
        )
        self.evictions = counter(
            "taintwarden_evictions",
            "Eviction calls by outcome; evicted, or past-budget (despite budgets), if a pod is seen to leave; dry-run.",
            ["policy", "outcome"],
        )
        self.cancelled = counter(
            "taintwarden_evictions_cancelled", "Announced or tried evictions that were cancelled.", ["policy"]
        )
        self.lateness = histogram(
            "taintwarden_eviction_lateness_seconds",
            "Time from a pod's deadline until it was seen to leave after an eviction call.",
            buckets=_LATENESS,
        )
        self.missed_deadlines = counter(
            "taintwarden_missed_deadlines",
            "Pods that were on their node when it was gone (not-evicted), or had less time to stop than they "
            "ask for (grace-cut).",
            ["policy", "reason"],
        )
        self.request_duration = histogram(
            "taintwarden_eviction_request_duration_seconds", "Duration of eviction calls.", buckets=_REQUEST
        )
        self.invalid_values = counter(
            "taintwarden_invalid_values",
            "Values that cannot be compared; side is taint, or toleration for all errors of an annotation or profile.",
            ["side"],
        )
        for side in ("taint", "toleration"):
            self.invalid_values.labels(side)
        self.events_dropped = counter(
            "taintwarden_events_dropped",
            "Kubernetes Events that were not written: too many waited, or the API server rejected them.",
        )

    def _make_extender(self, registry: CollectorRegistry | None) -> None:
        """Create the metrics of the scheduler extender."""
        gauge, counter, histogram = _constructors(registry)
        self.extender_requests = counter(
            "taintwarden_extender_requests", "Requests of schedulers to the extender, by result.", ["verb", "result"]
        )
        self.extender_duration = histogram(
            "taintwarden_extender_duration_seconds",
            "Time in which the extender computed an answer, without the network.",
            ["verb"],
            buckets=_ANSWER,
        )
        self.extender_refusals = counter(
            "taintwarden_extender_refused_nodes",
            "Nodes that the extender refused for a pod, by the first reason.",
            ["reason"],
        )
        self.extender_certificate_expiry = gauge(
            "taintwarden_extender_certificate_expiry_timestamp_seconds",
            "When the certificate of the extender expires, in seconds since 1970; 0 without one.",
        )

    def _make_webhook(self, registry: CollectorRegistry | None) -> None:
        """Create the metrics of the webhooks."""
        gauge, counter, histogram = _constructors(registry)
        self.admission_requests = counter(
            "taintwarden_admission_requests",
            "Objects that the API server sent to the webhooks, by result.",
            ["webhook", "result"],
        )
        self.admission_duration = histogram(
            "taintwarden_admission_duration_seconds",
            "Time in which the webhooks computed an answer, without the network.",
            ["webhook"],
            buckets=_ANSWER,
        )
        self.webhook_certificate_expiry = gauge(
            "taintwarden_webhook_certificate_expiry_timestamp_seconds",
            "When the certificate of the webhooks expires, in seconds since 1970; 0 without one.",
        )
        self.webhook_configured = gauge(
            "taintwarden_webhook_configured",
            "1 if the API server has a configuration that calls the webhooks.",
            ["configuration"],
        )
        self.webhook_trusted = gauge(
            "taintwarden_webhook_trusted",
            "1 if the caBundle of the configuration lets API servers trust the certificate of the webhooks.",
            ["configuration"],
        )

    def _make_publisher(self, registry: CollectorRegistry | None) -> None:
        """Create the metrics of the publisher."""
        gauge, _, _ = _constructors(registry)
        self.publisher_objects = gauge(
            "taintwarden_publisher_objects", "TaintPublishers that this process publishes; 0 without any."
        )
        self.publisher_stuck = gauge(
            "taintwarden_publisher_stuck",
            "1 while the taints of a TaintPublisher do not follow their values, whatever the reason; a dry run is 0.",
            ["publisher"],
        )

    def forget_publisher(self, name: str) -> None:
        """Remove the series of a deleted TaintPublisher."""
        self.publisher_stuck.remove_by_labels({"publisher": name})

    def exposition(self) -> bytes:
        """Return the text that Prometheus scrapes."""
        return generate_latest(self.registry)


def observer(
    requests: Counter, duration: Histogram, names: Iterable[str], results: Iterable[str]
) -> Callable[[str, str, float], None]:
    """Return a function that counts a request by name and result, and observes how many seconds its answer took.

    Each count begins with 0: a rate over a series that begins with 1 misses the first request.
    """
    results = tuple(results)
    for one in names:
        duration.labels(one)
        for result in results:
            requests.labels(one, result)

    def observe(name: str, result: str, seconds: float) -> None:
        requests.labels(name, result).inc()
        duration.labels(name).observe(seconds)

    return observe
