"""The eviction subresource, with the steps of `kubernetes/pkg/registry/core/pod/storage/eviction.go` of 1.37.

Special cases are the same, too: a budget is decremented before the UID is compared, two budgets give a 500 whose
reason is empty, and no budget is checked for a Pending, terminal or terminating pod. Forbidden here: computing budgets.
"""

from typing import Any

from localcluster.errors import ApiError, bad_request, not_served, too_many_requests
from localcluster.kinds import builtin_schemas as shapes
from localcluster.kinds import schema as schemas
from localcluster.kinds.pods import is_ready, set_condition
from localcluster.kinds.resource import Object, Resource
from localcluster.operations.decoding import without_nulls
from localcluster.operations.deleting import DeleteOptions, Deleter
from localcluster.store import selectors
from localcluster.store.entries import Entry
from localcluster.store.store import Store, timestamp

_VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
_TWO_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_DISRUPTED_MAX = 2000
_NOT_RUNNING = frozenset({"Succeeded", "Failed", "Pending"})


class Evictor:
    """Evicts pods and decrements budgets."""

    def __init__(self, store: Store, deleter: Deleter, pods: Resource) -> None:
        self._store = store
        self._deleter = deleter
        self._pods = pods

    def evict(self, namespace: str, name: str, body: Any) -> Object:
        """Evict a pod and return the Status. Raises 400, 404, 409, 429, 500, 501."""
        options = _options(name, body)
        entry = self._store.entry("pods", name, namespace)
        pod = entry.decoded()
        status = pod.get("status") or {}
        if status.get("phase") not in _NOT_RUNNING and not pod["metadata"].get("deletionTimestamp"):
            budgets = self._budgets(pod)
            if len(budgets) > 1:
                raise ApiError(500, "", _TWO_BUDGETS)
            for budget in budgets:
                self._use_budget(budget, pod)
        self._delete(entry, options)
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}

    def _budgets(self, pod: Object) -> list[Object]:
        labels = pod["metadata"].get("labels") or {}
        found = self._store.list("poddisruptionbudgets", pod["metadata"]["namespace"])
        return [one for one in found if selectors.matches(selectors.from_object(one["spec"].get("selector")), labels)]

    def _use_budget(self, budget: Object, pod: Object) -> None:
        status = budget.get("status") or {}
        if not is_ready(pod) and _may_evict_unhealthy(budget, status):
            return
        name = budget["metadata"]["name"]
        if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
            text = f"The disruption budget {name} is still being processed by the server."
            raise too_many_requests(_VIOLATES, [("DisruptionBudget", text)], retry_after_seconds=10)
        allowed = status.get("disruptionsAllowed", 0)
        if len(status.get("disruptedPods") or {}) > _DISRUPTED_MAX:
            raise not_served("evictions while a budget has that many disruptedPods")
        if allowed <= 0:
            healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
            text = f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
            raise too_many_requests(_VIOLATES, [("DisruptionBudget", text)])
        self._decrement(budget, status, pod["metadata"]["name"])

    def _decrement(self, budget: Object, status: Object, pod_name: str) -> None:
        now = timestamp(self._store.clock())
        status["disruptionsAllowed"] -= 1
        status["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod_name: now}
        budget["status"] = status
        self._store.update("poddisruptionbudgets", budget)

    def _delete(self, entry: Entry, options: DeleteOptions) -> None:
        """Mark the pod as a target of disruption, then delete it."""
        self._deleter.check_preconditions(self._pods, entry, options)
        pod = entry.decoded()
        now = timestamp(self._store.clock())
        reason, message = "EvictionByEvictionAPI", "Eviction API: evicting"
        set_condition(pod, "DisruptionTarget", "True", now, reason=reason, message=message)
        written = self._store.update("pods", pod)
        if options.resource_version is not None:
            options = options._replace(resource_version=written["metadata"]["resourceVersion"])
        self._deleter.delete(self._pods, entry.key[0], entry.key[1], options)


def _options(name: str, body: Any) -> DeleteOptions:
    if not isinstance(body, dict):
        raise bad_request("not a Eviction object")
    if body.get("kind", "Eviction") != "Eviction" or body.get("apiVersion", "policy/v1") not in {
        "policy/v1",
        "policy/v1beta1",
    }:
        kind, version = body.get("kind"), body.get("apiVersion")
        raise bad_request(f'no kind "{kind}" is registered for version "{version}" in scheme')
    value = without_nulls({field: item for field, item in body.items() if field not in {"kind", "apiVersion"}})
    problems = schemas.check(value, shapes.EVICTION, "Eviction")
    if problems:
        raise bad_request(f"{problems[0].field}: {problems[0].message}")
    if (value.get("metadata") or {}).get("name") != name:
        raise bad_request("name in URL does not match name in Eviction object")
    return DeleteOptions.parse(value.get("deleteOptions"))


def _may_evict_unhealthy(budget: Object, status: Object) -> bool:
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    desired = status.get("desiredHealthy", 0)
    return bool(status.get("currentHealthy", 0) >= desired > 0)
