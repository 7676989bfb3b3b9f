"""An observer that watches the cluster and records facts: deleted pods, Events, values of taints, the policy's status.

It receives what the watch of any client would receive, and nothing from the operator's process.
"""

import time
from collections.abc import Callable

from localcluster.kinds.pods import is_ready
from localcluster.store.entries import Change
from localcluster.store.store import Store
from taintwarden_demo import phrases
from taintwarden_demo.facts import Departure, Facts, SeenEvent
from taintwarden_demo.scenario import NAMESPACE, TAINT, Object, Scenario
from taintwarden_demo.views import Line, PodView, apply_event
from taintwarden_demo.world import WORKLOAD_LABEL

HOLD_SECONDS = 0.6
"""Seconds for which a line waits, to be merged with equal lines about other pods."""


class Observer:
    """Records facts from its construction until ``close``. ``hold_seconds``: see ``HOLD_SECONDS``."""

    def __init__(self, store: Store, scenario: Scenario, hold_seconds: float = HOLD_SECONDS) -> None:
        self._hold_seconds = hold_seconds
        self.facts = Facts()
        self.pods: dict[str, PodView] = {}
        self.values = {node.name: node.sla for node in scenario.nodes}
        self._lines: list[Line] = []
        self._budgets = {workload.name for workload in scenario.workloads if workload.max_unavailable is not None}
        self._began_at: float | None = None
        watched: dict[str, Callable[[Change], None]] = {
            "pods": self._on_pod,
            "nodes": self._on_node,
            "events": self._on_event,
            "taintevictionpolicies": self._on_policy,
        }
        self._unsubscribe = [store.subscribe(resource, listener) for resource, listener in watched.items()]
        for pod in store.list("pods", NAMESPACE):
            self._update_pod(pod)

    def begin(self) -> None:
        """Start the scenario: times count from now, and deletions are recorded."""
        self._began_at = time.monotonic()
        self._count_ready()

    def close(self) -> None:
        """End the subscriptions."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()

    @property
    def seconds(self) -> float:
        """Seconds since the start of the scenario."""
        return 0.0 if self._began_at is None else time.monotonic() - self._began_at

    @property
    def is_enforcing(self) -> bool:
        """True if the status of the policy reports that it is enforced."""
        conditions = self.facts.policy_status.get("conditions", ())
        return any((condition["type"], condition["status"]) == ("Enforcing", "True") for condition in conditions)

    @property
    def is_calm(self) -> bool:
        """True if every pod is Ready and none is terminating."""
        return all(pod.ready and not pod.leaving for pod in self.pods.values())

    def take_lines(self) -> list[Line]:
        """Return all lines once the oldest has waited ``hold_seconds``. Equal lines about several pods are merged."""
        if not self._lines or self.seconds - self._lines[0].at < self._hold_seconds:
            return []
        merged: dict[tuple[str, str, str, str], Line] = {}
        for line in self._lines:
            first = merged.setdefault((line.kind, line.node, line.workload, line.text), line)
            if first is not line:
                first.pods += 1
        self._lines = []
        return list(merged.values())

    def _add_line(self, kind: str, node: str, text: str, workload: str = "") -> None:
        if self._began_at is not None:
            self._lines.append(Line(self.seconds, kind, node, text, workload))

    # -- changes of objects -------------------------------------------------------------------------------------

    def _on_pod(self, change: Change) -> None:
        if change.key[0] != NAMESPACE:
            return
        if change.after is None:
            view = self.pods.pop(change.last.uid, None)
            if view is not None and not view.leaving:
                self._record_departure(view, evicted=False)
        else:
            self._update_pod(change.after.decoded())
        self._count_ready()

    def _update_pod(self, pod: Object) -> None:
        meta = pod["metadata"]
        view, workload = self.pods.get(meta["uid"]), meta.get("labels", {}).get(WORKLOAD_LABEL)
        if workload is None:  # a user created this pod
            return
        if view is None:
            view = PodView(meta["uid"], meta["name"], workload)
            view.replaces = self._began_at is not None
            self.pods[view.uid] = view
        view.node = pod["spec"].get("nodeName", "")
        if is_ready(pod) and not view.ready and view.replaces:
            self._add_line("replaced", view.node, "started in place of those that left", view.workload)
        view.ready = is_ready(pod)
        if meta.get("deletionTimestamp") and not view.leaving:
            view.leaving = True
            self._record_departure(view, evicted=_was_evicted(pod))

    def _record_departure(self, view: PodView, *, evicted: bool) -> None:
        if self._began_at is None:
            return
        self.facts.departures.append(
            Departure(view.name, view.uid, view.workload, view.node, self.seconds, evicted=evicted)
        )
        self._add_line("left", view.node, "evicted" if evicted else "deleted", view.workload)

    def _count_ready(self) -> None:
        if self._began_at is None:
            return
        for workload in self._budgets:
            ready = sum(pod.ready and not pod.leaving for pod in self.pods.values() if pod.workload == workload)
            fewest = self.facts.fewest_ready
            fewest[workload] = min(ready, fewest.get(workload, ready))

    def _on_node(self, change: Change) -> None:
        if change.after is None:
            return
        name = change.key[1]
        taints = change.after.decoded()["spec"].get("taints", ())
        value = next((taint.get("value", "") for taint in taints if taint["key"] == TAINT), "")
        before, self.values[name] = self.values.get(name), value
        if value != before:
            self.facts.changed_at[name, value] = self.seconds
            self._add_line("value", name, f"{TAINT} {before} -> {value}")

    def _on_event(self, change: Change) -> None:
        if change.before is not None or change.after is None:
            return
        event = change.after.decoded()
        subject = event.get("regarding") or event.get("involvedObject") or {}
        view = self.pods.get(subject.get("uid", ""))
        gone = [departure.node for departure in self.facts.departures if departure.uid == subject.get("uid")]
        node = view.node if view else gone[0] if gone else subject.get("name", "")
        note = event.get("note") or event.get("message") or ""
        reason = event["reason"]
        self.facts.events.append(
            SeenEvent(reason, subject.get("name", ""), subject.get("uid", ""), node, self.seconds, note=note)
        )
        if view is not None:
            apply_event(view, reason, note)
        text = phrases.short(reason, note)
        if text:
            self._add_line(reason, node, text, view.workload if view else "")

    def _on_policy(self, change: Change) -> None:
        if change.after is not None:
            self.facts.policy_status = change.after.decoded().get("status") or {}


def _was_evicted(pod: Object) -> bool:
    """True if the pod has the condition that the Eviction API sets."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any((one["type"], one.get("reason")) == ("DisruptionTarget", "EvictionByEvictionAPI") for one in conditions)
