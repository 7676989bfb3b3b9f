"""What probes and metrics say about one running operator."""

from collections.abc import Callable

from taintwarden.controller.clock import Clock
from taintwarden.controller.handlers.following import Following
from taintwarden.engine.machine import View
from taintwarden.kube.calls.lease import Lease
from taintwarden.kube.calls.recorder import Recorder
from taintwarden.telemetry.metrics import Metrics


class Health:
    """Answers ``/readyz``, ``/livez`` and ``/metrics``.

    Args:
        view: what the machine knows.
        following: what is followed.
        lease: whether this replica should decide, and whether any does.
        recorder: counts the Events that it drops.
        metrics: what is exposed; gauges that are read at this moment are set here.
        clock: both clocks.
        failure: the error of a task that failed, if any.

    """

    def __init__(
        self,
        view: View,
        following: Following,
        lease: Lease,
        recorder: Recorder,
        metrics: Metrics,
        clock: Clock,
        failure: Callable[[], BaseException | None],
    ) -> None:
        self._view = view
        self._following = following
        self._lease = lease
        self._recorder = recorder
        self._metrics = metrics
        self._clock = clock
        self._failure = failure
        self._events_dropped = 0
        """What the metric has counted."""

    def unready(self) -> str:
        """Why this replica may not decide; empty if it may."""
        if not self._view.is_synced:
            return "the cluster is not fully known yet"
        if self._view.is_blind:
            return f"disconnected from the API server, so no pod is evicted: {', '.join(self._following.cut_off)}"
        if self._lease.held and not self._view.is_leading:
            return "leading, but not deciding yet"
        if not self._lease.is_led:
            return "no replica leads, so no pod is evicted"
        return ""

    def dead(self) -> str:
        """Why the process has to be started again; empty if it works."""
        failure = self._failure()
        return f"a task failed: {failure}" if failure else ""

    def exposition(self) -> bytes:
        """The metrics, as of now."""
        metrics, view = self._metrics, self._view
        metrics.events_dropped.inc(self._recorder.dropped - self._events_dropped)
        self._events_dropped = self._recorder.dropped
        metrics.lease_age.set(self._lease.age_seconds or 0.0)
        is_complete = view.is_synced and not view.is_blind
        metrics.stale_view.set(not is_complete)
        if is_complete:
            metrics.complete_view.set(self._clock().wall)
        return metrics.exposition()
