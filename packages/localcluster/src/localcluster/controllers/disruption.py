"""The disruption controller: computes the status of PodDisruptionBudgets, with a short delay, as the real one does.

Rules: `kubernetes/pkg/controller/disruption/disruption.go`. Owners that count are ReplicaSets in the store.
Forbidden here: evictions.
"""

import asyncio
import math
from datetime import timedelta
from typing import Any

from localcluster.kinds.pods import is_ready
from localcluster.kinds.resource import Object
from localcluster.store import selectors
from localcluster.store.entries import Change
from localcluster.store.store import Store, timestamp

_LAG_SECONDS = 0.02
_DISRUPTED_SECONDS = 120


class DisruptionController:
    """Recomputes every budget shortly after pods, budgets or ReplicaSets changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        for resource in ("pods", "poddisruptionbudgets", "replicasets"):
            store.subscribe(resource, self._changed)

    def start(self) -> None:
        """Begin, on the running event loop."""
        self._wake = asyncio.Event()
        self._wake.set()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def _changed(self, _change: Change) -> None:
        self._wake.set()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            await asyncio.sleep(_LAG_SECONDS)
            self._wake.clear()
            self.sync()
            self._wake.clear()  # written by this controller

    def sync(self) -> None:
        """Compute every budget now."""
        budgets = self._store.list("poddisruptionbudgets")
        if not budgets:
            return
        pods: dict[str, list[Object]] = {}
        for budget in budgets:
            namespace = budget["metadata"]["namespace"]
            if namespace not in pods:
                pods[namespace] = self._store.list("pods", namespace)
            self._sync_one(budget, pods[namespace])

    def _sync_one(self, budget: Object, pods: list[Object]) -> None:
        selector = selectors.from_object(budget["spec"].get("selector"))
        chosen = [pod for pod in pods if selectors.matches(selector, pod["metadata"].get("labels") or {})]
        old = budget.get("status") or {}
        disrupted = self._still_disrupted(old.get("disruptedPods") or {}, chosen)
        healthy = sum(is_ready(pod) for pod in chosen if _counts(pod, disrupted))
        try:
            expected, desired = self._expected(budget["spec"], chosen)
        except LookupError as error:
            self._fail(budget, old, str(error))
            return
        allowed = max(healthy - desired, 0) if expected > 0 else 0
        reason = "SufficientPods" if allowed else "InsufficientPods"
        status: Object = {
            "observedGeneration": budget["metadata"].get("generation", 0),
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "conditions": [self._condition(old, reason, budget["metadata"].get("generation", 0))],
        }
        if disrupted:
            status["disruptedPods"] = disrupted
        budget["status"] = status
        self._store.update("poddisruptionbudgets", budget)

    def _fail(self, budget: Object, old: Object, why: str) -> None:
        """As `failSafe`: nothing is allowed, and all else stays as it was, `observedGeneration` included."""
        observed = old.get("observedGeneration", 0)
        condition = self._condition(old, "SyncFailed", observed, why)
        unset = {"currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
        budget["status"] = unset | old | {"disruptionsAllowed": 0, "conditions": [condition]}
        self._store.update("poddisruptionbudgets", budget)

    def _still_disrupted(self, disrupted: dict[str, str], pods: list[Object]) -> dict[str, str]:
        """Pods whose eviction was granted and that still exist; they expire after two minutes."""
        alive = {pod["metadata"]["name"] for pod in pods if not pod["metadata"].get("deletionTimestamp")}
        oldest = timestamp(self._store.clock() - timedelta(seconds=_DISRUPTED_SECONDS))
        return {name: since for name, since in disrupted.items() if name in alive and since > oldest}

    def _expected(self, spec: Object, pods: list[Object]) -> tuple[int, int]:
        """The number of expected pods, and of those that have to be healthy."""
        minimum, maximum = spec.get("minAvailable"), spec.get("maxUnavailable")
        if maximum is not None:
            expected = self._scale(pods)
            return expected, max(expected - _part(maximum, expected), 0)
        if isinstance(minimum, str):
            expected = self._scale(pods)
            return expected, _part(minimum, expected)
        return len(pods), _part(minimum if minimum is not None else 0, len(pods))

    def _scale(self, pods: list[Object]) -> int:
        """Replicas of all controllers of these pods. Raises LookupError for a controller that cannot be scaled."""
        scales: dict[str, int] = {}
        for pod in pods:
            owners = [one for one in pod["metadata"].get("ownerReferences") or () if one.get("controller")]
            if owners and owners[0]["uid"] not in scales:
                scales[owners[0]["uid"]] = self._replicas(owners[0], pod["metadata"]["namespace"])
        return sum(scales.values())

    def _replicas(self, owner: Object, namespace: str) -> int:
        for value in self._store.list("replicasets", namespace):
            if value["metadata"]["uid"] == owner["uid"]:
                return int(value["spec"].get("replicas", 1))
        raise LookupError(f"found no controller {owner.get('kind')} {owner.get('name')}")

    def _condition(self, old: Object, reason: str, generation: int, message: str = "") -> Object:
        status = "True" if reason == "SufficientPods" else "False"
        before: Object = next((one for one in old.get("conditions") or () if one["type"] == "DisruptionAllowed"), {})
        now = timestamp(self._store.clock())
        since = before.get("lastTransitionTime", now) if before.get("status") == status else now
        return {
            "type": "DisruptionAllowed",
            "status": status,
            "reason": reason,
            "message": message,
            "lastTransitionTime": since,
        } | ({"observedGeneration": generation} if generation else {})


def _counts(pod: Object, disrupted: dict[str, str]) -> bool:
    meta = pod["metadata"]
    return not meta.get("deletionTimestamp") and meta["name"] not in disrupted


def _part(bound: Any, total: int) -> int:
    """The number, or the percentage of the total, rounded up."""
    if isinstance(bound, str):
        return math.ceil(int(bound.removesuffix("%")) * total / 100)
    return int(bound)
