"""Kinds with few rules: Leases, PodDisruptionBudgets, Namespaces.

Rules: `kubernetes/pkg/apis/{coordination,policy}/validation`. Forbidden here: controllers (see `controllers/`).
"""

import re
from typing import Any

from localcluster.errors import Cause, refused, unsupported, wrong
from localcluster.kinds.resource import Object, Strategy, restore

_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


class LeaseStrategy(Strategy):
    """The rules of Leases."""

    def prepare_create(self, value: Object) -> None:
        """Set the spec, which is never absent."""
        value.setdefault("spec", {})

    def validate(self, value: Object, old: Object | None) -> list[Cause]:
        """Check the duration, the transitions, and that a preferred holder has a strategy."""
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
    """The rules of PodDisruptionBudgets. Evictions under a new one wait until the controller has set its status."""

    status_writes_metadata = True

    def prepare_create(self, value: Object) -> None:
        """Set an empty status. Its counts are never absent."""
        value.setdefault("spec", {})
        value["status"] = dict.fromkeys(_COUNTS, 0)

    def prepare_status(self, value: Object, old: Object) -> None:
        """Keep everything except the status, in which missing counts become 0."""
        super().prepare_status(value, old)
        value["status"] = dict.fromkeys(_COUNTS, 0) | (value.get("status") or {})

    def validate(self, value: Object, old: Object | None) -> list[Cause]:
        """Check that there is at most one bound, the policy, and the ranges of the bound and of the counts."""
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
    """The rules of Namespaces."""

    has_dns_label_names = True

    def prepare_create(self, value: Object) -> None:
        """Set the phase Active, the label with the name, and the finalizer."""
        meta = value["metadata"]
        meta["labels"] = {**(meta.get("labels") or {}), "kubernetes.io/metadata.name": meta.get("name", "")}
        value["spec"] = {"finalizers": ["kubernetes"]}
        value["status"] = {"phase": "Active"}

    def prepare_update(self, value: Object, old: Object, *, has_status: bool) -> None:
        """Keep the spec and the status."""
        restore(value, old, "spec")
        restore(value, old, "status")
