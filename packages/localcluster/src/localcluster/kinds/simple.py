"""Kinds with few rules: leases, disruption budgets, namespaces.

Rules: `kubernetes/pkg/apis/{coordination,policy}/validation`. Forbidden here: controllers (see `controllers/`).
"""

import re
from typing import Any

from localcluster.errors import Cause, refused, unsupported, wrong
from localcluster.kinds.resource import Object, Strategy, keep

_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


class LeaseStrategy(Strategy):
    """Leases: numbers in range. Optimistic locking is required on update (`unconditional_update` is off)."""

    def prepare_create(self, value: Object) -> None:
        """A lease always has its spec."""
        value.setdefault("spec", {})

    def validate(self, value: Object, old: Object | None) -> list[Cause]:
        """Duration above 0, transitions not below 0."""
        spec = value.get("spec") or {}
        causes = []
        duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
        if duration is not None and duration <= 0:
            causes.append(wrong("spec.leaseDurationSeconds", duration, "must be greater than 0"))
        if transitions is not None and transitions < 0:
            causes.append(wrong("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
        if spec.get("preferredHolder") and not spec.get("strategy"):
            text = "may only be specified if `strategy` is defined"
            causes.append(refused("spec.preferredHolder", text))
        return causes


class BudgetStrategy(Strategy):
    """PodDisruptionBudgets. A new one has an empty status, so evictions under it wait for the controller."""

    status_keeps_metadata = True

    def prepare_create(self, value: Object) -> None:
        """No status yet; the counts are always present."""
        value.setdefault("spec", {})
        value["status"] = dict.fromkeys(_COUNTS, 0)

    def prepare_status(self, value: Object, old: Object) -> None:
        """Missing counts are 0."""
        super().prepare_status(value, old)
        value["status"] = dict.fromkeys(_COUNTS, 0) | (value.get("status") or {})

    def validate(self, value: Object, old: Object | None) -> list[Cause]:
        """One bound, in range; counts of the status not below 0."""
        spec, status = value.get("spec") or {}, value.get("status") or {}
        causes = []
        if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
            causes.append(wrong("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
        for name in ("minAvailable", "maxUnavailable"):
            causes += _bound(spec.get(name), f"spec.{name}")
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy not in {None, "IfHealthyBudget", "AlwaysAllow"}:
            causes.append(unsupported("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget")))
        for name in _COUNTS:
            if status.get(name, 0) < 0:
                causes.append(wrong(f"status.{name}", status[name], "must be greater than or equal to 0"))
        return causes


def _bound(value: Any, field: str) -> list[Cause]:
    if isinstance(value, str):
        if not re.fullmatch(r"[0-9]+%", value, re.ASCII):
            text = (
                "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
                "regex used for validation is '[0-9]+%')"
            )
            return [wrong(field, value, text)]
        return [wrong(field, value, "must not be greater than 100%")] if int(value[:-1]) > 100 else []
    if value is not None and value < 0:
        return [wrong(field, value, "must be greater than or equal to 0")]
    return []


class NamespaceStrategy(Strategy):
    """Namespaces."""

    label_names = True

    def prepare_create(self, value: Object) -> None:
        """Active, with the label that carries its name and the finalizer that its deletion waits for."""
        meta = value["metadata"]
        meta["labels"] = {**(meta.get("labels") or {}), "kubernetes.io/metadata.name": meta.get("name", "")}
        value["spec"] = {"finalizers": ["kubernetes"]}
        value["status"] = {"phase": "Active"}

    def prepare_update(self, value: Object, old: Object, *, has_status: bool) -> None:
        """Only metadata changes."""
        keep(value, old, "spec")
        keep(value, old, "status")
