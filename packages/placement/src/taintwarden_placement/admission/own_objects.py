"""Validation of objects before they are stored: which errors reject an object, and which only cause a warning.

Only errors in Taintwarden's own fields reject an object, and only if its author can correct them. An invalid annotation
only causes a warning if it did not change, or if a controller creates the pod or workload: rejecting that would stop a
workload. An invalid toleration then counts as absent; invalid node affinity keeps the pod off every node.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from taintwarden.api.node_affinity import AFFINITY_ANNOTATION
from taintwarden.engine.model import Profile
from taintwarden.fields.field_errors import FieldError
from taintwarden_placement.admission.annotated_objects import ObjectRole, check_object, pod_in, role_of
from taintwarden_placement.admission.checking import FaultSeverity, mapping, sequence, value_at
from taintwarden_placement.admission.pod_review import ANNOTATIONS
from taintwarden_placement.admission.response import ALLOWED, AdmissionResponse

INJECT = "taintwarden.io/inject"
"""Label. "true" on a namespace completes its pods; "false" on a pod or template excludes it."""
_COUNTS_AS_ABSENT = "counts as absent"

Json = Mapping[str, Any]


def check_change(
    obj: Json,
    old: Json | None,
    group: str,
    kind: str,
    profiles: Sequence[Profile] = (),
    *,
    is_injected: bool = False,
) -> AdmissionResponse:
    """Return the response for ``obj``, which replaces ``old`` (None if it is created).

    ``is_injected``: True if pods of its namespace are completed.
    """
    role = role_of(group, kind)
    if role in (ObjectRole.POLICY, ObjectRole.PROFILE):
        return _check_own(obj, old, group, kind)
    if role is not ObjectRole.POD:
        return ALLOWED
    template = pod_in(obj, group, kind)
    # The mutating webhook has completed pods and the templates of DaemonSets already.
    is_completed = is_injected and kind not in ("Pod", "DaemonSet") and not opts_out(template)
    changed = _changed_annotations(template, None if old is None else pod_in(old, group, kind))
    may_refuse = not is_controlled(obj)
    refusals, warnings = [], []
    found = check_object(obj, group, kind, profiles, is_completed=is_completed, checks_native=False)
    for severity, fault in found:
        annotation = _annotation_of(fault)
        if severity is FaultSeverity.WARNING or annotation is None:
            warnings.append(str(fault))
        elif may_refuse and annotation in changed:
            refusals.append(fault)
        elif annotation == AFFINITY_ANNOTATION or _COUNTS_AS_ABSENT in fault.remedy:
            warnings.append(str(fault))
        else:
            warnings.append(f"{fault} ({_COUNTS_AS_ABSENT})")
    return AdmissionResponse(tuple(refusals), tuple(warnings))


def opts_out(pod: object) -> bool:
    """True if the label of a pod or pod template excludes it from injection."""
    return value_at(pod, "metadata", "labels", INJECT) == "false"


def _check_own(obj: Json, old: Json | None, group: str, kind: str) -> AdmissionResponse:
    """Check for errors that the schemas of policies and profiles cannot detect. An unchanged spec is not checked."""
    if old is not None and obj.get("spec") == old.get("spec"):
        return ALLOWED
    found = list(check_object(obj, group, kind))
    return AdmissionResponse(
        tuple(fault for severity, fault in found if severity is FaultSeverity.ERROR),
        tuple(str(fault) for severity, fault in found if severity is FaultSeverity.WARNING),
    )


def _annotation_of(fault: FieldError) -> str | None:
    """Return the Taintwarden annotation that a fault is about; None if it is about something else."""
    return next((name for name in ANNOTATIONS if f"metadata.annotations[{name}]" in fault.path), None)


def _changed_annotations(pod: object, old: object) -> list[str]:
    now, before = (mapping(value_at(one, "metadata", "annotations")) for one in (pod, old))
    return [name for name in ANNOTATIONS if now.get(name) != before.get(name)]


def is_controlled(obj: Json) -> bool:
    """True if a controller manages the object."""
    owners = sequence(value_at(obj, "metadata", "ownerReferences"))
    return any(value_at(owner, "controller") is True for owner in owners)
