"""Answers of the API server to requests, and of webhooks and budgets to evictions, as (code, body)."""

from typing import TYPE_CHECKING, Any

import msgspec

from simulated.world.objects import Budget, Node, Pod

if TYPE_CHECKING:
    from simulated.world.world import World

Answer = tuple[int, bytes]
DONE: Answer = (200, b"{}")
OLD_FIELDS = ("trippedAt", "cause", "counted", "evicted", "reserved", "term")
"""Fields of ``status.guard`` that the definition of an earlier version has. An API server prunes all others."""


def status(code: int, message: str, reason: str = "", **details: Any) -> Answer:
    """A refusal as the API server words it."""
    body: dict[str, Any] = {"kind": "Status", "message": message, "reason": reason, "code": code}
    return code, msgspec.json.encode(body | ({"details": details} if details else {}))


def _changed_meanwhile(uid: str) -> Answer:
    return status(409, f'Operation cannot be fulfilled on pods "{uid}": the ResourceVersion does not match')


class Server:
    """Requests of operators, carried out at once: how long they take is the wire's."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._store = world.store
        self.has_old_definition = False
        """True if policies have the definition of an earlier version."""

    # -- pods ---------------------------------------------------------------------------------------------------------

    def evict(self, uid: str, grace: int | None, version: int = -1) -> Answer:
        """POST pods/eviction with the UID as precondition, and with the version unless that is -1."""
        pod: Pod | None = self._store.get("pods", uid)
        if pod is None:
            return status(404, f'pods "{uid}" not found', "NotFound")
        if version not in (-1, pod.version):
            return _changed_meanwhile(uid)
        if pod.stopping_until is not None:
            return DONE
        budgets = self.budgets_of(pod) if pod.running else []
        if len(budgets) > 1:
            message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            return status(500, message, "InternalError")
        if budgets and not self._spare(budgets[0], pod):
            return self._blocked(budgets[0])
        self._world.cluster.terminate(pod, grace)
        return 201, b"{}"

    def budgets_of(self, pod: Pod) -> list[Budget]:
        """The budgets that select a pod."""
        return [
            one
            for one in self._store.objects["budgets"].values()
            if one.namespace == pod.namespace and pod.labels.get("app") == one.app
        ]

    def _spare(self, budget: Budget, pod: Pod) -> bool:
        """Return True if the budget allows the eviction, as ``pkg/registry/core/pod/storage/eviction.go`` decides."""
        if not pod.ready and (budget.always_allow or budget.healthy >= budget.desired > 0):
            return True
        if budget.observed < budget.generation or budget.allowed <= 0:
            return False
        self._store.change("budgets", f"{budget.namespace}/{budget.name}", allowed=budget.allowed - 1)
        return True

    def _blocked(self, budget: Budget) -> Answer:
        message = "Cannot evict pod as it would violate the pod's disruption budget."
        if budget.observed < budget.generation:
            return status(
                429, f"{message} The disruption budget {budget.name} is still being processed", "TooManyRequests"
            )
        cause = {"reason": "DisruptionBudget", "message": f"The disruption budget {budget.name} needs {budget.desired}"}
        return status(429, message, "TooManyRequests", causes=[cause])

    def note(self, uid: str, version: int = -1) -> Answer:
        """PATCH pods/status: the condition ``DisruptionTarget``. The body of the answer is the new version."""
        pod: Pod | None = self._store.get("pods", uid)
        if pod is None:
            return status(404, f'pods "{uid}" not found', "NotFound")
        if version not in (-1, pod.version):
            return _changed_meanwhile(uid)
        return 200, str(self._store.put("pods", uid, pod).version).encode()

    def delete(self, uid: str, grace: int | None, version: int = -1) -> Answer:
        """DELETE with the UID as precondition, and with the version unless that is -1."""
        pod: Pod | None = self._store.get("pods", uid)
        if pod is None:
            return status(404, f'pods "{uid}" not found', "NotFound")
        if version not in (-1, pod.version):
            return _changed_meanwhile(uid)
        if pod.stopping_until is None:
            self._world.cluster.terminate(pod, grace)
        return DONE

    # -- nodes and policies -------------------------------------------------------------------------------------------

    def write_history(self, name: str, uid: str, text: str, version: int) -> Answer:
        """Apply the annotation. The body of the answer is the new version."""
        node = self._store.get("nodes", name)
        return self._refuse(node, name, uid, version) or self._changed(name, history=text)

    def write_condition(self, name: str, uid: str, content: tuple[str, str, str] | None, version: int) -> Answer:
        """Write or remove the condition. The body of the answer is the new version."""
        node = self._store.get("nodes", name)
        return self._refuse(node, name, uid, version) or self._changed(name, drained=content)

    def _refuse(self, node: Node | None, name: str, uid: str, version: int) -> Answer | None:
        if node is None or node.uid != uid:
            return self._about_another(name)
        if version not in (-1, node.version):
            return status(409, "the object has been modified; please apply your changes to the latest version")
        return None

    def _changed(self, name: str, **changes: Any) -> Answer:
        return 200, str(self._store.change("nodes", name, **changes).version).encode()

    def write_record(self, name: str, version: int, what: str, record: dict[str, Any]) -> Answer:
        """Merge ``guard`` or ``places`` of the status if the policy still has this version."""
        policy = self._store.get("policies", name)
        if policy is None:
            return status(404, f'policy "{name}" not found', "NotFound")
        if policy.version != version:
            return status(
                409, "the object has been modified; please apply your changes to the latest version", "Conflict"
            )
        is_pruned = self.has_old_definition and what == "guard"
        kept = {key: value for key, value in record.items() if not is_pruned or key in OLD_FIELDS}
        self._store.change("policies", name, **{what: kept})
        return DONE

    def clear_reset(self, name: str, uid: str) -> Answer:
        """Remove the annotation by which a person asked for a reset."""
        policy = self._store.get("policies", name)
        if policy is None or policy.uid != uid or policy.reset is None:
            return self._about_another(name)
        self._store.change("policies", name, reset=None)
        return DONE

    def _about_another(self, name: str) -> Answer:
        return status(404, f'"{name}" not found', "NotFound")
