"""The disruption controller, which computes the status of PodDisruptionBudgets after a short delay.

Rules: `kubernetes/pkg/controller/disruption/disruption.go`. Supported: absolute numbers, and ReplicaSets as owners.
Other budgets allow no disruption. Forbidden here: evictions.
"""

import asyncio
from datetime import timedelta

from localcluster.kinds.pods import is_ready
from localcluster.kinds.resource import Object
from localcluster.store import selectors
from localcluster.store.entries import Change
from localcluster.store.store import Store, timestamp

_LAG_SECONDS = 0.02
_DISRUPTED_SECONDS = 120


class DisruptionController:
    """Recomputes all budgets shortly after a change of pods, budgets or ReplicaSets."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        for resource in ("pods", "poddisruptionbudgets", "replicasets"):
            store.subscribe(resource, self._on_change)

    def start(self) -> None:
        """Start on the running event loop."""
        self._wake = asyncio.Event()
        self._wake.set()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Stop the controller."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def _on_change(self, _change: Change) -> None:
        self._wake.set()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(_LAG_SECONDS)
            self._wake.clear()
            self.sync()
            self._wake.clear()  # this controller's own writes

    def sync(self) -> None:
        """Compute all budgets now."""
        for budget in self._store.list("poddisruptionbudgets"):
            self._sync_one(budget, self._store.list("pods", budget["metadata"]["namespace"]))

    def _sync_one(self, budget: Object, pods: list[Object]) -> None:
        selector = selectors.from_object(budget["spec"].get("selector"))
        chosen = [pod for pod in pods if selectors.matches(selector, pod["metadata"].get("labels") or {})]
        counts = self._expected(budget["spec"], chosen)
        if counts is None:
            budget["status"] = {**(budget.get("status") or {}), "disruptionsAllowed": 0}
        else:
            budget["status"] = self._status(budget, chosen, *counts)
        self._store.update("poddisruptionbudgets", budget)

    def _status(self, budget: Object, pods: list[Object], expected: int, desired: int) -> Object:
        disrupted = self._still_disrupted((budget.get("status") or {}).get("disruptedPods") or {}, pods)
        healthy = sum(is_ready(pod) for pod in pods if _is_counted(pod, disrupted))
        status = {
            "observedGeneration": budget["metadata"].get("generation", 0),
            "disruptionsAllowed": max(healthy - desired, 0) if expected > 0 else 0,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
        }
        return {**status, "disruptedPods": disrupted} if disrupted else status

    def _still_disrupted(self, disrupted: dict[str, str], pods: list[Object]) -> dict[str, str]:
        """Return the evicted pods that do not terminate yet, without entries older than two minutes."""
        alive = {pod["metadata"]["name"] for pod in pods if not pod["metadata"].get("deletionTimestamp")}
        oldest = timestamp(self._store.clock() - timedelta(seconds=_DISRUPTED_SECONDS))
        return {name: since for name, since in disrupted.items() if name in alive and since > oldest}

    def _expected(self, spec: Object, pods: list[Object]) -> tuple[int, int] | None:
        """Return the number of expected and of required healthy pods; None for an unsupported budget."""
        minimum, maximum = spec.get("minAvailable"), spec.get("maxUnavailable")
        if isinstance(minimum, int):
            return len(pods), minimum
        owners = {owner["uid"] for pod in pods for owner in pod["metadata"].get("ownerReferences") or ()}
        namespace = pods[0]["metadata"]["namespace"] if pods else ""
        found = [one for one in self._store.list("replicasets", namespace) if one["metadata"]["uid"] in owners]
        if not isinstance(maximum, int) or len(found) < len(owners):
            return None
        expected = sum(int(one["spec"].get("replicas", 1)) for one in found)
        return expected, max(expected - maximum, 0)


def _is_counted(pod: Object, disrupted: dict[str, str]) -> bool:
    meta = pod["metadata"]
    return not meta.get("deletionTimestamp") and meta["name"] not in disrupted
