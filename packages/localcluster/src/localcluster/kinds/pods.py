"""Pods: defaults, admission, validation, and the grace period of deletions.

Rules: `kubernetes/pkg/registry/core/pod/strategy.go`, `apis/core/validation`, the admission plugins
DefaultTolerationSeconds and Priority. Containers are checked for name and image only. Forbidden here: eviction.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from localcluster.errors import Cause, forbidden, not_served, required, unsupported, wrong
from localcluster.kinds.names import label_problems
from localcluster.kinds.resource import Object, Strategy, restore
from localcluster.kinds.tolerations import add_defaults, check_tolerations

SELECTABLE: Mapping[str, tuple[str, ...]] = {
    "spec.nodeName": ("spec", "nodeName"),
    "spec.restartPolicy": ("spec", "restartPolicy"),
    "spec.schedulerName": ("spec", "schedulerName"),
    "spec.serviceAccountName": ("spec", "serviceAccountName"),
    "spec.hostNetwork": ("spec", "hostNetwork"),
    "status.phase": ("status", "phase"),
    "status.podIP": ("status", "podIP"),
    "status.nominatedNodeName": ("status", "nominatedNodeName"),
}

_SPEC_DEFAULTS: Mapping[str, Any] = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "enableServiceLinks": True,
}
_TERMINAL = frozenset({"Succeeded", "Failed"})


class PodStrategy(Strategy):
    """The rules of pods. `comparison_operators` is the feature gate TaintTolerationComparisonOperators."""

    status_writes_metadata = True

    def __init__(self, *, comparison_operators: bool) -> None:
        self._comparison_operators = comparison_operators

    def prepare_create(self, value: Object) -> None:
        """Set defaults, default tolerations, priority, and the phase Pending."""
        spec = value.setdefault("spec", {})
        for name, default in _SPEC_DEFAULTS.items():
            if spec.get(name) is None:
                spec[name] = deepcopy(default)
        _admit_priority(value["metadata"].get("name", ""), spec)
        add_defaults(spec)
        value["status"] = {"phase": "Pending"}

    def prepare_status(self, value: Object, old: Object) -> None:
        """Keep the spec. Times that a condition lacks become null."""
        super().prepare_status(value, old)
        for condition in (value.get("status") or {}).get("conditions") or ():
            condition.setdefault("lastProbeTime", None)
            condition.setdefault("lastTransitionTime", None)

    def prepare_update(self, value: Object, old: Object, *, has_status: bool) -> None:
        """Allow changes of metadata only. The rules for changes of the spec are not implemented."""
        restore(value, old, "status")
        if value.get("spec") != old["spec"]:
            raise not_served("changes of the spec of a pod")

    def validate(self, value: Object, old: Object | None) -> list[Cause]:
        """Check containers, restart policy and tolerations of a new pod."""
        if old is not None:
            return []
        spec = value["spec"]
        causes = _check_containers(spec)
        allowed = ("Always", "OnFailure", "Never")
        if spec["restartPolicy"] not in allowed:
            causes.append(unsupported("spec.restartPolicy", spec["restartPolicy"], allowed))
        operators = self._comparison_operators
        return causes + check_tolerations(
            spec.get("tolerations") or [], "spec.tolerations", comparison_operators=operators
        )


def _admit_priority(name: str, spec: Object) -> None:
    """Set the default priority, and refuse any other, since there are no PriorityClasses."""
    class_name, given = spec.get("priorityClassName"), spec.get("priority")
    if class_name:
        raise forbidden("pods", "", name, f"no PriorityClass with name {class_name} was found")
    if given:
        why = (
            f"the integer value of priority ({given}) must not be provided in pod spec; "
            "priority admission controller computed 0 from the given PriorityClass name"
        )
        raise forbidden("pods", "", name, why)
    spec.update(priority=0, preemptionPolicy="PreemptLowerPriority")


def _check_containers(spec: Object) -> list[Cause]:
    causes = []
    for field in ("containers", "initContainers"):
        containers = spec.get(field) or []
        if field == "containers" and not containers:
            causes.append(required("spec.containers"))
        for index, container in enumerate(containers):
            path = f"spec.{field}[{index}]"
            name = container.get("name", "")
            if not name:
                causes.append(required(f"{path}.name"))
            else:
                causes += [wrong(f"{path}.name", name, text) for text in label_problems(name)]
            if not container.get("image"):
                causes.append(required(f"{path}.image"))
    return causes


def grace_seconds(pod: Object, asked: int | None) -> int:
    """Return the grace period of a deletion in seconds; 0 removes the pod at once."""
    if not pod["spec"].get("nodeName") or pod.get("status", {}).get("phase") in _TERMINAL:
        return 0
    grace: int = pod["spec"].get("terminationGracePeriodSeconds", 0) if asked is None else asked
    return 1 if grace < 0 else grace


def set_condition(pod: Object, kind: str, status: str, now: str, *, reason: str = "", message: str = "") -> None:
    """Set a condition. Its transition time changes only with its status."""
    conditions = pod.setdefault("status", {}).setdefault("conditions", [])
    texts = {"reason": reason, "message": message}
    new = {"type": kind, "status": status, **{name: text for name, text in texts.items() if text}}
    for index, condition in enumerate(conditions):
        if condition.get("type") == kind:
            same = condition.get("status") == status
            new["lastTransitionTime"] = condition.get("lastTransitionTime", now) if same else now
            conditions[index] = {"lastProbeTime": None, **new}
            return
    conditions.append({"lastProbeTime": None, **new, "lastTransitionTime": now})


def is_ready(pod: Object) -> bool:
    """True if the Ready condition is True."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)
